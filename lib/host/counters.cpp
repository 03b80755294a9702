// SPDX-License-Identifier: Apache-2.0
// What this process has of the host runtime's.
#include "block.hpp"
#include "events.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "host_runtime.hpp"
#include "imports.hpp"
#include "ledger.hpp"
#include "lifecycle.hpp"
#include "notifies.hpp"
#include "physical.hpp"
#include "pieces.hpp"
#include "registration.hpp"
#include "reservation.hpp"
#include "streams.hpp"
#include "token_exports.hpp"
#include "token_imports.hpp"

#include <devshare/instrument.hpp>

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace devshare::host {

Counters counters() {
  const BlockCounters blocks = block_counters();
  const ExportCounters exports = export_counters();
  const ImportCounters imports = import_counters();
  const PhysicalCounters physical = physical_counters();
  const ReservationCounters ranges = reservation_counters();
  return {.allocations = blocks.allocations,
          .bytes = blocks.allocated_bytes + physical.bytes,
          .imports = blocks.imports,
          .views = blocks.views,
          .descriptors = blocks.descriptors + physical.memories,
          .keys_exported = exports.keys,
          .keys_imported = imports.keys,
          .key_opens = imports.references,
          .connections = exports.connections + imports.connections,
          .peer_grants = ledger_grants_held(),
          .handles = physical.handles,
          .reservations = ranges.reservations,
          .mappings = ranges.mappings,
          .registrations = registrations_held(),
          .tokens_exported = tokens_exported(),
          .handles_imported = handles_imported(),
          .streams = streams_held(),
          .events = events_held(),
          .notifies = notifies_held()};
}

std::string in_words(const Counters& counters) {
  const std::pair<std::uint64_t, const char*> all[] = {
      {counters.allocations, "allocations"},
      {counters.bytes, "bytes"},
      {counters.imports, "imports"},
      {counters.views, "views"},
      {counters.descriptors, "descriptors of memory"},
      {counters.keys_exported, "keys exported"},
      {counters.keys_imported, "keys imported"},
      {counters.key_opens, "opens of keys"},
      {counters.connections, "connections"},
      {counters.peer_grants, "peer grants"},
      {counters.handles, "handles"},
      {counters.reservations, "reservations"},
      {counters.mappings, "mappings"},
      {counters.registrations, "registrations"},
      {counters.tokens_exported, "tokens exported"},
      {counters.handles_imported, "handles imported"},
      {counters.streams, "streams"},
      {counters.events, "events"},
      {counters.notifies, "notifies"},
  };
  std::string text;
  for (const auto& [count, what] : all) {
    if (count != 0) fmt::format_to(std::back_inserter(text), "{}{} {}", text.empty() ? "" : ", ", count, what);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace devshare::host
