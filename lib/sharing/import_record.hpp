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
  void* address = nullptr;
  Range* range = nullptr;  // by handle
  std::vector<PeerAccess> grants;  // given by the objects that share it: they end after it
  bool piecewise = false;  // made by AddressReservation::map: in no table, held by one object

  // What it still has then went with its session, and that is told by the object that has the record, or was parked.
  ~ImportRecord() {
    if (range != nullptr) abandon_range(range);
    for (PeerAccess& grant : grants) (void)std::move(grant).release();
  }
};

// The calls of each mechanism. The record's device need not be current.
Result<void> open_by_key(ImportRecord& record, bool enable_peer_access) noexcept;
Result<void> close_by_key(ImportRecord& record) noexcept;
Result<void> open_by_handle(ImportRecord& record) noexcept;
Result<void> close_by_handle(ImportRecord& record) noexcept;

}  // namespace devshare::detail
