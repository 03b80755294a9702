// SPDX-License-Identifier: Apache-2.0
// Runtime: the process's ACL runtime, the vendor's or the host runtime that is linked in.
#pragma once

#include <devshare/detail/runtime_layout.hpp>
#include <devshare/detail/runtime_record.hpp>
#include <devshare/device.hpp>
#include <devshare/process.hpp>
#include <devshare/result.hpp>

#include <string_view>
#include <type_traits>

namespace devshare {

struct Version {
  std::int32_t major = 0;
  std::int32_t minor = 0;
  std::int32_t patch = 0;
  friend constexpr bool operator==(const Version&, const Version&) noexcept = default;
};

// Memory that could not be closed and is kept rather than freed under somebody's hands (R22). What borrowers of a lender
// still hold is freed when they have gone.
struct Parked {
  std::size_t objects = 0;
  std::size_t bytes = 0;
  std::size_t holders = 0;
};

// A handle to the one runtime of the process: copy it freely, use it from any thread.
//
// open() picks, in this order and once for the life of the process:
//   1. DEVSHARE_RUNTIME: `host`, `ascend`, or the path of a library;
//   2. a libascendcl.so that is loaded already, so that an engine's own ACL calls and devshare meet in one runtime;
//   3. an installed libascendcl.so that reports a device;
//   4. the host runtime.
// It calls aclInit; where somebody else has (100002, R2) devshare never finalizes.
class Runtime {
 public:
  // Errors: runtime_not_found, runtime_incomplete (entry() names the call), bad_switch, backend_unavailable, refused.
  // explain(error).note has the particulars: the variable and its value, and what the loader or the runtime said.
  DEVSHARE_API static Result<Runtime> open() noexcept;

  // "host" or "ascend".
  DEVSHARE_API std::string_view name() const noexcept;
  // Where the entries come from: a path, or "linked in".
  DEVSHARE_API std::string_view origin() const noexcept;
  // The ACL version the runtime reports; zeros where it has no such call.
  DEVSHARE_API Version version() const noexcept;

  // Whether the runtime has an entry point.
  DEVSHARE_API bool has(acl::Entry entry) const noexcept;

  DEVSHARE_API Result<std::uint32_t> device_count() const noexcept;

  // The device with this id, initialised in this process by the first call that names it.
  // Errors: no_such_device, no_device_context, runtime_gone.
  DEVSHARE_API Result<Device> device(DeviceId id) const noexcept;
  template <class T>
    requires(!std::is_same_v<T, DeviceId>)
  Result<Device> device(T) const = delete;  // only a DeviceId names a device: write DeviceId{n}

  // This process as the driver numbers it, to be sent to an exporter (R14). Needs no device.
  // Errors: unsupported_by_runtime; refused when the runtime answers but knows no number.
  Result<BarePid> bare_pid() const noexcept {
    auto* const get = session_.record->table.aclrtDeviceGetBareTgid;
    if (get == nullptr) [[unlikely]] return detail::lacking(Operation::bare_pid, acl::Entry::aclrtDeviceGetBareTgid);
    std::int32_t number = 0;
    const acl::aclError code = get(&number);
    if (code != 0 || number <= 0) [[unlikely]] {
      return detail::refusal(*session_.record, Operation::bare_pid, acl::Entry::aclrtDeviceGetBareTgid, code, {});
    }
    return BarePid::from_peer_message(number);
  }

  // How far the counts of bytes in use and peer grants reach: "machine", or "process" where the host runtime has no
  // place to share them; "driver" with the vendor's.
  DEVSHARE_API std::string_view device_state_scope() const noexcept;

  // Memory that was kept because its key could not be closed, or because borrowers still hold it.
  DEVSHARE_API Parked parked() const noexcept;

  // Ends what open() began: devices are reset, and the runtime finalized where devshare was the one to initialise it.
  // Objects still alive become inert: their destructors do nothing, their calls return runtime_gone. open() may be
  // called again. For the end of main, not for a library.
  //
  // Waits for the work in streams that can be carried out. On the host runtime a stream that waits for something, as for
  // a notify that nobody has recorded, is dropped with all that stands in it; with the vendor's, and where somebody else
  // initialised the runtime and the last count on the device was devshare's, it is waited for as aclrtResetDevice does:
  // synchronise or end such streams before.
  DEVSHARE_API Result<void> finalize() const noexcept;

  friend bool operator==(const Runtime& a, const Runtime& b) noexcept { return a.session_.record == b.session_.record; }

  // For the library's own headers.
  const detail::Session& session() const noexcept DEVSHARE_LIFETIMEBOUND { return session_; }

 private:
  friend class Device;
  explicit Runtime(const detail::Session& session) noexcept : session_(session) {}

  detail::Session session_;
};

inline Runtime Device::runtime() const noexcept { return Runtime(session_); }

}  // namespace devshare
