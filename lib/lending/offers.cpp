// SPDX-License-Identifier: Apache-2.0
// Offers: from the memory that goes in to the memory that comes back.
#include "lender_core.hpp"

#include "../core/parked.hpp"
#include "../core/runtime_state.hpp"

#include <algorithm>
#include <utility>

namespace devshare::detail {
namespace {

OfferRecord& record_of(const Owned<OfferPolicy>& offer) noexcept { return *offer.value().record; }

void withdraw(OfferRecord& offer) noexcept {
  if (offer.state == OfferRecord::State::offered) offer.state = OfferRecord::State::withdrawn;
  tell_holders(*offer.core, offer);
}

// Waits until nobody holds the offer. Whether that has come about.
bool wait_for_holders(Locked& lock, OfferRecord& offer, Deadline deadline) noexcept {
  LenderCore& core = *offer.core;
  return core.turn.wait(
      lock, deadline, [&] { return offer.holders == 0 && offer.busy == 0; },
      [&](Deadline until) { (void)dispatch_events(core, until); });
}

// Waits until no dispatcher is at work on the offer: a call of the runtime, not a borrower.
void wait_for_dispatcher(Locked& lock, OfferRecord& offer) noexcept {
  LenderCore& core = *offer.core;
  core.turn.wait(
      lock, Deadline::never(), [&] { return offer.busy == 0; }, [](Deadline) {});
}

// Ends the export in the runtime. Without the lock: nobody else uses the offer any more.
Result<void> close_export(OfferRecord& offer) noexcept {
  if (!offer.exported.holds()) return {};
  const Session session = offer.exported.session();
  DEVSHARE_CHECK(ExportPolicy::close(session, offer.exported.value()));
  (void)offer.exported.release();
  return {};
}

void forget(OfferRecord* offer) noexcept {
  LenderCore& core = *offer->core;
  {
    const Locked lock = lock_lending();
    std::erase(core.offers, offer);
    for (auto& [id, connection] : core.connections) std::erase(connection->admitted, offer->serial);
  }
  delete offer;
  drop_reference(core);
}

// The leases that are left end here: their borrowers are told, and what they still say of them is not listened to.
void drop_leases(OfferRecord& offer) noexcept {
  LenderCore& core = *offer.core;
  for (auto& [id, connection] : core.connections) {
    std::erase_if(connection->leases, [&](const HeldLease& lease) { return lease.offer == &offer; });
    if ((!connection->socket || core.closed) && connection->leases.empty()) core.any_ended = true;
  }
  offer.holders = 0;
}

// By a handle the memory is its importers' as well; a key takes it along.
bool outlives_its_export(const OfferRecord& offer) noexcept {
  return offer.exported.holds() && offer.mechanism != Mechanism::by_key;
}

}  // namespace

OfferRecord* find_offer(LenderCore& core, std::string_view name) noexcept {
  for (OfferRecord* const offer : core.offers) {
    if (offer->state == OfferRecord::State::offered && offer->name == name) return offer;
  }
  return nullptr;
}

std::uint64_t publish(OfferRecord& offer) noexcept {
  ++offer.generation;
  tell_holders(*offer.core, offer);
  return offer.generation;
}

Result<OfferValue> make_offer(const Owned<LenderPolicy>& lender, std::string_view name, const Device& device,
                              OfferedMemory& memory, Mechanisms family, const Offering& offering) noexcept {
  if (!lender.holds() || !lender.session().alive()) return unusable(lender.session(), Operation::offer);
  if (!device.session().alive()) return unusable(device.session(), Operation::offer);
  if (name.empty() || name.size() > longest_offer_name || name.find('\0') != name.npos || memory.size == 0) {
    return Error(Errc::invalid_argument, Operation::offer,
                 {.device = device.number(), .needed = name.size(), .available = longest_offer_name});
  }
  reap_orphans();
  LenderCore& core = *lender.value().core;
  const Locked lock = lock_lending();
  if (find_offer(core, name) != nullptr) return Error(Errc::already_offered, Operation::offer, {.device = device.number()});
  auto* const offer = new OfferRecord;
  offer->core = &core;
  offer->name = name;
  offer->serial = ++core.next_offer;
  offer->session = device.session();
  offer->memory = &memory;
  offer->family = family;
  offer->prefer = offering.prefer;
  offer->access = offering.access;
  offer->device = device.number();
  core.offers.push_back(offer);
  ++core.references;
  const bool awaited = std::any_of(core.connections.begin(), core.connections.end(),
                                   [](const auto& entry) { return !entry.second->waiting.empty(); });
  if (awaited) wake_dispatcher(core);
  return OfferValue{offer};
}

Result<void> withdraw_offer(const Owned<OfferPolicy>& offer) noexcept {
  if (!offer.session().alive()) return unusable(offer.session(), Operation::close_offer);
  const Locked lock = lock_lending();
  withdraw(record_of(offer));
  return {};
}

Result<void> close_offer(const Owned<OfferPolicy>& offer, Deadline deadline) noexcept {
  if (!offer.session().alive()) return unusable(offer.session(), Operation::close_offer);
  OfferRecord& record = record_of(offer);
  {
    Locked lock = lock_lending();
    withdraw(record);
    if (!wait_for_holders(lock, record, deadline)) {
      return Error(Errc::still_imported, Operation::close_offer, {.device = record.device, .needed = record.holders});
    }
  }
  return close_export(record);
}

Result<void> revoke_offer(const Owned<OfferPolicy>& offer, Deadline grace) noexcept {
  if (!offer.session().alive()) return unusable(offer.session(), Operation::revoke_offer);
  OfferRecord& record = record_of(offer);
  {
    Locked lock = lock_lending();
    withdraw(record);
    if (!wait_for_holders(lock, record, grace)) {
      wait_for_dispatcher(lock, record);
      record.state = OfferRecord::State::revoked;
      tell_holders(*record.core, record);
      drop_leases(record);
    }
  }
  return close_export(record);
}

OfferedMemory& memory_of_offer(const Owned<OfferPolicy>& offer) noexcept { return *record_of(offer).memory; }

OfferedMemory& memory_of_closed_offer(Owned<OfferPolicy>& offer) noexcept {
  OfferRecord* const record = offer.release().record;
  OfferedMemory& memory = *record->memory;
  forget(record);
  return memory;
}

Result<std::vector<Holder>> holders_of(const Owned<OfferPolicy>& offer) noexcept {
  if (!offer.session().alive()) return unusable(offer.session(), Operation::serve);
  const OfferRecord& record = record_of(offer);
  const Locked lock = lock_lending();
  std::vector<Holder> holders;
  holders.reserve(record.holders);
  for (const auto& [id, connection] : record.core->connections) {
    for (const HeldLease& lease : connection->leases) {
      if (lease.offer == &record) holders.push_back(lease.holder);
    }
  }
  return holders;
}

Result<std::uint64_t> publish_offer(const Owned<OfferPolicy>& offer) noexcept {
  if (!offer.session().alive()) return unusable(offer.session(), Operation::publish);
  const Locked lock = lock_lending();
  return publish(record_of(offer));
}

std::uint64_t generation_of(const Owned<OfferPolicy>& offer) noexcept {
  if (!offer.session().alive()) return 0;
  const Locked lock = lock_lending();
  return record_of(offer).generation;
}

// The end of a Lent that was not closed: no waiting, and nothing freed under a holder.
Result<void> OfferPolicy::close(const Session&, const Value& value) noexcept {
  OfferRecord& offer = *value.record;
  LenderCore& core = *offer.core;
  std::uint32_t holders = 0;
  Error why(Errc::refused, Operation::close_offer);
  {
    Locked lock = lock_lending();
    withdraw(offer);
    // What has been returned already may not have been looked at yet.
    if (offer.holders != 0) core.turn.try_once(lock, [&] { (void)dispatch_events(core, Deadline::now()); });
    wait_for_dispatcher(lock, offer);
    if (outlives_its_export(offer)) drop_leases(offer);
    holders = offer.holders;
    if (holders != 0) {
      // From here on it may be gone at any moment: its last borrower needs only to return it.
      why = Error(Errc::still_imported, Operation::close_offer, {.device = offer.device, .needed = holders});
      keep_parked(&offer, offer.memory->size, holders);
      offer.parked = true;
      core.any_parked = true;
    }
  }
  if (holders == 0) {
    if (auto ended = close_export(offer); ended) {
      OfferedMemory& memory = *offer.memory;
      forget(&offer);
      memory.destroy(memory);
      return {};
    } else {
      why = ended.error();
      keep_parked(&offer, offer.memory->size, 0);
    }
  }
  report({DiagnosticEvent::memory_parked, why, &offer});
  return {};
}

// Without a runtime there is nothing to close, and nobody to wait for: the memory went with it.
void OfferPolicy::abandon(const Value& value) noexcept {
  OfferRecord* const offer = value.record;
  if (offer->core->of_parent) return;
  {
    Locked lock = lock_lending();
    withdraw(*offer);
    wait_for_dispatcher(lock, *offer);
    drop_leases(*offer);
  }
  if (offer->exported.holds()) ExportPolicy::abandon(offer->exported.release());
  OfferedMemory& memory = *offer->memory;
  forget(offer);
  memory.destroy(memory);
}

const void* OfferPolicy::identity(const Value& value) noexcept { return value.record; }

void end_lease(LenderCore& core, Connection& connection, std::size_t index, LendingEvent::Kind kind,
               const Error& error) noexcept {
  HeldLease& lease = connection.leases[index];
  OfferRecord& offer = *lease.offer;
  core.untold.push_back({kind, offer.name, lease.holder, error});
  --offer.holders;
  if (offer.parked) set_parked_holders(&offer, offer.holders);
  std::swap(lease, connection.leases.back());
  connection.leases.pop_back();
  if ((!connection.socket || core.closed) && connection.leases.empty()) core.any_ended = true;
  core.turn.changed();
}

void reap_parked(LenderCore& core) noexcept {
  for (;;) {
    OfferRecord* done = nullptr;
    {
      const Locked lock = lock_lending();
      if (!core.any_parked) return;
      bool left = false;
      for (OfferRecord* const offer : core.offers) {
        if (!offer->parked) continue;
        if (offer->holders == 0 && done == nullptr) {
          done = offer;
        } else {
          left = true;
        }
      }
      core.any_parked = left || done != nullptr;
      if (done == nullptr) return;
      done->parked = false;  // ours now
    }
    // Once the runtime has refused to close it, it stays for ever.
    if (!close_export(*done)) continue;
    unpark(done);
    OfferedMemory& memory = *done->memory;
    forget(done);
    memory.destroy(memory);
  }
}

}  // namespace devshare::detail
