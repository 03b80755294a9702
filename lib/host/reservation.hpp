// SPDX-License-Identifier: Apache-2.0
// Address reservations: ranges of the device window that physical memory is mapped into, piece by piece.
#pragma once

#include "alias.hpp"
#include "per_process.hpp"
#include "physical.hpp"

#include <map>

namespace devshare::host {

struct Reservation {
  Reservation(std::uintptr_t at, std::uint64_t bytes) noexcept : base(at), size(bytes), alias(at, bytes) {}

  const std::uintptr_t base;
  const std::uint64_t size;
  AliasRange alias;

  // What is in it, while there is something: one origin and one device (R29).
  std::uint64_t pieces = 0;
  HandleOrigin origin = HandleOrigin::allocated;
  std::int32_t device = -1;

  bool holds(std::uintptr_t address, std::uint64_t bytes) const noexcept {
    return address >= base && address - base < size && bytes <= size - (address - base);
  }
};

// All of this process. The mutex is held by whoever reserves, releases, maps, unmaps or gives access; copies and
// lookups never see it.
struct Reservations : ProcessState<Reservations> {
  std::map<std::uintptr_t, Reservation> by_base;
  std::uint64_t mappings = 0;

  Reservation* with(std::uintptr_t address) noexcept;  // that the address is in, or null

  void close_inherited() noexcept {}
};
Reservations& reservations();

// aclFinalize, while no call is in flight: every mapping ends, and every reservation.
void reservations_shut_down();

struct ReservationCounters {
  std::uint64_t reservations = 0;
  std::uint64_t mappings = 0;
};
ReservationCounters reservation_counters();

// In mapping.cpp: ends the piece that starts at `address`, under the mutex of `all`. `last` gets its memory, which may
// go with it: to be dropped without the mutex.
acl::aclError end_piece(Reservations& all, Reservation& in, std::uintptr_t address, Physical* last);

}  // namespace devshare::host
