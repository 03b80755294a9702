// SPDX-License-Identifier: Apache-2.0
#include "expected_imports.hpp"

#include "../host/asked_ahead.hpp"
#include "runtime_state.hpp"

#include <vector>

namespace devshare::detail {
namespace {

host::ExpectedImport::By by(Mechanism mechanism) noexcept {
  using By = host::ExpectedImport::By;
  switch (mechanism) {
    case Mechanism::by_key: break;
    case Mechanism::v1: return By::v1;
    case Mechanism::v2: return By::v2;
    case Mechanism::fabric: return By::fabric;
  }
  return By::key;
}

}  // namespace

ExpectedImports::ExpectedImports(const Session& session, std::span<const TicketFields* const> tickets) noexcept {
  if (!session.alive() || !state_of(*session.record).is_host || tickets.size() < 2) return;
  std::vector<host::ExpectedImport> expected;
  expected.reserve(tickets.size());
  for (const TicketFields* const ticket : tickets) expected.push_back({by(ticket->mechanism), ticket->payload.data()});
  host::ask_ahead(expected);
  told_ = true;
}

ExpectedImports::~ExpectedImports() {
  if (told_) host::forget_asked_ahead();
}

}  // namespace devshare::detail
