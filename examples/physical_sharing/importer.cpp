// SPDX-License-Identifier: Apache-2.0
// Process B: opens what A shares, whatever kind of token it came by and whichever device it is on, and goes on reading
// after A has freed it.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/memory_use.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdint>
#include <string>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string file;
  std::string socket = "physical_sharing.sock";
  std::int32_t device = 0;
  std::int64_t patience = 120;
};

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

  // One call for import, reserve, map and access, which all happen or none. The ticket says what kind it is.
  DEVSHARE_TRY(ticket, ReceivedTicket::decode(invitation.ticket));
  DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
  say("device {}: imported {} bytes by {} of process {}, device {}", options.device, mapping.size(),
      name_of(mapping.mechanism()), ticket.exporter().pid, ticket.owner_device());

  // Copies to the host and back are allowed from another device too: R42 is about memory that came by key.
  const auto content = mapping.bytes().first(invitation.file_size);
  const Digest on_disk = digest_on_disk(options.file);
  DEVSHARE_TRY(in_memory, digest_by_copies(device, content));
  if (in_memory != on_disk) {
    throw std::runtime_error(fmt::format("the shared memory does not hold {}: sha256 {} there, {} on disk",
                                         options.file, to_hex(in_memory), to_hex(on_disk)));
  }
  say("sha256 {}: the same as on disk", to_hex(in_memory));

  const std::size_t mine = stripe_offset(invitation.file_size, invitation.importer);
  DEVSHARE_CHECK(
      copy_to_device(device, mapping.bytes().subspan(mine, stripe_size), stripe_of(invitation.importer, in_memory)));
  exporter.send(Written{.private_bytes = private_bytes()});

  // From this message on the exporter has freed its handle. The memory is as good as before.
  exporter.receive<Seen>();
  DEVSHARE_CHECK(mapping.check());
  DEVSHARE_TRY(afterwards, digest_by_copies(device, content));
  DEVSHARE_TRY(kept, stripe_is_right(device, mapping.bytes(), invitation.file_size, invitation.importer, on_disk));
  if (afterwards != on_disk || !kept) throw std::runtime_error("the memory went with the exporter's handle");
  say("the exporter has freed its handle: the bytes are there");

  DEVSHARE_CHECK(std::move(mapping).close());
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
  app.add_option("--patience", options.patience, "seconds to wait, each time")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("importer", [&] { return use(options); });
}
