// SPDX-License-Identifier: Apache-2.0
// aclrtMemSetAccess and aclrtMemGetAccess (R37).
//
// Mapping gives access to where the memory is; everybody else, and everybody after aclrtMemMapNoAccess, needs these.
// Device ids go to the driver as they are (R60): under ASCEND_RT_VISIBLE_DEVICES they are not the user's.
#include "access_bits.hpp"
#include "block_record.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "mapping_limit.hpp"
#include "profile.hpp"
#include "reservation.hpp"
#include "window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <span>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace location_type = acl::mem_location_type;

acl::aclError refuse_null(const char* what) {
  return refuse(code::invalid_param, Reason::bad_argument, fmt::format("{} is null", what));
}

acl::aclError refuse_unsupported(std::string text) {
  return refuse(code::rt_feature_not_support, Reason::unsupported, std::move(text));
}

acl::aclError refuse_place(const void* address) {
  return refuse(code::rt_drv_internal, Reason::not_reserved,
                fmt::format("{} is not the address of a mapping: give the one that aclrtMapMem took (R37)", address));
}

bool starts_at(const PinnedBlock& piece, const void* address) {
  return piece && piece.origin() == Origin::mapped && piece.base() == reinterpret_cast<std::uintptr_t>(address);
}

// Who a location is: a physical device or the host.
acl::aclError resolve(const acl::aclrtMemLocation& location, std::int32_t* who) {
  if (location.type == location_type::host) {
    *who = the_host;
    if (location.id == 0) return 0;
    return refuse(code::rt_drv_internal, Reason::bad_argument,
                  fmt::format("the host is number 0, not {}", location.id));
  }
  if (location.type != location_type::device) {
    return refuse_unsupported(
        fmt::format("location type {}: access is given to devices (1) and to the host (0)", location.type));
  }
  const std::vector<std::int32_t>& visible = profile().visible;
  const auto id = static_cast<std::int64_t>(location.id);
  if (std::none_of(visible.begin(), visible.end(), [&](std::int32_t device) { return device == id; })) {
    return refuse(code::rt_drv_internal, Reason::no_such_device,
                  fmt::format("the driver shows this process no device {}: this call takes the driver's number, which "
                              "aclrtGetLogicDevIdByUserDevId gives (R60)",
                              location.id));
  }
  *who = static_cast<std::int32_t>(id);
  return 0;
}

acl::aclError check_flags(acl::aclrtMemAccessFlags flags) {
  if (flags == acl::mem_access::read_write) return 0;
  if (flags == acl::mem_access::none || flags == acl::mem_access::read) {
    return refuse_unsupported(fmt::format("access {}: only reading and writing together (3) is given (R37)", flags));
  }
  return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("{} is no kind of access", flags));
}

// Whether the driver can give this memory to that user of it.
acl::aclError check_way(const PinnedBlock& piece, std::int32_t who) {
  const Profile& card = profile();
  if (piece.in_host_memory()) {
    return who == the_host ? refuse_unsupported("memory of the host needs no access by the host, and takes none") : 0;
  }
  if (who == the_host) {
    if (card.product == Product::a3) return 0;
    return refuse_unsupported(fmt::format("{} is on PCIe: the host reaches memory of a device over HCCS only (A3)",
                                          product_name(card.product)));
  }
  const std::int32_t device = piece.local_device();
  if (who == device || (card.can_reach(who, device) && card.can_reach(device, who))) return 0;
  return refuse(code::rt_drv_internal, {.reason = Reason::peer_impossible, .device = who, .peer_device = device},
                fmt::format("devices {} and {} cannot reach each other", who, device));
}

acl::aclError check_repeat(const Block& piece, acl::aclrtMemLocationType type) {
  if (piece.access_given < 0 || piece.access_given == type) return 0;
  return refuse(code::rt_drv_internal, Reason::already_mapped,
                fmt::format("access to {:#x} was given to {} before, and a mapping takes one kind of location (R37)",
                            piece.base, piece.access_given == location_type::host ? "the host" : "devices"));
}

acl::aclError give(Block& piece, std::int32_t who, acl::aclrtMemLocationType type) {
  // The host touches what is its own, and what it was given, at the address of the mapping.
  const bool to_be_shown = who == the_host || piece.device < 0;
  if (to_be_shown && !piece.shown) {
    if (const int error =
            open_window(piece.base, piece.backed, piece.memory->descriptor.get(), !piece.read_only, piece.populate)) {
      return refuse_mapping(piece.backed, error);
    }
    piece.shown = true;
    if (piece.device < 0 && piece.populate) {  // its own address is its view
      const bool there = all_resident(reinterpret_cast<const void*>(piece.base), piece.backed);
      piece.populated.store(there, std::memory_order_release);
    }
  }
  piece.access |= access_bit(who);
  piece.access_given = type;
  if (piece.device < 0 || (piece.access & access_bit(piece.local_device)) != 0) {
    piece.accessible.store(true, std::memory_order_release);
  }
  return 0;
}

}  // namespace

namespace calls {

// All descriptions are looked at before the first is applied.
aclError aclrtMemSetAccess(void* virPtr, std::size_t size, aclrtMemAccessDesc* desc, std::size_t count) {
  if (virPtr == nullptr) return refuse_null("virPtr");
  if (desc == nullptr) return refuse_null("desc");
  if (count == 0) return refuse(code::invalid_param, Reason::bad_argument, "count is 0");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  const std::span all_asked(desc, count);
  for (const aclrtMemAccessDesc& asked : all_asked) {
    if (const aclError refused = check_flags(asked.flags)) return refused;
  }
  const std::lock_guard lock(reservations().mutex);
  const PinnedBlock piece(virPtr);
  if (!starts_at(piece, virPtr)) return refuse_place(virPtr);
  if (size != piece.size()) {
    return refuse(code::rt_drv_internal, {.reason = Reason::out_of_bounds, .needed = size, .available = piece.size()},
                  fmt::format("size is {} and {} bytes were mapped at {}: the sizes must be equal (R37)", size,
                              piece.size(), virPtr));
  }
  Block& record = *piece.record();
  for (const aclrtMemAccessDesc& asked : all_asked) {
    std::int32_t who = the_host;
    if (const aclError refused = resolve(asked.location, &who)) return refused;
    if (const aclError refused = check_way(piece, who)) return refused;
    if (const aclError refused = check_repeat(record, asked.location.type)) return refused;
    if (asked.location.type == desc->location.type) continue;
    return refuse(code::rt_drv_internal, Reason::bad_argument, "one call gives access to one kind of location");
  }
  for (const aclrtMemAccessDesc& asked : all_asked) {
    std::int32_t who = the_host;
    if (const aclError refused = resolve(asked.location, &who)) return refused;
    if (const aclError refused = give(record, who, asked.location.type)) return refused;
  }
  return code::success;
}

aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, std::uint64_t* flag) {
  if (virPtr == nullptr) return refuse_null("virPtr");
  if (location == nullptr) return refuse_null("location");
  if (flag == nullptr) return refuse_null("flag");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  std::int32_t who = the_host;
  if (const aclError refused = resolve(*location, &who)) return refused;
  const std::lock_guard lock(reservations().mutex);
  const PinnedBlock piece(virPtr);
  if (!starts_at(piece, virPtr)) return refuse_place(virPtr);
  const bool given = (piece.record()->access & access_bit(who)) != 0;
  *flag = static_cast<std::uint64_t>(given ? mem_access::read_write : mem_access::none);
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
