// SPDX-License-Identifier: Apache-2.0
// aclrtReserveMemAddress, aclrtReserveMemAddressNoUCMemory and aclrtReleaseMemAddress.
#include "reservation.hpp"

#include "block_lifetime.hpp"
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace devshare::host {
namespace {

namespace code = acl::code;

constexpr std::uint64_t TiB = std::uint64_t{1} << 40;
constexpr std::uint64_t GiB = std::uint64_t{1} << 30;
constexpr std::uint64_t last_by_power = 512 << 20;  // larger reservations start at a GiB

PerProcess<Reservations> state;

struct Range {
  std::uint64_t begin;
  std::uint64_t end;
};
constexpr Range expected_range{16 * TiB, 24 * TiB};
constexpr Range expected_by_no_uc{40 * TiB, 224 * TiB};
constexpr std::uint64_t end_of_four_levels = 128 * TiB;  // of page tables: what a user's address can be

// As the driver aligns: a reservation of up to 512 MiB to the power of two that holds it.
std::uint64_t alignment_for(std::uint64_t size) noexcept { return size > last_by_power ? GiB : std::bit_ceil(size); }

std::uint64_t granularity() noexcept { return std::max(profile().huge_page, granule_bytes); }

acl::aclError refuse_argument(acl::aclError refused, std::string text) {
  return refuse(refused, Reason::bad_argument, std::move(text));
}

acl::aclError check_expected(std::uintptr_t expected, std::uint64_t alignment, Range allowed) {
  if (expected < allowed.begin || expected >= allowed.end) {
    return refuse_argument(code::rt_param_invalid, fmt::format("expectPtr {:#x} is not between {} and {} TiB", expected,
                                                               allowed.begin / TiB, allowed.end / TiB));
  }
  if (expected % alignment != 0) {
    return refuse_argument(code::rt_param_invalid, fmt::format("expectPtr {:#x} is no multiple of {}, which a "
                                                               "reservation of this size starts at",
                                                               expected, alignment));
  }
  if (expected >= end_of_four_levels) {
    return refuse(
        code::rt_feature_not_support, Reason::unsupported,
        fmt::format("expectPtr {:#x} is above 128 TiB, which no program on this machine can address", expected));
  }
  return 0;
}

acl::aclError reserve(std::uint64_t size, std::uintptr_t expected, Range allowed, void** out) {
  const std::uint64_t unit = granularity();
  if (size > INT64_MAX - unit) {
    return refuse(code::rt_memory_allocation, {.reason = Reason::address_space, .needed = size},
                  fmt::format("{} bytes are more than all addresses", size));
  }
  const std::uint64_t whole = (size + unit - 1) / unit * unit;
  const std::uint64_t alignment = alignment_for(whole);
  if (expected != 0) {
    if (const acl::aclError refused = check_expected(expected, alignment, allowed)) return refused;
  }
  Reservations& all = state.get();
  const std::lock_guard lock(all.mutex);
  const std::uintptr_t base =
      expected != 0 ? take_addresses_at(expected, whole) : take_addresses(WindowPart::reservations, whole, alignment);
  if (base == 0) return code::rt_memory_allocation;
  all.by_base.try_emplace(base, base, whole);
  *out = reinterpret_cast<void*>(base);
  return 0;
}

}  // namespace

Reservations& reservations() { return state.get(); }

Reservation* Reservations::with(std::uintptr_t address) noexcept {
  auto after = by_base.upper_bound(address);
  if (after == by_base.begin()) return nullptr;
  Reservation& below = std::prev(after)->second;
  return below.holds(address, 0) ? &below : nullptr;
}

void reservations_shut_down() {
  Reservations* const all = state.existing();
  if (all == nullptr) return;
  const std::lock_guard lock(all->mutex);
  for (auto& [base, reservation] : all->by_base) {
    for (std::uintptr_t at = base; reservation.pieces != 0 && at < base + reservation.size;) {
      std::uint64_t step = window_step(at);
      if (const PinnedBlock piece(reinterpret_cast<const void*>(at)); piece) step = piece.backed();
      Physical last;
      if (window_word(at) != 0) (void)end_piece(*all, reservation, at, &last);
      at += step;
    }
    give_back_addresses(base, reservation.size);
  }
  all->by_base.clear();
}

ReservationCounters reservation_counters() {
  Reservations& all = state.get();
  const std::lock_guard lock(all.mutex);
  return {.reservations = all.by_base.size(), .mappings = all.mappings};
}

void reservations_before_fork() { state.before_fork(); }
void reservations_after_fork_in_parent() { state.after_fork_in_parent(); }
void reservations_after_fork_in_child() { state.after_fork_in_child(); }

namespace calls {

aclError aclrtReserveMemAddress(void** virPtr, std::size_t size, std::size_t alignment, void* expectPtr,
                                std::uint64_t flags) {
  if (virPtr == nullptr) return refuse_argument(code::invalid_param, "virPtr is null");
  if (size == 0) return refuse_argument(code::invalid_param, "size is 0");
  // 1 once meant huge pages, and is still accepted.
  if (flags > 1) return refuse_argument(code::invalid_param, fmt::format("flags is {}, neither 0 nor 1", flags));
  if (alignment != 0) {
    return refuse_argument(code::rt_param_invalid, fmt::format("alignment is {}: it must be 0 (R36)", alignment));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (expectPtr != nullptr && profile().product == Product::p950) {
    return refuse(code::rt_feature_not_support, Reason::unsupported, "950 takes no expectPtr: it must be null");
  }
  return reserve(size, reinterpret_cast<std::uintptr_t>(expectPtr), expected_range, virPtr);
}

aclError aclrtReserveMemAddressNoUCMemory(void** virPtr, std::size_t size, std::size_t alignment, void* expectPtr,
                                          std::uint64_t flags) {
  if (virPtr == nullptr) return refuse_argument(code::invalid_param, "virPtr is null");
  if (size == 0) return refuse_argument(code::invalid_param, "size is 0");
  if (flags > 1) return refuse_argument(code::invalid_param, fmt::format("flags is {}, neither 0 nor 1", flags));
  if (alignment != 0) {
    return refuse_argument(code::rt_param_invalid, fmt::format("alignment is {}: it must be 0 (R36)", alignment));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (!profile().supports(Entry::aclrtReserveMemAddressNoUCMemory)) {
    return refuse(
        code::rt_feature_not_support, Reason::unsupported,
        fmt::format("{} does not have aclrtReserveMemAddressNoUCMemory: A3 has", product_name(profile().product)));
  }
  if (size % GiB != 0) {
    return refuse_argument(code::rt_param_invalid, fmt::format("size {} is no multiple of 1 GiB", size));
  }
  if (expectPtr == nullptr) return refuse_argument(code::rt_param_invalid, "expectPtr is null: say where");
  return reserve(size, reinterpret_cast<std::uintptr_t>(expectPtr), expected_by_no_uc, virPtr);
}

// The driver tears down what is still mapped; the documents forbid it, and so does this runtime.
aclError aclrtReleaseMemAddress(void* virPtr) {
  if (virPtr == nullptr) return refuse_argument(code::invalid_param, "virPtr is null");
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  Reservations& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_base.find(reinterpret_cast<std::uintptr_t>(virPtr));
  if (found == all.by_base.end()) {
    return refuse(code::rt_param_invalid, Reason::not_reserved,
                  fmt::format("{} is not the start of a reservation: released already, or never reserved", virPtr));
  }
  if (found->second.pieces != 0) {
    return refuse(code::rt_drv_internal, {.reason = Reason::in_use, .needed = 0, .available = found->second.pieces},
                  fmt::format("{} mapping{} left in the reservation at {}: aclrtUnmapMem first (R38)",
                              found->second.pieces, found->second.pieces == 1 ? " is" : "s are", virPtr));
  }
  const std::uint64_t size = found->second.size;
  all.by_base.erase(found);
  give_back_addresses(reinterpret_cast<std::uintptr_t>(virPtr), size);
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
