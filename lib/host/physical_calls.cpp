// SPDX-License-Identifier: Apache-2.0
// aclrtMallocPhysical, aclrtFreePhysical and what can be asked of a handle.
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "physical.hpp"
#include "physical_kind.hpp"
#include "profile.hpp"
#include "token_exports.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace devshare::host {
namespace {

acl::aclError refuse_null(const char* what) {
  return refuse(acl::code::invalid_param, Reason::bad_argument, fmt::format("{} is null", what));
}

std::uint64_t machine_memory() {
  static const auto bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// What no device can have, and for the host's memory what the machine has not: it would be refused at first touch.
acl::aclError check_size(std::uint64_t size, const PhysicalKind& kind) {
  if (size % kind.page_size != 0) {
    return refuse(
        acl::code::rt_param_invalid, Reason::bad_argument,
        fmt::format("size {} is no multiple of {}: round it up to the granularity (R36)", size, kind.page_size));
  }
  if (kind.device < 0 && size > machine_memory()) {
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::no_space, .needed = size, .available = machine_memory()},
                  fmt::format("the host has no {} bytes", size));
  }
  if (size > INT64_MAX) {
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::capacity, .needed = size, .available = profile().capacity},
                  fmt::format("{} bytes are more than any device has", size));
  }
  return 0;
}

}  // namespace

namespace calls {

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, std::size_t size, const aclrtPhysicalMemProp* prop,
                             std::uint64_t flags) {
  if (handle == nullptr) return refuse_null("handle");
  if (prop == nullptr) return refuse_null("prop");
  if (flags != 0) return refuse(code::invalid_param, Reason::bad_argument, fmt::format("flags is {}, not 0", flags));
  if (prop->handleType != mem_handle_type::none) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  fmt::format("handleType is {}, only 0 is accepted", prop->handleType));
  }
  if (prop->allocationType != mem_allocation_type::pinned) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  fmt::format("allocationType is {}, only 0 (pinned) exists", prop->allocationType));
  }
  PhysicalKind kind;
  if (const aclError refused = physical_kind(*prop, &kind)) return refused;
  if (size == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "size is 0");
  if (const aclError refused = check_size(size, kind)) return refused;
  Physical memory;
  if (const aclError refused = make_physical(
          {.size = size, .page_size = kind.page_size, .property = *prop, .device = kind.device, .p2p = kind.p2p},
          &memory)) {
    return refused;
  }
  *handle = add_handle(std::move(memory));
  return code::success;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  if (handle == nullptr) return refuse_null("handle");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  // 950: the token of a handle goes when the handle is freed, mapped or not.
  const Physical memory = profile().product == Product::p950 ? physical_of(handle) : nullptr;
  const aclError refused = free_handle(handle);
  if (refused == code::success && memory != nullptr && physical_of(handle) == nullptr) token_of_memory_ends(memory->id);
  return refused;
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop, aclrtMemGranularityOptions option,
                                          std::size_t* granularity) {
  if (prop == nullptr) return refuse_null("prop");
  if (granularity == nullptr) return refuse_null("granularity");
  if (option != granularity::minimum && option != granularity::recommended) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  fmt::format("option {} is neither the minimum (0) nor the recommended (1) granularity", option));
  }
  PhysicalKind kind;
  if (const aclError refused = physical_kind(*prop, &kind)) return refused;
  *granularity = kind.page_size;
  return code::success;
}

// Only the address of the map counts: the driver keeps the handle there.
aclError aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle) {
  if (virPtr == nullptr) return refuse_null("virPtr");
  if (handle == nullptr) return refuse_null("handle");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const PinnedBlock piece(virPtr);
  if (!piece || piece.origin() != Origin::mapped || piece.base() != reinterpret_cast<std::uintptr_t>(virPtr)) {
    return refuse(code::rt_drv_internal, Reason::not_reserved,
                  fmt::format("{} is not the address of a mapping: give the one that aclrtMapMem took", virPtr));
  }
  const aclrtDrvMemHandle retained = retain_handle(*piece.memory());
  if (retained == nullptr) return refuse_handle(retained);
  *handle = retained;
  return code::success;
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle, aclrtPhysicalMemProp* prop) {
  if (handle == nullptr) return refuse_null("handle");
  if (prop == nullptr) return refuse_null("prop");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const Physical memory = physical_of(handle);
  if (memory == nullptr) return refuse_handle(handle);
  *prop = memory->property;
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
