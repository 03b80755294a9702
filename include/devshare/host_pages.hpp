// SPDX-License-Identifier: Apache-2.0
// HostPages, Populate: what memory of the machine behind device memory is asked to be. HostBacking: what it is.
//
// For a runtime that keeps device memory in the machine's own, which is the host runtime. A card has memory of its own:
// the vendor's runtime has no such request, is not bothered with one, and what it has is unknown.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devshare {

enum class HostPages : std::uint8_t {
  normal,
  huge_if_free,  // of 2 MiB, as long as the machine has any to spare (vm.nr_hugepages); normal ones else
};

// When the machine is to provide the pages.
enum class Populate : std::uint8_t {
  when_touched,  // each at its first touch: right for memory of which little is used
  now,           // all of them, at once: several times faster for memory that is used whole
};

// The pages that memory has. A request that the machine cannot meet fails nobody, so ask here whether it was met.
struct HostBacking {
  enum class Pages : std::uint8_t { unknown, normal, huge };
  Pages pages = Pages::unknown;
  bool populated = false;     // all are there; and if the memory is mapped, touching them faults no more
  std::size_t page_size = 0;  // in bytes; 0 where it is unknown

  friend constexpr bool operator==(const HostBacking&, const HostBacking&) noexcept = default;
};

namespace detail {

// What a call asks for.
struct HostWish {
  HostPages pages = HostPages::normal;
  Populate populate = Populate::when_touched;

  constexpr bool anything() const noexcept {
    return pages != HostPages::normal || populate != Populate::when_touched;
  }
};

}  // namespace detail
}  // namespace devshare
