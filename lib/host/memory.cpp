// SPDX-License-Identifier: Apache-2.0
// aclrtMalloc, aclrtFree, aclrtFreeWithDevSync: arguments, policies and sizes. block.cpp does the rest.
#include "block_lifetime.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "streams.hpp"

#include <fmt/format.h>

#include <optional>

namespace devshare::host {
namespace {

namespace policy = acl::malloc_policy;

constexpr std::uint64_t giant_page = std::uint64_t{1} << 30;
constexpr std::uint64_t small_block = std::uint64_t{1} << 20;  // "huge first" gives no huge page to less
constexpr std::uint64_t size_unit = 32;

// Which pages a policy gives a block of this size.
std::uint64_t page_size_for(acl::aclrtMemMallocPolicy asked, std::uint64_t size, const Profile& card) {
  switch (asked) {
    case policy::huge_first:
    case policy::huge_first_p2p:
      return size <= small_block ? card.normal_page : card.huge_page;
    case policy::huge_only:
    case policy::huge_only_p2p:
      return card.huge_page;
    case policy::normal_only:
    case policy::normal_only_p2p:
      return card.normal_page;
    case policy::huge_1g_only:
    case policy::huge_1g_only_p2p:
      return giant_page;
    default:
      return size >= card.huge_page ? card.huge_page : card.normal_page;  // also for numbers that are no policy
  }
}

bool is_p2p(acl::aclrtMemMallocPolicy asked) {
  return asked == policy::huge_first_p2p || asked == policy::huge_only_p2p || asked == policy::normal_only_p2p ||
         asked == policy::huge_1g_only_p2p;
}

std::optional<std::uint64_t> round_up(std::uint64_t value, std::uint64_t unit) {
  const std::uint64_t rest = value % unit;
  if (rest == 0) return value;
  if (value > UINT64_MAX - (unit - rest)) return std::nullopt;
  return value + (unit - rest);
}

// What the card takes for a block: the size in units of 32 bytes and 32 more, in whole pages. 950 and pages of 1 GiB go
// without the 32. None when no number is large enough.
std::optional<std::uint64_t> bytes_taken(std::uint64_t size, std::uint64_t page, const Profile& card) {
  std::optional<std::uint64_t> taken = round_up(size, size_unit);
  if (card.product != Product::p950 && page != giant_page) {
    if (!taken || *taken > UINT64_MAX - size_unit) return std::nullopt;
    *taken += size_unit;
  }
  return taken ? round_up(*taken, page) : std::nullopt;
}

acl::aclError free_on_current(void* address) {
  if (address == nullptr) return refuse(acl::code::invalid_param, Reason::bad_argument, "devPtr is null");
  DeviceNumber device;
  if (const acl::aclError code = current_device(&device)) return code;
  return free_block(address);
}

}  // namespace

acl::aclError calls::aclrtMalloc(void** devPtr, std::size_t size, aclrtMemMallocPolicy policy) {
  if (devPtr == nullptr || size == 0) {
    return refuse(acl::code::invalid_param, Reason::bad_argument,
                  devPtr == nullptr ? "devPtr is null" : "size is 0: ask for one byte at least");
  }
  DeviceNumber device;
  if (const acl::aclError code = current_device(&device)) return code;
  const Profile& card = profile();
  const std::uint64_t page = page_size_for(policy, size, card);
  if (page == giant_page && card.huge_page != giant_page && card.product != Product::a2 &&
      card.product != Product::a3) {
    return refuse(acl::code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} has no pages of 1 GiB", product_name(card.product)));
  }
  const std::optional<std::uint64_t> backed = bytes_taken(size, page, card);
  if (!backed || *backed > INT64_MAX) {
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::capacity, .needed = size, .available = card.capacity},
                  fmt::format("{} bytes are more than any device has", size));
  }
  return allocate_block({.size = size,
                         .backed = *backed,
                         .page_size = page,
                         .device = device.physical,
                         .read_only = policy == policy::user_space_read_only,
                         .p2p = is_p2p(policy)},
                        devPtr);
}

acl::aclError calls::aclrtFree(void* devPtr) { return free_on_current(devPtr); }

acl::aclError calls::aclrtFreeWithDevSync(void* devPtr) {
  DeviceNumber device;
  if (devPtr != nullptr && current_device(&device) == code::success) wait_for_streams_of(device.physical);
  return free_on_current(devPtr);
}

}  // namespace devshare::host
