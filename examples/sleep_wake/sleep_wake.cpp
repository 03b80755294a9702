// SPDX-License-Identifier: Apache-2.0
// An engine that holds its weights in one range of addresses, lends a piece to another process, sleeps and wakes: the
// memory goes back to the device, except for what the other holds, and the addresses stay.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/file_reader.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"
#include "neighbour.hpp"
#include "weight_pool.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string weights;
  std::size_t pieces = 4;
  std::int32_t device = 0;
  std::int32_t neighbour_device = 1;
  std::int32_t neighbour_on = -1;  // this is the second process
};

constexpr Patience patience{120};
constexpr std::size_t lent = 1;  // the number of the piece that the neighbour imports

template <class... Arguments>
void say(std::string_view who, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print("{}: {}\n", who, fmt::format(format, std::forward<Arguments>(arguments)...));
}

// --- The neighbour ---------------------------------------------------------------------------------------------------

// What the neighbour saw in its piece, to be compared by the engine.
struct Report {
  Digest digest{};
};

Result<ImportedMapping> open_next(const Socket& engine, const Device& device) {
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(engine.receive<Invitation>().ticket));
  return ImportedMapping::open(ticket, device);
}

Result<void> report(const Socket& engine, const Device& device, const ImportedMapping& piece) {
  DEVSHARE_CHECK(piece.check());
  DEVSHARE_TRY(digest, digest_by_copies(device, piece.bytes()));
  engine.send(Report{digest});
  return {};
}

Result<void> be_neighbour(const Options& options) {
  const Socket engine(patience, neighbour_fd);
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.neighbour_on}));
  DEVSHARE_TRY(me, runtime.bare_pid());
  engine.send(Hello{me.to_message()});

  DEVSHARE_TRY(before, open_next(engine, device));
  say("neighbour", "imported {} bytes on device {}", before.size(), options.neighbour_on);
  DEVSHARE_CHECK(report(engine, device, before));

  engine.receive<Seen>();  // the engine sleeps
  DEVSHARE_CHECK(report(engine, device, before));
  say("neighbour", "the engine sleeps, and the bytes here are untouched");

  // After it woke, the engine's memory is another one. This is how the neighbour comes by it; until it closes, it has
  // both.
  DEVSHARE_TRY(after, open_next(engine, device));
  DEVSHARE_CHECK(std::move(before).close());
  DEVSHARE_CHECK(report(engine, device, after));
  say("neighbour", "the engine woke, and the piece of today is here too");
  DEVSHARE_CHECK(std::move(after).close());
  engine.send(Closed{});
  return {};
}

// --- The engine ------------------------------------------------------------------------------------------------------

Result<std::size_t> free_bytes(const Device& device) {
  DEVSHARE_TRY(memory, device.memory_info());
  return memory.free;
}

// Exports one piece to the neighbour by a reference of its own, until it has imported and reported what is in it. The
// reference ends here: the neighbour keeps the memory (R39), and the pool can sleep.
Result<Digest> lend(WeightPool& pool, BarePid to, const Socket& neighbour) {
  DEVSHARE_TRY(reference, pool.retain(lent));
  DEVSHARE_TRY(token, export_handle<v2>(std::move(reference)));
  DEVSHARE_TRY(ticket, token.admit(to));
  Invitation invitation;
  std::copy_n(ticket.bytes().data(), ticket_size, invitation.ticket.begin());
  neighbour.send(invitation);
  const Digest seen = neighbour.receive<Report>().digest;
  DEVSHARE_TRY(back, std::move(token).close());
  DEVSHARE_CHECK(std::move(back).close());
  return seen;
}

void expect_same(const Digest& a, const Digest& b, const char* what) {
  if (a != b) throw std::runtime_error(std::string(what) + ": the bytes are not what they should be");
}

Result<void> be_engine(const Options& options) {
  FileReader weights(options.weights);
  const std::size_t granule = std::size_t{2} << 20;  // whole pages leave no gaps between pieces
  const std::size_t piece = (weights.size() / options.pieces / granule + 1) * granule;

  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(pool, WeightPool::allocate(device, options.pieces, piece));
  DEVSHARE_CHECK(fill(device, pool.bytes(), std::byte{0}));  // a card's fresh memory holds whatever was there
  DEVSHARE_TRY(digest, load(device, pool.bytes().first(weights.size()), weights));
  const auto address = pool.address();
  say("engine", "{} bytes of weights in {} pieces of {}, at {}", weights.size(), options.pieces, piece,
      fmt::ptr(address.address()));

  Neighbour neighbour = Neighbour::start(options.neighbour_device, patience);
  const auto pid = BarePid::from_peer_message(neighbour.connection().receive<Hello>().bare_pid);
  DEVSHARE_TRY(content_of_piece, digest_by_copies(device, pool.piece(lent)));
  DEVSHARE_TRY(seen, lend(pool, pid, neighbour.connection()));
  expect_same(seen, content_of_piece, "lent");
  say("engine", "lent piece {} to the neighbour", lent);

  DEVSHARE_TRY(free_awake, free_bytes(device));
  DEVSHARE_TRY(given_back, pool.sleep());
  DEVSHARE_TRY(free_asleep, free_bytes(device));
  say("engine", "asleep: {} bytes given back, {} more free on the device, {} held by the neighbour", given_back,
      free_asleep - free_awake, options.pieces * piece - given_back);
  neighbour.connection().send(Seen{});
  expect_same(neighbour.connection().receive<Report>().digest, content_of_piece, "asleep");

  DEVSHARE_CHECK(pool.wake());
  if (pool.address() != address) throw std::runtime_error("the weights are at another address");
  FileReader again(options.weights);
  DEVSHARE_CHECK(fill(device, pool.bytes(), std::byte{0}));
  DEVSHARE_TRY(reloaded, load(device, pool.bytes().first(again.size()), again));
  DEVSHARE_TRY(in_memory, digest_by_copies(device, pool.bytes().first(again.size())));
  expect_same(reloaded, digest, "reloaded");
  expect_same(in_memory, digest, "awake");
  say("engine", "awake at {}, weights loaded again: sha256 {}", fmt::ptr(pool.address().address()), to_hex(in_memory));

  // The neighbour's piece is the old one still: memory that came after the sleep is shared anew.
  DEVSHARE_TRY(seen_awake, lend(pool, pid, neighbour.connection()));
  expect_same(seen_awake, content_of_piece, "lent again");
  neighbour.connection().receive<Closed>();
  neighbour.expect_good_end();

  DEVSHARE_TRY(given_back_alone, pool.sleep());
  say("engine", "asleep, and nobody else holds a piece: {} bytes given back", given_back_alone);
  return std::move(pool).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Holds weights in device memory, lends a piece to a process of its own, sleeps and wakes."};
  auto* const weights = app.add_option("weights", options.weights, "the file of weights")->check(CLI::ExistingFile);
  app.add_option("--pieces", options.pieces, "pieces of physical memory")->check(CLI::Range(2, 1000));
  app.add_option("--device", options.device, "the engine's device")->capture_default_str();
  app.add_option("--neighbour", options.neighbour_device, "the other process's device")->capture_default_str();
  auto* const second = app.add_option("--neighbour-on", options.neighbour_on)->group("");  // for the program itself
  weights->excludes(second);
  CLI11_PARSE(app, argc, argv);
  if (!*second && !*weights) {
    fmt::print(stderr, "{}", app.help());
    return 1;
  }
  if (*second) return run("neighbour", [&] { return be_neighbour(options); });
  return run("engine", [&] { return be_engine(options); });
}
