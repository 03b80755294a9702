// SPDX-License-Identifier: Apache-2.0
// Process B: imports the memory that A shares, proves that it holds the file, writes a stripe back, and closes.
#include "common/agreement.hpp"
#include "common/content.hpp"
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
#include <cstdio>
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
  std::int64_t patience = 120;
};

// Writes by a copy where that is allowed, else as a kernel would.
Result<void> write(const Device& device, DeviceSpan<std::byte> to, std::span<const std::byte> from) {
  const auto copied = copy_to_device(device, to, from);
  if (copied || copied.error() != Errc::cross_device_copy) return copied;
  DEVSHARE_TRY(bytes, host::view(to));
  std::ranges::copy(from, bytes.begin());
  return {};
}

Result<void> use(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  const Socket exporter = connect_to(options.socket, Patience(options.patience));
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(me, runtime.bare_pid());
  exporter.send(Hello{me.to_message()});
  const auto invitation = exporter.receive<Invitation>();
  const auto say = [&]<class... Arguments>(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::print("importer {}: {}\n", invitation.importer, fmt::format(format, std::forward<Arguments>(arguments)...));
  };

  DEVSHARE_TRY(ticket, ReceivedTicket::decode(invitation.ticket));
  DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
  const auto content = mapping.bytes().first(invitation.file_size);
  say("device {}: imported {} bytes of process {}, device {}", options.device, mapping.size(), ticket.exporter().pid,
      ticket.owner_device());

  const Digest on_disk = digest_on_disk(options.file);
  const auto start = std::chrono::steady_clock::now();
  const auto by_copies = digest_by_copies(device, content);
  const bool other_device = !by_copies && by_copies.error() == Errc::cross_device_copy;
  DEVSHARE_TRY(in_memory, other_device ? digest_by_kernel(content) : by_copies);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (content.size() != invitation.file_size || in_memory != on_disk) {
    throw std::runtime_error(fmt::format("the shared memory does not hold {}: sha256 {} there, {} on disk",
                                         options.file, to_hex(in_memory), to_hex(on_disk)));
  }
  say("sha256 {}, by {} in {:.2f} s: the same as on disk", to_hex(in_memory),
      other_device ? "a kernel" : "copies to the host", seconds);

  DEVSHARE_CHECK(write(device,
                       mapping.bytes().subspan(stripe_offset(invitation.file_size, invitation.importer), stripe_size),
                       stripe_of(invitation.importer, in_memory)));
  exporter.send(Written{.private_bytes = private_bytes()});
  exporter.receive<Seen>();

  DEVSHARE_CHECK(std::move(mapping).close());  // before the exporter closes (R20), which waits for this message
  exporter.send(Closed{invitation.importer});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Imports the memory that an exporter shares and compares it with the file on disk."};
  app.add_option("file", options.file, "the file that the exporter was given")->required()->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket, "where the exporter waits")->capture_default_str();
  app.add_option("--device", options.device, "the device to use the memory on")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait for the exporter, each time")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  return run("importer", [&] { return use(options); });
}
