// SPDX-License-Identifier: Apache-2.0
#include "borrower_core.hpp"

#include "remote_error.hpp"

#include <algorithm>
#include <cerrno>

namespace devshare::detail {
namespace {

void tell_returned(BorrowerCore& core, std::uint64_t lease) noexcept {
  Message message;
  message.type = MessageType::returned;
  message.lease = lease;
  tell_lender(core, message);
}

void answer_request(BorrowerCore& core, const Message& message) noexcept {
  const auto found = std::find_if(core.requests.begin(), core.requests.end(), [&](const Request* request) {
    return request->number == message.request && !request->answered;
  });
  const bool known = std::any_of(core.leases.begin(), core.leases.end(),
                                 [&](const LeaseRecord* lease) { return lease->id == message.lease; });
  if (message.type == MessageType::lent && (known || (found == core.requests.end() && core.cancelled == 0))) {
    return lender_gone(core, Error(Errc::bad_message, Operation::borrow, {.pid = core.lender.peer.pid}));  // not asked for
  }
  if (found == core.requests.end()) {
    if (message.type == MessageType::lent) {
      --core.cancelled;
      tell_returned(core, message.lease);  // nobody waits for it any more
    }
    return;
  }
  Request& request = **found;
  if (message.type == MessageType::waiting) {
    request.offer_awaited = true;
    return;
  }
  request.answer = message;
  request.answered = true;
  if (message.type != MessageType::lent) return;
  // From now on the lender tells news of it, which may come before its ticket has been looked at.
  auto* const lease = new LeaseRecord{.core = &core, .id = message.lease, .generation = message.generation};
  core.leases.push_back(lease);
  request.lease = lease;
}

void tell_lease(BorrowerCore& core, const Message& message) noexcept {
  for (LeaseRecord* const lease : core.leases) {
    if (lease->id != message.lease) continue;
    if (message.type == MessageType::newer) lease->generation = std::max(lease->generation, message.generation);
    if (message.type != MessageType::newer) lease->wanted_back = true;
    if (message.type == MessageType::revoked) lease->revoked = true;
    return;
  }
}

void handle(BorrowerCore& core, const Message& message) noexcept {
  switch (message.type) {
    case MessageType::welcome:
      core.welcome = true;
      return;
    case MessageType::refused:
      if (message.request == 0) return lender_gone(core, from_message(message.error, Operation::borrow, core.lender.peer.pid));
      [[fallthrough]];
    case MessageType::lent:
    case MessageType::waiting:
      return answer_request(core, message);
    case MessageType::newer:
    case MessageType::wanted_back:
    case MessageType::revoked:
      return tell_lease(core, message);
    default:
      return;
  }
}

// One message, if there is one.
bool receive(BorrowerCore& core) noexcept {
  Record record;
  const bool first = !core.lender.known;
  const Received received = first ? receive_introduction(core.socket.get(), record, core.lender)
                            : receive_record(core.socket.get(), record);
  if (received == Received::nothing) return false;
  Message message;
  const Decoded decoded = received == Received::record ? decode(record.bytes(), false, message) : Decoded::malformed;
  const Locked lock = lock_lending();
  if (received != Received::closed && !core.lender.known) {
    lender_gone(core, Error(Errc::not_permitted, Operation::borrow));  // the kernel does not say who that is
  } else if (received == Received::closed) {
    lender_gone(core, Error(Errc::exporter_gone, Operation::borrow, {.pid = core.lender.peer.pid}));
  } else if (decoded == Decoded::other_version) {
    lender_gone(core, Error(Errc::version_mismatch, Operation::borrow, {.pid = core.lender.peer.pid}));
  } else if (decoded == Decoded::malformed) {
    lender_gone(core, Error(Errc::bad_message, Operation::borrow, {.pid = core.lender.peer.pid}));
  } else {
    handle(core, message);
  }
  return !core.gone;
}

// Its process may have ended though a child of it keeps the socket open.
void look_at_process(BorrowerCore& core) noexcept {
  const int process = core.lender.process.get();
  if (process < 0 || !wait_readable(process, -1, Deadline::now())) return;
  const Locked lock = lock_lending();
  lender_gone(core, Error(Errc::exporter_gone, Operation::borrow, {.pid = core.lender.peer.pid}));
}

void hear_what_is_there(BorrowerCore& core) noexcept {
  if (!wait_readable(core.socket.get(), core.lender.process.get(), Deadline::now())) return;
  // More than this a socket does not hold; a lender that never stops talking keeps nobody here.
  constexpr std::size_t most_records = 4096;
  for (std::size_t i = 0; i < most_records && receive(core); ++i) {
  }
  look_at_process(core);
}

}  // namespace

void BorrowerCore::forked() noexcept {
  socket = {};
  watched = {};
  lender.process = {};
}

void lender_gone(BorrowerCore& core, const Error& why) noexcept {
  if (core.gone) return;
  core.gone = true;
  core.why_gone = why;
  core.unsent.clear();
  core.turn.changed();
}

void hear_lender(BorrowerCore& core, Deadline deadline) noexcept {
  if (deadline.is_now()) return hear_what_is_there(core);
  bool behind = false;
  {
    const Locked lock = lock_lending();
    flush(core);
    behind = !core.unsent.empty();
  }
  const int process = core.lender.process.get();
  if (!wait_readable(core.socket.get(), process, deadline, behind)) return;
  if (!receive(core)) look_at_process(core);
}

void flush(BorrowerCore& core) noexcept {
  auto next = core.unsent.begin();
  for (; next != core.unsent.end() && !core.gone; ++next) {
    const int failed = send_record(core.socket.get(), next->bytes());
    if (failed == EAGAIN) break;
    if (failed != 0) return lender_gone(core, Error(Errc::exporter_gone, Operation::borrow, {.pid = core.lender.peer.pid}));
  }
  core.unsent.erase(core.unsent.begin(), next);
}

void tell_lender(BorrowerCore& core, const Message& message) noexcept {
  if (core.gone) return;
  core.unsent.push_back(encode(message));
  flush(core);
}

}  // namespace devshare::detail
