// SPDX-License-Identifier: Apache-2.0
// Process A: puts a file into physical memory, shares its handle by a token of the kind it is told, and frees it while
// the others go on reading.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/file_reader.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string file;
  Mechanism kind = Mechanism::v2;
  std::string socket = "physical_sharing.sock";
  std::int32_t device = 0;
  std::uint32_t importers = 1;
  std::int64_t patience = 120;
};

template <class... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::print("exporter: {}\n", fmt::format(format, std::forward<Arguments>(arguments)...));
}

Result<std::size_t> bytes_in_use(const Device& device) {
  DEVSHARE_TRY(memory, device.memory_info());
  return memory.total - memory.free;
}

// Everything here is the same for each kind of token: K is v1, v2 or fabric.
template <class K>
Result<void> share(const Options& options, const Device& device) {
  FileReader file(options.file);
  if (file.size() == 0) throw std::runtime_error(options.file + " is empty: there is nothing to share");
  const Listener listener(options.socket, Patience(options.patience));

  // Memory without an address, then an address for it. Importers map the same memory at addresses of their own.
  DEVSHARE_TRY(handle, PhysicalHandle::allocate(device, block_size(file.size(), options.importers)));
  say("{} bytes asked for, {} in whole pages", handle.size(), handle.physical_size());
  DEVSHARE_TRY(mapping, Mapping::of(std::move(handle)));
  DEVSHARE_TRY(digest, load(device, mapping.bytes().first(file.size()), file));
  say("sha256 {}", to_hex(digest));

  DEVSHARE_TRY(token, export_handle<K>(std::move(mapping)));  // once for the life of the handle (R27)
  say("exported as {}, waiting for {} at {}", name_of(K::mechanism), options.importers, options.socket);
  std::vector<Socket> importers;
  while (importers.size() < options.importers) {
    auto connection = listener.accept();
    if (!connection) throw std::runtime_error("not all importers came in time");
    const auto pid = BarePid::from_peer_message(connection->template receive<Hello>().bare_pid);
    DEVSHARE_TRY(ticket, token.admit(pid));
    importers.push_back(*std::move(connection));
    Invitation invitation{.importer = static_cast<std::uint32_t>(importers.size()), .file_size = file.size()};
    std::copy_n(ticket.bytes().data(), ticket_size, invitation.ticket.begin());
    importers.back().send(invitation);
  }

  std::uint32_t number = 0;
  for (const Socket& importer : importers) {
    importer.receive<Written>();
    DEVSHARE_TRY(right, stripe_is_right(device, token.bytes(), file.size(), ++number, digest));
    if (!right) throw std::runtime_error(fmt::format("importer {} wrote something else than it should", number));
    say("importer {} wrote its stripe: it read the same bytes", number);
  }

  // All have imported, so A may go: unlike a key (R20), a handle keeps the memory for whoever holds it (R39).
  DEVSHARE_TRY(held, bytes_in_use(device));
  DEVSHARE_TRY(back, std::move(token).close());
  DEVSHARE_CHECK(std::move(back).close());
  DEVSHARE_TRY(freed, bytes_in_use(device));
  say("freed the handle: {} bytes of the device in use before, {} after", held, freed);

  number = 0;
  for (const Socket& importer : importers) importer.send(Seen{++number});
  for (const Socket& importer : importers) importer.receive<Closed>();
  DEVSHARE_TRY(last, bytes_in_use(device));
  say("all importers have closed: {} bytes of the device in use", last);
  return {};
}

Result<void> share(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  switch (options.kind) {
    case Mechanism::v1:
      return share<v1>(options, device);
    case Mechanism::fabric:
      return share<fabric>(options, device);
    default:
      return share<v2>(options, device);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Mechanism> kinds{
      {"v1", Mechanism::v1}, {"v2", Mechanism::v2}, {"fabric", Mechanism::fabric}};
  Options options;
  CLI::App app{"Puts a file into physical memory and shares it with importers, which are processes of their own."};
  app.add_option("file", options.file, "the file")->required()->check(CLI::ExistingFile);
  app.add_option("--kind", options.kind, "the kind of token; v2 unless told")
      ->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--socket", options.socket, "where importers find this process")->capture_default_str();
  app.add_option("--device", options.device, "the device whose memory is shared")->capture_default_str();
  app.add_option("--importers", options.importers, "how many to wait for")->check(CLI::Range(1, 1000));
  app.add_option("--patience", options.patience, "seconds to wait, each time")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("exporter", [&] { return share(options); });
}
