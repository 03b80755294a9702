// SPDX-License-Identifier: Apache-2.0
// aclrtHostRegister, aclrtHostRegisterV2, aclrtHostUnregister and aclrtHostGetDevicePointer.
#include "registration.hpp"

#include "block_lifetime.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "per_process.hpp"
#include "profile.hpp"
#include "window.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <mutex>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace flags_of = acl::host_register_flag;
namespace types = acl::host_register_type;

struct Registration {
  Registration(std::uint64_t bytes, std::uintptr_t on_device) noexcept : size(bytes), device_address(on_device) {}
  std::uint64_t size;
  std::uintptr_t device_address;  // 0: pinned only, the device has no address for it
  TaskCount tasks;
};

struct State : ProcessState<State> {
  std::map<std::uintptr_t, Registration> by_address;

  // The registration that has the first byte of [address, address + size) that any has, or end.
  std::map<std::uintptr_t, Registration>::iterator overlapping(std::uintptr_t address, std::uint64_t size) {
    auto after = by_address.upper_bound(address);
    if (after != by_address.begin()) {
      const auto below = std::prev(after);
      if (address - below->first < below->second.size) return below;
    }
    return after != by_address.end() && after->first - address < size ? after : by_address.end();
  }

  void close_inherited() noexcept {}
};

PerProcess<State> state;

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::uint64_t host_page() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t whole_pages(std::uint64_t size) { return (size + host_page() - 1) / host_page() * host_page(); }

acl::aclError refuse_argument(acl::aclError refused, std::string text) {
  return refuse(refused, Reason::bad_argument, std::move(text));
}

acl::aclError not_registered(const void* address) {
  return refuse(code::host_memory_not_registered, Reason::not_reserved,
                fmt::format("{} is not registered: aclrtHostRegister first, or it was unregistered already", address));
}

acl::aclError check_product(acl::Entry call, const char* name) {
  if (profile().supports(call)) return 0;
  return refuse(code::rt_feature_not_support, Reason::unsupported,
                fmt::format("{} does not have {}: A2, A3 and 950 have", product_name(profile().product), name));
}

// What the kernel would pin: whole pages of memory that is there.
acl::aclError check_range(const void* address, std::uint64_t size) {
  const std::uintptr_t at = number_of(address);
  if (at % host_page() != 0) {
    return refuse_argument(code::rt_param_invalid,
                           fmt::format("{} is not at the start of a page of {} bytes", address, host_page()));
  }
  if (size > UINTPTR_MAX - at - host_page()) {
    return refuse_argument(code::rt_param_invalid,
                           fmt::format("{} bytes at {} leave the address space", size, address));
  }
  if (in_window(at, size)) {
    return refuse_argument(code::rt_param_invalid,
                           fmt::format("{} is an address of the device, not of the host", address));
  }
  // Does nothing on Linux but say whether all of the range is there.
  if (::msync(const_cast<void*>(address), whole_pages(size), MS_ASYNC) != 0 && errno == ENOMEM) {
    return refuse(code::rt_param_invalid, {.reason = Reason::bad_argument, .system_errno = EFAULT, .needed = size},
                  fmt::format("not all of the {} bytes at {} are mapped in this process", size, address));
  }
  return 0;
}

struct Request {
  void* address = nullptr;
  std::uint64_t size = 0;
  bool read_only = false;
  bool with_device_address = true;
};

acl::aclError enter(const Request& request, void** device_address) {
  DeviceNumber device;
  if (const acl::aclError refused = current_device(&device)) return refused;
  if (const acl::aclError refused = check_range(request.address, request.size)) return refused;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const std::uintptr_t at = number_of(request.address);
  if (const auto other = all.overlapping(at, request.size); other != all.by_address.end()) {
    return refuse(code::host_memory_already_registered, Reason::already_mapped,
                  fmt::format("{} bytes at {:#x} are registered already: aclrtHostUnregister first", other->second.size,
                              other->first));
  }
  std::uintptr_t on_device = 0;
  if (request.with_device_address) {
    const std::uint64_t bytes = whole_pages(request.size);
    on_device = take_addresses(WindowPart::host_registered, bytes, granule_bytes);
    if (on_device == 0) return code::rt_memory_allocation;
    const acl::aclError refused = place_block({.address = on_device,
                                               .size = request.size,
                                               .backed = bytes,
                                               .page_size = host_page(),
                                               .origin = Origin::registered,
                                               .read_only = request.read_only,
                                               .view = static_cast<std::byte*>(request.address)});
    if (refused != 0) {
      give_back_addresses(on_device, bytes);
      return refused;
    }
  }
  all.by_address.try_emplace(at, request.size, on_device);
  if (device_address != nullptr) *device_address = reinterpret_cast<void*>(on_device);
  return 0;
}

// Under the lock. False when a call is using the device's address at this moment.
bool leave(const Registration& registration) {
  if (registration.device_address == 0) return true;
  if (remove_block(registration.device_address, Origin::registered) == Removed::in_use) return false;
  give_back_addresses(registration.device_address, whole_pages(registration.size));
  return true;
}

}  // namespace

bool is_registered(const void* host_address) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  return all.overlapping(number_of(host_address), 1) != all.by_address.end();
}

HostHold hold_registered(const void* host_address, std::uint64_t size) {
  HostHold hold;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  for (std::uintptr_t at = number_of(host_address); size != 0;) {
    const auto found = all.overlapping(at, 1);
    if (found == all.by_address.end()) return {};
    const std::uint64_t here = std::min(size, found->second.size - (at - found->first));
    hold.add(found->second.tasks);
    size -= here;
    at += here;
  }
  return hold;
}

void registrations_shut_down() {
  State* const all = state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  for (const auto& [address, registration] : all->by_address) leave(registration);
  all->by_address.clear();
}

std::uint64_t registrations_held() {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  return all.by_address.size();
}

void registrations_before_fork() { state.before_fork(); }
void registrations_after_fork_in_parent() { state.after_fork_in_parent(); }
void registrations_after_fork_in_child() { state.after_fork_in_child(); }

namespace calls {

aclError aclrtHostRegister(void* ptr, std::uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  if (ptr == nullptr) return refuse_argument(code::invalid_param, "ptr is null");
  if (devPtr == nullptr) return refuse_argument(code::invalid_param, "devPtr is null");
  if (size == 0) return refuse_argument(code::invalid_param, "size is 0");
  if (type != types::mapped && type != types::io_memory && type != types::read_only) {
    return refuse_argument(code::rt_param_invalid, fmt::format("type {} is none of 0, 4 and 8", type));
  }
  if (const aclError refused = check_product(Entry::aclrtHostRegister, "aclrtHostRegister")) return refused;
  return enter({.address = ptr, .size = size, .read_only = type == types::read_only}, devPtr);
}

aclError aclrtHostRegisterV2(void* ptr, std::uint64_t size, std::uint32_t flag) {
  if (ptr == nullptr) return refuse_argument(code::invalid_param, "ptr is null");
  if (size == 0) return refuse_argument(code::invalid_param, "size is 0");
  constexpr std::uint32_t known = flags_of::mapped | flags_of::io_memory | flags_of::read_only | flags_of::pinned;
  if (flag == 0 || (flag & ~known) != 0) {
    return refuse_argument(code::rt_param_invalid, fmt::format("flag {:#x} is no combination of {:#x}", flag, known));
  }
  if (const aclError refused = check_product(Entry::aclrtHostRegisterV2, "aclrtHostRegisterV2")) return refused;
  return enter({.address = ptr,
                .size = size,
                .read_only = (flag & flags_of::read_only) != 0,
                .with_device_address = flag != flags_of::pinned},
               nullptr);
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, std::uint32_t flag) {
  if (pHost == nullptr) return refuse_argument(code::invalid_param, "pHost is null");
  if (pDevice == nullptr) return refuse_argument(code::invalid_param, "pDevice is null");
  if (flag != 0) return refuse_argument(code::rt_param_invalid, fmt::format("flag is {}, must be 0", flag));
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.overlapping(number_of(pHost), 1);
  if (found == all.by_address.end()) return not_registered(pHost);
  const auto& [address, registration] = *found;
  if (registration.device_address == 0) {
    return refuse_argument(code::rt_param_invalid,
                           fmt::format("{} was registered as pinned only: the device has no address for it", pHost));
  }
  *pDevice = reinterpret_cast<void*>(registration.device_address + (number_of(pHost) - address));
  return code::success;
}

aclError aclrtHostUnregister(void* ptr) {
  if (ptr == nullptr) return refuse_argument(code::invalid_param, "ptr is null");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_address.find(number_of(ptr));
  if (found == all.by_address.end()) return not_registered(ptr);
  if (found->second.tasks.any()) {
    return refuse(code::rt_drv_internal, Reason::in_use,
                  fmt::format("a task in a stream uses the memory at {}: synchronise the stream first (R5)", ptr));
  }
  if (!leave(found->second)) {
    return refuse(code::rt_drv_internal, Reason::in_use,
                  fmt::format("a call is using the device's address of {}: unregister it when that has ended", ptr));
  }
  all.by_address.erase(found);
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
