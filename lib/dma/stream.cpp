// SPDX-License-Identifier: Apache-2.0
// Streams, and copies in them. Each call makes the stream's device current around it: the runtime refuses a stream of
// another device.
#include "device_call.hpp"

#include <devshare/stream_copy.hpp>

#include <utility>

namespace devshare {

using acl::Table;
using detail::call_on;

Result<void> StreamRef::synchronize() const noexcept {
  return call_on<&Table::aclrtSynchronizeStream>(device_.session(), device_.number(), Operation::synchronize, native_);
}

Result<void> StreamRef::synchronize(Deadline deadline) const noexcept {
  return call_on<&Table::aclrtSynchronizeStreamWithTimeout>(device_.session(), device_.number(), Operation::synchronize,
                                                            native_, detail::timeout_until(deadline));
}

Result<bool> StreamRef::idle() const noexcept {
  acl::aclrtStreamStatus status = acl::stream_status::not_ready;
  DEVSHARE_CHECK(call_on<&Table::aclrtStreamQuery>(device_.session(), device_.number(), Operation::query_stream,
                                                   native_, &status));
  return status == acl::stream_status::complete;
}

Result<void> synchronize(const Device& device) noexcept {
  return call_on<&Table::aclrtSynchronizeDevice>(device.session(), device.number(), Operation::synchronize);
}

Result<Stream> Stream::create(const Device& device, StreamOptions options) noexcept {
  acl::aclrtStream native = nullptr;
  constexpr Operation operation = Operation::create_stream;
  if (options.priority == 0) {
    DEVSHARE_CHECK(call_on<&Table::aclrtCreateStream>(device.session(), device.number(), operation, &native));
  } else {
    DEVSHARE_CHECK(call_on<&Table::aclrtCreateStreamWithConfig>(device.session(), device.number(), operation, &native,
                                                                options.priority, std::uint32_t{0}));
  }
  return Stream(device.session(), {native, device.number()});
}

Result<void> Stream::synchronize() const noexcept {
  if (!holds()) return Error(Errc::closed, Operation::synchronize);
  return ref().synchronize();
}

Result<void> Stream::synchronize(Deadline deadline) const noexcept {
  if (!holds()) return Error(Errc::closed, Operation::synchronize);
  return ref().synchronize(deadline);
}

Result<bool> Stream::idle() const noexcept {
  if (!holds()) return Error(Errc::closed, Operation::query_stream);
  return ref().idle();
}

Result<void, Refused<Stream>> Stream::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::end_stream);
}

namespace detail {

// The stream ends whatever its tasks met.
Result<void> StreamPolicy::close(const Session& session, Value& value) noexcept {
  auto done = call_on<&Table::aclrtSynchronizeStream>(session, value.device, Operation::synchronize, value.native);
  auto ended = call_on<&Table::aclrtDestroyStream>(session, value.device, Operation::end_stream, value.native);
  if (ended) value.native = nullptr;
  return done ? std::move(ended) : std::move(done);
}

// R42: what a stream does not do with memory of another device is a copy between it and the host.
Result<void> enqueue_copy(const StreamRef& stream, const Copy& copy) noexcept {
  const std::int32_t device = stream.device().number();
  const bool with_host = copy.other_device_address == nullptr;
  const bool leaves = copy.size > copy.room;
  if (leaves || (with_host && copy_forbidden(copy.device_address))) {
    return Error(leaves ? Errc::out_of_range : Errc::cross_device_copy, copy.operation,
                 {.device = device, .needed = copy.size, .available = copy.room});
  }
  return call_on<&Table::aclrtMemcpyAsync>(stream.session(), device, copy.operation, copy.to, copy.room, copy.from,
                                           copy.size, copy.kind, stream.native_handle());
}

}  // namespace detail

Result<void> fill(const StreamRef& stream, DeviceSpan<std::byte> to, std::byte value) noexcept {
  if (to.empty()) return {};
  const Device device = stream.device();
  return call_on<&Table::aclrtMemsetAsync>(device.session(), device.number(), Operation::fill,
                                           static_cast<void*>(to.data().address()), to.size(),
                                           std::to_integer<std::int32_t>(value), to.size(), stream.native_handle());
}

}  // namespace devshare
