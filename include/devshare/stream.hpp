// SPDX-License-Identifier: Apache-2.0
// Stream: work that a device carries out in order while the caller goes on. StreamRef: a stream that somebody else keeps
// alive, such as an engine's own.
#pragma once

#include <devshare/deadline.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>

#include <cstdint>

namespace devshare {

// A stream by its number: copy it freely, use it from any thread. Whoever made the stream keeps it alive.
class StreamRef {
 public:
  // A stream of the engine's own on this device. Null is the device's default stream.
  static StreamRef adopt(const Device& device, acl::aclrtStream native) noexcept { return StreamRef(device, native); }
  static StreamRef default_of(const Device& device) noexcept { return StreamRef(device, nullptr); }

  // Waits until everything that is in the stream by now is done, and returns the first error of a task that nobody was
  // told of yet: a copy that was enqueued is known to have happened only when this has succeeded.
  // Errors: whatever the task met (exporter_gone, no_space, refused), invalid_argument (the stream has ended),
  // unsupported_by_runtime, no_device_context, runtime_gone. ACL: aclrtSynchronizeStream.
  DEVSHARE_API Result<void> synchronize() const noexcept;

  // The same, until then at most. Errors: timed_out as well. ACL: aclrtSynchronizeStreamWithTimeout, in milliseconds.
  DEVSHARE_API Result<void> synchronize(Deadline deadline) const noexcept;

  // Whether everything in it is done, without waiting. Does not say whether it went well: synchronize() does.
  // ACL: aclrtStreamQuery.
  DEVSHARE_API Result<bool> idle() const noexcept;

  Device device() const noexcept { return device_; }
  // For a launch, or an ACL call. The default stream's is null.
  acl::aclrtStream native_handle() const noexcept { return native_; }

  // For the library's own sources.
  const detail::Session& session() const noexcept DEVSHARE_LIFETIMEBOUND { return device_.session(); }

  friend bool operator==(const StreamRef& a, const StreamRef& b) noexcept {
    return a.native_ == b.native_ && a.device_ == b.device_;
  }

 private:
  StreamRef(const Device& device, acl::aclrtStream native) noexcept : device_(device), native_(native) {}

  Device device_;
  acl::aclrtStream native_;
};

// Waits for all streams of a device, as StreamRef::synchronize() does for one. ACL: aclrtSynchronizeDevice.
DEVSHARE_API Result<void> synchronize(const Device& device) noexcept;

namespace detail {

struct StreamValue {
  acl::aclrtStream native = nullptr;
  std::int32_t device = -1;
};

struct StreamPolicy {
  using Value = StreamValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value& value) noexcept { return value.native; }
  static bool gone(const Value& value) noexcept { return value.native == nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, Value& value) noexcept;
};

}  // namespace detail

struct StreamOptions {
  std::uint32_t priority = 0;  // 0, the highest, to 7
};

// A stream that this object owns. Movable, not copyable. Work may be enqueued from any thread.
//
// A stream ends when all that is in it is done: close() waits for that and returns the first error that no synchronize()
// has; the destructor waits too, and reports it.
class DEVSHARE_CONSUMABLE [[nodiscard("the stream ends when this object ends")]] Stream {
 public:
  // Errors: invalid_argument, resource_limit, unsupported_by_runtime, no_device_context, runtime_gone.
  // ACL: aclrtCreateStream, or aclrtCreateStreamWithConfig for a priority.
  DEVSHARE_API static Result<Stream> create(const Device& device, StreamOptions options = {}) noexcept;

  // The stream for calls that take one. Good for as long as this object. Only of an object that holds one.
  DEVSHARE_READS StreamRef ref() const& noexcept DEVSHARE_LIFETIMEBOUND {
    return StreamRef::adopt(device(), owned_.value().native);
  }
  DEVSHARE_READS operator StreamRef() const& noexcept DEVSHARE_LIFETIMEBOUND { return ref(); }
  StreamRef ref() && = delete;        // the stream ends with the temporary: keep it in a named object
  operator StreamRef() && = delete;  // the stream ends with the temporary: keep it in a named object

  // As of StreamRef. Further error: closed.
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize() const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<void> synchronize(Deadline deadline) const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<bool> idle() const noexcept;

  // Whether there is a stream: false of an object that was moved from or closed, or that a close() gave back although
  // its stream has ended.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }

  // Only of an object that holds one.
  DEVSHARE_READS Device device() const noexcept { return detail::device_of(owned_.session(), owned_.value().device); }
  DEVSHARE_READS acl::aclrtStream native_handle() const noexcept { return owned_.value().native; }

  // Waits, ends the stream and returns the first error of its tasks that nobody was told of. The stream ends in spite of
  // such an error, and what comes back is empty; if the runtime refuses to end it, it comes back: holds() tells.
  // Errors: those of synchronize(); closed, forked. ACL: aclrtSynchronizeStream, aclrtDestroyStream.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<Stream>> close() && noexcept;
  void close() & = delete;       // write std::move(stream).close(): it ends the stream
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  Stream(const detail::Session& session, const detail::StreamValue& value) noexcept : owned_(session, value) {}

  detail::Owned<detail::StreamPolicy> owned_;
};

}  // namespace devshare
