// SPDX-License-Identifier: Apache-2.0
// DeviceId: a device as this process numbers it. Device: one that is there.
#pragma once

#include <devshare/detail/runtime_record.hpp>
#include <devshare/result.hpp>

#include <cstddef>
#include <cstdint>

namespace devshare {

class Runtime;
class Device;

namespace detail {
inline Device device_of(const Session& session, std::int32_t number) noexcept;
}

// The user id of a device, after ASCEND_RT_VISIBLE_DEVICES. Ids never cross a process border: tickets carry the
// driver's own number.
enum class DeviceId : std::int32_t {};

// Bytes of a device's memory, over all processes.
struct MemoryInfo {
  std::size_t free = 0;
  std::size_t total = 0;
};

// A device that exists, initialised in this process. A value: copy it freely, use it from any thread. devshare makes
// it current around its own calls and gives the thread back what it had; it never resets a device before
// Runtime::finalize().
class Device {
 public:
  DeviceId id() const noexcept { return id_; }
  Runtime runtime() const noexcept;

  // Makes the device current on this thread until the thread says otherwise. Not needed for correctness: it saves the
  // calls by which every operation would do so for itself. ACL: aclrtSetDevice. Errors: no_device_context, runtime_gone.
  DEVSHARE_API Result<void> make_current() const noexcept;

  // Free and total memory of the device. Errors: unsupported_by_runtime, runtime_gone.
  DEVSHARE_API Result<MemoryInfo> memory_info() const noexcept;

  friend bool operator==(const Device& a, const Device& b) noexcept {
    return a.id_ == b.id_ && a.session_.record == b.session_.record;
  }

  // For the library's own headers.
  const detail::Session& session() const noexcept DEVSHARE_LIFETIMEBOUND { return session_; }
  std::int32_t number() const noexcept { return static_cast<std::int32_t>(id_); }

 private:
  friend Device detail::device_of(const detail::Session&, std::int32_t) noexcept;
  Device(const detail::Session& session, DeviceId id) noexcept : session_(session), id_(id) {}

  detail::Session session_;
  DeviceId id_;
};

inline Device detail::device_of(const Session& session, std::int32_t number) noexcept {
  return Device(session, DeviceId{number});
}

}  // namespace devshare
