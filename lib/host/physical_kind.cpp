// SPDX-License-Identifier: Apache-2.0
#include "physical_kind.hpp"

#include "device.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "window.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace devshare::host {
namespace {

namespace attr = acl::mem_attr;
namespace code = acl::code;
namespace location_type = acl::mem_location_type;

constexpr std::uint64_t giant_page = std::uint64_t{1} << 30;

enum class Pages : std::uint8_t { huge, giant };

struct Row {
  int attribute;
  bool on_host;
  bool on_device;
  Pages pages;
  bool p2p;
};

// What is not here is for other calls only. Normal pages are huge ones here, as on the card.
constexpr Row rows[] = {
    {attr::ddr_huge, true, false, Pages::huge, false},     {attr::ddr_normal, true, false, Pages::huge, false},
    {attr::hbm_huge, false, true, Pages::huge, false},     {attr::hbm_normal, false, true, Pages::huge, false},
    {attr::ddr_p2p_huge, true, false, Pages::huge, true},  {attr::ddr_p2p_normal, true, false, Pages::huge, true},
    {attr::hbm_huge_1g, false, true, Pages::giant, false}, {attr::normal, true, true, Pages::huge, false},
    {attr::huge, true, true, Pages::huge, false},          {attr::huge_1g, false, true, Pages::giant, false},
    {attr::p2p_normal, true, true, Pages::huge, true},     {attr::p2p_huge, true, true, Pages::huge, true},
    {attr::p2p_huge_1g, false, true, Pages::giant, true},
};

acl::aclError refuse_attribute(int attribute, std::string_view why) {
  return refuse(code::invalid_param, Reason::bad_argument, fmt::format("memAttr {} {}", attribute, why));
}

acl::aclError check_giant(const Row& row, const Profile& card) {
  const bool there = row.p2p ? card.product == Product::a3 : card.product == Product::a2 || card.product == Product::a3;
  if (there) return 0;
  return refuse(code::rt_feature_not_support, Reason::unsupported,
                fmt::format("{} has no {}pages of 1 GiB", product_name(card.product), row.p2p ? "P2P " : ""));
}

// Where a host location is. The driver knows the host as number 0, and its NUMA nodes by their numbers.
acl::aclError check_host(const acl::aclrtMemLocation& location) {
  if (location.type == location_type::host) {
    if (location.id == 0) return 0;
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("the host is number 0, not {}", location.id));
  }
  const std::string node = fmt::format("/sys/devices/system/node/node{}", location.id);
  if (location.id == 0 || ::access(node.c_str(), F_OK) == 0) return 0;
  return refuse(code::rt_param_invalid, Reason::bad_argument,
                fmt::format("this machine has no NUMA node {}", location.id));
}

}  // namespace

acl::aclError physical_kind(const acl::aclrtPhysicalMemProp& property, PhysicalKind* out) {
  const acl::aclrtMemLocation& location = property.location;
  const bool on_device = location.type == location_type::device;
  if (!on_device && location.type != location_type::host && location.type != location_type::host_numa) {
    return refuse(code::invalid_param, Reason::bad_argument,
                  fmt::format("location type {}: physical memory is on a device (1), on the host (0) or on a NUMA node "
                              "of it (4)",
                              location.type));
  }
  const auto* const row = std::find_if(std::begin(rows), std::end(rows),
                                       [&](const Row& each) { return each.attribute == property.memAttr; });
  if (row == std::end(rows)) {
    return refuse_attribute(property.memAttr, "is no kind of physical memory: 4 (huge pages of a device) is the usual");
  }
  if (!(on_device ? row->on_device : row->on_host)) {
    return refuse_attribute(property.memAttr, on_device ? "is of the host, and the location is a device"
                                                        : "is of a device, and the location is the host");
  }
  DeviceNumber current;
  if (const acl::aclError refused = current_device(&current)) return refused;
  const Profile& card = profile();
  if (row->pages == Pages::giant) {
    if (const acl::aclError refused = check_giant(*row, card)) return refused;
  }
  out->p2p = row->p2p;
  out->page_size = row->pages == Pages::giant ? giant_page : std::max(card.huge_page, part_bytes);
  out->device = -1;
  if (!on_device) return check_host(location);
  DeviceNumber device;
  const auto user = location.id <= INT32_MAX ? static_cast<std::int32_t>(location.id) : -1;
  if (const acl::aclError refused = find_device(user, &device)) return refused;
  out->device = device.physical;
  return 0;
}

}  // namespace devshare::host
