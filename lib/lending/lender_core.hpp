// SPDX-License-Identifier: Apache-2.0
// What a lender is: an endpoint, its connections, its offers, and which connection holds which offer.
//
// Whoever has the turn (turn.hpp) is the dispatcher: it alone adds and removes connections, receives, and calls the
// runtime for a borrower. Other threads offer, publish, withdraw and wait. All that is here is guarded by Lock::lending
// but what says otherwise; nothing is received, exported, admitted or told to a hook under it. Sending never waits, and
// is done under it, so that two messages about one lease cannot overtake each other.
#pragma once

#include "bound_endpoint.hpp"
#include "cores.hpp"
#include "socket.hpp"
#include "turn.hpp"

#include <devshare/lend.hpp>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace devshare::detail {

struct OfferRecord {
  enum class State : std::uint8_t { offered, withdrawn, revoked };

  LenderCore* core = nullptr;
  std::string name;
  std::uint64_t serial = 0;  // of all offers of the core: a name may be used again
  Session session;
  OfferedMemory* memory = nullptr;
  Mechanisms family;
  Prefer prefer;
  AccessMode access{};
  std::int32_t device = -1;
  State state = State::offered;
  bool parked = false;
  std::uint64_t generation = 1;
  std::uint32_t holders = 0;
  std::uint32_t busy = 0;          // the dispatcher is at work on it: it must stay
  Owned<ExportPolicy> exported;    // the dispatcher's while it is busy; from the first borrower on
  Mechanism mechanism{};           // of the export
};

// One lease, as the lender knows it.
struct HeldLease {
  std::uint64_t id = 0;
  std::uint32_t request = 0;  // that it answers
  OfferRecord* offer = nullptr;
  Holder holder;
  std::uint64_t told_generation = 0;
  OfferRecord::State told_state = OfferRecord::State::offered;
};

struct WaitingRequest {
  std::uint32_t request = 0;
  AccessMode access{};
  std::int32_t device = -1;
  Slice slice;
  std::string name;
};

struct UnsentAnswer {
  std::uint64_t lease = 0;  // that it brings the ticket of; or 0
  MessageBytes bytes;
};

struct Connection {
  std::uint64_t id = 0;
  UniqueFd socket;                 // none: it has ended, and its leases wait for the end of its process
  Sender borrower;
  bool introduced = false;
  bool stranger = false;           // came by the endpoint and has not introduced itself
  bool behind = false;             // it reads too slowly: it is told the rest when it can take it
  std::int64_t since = 0;          // monotonic nanoseconds
  std::int32_t bare_pid = 0;
  Mechanisms can_import;
  std::vector<HeldLease> leases;
  std::vector<WaitingRequest> waiting;
  std::vector<UnsentAnswer> unsent;     // that it had no room for
  std::vector<std::uint64_t> admitted;  // serials of the offers it is admitted to
};

// An event that is told once no lock is held.
struct Untold {
  LendingEvent::Kind kind{};
  std::string offer;
  Holder holder;
  Error error{Errc::refused, Operation::none};
};

struct LenderCore final : LendingCore {
  void forked() noexcept override;

  Session session;
  LenderOptions options;
  BoundEndpoint endpoint;
  UniqueFd epoll;
  UniqueFd wake;      // an eventfd: another thread has made work
  UniqueFd timer;     // armed while there are strangers
  UniqueFd reserve;   // given up to be able to refuse where there is no descriptor left
  bool closing = false;  // no Lender any more: the dispatcher is to close the endpoint
  bool closed = false;
  bool accepting = false;
  bool timer_armed = false;
  std::uint64_t next_connection = 0;
  std::uint64_t next_lease = 0;
  std::uint64_t next_offer = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections;
  bool any_ended = false;     // connections that may be forgotten
  bool any_parked = false;    // offers whose objects have ended before their leases
  std::size_t strangers = 0;  // among the connections
  std::vector<OfferRecord*> offers;
  std::vector<Untold> untold;  // the dispatcher's
  Turn turn;
};

// --- dispatch.cpp, accepting.cpp, connections.cpp: the dispatcher's ---

// Deals with what is ready, or waits for it until the deadline; the number of things it dealt with.
std::size_t dispatch_events(LenderCore& core, Deadline deadline) noexcept;
// Watches the endpoint, or, as it is one, its only connection. False: errno.
bool watch_endpoint(LenderCore& core) noexcept;
void end_connection(LenderCore& core, Connection& connection) noexcept;
void wake_dispatcher(LenderCore& core) noexcept;

// --- requests.cpp: the dispatcher's ---

// A message of a borrower that has introduced itself. False: it is none that a borrower sends.
bool handle_message(LenderCore& core, Connection& connection, const Message& message) noexcept;
void answer(LenderCore& core, Connection& connection, const WaitingRequest& request, bool may_wait) noexcept;
void answer_waiting(LenderCore& core) noexcept;

// --- notices.cpp: under the lock ---

// Whether the message is on its way, or will be when there is room.
bool send_to(LenderCore& core, Connection& connection, const Message& message) noexcept;
// Tells every holder of an offer its generation and its state, and one connection all that it has not been told.
void tell_holders(LenderCore& core, const OfferRecord& offer) noexcept;
void tell_the_rest(LenderCore& core, Connection& connection) noexcept;
// Watches for what a connection needs: to read, and to write while it is behind.
void watch(LenderCore& core, Connection& connection) noexcept;

// --- offers.cpp ---

// Under the lock: the offer that has this name now, or null; and that it has newer data.
OfferRecord* find_offer(LenderCore& core, std::string_view name) noexcept;
std::uint64_t publish(OfferRecord& offer) noexcept;

// Under the lock: a lease has ended.
void end_lease(LenderCore& core, Connection& connection, std::size_t index, LendingEvent::Kind kind,
               const Error& error = Error(Errc::refused, Operation::none)) noexcept;
// Frees what is parked and held by nobody any more. Without the lock.
void reap_parked(LenderCore& core) noexcept;
// The same for lenders that have ended, whom nobody dispatches any more.
void reap_orphans() noexcept;

// --- lender.cpp ---

// Takes the lock; the last reference ends the core.
void drop_reference(LenderCore& core) noexcept;

}  // namespace devshare::detail
