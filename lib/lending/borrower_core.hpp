// SPDX-License-Identifier: Apache-2.0
// A borrower's connection to one lender: requests that wait for their answer, and leases that hear of theirs.
//
// Whoever waits reads, one thread at a time (turn.hpp), and hands everything to whom it is for. All that is here is
// guarded by Lock::lending; the socket is read by whoever has the turn.
#pragma once

#include "cores.hpp"
#include "socket.hpp"
#include "turn.hpp"

#include <devshare/borrow.hpp>

#include <vector>

namespace devshare::detail {

struct LeaseRecord {
  BorrowerCore* core = nullptr;
  std::uint64_t id = 0;
  std::uint64_t generation = 0;
  bool wanted_back = false;
  bool revoked = false;
};

// What was asked for, while somebody waits for the answer.
struct Request {
  std::uint32_t number = 0;
  bool answered = false;
  bool offer_awaited = false;  // the lender has said that there is no such offer yet
  LeaseRecord* lease = nullptr;  // answered by a lease, until somebody takes it
  Message answer;
};

struct BorrowerCore final : LendingCore {
  void forked() noexcept override;

  Session session;
  Device device;
  UniqueFd socket;
  UniqueFd watched;   // an epoll descriptor of the socket and the lender's process, once somebody asked for one
  Sender lender;
  bool welcome = false;
  bool gone = false;
  Error why_gone{Errc::exporter_gone, Operation::borrow};
  std::uint32_t last_request = 0;
  std::vector<Request*> requests;
  std::size_t cancelled = 0;  // requests that nobody waited for any more, and that may have been answered all the same
  std::vector<LeaseRecord*> leases;
  std::vector<MessageBytes> unsent;  // the lender reads too slowly: told when it can take it
  Turn turn;

  explicit BorrowerCore(const Device& of) noexcept : session(of.session()), device(of) {}
};

// Whoever has the turn: takes what the lender has said, or waits for something until the deadline.
void hear_lender(BorrowerCore& core, Deadline deadline) noexcept;

// Under the lock. What cannot be sent now is sent later, in its order.
void tell_lender(BorrowerCore& core, const Message& message) noexcept;
void flush(BorrowerCore& core) noexcept;
void lender_gone(BorrowerCore& core, const Error& why) noexcept;

// Sends what connections that have ended could not. Takes the lock.
void flush_leftovers() noexcept;

// Takes the lock; with the last reference the connection ends, once everything has been told.
void drop_reference(BorrowerCore& core) noexcept;

}  // namespace devshare::detail
