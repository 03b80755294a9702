// SPDX-License-Identifier: Apache-2.0
// One open import: by key an address of the runtime, by handle a range that devshare reserved and mapped.
#pragma once

#include "../dma/range.hpp"
#include "shared_opens.hpp"

#include <devshare/imported.hpp>

#include <vector>

namespace devshare::detail {

struct ImportRecord final : SharedOpen {
  Session session;
  TicketFields fields;
  std::int32_t device = -1;
  AccessMode access{};        // that the runtime's import has
  Populate populate{};
  bool cross_device = false;  // by key, from another device: R42 holds
  bool counted = false;       // in cross_device_imports
  void* address = nullptr;
  Range* range = nullptr;  // by handle
  std::vector<PeerAccess> grants;  // given by the objects that share it: they end after it
  bool piecewise = false;  // made by AddressReservation::map: in no table, held by one object

  ~ImportRecord() {
    if (range != nullptr) abandon_range(range);  // its session is over, or the runtime does not know it
    count_cross_device(false);
    if (session.alive()) return;  // an import by key that the runtime does not know: the grants are ours to give back
    for (PeerAccess& grant : grants) (void)std::move(grant).release();  // told of with the import, or not at all
  }

  // Counts this import in cross_device_imports while it is open, or no longer.
  void count_cross_device(bool open) noexcept;
};

// The calls of each mechanism. The record's device need not be current.
Result<void> open_by_key(ImportRecord& record, bool enable_peer_access) noexcept;
Result<void> close_by_key(ImportRecord& record) noexcept;
Result<void> open_by_handle(ImportRecord& record) noexcept;
Result<void> close_by_handle(ImportRecord& record) noexcept;

}  // namespace devshare::detail
