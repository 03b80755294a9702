// SPDX-License-Identifier: Apache-2.0
// What can be asked of an address: aclrtMemGetAddressRange, aclrtPointerGetAttributes; and aclrtMemP2PMap, which
// prepares one for another device of this process.
#include "block.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "host_memory.hpp"
#include "physical.hpp"
#include "registration.hpp"
#include "window.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace location_type = acl::mem_location_type;

acl::aclError refuse_null(const char* what) {
  return refuse(code::invalid_param, Reason::bad_argument, fmt::format("{} is null", what));
}

acl::aclError refuse_address(const void* address, Reason reason, std::string_view why) {
  return refuse(code::rt_param_invalid, reason, fmt::format("{} {}", address, why));
}

std::uint32_t host_page() {
  static const auto bytes = static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool is_imported(const PinnedBlock& block) {
  if (block.origin() == Origin::imported) return true;
  return block.origin() == Origin::mapped && block.memory()->origin != HandleOrigin::allocated;
}

}  // namespace

namespace calls {

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, std::size_t* psize) {
  if (ptr == nullptr) return refuse_null("ptr");
  if (pbase == nullptr && psize == nullptr) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, "pbase and psize are both null: nothing is asked for");
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  void* base = nullptr;
  std::size_t size = 0;
  if (const PinnedBlock block(ptr);
      block && (block.origin() == Origin::allocated || block.origin() == Origin::mapped)) {
    base = reinterpret_cast<void*>(block.base());
    size = block.size();
  } else if (const std::optional<HostBlock> host = host_block_with(ptr)) {
    base = host->base;
    size = host->size;
  } else {
    return refuse_address(ptr, Reason::not_device_memory,
                          "is in no memory of aclrtMalloc, aclrtMallocHost or aclrtMapMem");
  }
  if (pbase != nullptr) *pbase = base;
  if (psize != nullptr) *psize = size;
  return code::success;
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  if (ptr == nullptr) return refuse_null("ptr");
  if (attributes == nullptr) return refuse_null("attributes");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  aclrtPtrAttributes found{};
  if (const PinnedBlock block(ptr); block) {
    const bool on_host = block.in_host_memory();
    found.location.type = on_host ? location_type::host : location_type::device;
    found.location.id = on_host ? 0 : static_cast<std::uint32_t>(user_number(block.local_device()));
    found.pageSize = static_cast<std::uint32_t>(block.page_size());
  } else if (in_window(reinterpret_cast<std::uintptr_t>(ptr))) {
    return refuse_address(ptr, Reason::not_device_memory, "is a device address, and nothing of this process is there");
  } else {
    const bool known = host_block_with(ptr).has_value() || is_registered(ptr);
    found.location.type = known ? location_type::host : location_type::unregistered;
    found.pageSize = known ? host_page() : 0;
  }
  *attributes = found;
  return code::success;
}

// The page tables are prepared at once here, since there are none: what is left of the call is what it refuses.
aclError aclrtMemP2PMap(void* devPtr, std::size_t size, std::int32_t dstDevId, std::uint64_t flags) {
  if (devPtr == nullptr) return refuse_null("devPtr");
  if (flags != 0) return refuse(code::invalid_param, Reason::bad_argument, fmt::format("flags is {}, not 0", flags));
  if (size == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "size is 0");
  DeviceNumber current;
  if (const aclError refused = current_device(&current)) return refused;
  DeviceNumber other;
  if (const aclError refused = find_device(dstDevId, &other)) return refused;
  const PinnedBlock block(devPtr);
  if (!block || block.in_host_memory()) {
    return refuse(code::rt_drv_internal, Reason::not_device_memory,
                  fmt::format("{} is no device memory of this process", devPtr));
  }
  if (is_imported(block)) {
    return refuse(code::rt_drv_internal, Reason::imported_memory,
                  fmt::format("{} was imported: the call is for memory of this process", devPtr));
  }
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(devPtr) - block.base();
  if (offset > block.size() || size > block.size() - offset) {
    const std::uint64_t left = offset < block.size() ? block.size() - offset : 0;
    return refuse(code::rt_drv_internal, {.reason = Reason::out_of_bounds, .needed = size, .available = left},
                  fmt::format("{} bytes at {} leave their memory, which has {} there", size, devPtr, left));
  }
  if (!peer_access_effective(block.device(), other.physical)) {
    return refuse(code::rt_drv_internal,
                  {.reason = Reason::peer_access_missing, .device = block.device(), .peer_device = other.physical},
                  fmt::format("devices {} and {} have no access to each other: aclrtDeviceEnablePeerAccess on both "
                              "first (R45)",
                              block.device(), other.physical));
  }
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
