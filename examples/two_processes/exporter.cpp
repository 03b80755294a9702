// SPDX-License-Identifier: Apache-2.0
// Process A: puts a file into device memory, lends it to others by key, and takes it back.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/file_reader.hpp"
#include "common/memory_use.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"
#include "common/sha256.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <vector>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string file;
  std::string socket = "two_processes.sock";
  std::int32_t device = 0;
  std::uint32_t importers = 1;
  std::int64_t patience = 120;
};

// One importer, as A sees it.
struct Guest {
  std::uint32_t number = 0;
  Socket connection;
  std::uint64_t private_bytes = 0;
  std::string trouble{};  // what went wrong with it
};

template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print("exporter: {}\n", fmt::format(format, std::forward<Arguments>(arguments)...));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Admits an importer by the pid that it sends, and invites it.
Result<void> admit(Guest& guest, SharedMemoryKey<>& key, std::size_t file_size) {
  const BarePid pid = BarePid::from_peer_message(guest.connection.receive<Hello>().bare_pid);
  DEVSHARE_TRY(ticket, key.admit(pid));  // the only way to bytes that can be sent
  Invitation invitation{.importer = guest.number, .file_size = file_size};
  std::copy_n(ticket.bytes().data(), ticket_size, invitation.ticket.begin());
  guest.connection.send(invitation);
  say("admitted importer {}, bare pid {}", guest.number, pid.to_message());
  return {};
}

// Takes a step with an importer that is still well. What goes wrong with one is noted: it keeps A neither from serving
// the others nor from closing.
template <class Step>
void with(Guest& guest, Step step) {
  if (!guest.trouble.empty()) return;
  try {
    if (const Result<void> done = step(); !done) guest.trouble = fmt::format("{}", done.error());
  } catch (const std::exception& error) {
    guest.trouble = error.what();
  }
  if (!guest.trouble.empty()) say("importer {}: {}", guest.number, guest.trouble);
}

void print_memory(std::span<const Guest> guests, std::size_t file_size) {
  const std::uint64_t shared = shared_block_bytes();
  const std::uint64_t own = private_bytes();
  std::uint64_t together = shared + own;
  std::uint64_t processes = 1;
  say("memory, while importers hold the block:");
  say("  {:>14} bytes in blocks of shared memory", shared);
  say("  {:>14} bytes private to the exporter", own);
  for (const Guest& guest : guests) {
    if (!guest.trouble.empty()) continue;
    say("  {:>14} bytes private to importer {}", guest.private_bytes, guest.number);
    together += guest.private_bytes;
    ++processes;
  }
  say("  {:>14} bytes together", together);
  say("  {:>14} bytes, were there a copy of the file in each of {} processes", file_size * processes, processes);
}

Result<void> share(const Options& options) {
  FileReader file(options.file);
  if (file.size() == 0) throw std::runtime_error(options.file + " is empty: there is nothing to share");
  const Listener listener(options.socket, Patience(options.patience));

  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(before, device.memory_info());

  const auto start = std::chrono::steady_clock::now();
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, block_size(file.size(), options.importers)));
  DEVSHARE_TRY(digest, load(device, memory.bytes().first(file.size()), file));
  say("{} runtime, device {}: {} bytes of {} loaded in {:.2f} s", runtime.name(), options.device, file.size(),
      options.file, seconds_since(start));
  say("sha256 {}", to_hex(digest));

  const auto address = memory.bytes().data();
  DEVSHARE_TRY(key, export_key(std::move(memory)));  // from here on the key owns the memory

  say("waiting for {} importer{} at {}", options.importers, options.importers == 1 ? "" : "s", options.socket);
  std::vector<Guest> guests;
  guests.reserve(options.importers);
  while (guests.size() < options.importers) {
    auto connection = listener.accept();
    if (!connection) break;
    guests.push_back({.number = static_cast<std::uint32_t>(guests.size() + 1), .connection = *std::move(connection)});
    with(guests.back(), [&] { return admit(guests.back(), key, file.size()); });
  }
  if (guests.size() < options.importers) say("{} of {} came in time", guests.size(), options.importers);

  for (Guest& guest : guests) {
    with(guest, [&]() -> Result<void> {
      guest.private_bytes = guest.connection.receive<Written>().private_bytes;
      DEVSHARE_TRY(right, stripe_is_right(device, key.bytes(), file.size(), guest.number, digest));
      if (!right) throw std::runtime_error("its stripe is not what it should have written");
      say("importer {} wrote its stripe: it read the same bytes", guest.number);
      return {};
    });
  }
  print_memory(guests, file.size());

  // ACL tells an exporter nothing about its importers: each must say that it has closed before A may (R20). One whose
  // connection has ended is gone, and its import with it; one that was silent for too long is given up.
  for (Guest& guest : guests) {
    with(guest, [&]() -> Result<void> {
      guest.connection.send(Seen{guest.number});
      guest.connection.receive<Closed>();
      say("importer {} has closed", guest.number);
      return {};
    });
  }
  DEVSHARE_TRY(back, std::move(key).close());

  if (back.bytes().data() != address) throw std::runtime_error("the key gave back other memory than went in");
  std::uint32_t served = 0;
  for (const Guest& guest : guests) {
    if (!guest.trouble.empty()) continue;
    DEVSHARE_TRY(right, stripe_is_right(device, back.bytes(), file.size(), guest.number, digest));
    if (!right) throw std::runtime_error("a stripe is gone from the memory that came back");
    ++served;
  }
  DEVSHARE_CHECK(std::move(back).close());
  DEVSHARE_TRY(after, device.memory_info());
  if (host::active() && (host::counters().bytes != 0 || host::counters().keys_exported != 0)) {
    throw std::runtime_error("the host runtime still holds memory of this process");
  }
  say("closed the key, got the memory back, freed it: {} bytes of the device free before, {} after", before.free,
      after.free);

  if (served < options.importers) {
    throw std::runtime_error(fmt::format("{} of {} importers were served to the end", served, options.importers));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Puts a file into device memory and shares it with importers, which are processes of their own."};
  app.add_option("file", options.file, "the file")->required()->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket, "where importers find this process")->capture_default_str();
  app.add_option("--device", options.device, "the device whose memory is shared")->capture_default_str();
  app.add_option("--importers", options.importers, "how many to wait for")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait for an importer, each time")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  return run("exporter", [&] { return share(options); });
}
