// SPDX-License-Identifier: Apache-2.0
// Which mechanism to share by. The memory fixes the family; within it the exporter chooses once, before its first
// export, from what works here, what it prefers and what its importers can do. Nothing is ever chosen silently.
//
//   DEVSHARE_TRY(here, probe(device, peer));                                 // says why the rest does not work
//   DEVSHARE_TRY(mechanism, choose(here.working(), Prefer{}, importer_can)); // sent by the importer, beforehand
//   return with_mechanism(mechanism, [&](auto kind) { return share<decltype(kind)>(device); });
#pragma once

#include <devshare/device.hpp>
#include <devshare/exported.hpp>
#include <devshare/mapping.hpp>
#include <devshare/mechanism.hpp>
#include <devshare/memory.hpp>
#include <devshare/physical.hpp>
#include <devshare/result.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace devshare {

inline constexpr std::array all_mechanisms{Mechanism::by_key, Mechanism::v1, Mechanism::v2, Mechanism::fabric};

// A set of mechanisms: a value that fits into a message.
class Mechanisms {
 public:
  constexpr Mechanisms() noexcept = default;
  constexpr Mechanisms(std::initializer_list<Mechanism> all) noexcept {
    for (const Mechanism each : all) add(each);
  }

  constexpr void add(Mechanism mechanism) noexcept { bits_ |= bit_of(mechanism); }
  constexpr bool contains(Mechanism mechanism) const noexcept { return (bits_ & bit_of(mechanism)) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }

  // For an introduction: what this importer can do. Bits of mechanisms that are not known here are dropped.
  constexpr std::uint32_t to_message() const noexcept { return bits_; }
  static constexpr Mechanisms from_message(std::uint32_t bits) noexcept {
    Mechanisms known;
    for (const Mechanism each : all_mechanisms) {
      if ((bits & bit_of(each)) != 0) known.add(each);
    }
    return known;
  }

  friend constexpr Mechanisms operator&(Mechanisms a, Mechanisms b) noexcept { return from_message(a.bits_ & b.bits_); }
  friend constexpr bool operator==(Mechanisms, Mechanisms) noexcept = default;

 private:
  static constexpr std::uint32_t bit_of(Mechanism mechanism) noexcept {
    return std::uint32_t{1} << static_cast<unsigned>(mechanism);
  }

  std::uint32_t bits_ = 0;
};

// Mechanisms, the best first; one that is not named is never chosen. Without names: V2, which every importer of today
// has, then V1, then a fabric token, which costs more, then a key.
class Prefer {
 public:
  constexpr Prefer() noexcept : Prefer({Mechanism::v2, Mechanism::v1, Mechanism::fabric, Mechanism::by_key}) {}
  constexpr Prefer(std::initializer_list<Mechanism> best_first) noexcept
      : Prefer(std::span(best_first.begin(), best_first.size())) {}
  // The same from a list that is only known at run time: a program's option.
  explicit constexpr Prefer(std::span<const Mechanism> best_first) noexcept {
    for (const Mechanism each : best_first) {
      if (count_ < order_.size()) order_[count_++] = each;
    }
  }

  constexpr std::optional<Mechanism> first_of(Mechanisms allowed) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (allowed.contains(order_[i])) return order_[i];
    }
    return std::nullopt;
  }

 private:
  std::array<Mechanism, all_mechanisms.size()> order_{};
  std::size_t count_ = 0;
};

// What each kind of memory can be shared by.
template <class Owner>
inline constexpr Mechanisms mechanisms_of{Mechanism::by_key};
template <>
inline constexpr Mechanisms mechanisms_of<PhysicalHandle>{Mechanism::v1, Mechanism::v2, Mechanism::fabric};
template <>
inline constexpr Mechanisms mechanisms_of<Mapping>{Mechanism::v1, Mechanism::v2, Mechanism::fabric};

// What the runtime of this process has the calls for, as an importer: what to send to an exporter that must choose.
// Whether the product has fabric tokens is for the exporter to find: it is asked for one first.
DEVSHARE_API Mechanisms importable(const Device& device) noexcept;

// What probe() found: each mechanism works, or there is an error that says why not.
class Probe {
 public:
  bool works(Mechanism mechanism) const noexcept { return !why_not(mechanism).has_value(); }
  const std::optional<Error>& why_not(Mechanism mechanism) const noexcept DEVSHARE_LIFETIMEBOUND {
    return refusals_[index_of(mechanism)];
  }
  Mechanisms working() const noexcept {
    Mechanisms all;
    for (const Mechanism each : all_mechanisms) {
      if (works(each)) all.add(each);
    }
    return all;
  }

  // For the library itself.
  void refuse(Mechanism mechanism, const Error& why) noexcept { refusals_[index_of(mechanism)] = why; }

 private:
  static constexpr std::size_t index_of(Mechanism mechanism) noexcept {
    return static_cast<std::size_t>(mechanism) - static_cast<std::size_t>(all_mechanisms.front());
  }

  std::array<std::optional<Error>, all_mechanisms.size()> refusals_{};
};

// Tries each mechanism from memory of `device` to an importer on `peer` (which may be the same), as far as one process
// can: it allocates the least there is, exports it and gives it back, and asks whether the two devices reach each
// other. What only the import shows (a driver that refuses keys between cards) it cannot know. Errors:
// no_device_context, runtime_gone. That a mechanism does not work is no error but an answer.
DEVSHARE_API Result<Probe> probe(const Device& device, const Device& peer) noexcept;

// The best that works here, for this importer. Error: mechanism_mismatch, nothing is in all three.
DEVSHARE_API Result<Mechanism> choose(Mechanisms works_here, Prefer prefer, Mechanisms importer_can) noexcept;

// From a value of the enumeration to its type: calls body(by_key{}), body(v1{}), body(v2{}) or body(fabric{}).
template <class Body>
decltype(auto) with_mechanism(Mechanism mechanism, Body&& body) {
  switch (mechanism) {
    case Mechanism::v1:
      return std::forward<Body>(body)(v1{});
    case Mechanism::v2:
      return std::forward<Body>(body)(v2{});
    case Mechanism::fabric:
      return std::forward<Body>(body)(fabric{});
    case Mechanism::by_key:
      break;
  }
  return std::forward<Body>(body)(by_key{});
}

// The memory that K shares, and its export, by one name for every mechanism.
template <class K>
using MemoryFor = std::conditional_t<std::is_same_v<K, by_key>, DeviceMemory, Mapping>;

template <class K>
  requires(std::is_same_v<K, by_key> || detail::HandleKind<K>)
DEVSHARE_API Result<MemoryFor<K>> allocate_for(const Device& device, std::size_t bytes,
                                               Placement placement = {}) noexcept;

template <class K, class Owner>
auto export_for(Owner&& owner) noexcept {
  if constexpr (std::is_same_v<K, by_key>) {
    return export_key(std::forward<Owner>(owner));
  } else {
    return export_handle<K>(std::forward<Owner>(owner));
  }
}
// The same for whoever holds the ticket: the runtime asks nobody for its pid.
template <class K, class Owner>
auto export_for_unrestricted(Owner&& owner) noexcept {
  if constexpr (std::is_same_v<K, by_key>) {
    return export_key_unrestricted(std::forward<Owner>(owner));
  } else {
    return export_handle_unrestricted<K>(std::forward<Owner>(owner));
  }
}

}  // namespace devshare
