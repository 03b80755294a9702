// SPDX-License-Identifier: Apache-2.0
// aclrtGetMemInfo: the free and total bytes of the current device, over all processes of the machine.
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "ledger.hpp"
#include "profile.hpp"

#include <fmt/format.h>

namespace devshare::host {
namespace {

enum class Pool { ddr, hbm, none };

// The pools that the values of aclrtMemAttr name, as the vendor numbers them: each with page sizes and P2P forms.
Pool pool_of(acl::aclrtMemAttr attr) noexcept {
  switch (attr) {
    case acl::mem_attr::ddr:
    case acl::mem_attr::ddr_huge:
    case acl::mem_attr::ddr_normal:
    case 6:  // DDR_MEM_P2P_HUGE
    case 7:  // DDR_MEM_P2P_NORMAL
      return Pool::ddr;
    case acl::mem_attr::hbm:
    case acl::mem_attr::hbm_huge:
    case acl::mem_attr::hbm_normal:
    case 8:   // HBM_MEM_P2P_HUGE
    case 9:   // HBM_MEM_P2P_NORMAL
    case 10:  // HBM_MEM_HUGE1G
    case 11:  // HBM_MEM_P2P_HUGE1G
      return Pool::hbm;
    default:
      return Pool::none;
  }
}

}  // namespace

acl::aclError calls::aclrtGetMemInfo(aclrtMemAttr attr, std::size_t* free, std::size_t* total) {
  if (free == nullptr || total == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument, "free or total is null");
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const Pool pool = pool_of(attr);
  if (pool == Pool::none) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("{} is no kind of memory", attr));
  }
  // A 310P has one pool, of DDR, which both names mean. The others have HBM only and report nothing of DDR.
  if (pool == Pool::ddr && profile().product != Product::p310) {
    *free = 0;
    *total = 0;
    return code::success;
  }
  const std::uint64_t capacity = profile().capacity;
  const std::uint64_t in_use = ledger_bytes_in_use(device.physical);
  *free = in_use < capacity ? capacity - in_use : 0;
  *total = capacity;
  return code::success;
}

}  // namespace devshare::host
