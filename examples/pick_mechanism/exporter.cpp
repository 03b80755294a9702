// SPDX-License-Identifier: Apache-2.0
// Process A: finds out by which mechanisms it can share, chooses one with its importer, and shares by it. One program
// for keys and for every kind of handle.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/file_reader.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"
#include "introduction.hpp"

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
  std::string socket = "pick_mechanism.sock";
  std::vector<Mechanism> prefer{Mechanism::v2, Mechanism::v1, Mechanism::fabric, Mechanism::by_key};
  std::int32_t device = 0;
  std::int32_t importer_device = 0;
  std::int64_t patience = 120;
};

void print(const Probe& probe, Mechanisms importer_can) {
  fmt::print("exporter: {:<10} {:<6} {:<9} why not\n", "mechanism", "works", "importer");
  for (const Mechanism each : all_mechanisms) {
    const std::optional<Error>& why_not = probe.why_not(each);
    fmt::print("exporter: {:<10} {:<6} {:<9} {}\n", name_of(each), probe.works(each) ? "yes" : "no",
               importer_can.contains(each) ? "can" : "cannot", why_not ? fmt::format("{}", *why_not) : "-");
  }
}

// The one body for every mechanism: K is by_key, v1, v2 or fabric. By key it works with memory of aclrtMalloc, else
// with a mapping of physical memory; both have bytes() and both are given back by close().
template <class K>
Result<void> share(const Options& options, const Device& device, const Socket& importer, BarePid pid) {
  FileReader file(options.file);
  if (file.size() == 0) throw std::runtime_error(options.file + " is empty: there is nothing to share");
  // 310P asks for memory that other devices may reach (R43); elsewhere it is memory like any other.
  const Placement placement{.peer_to_peer = options.device != options.importer_device};
  DEVSHARE_TRY(memory, allocate_for<K>(device, file.size(), placement));
  DEVSHARE_TRY(digest, load(device, memory.bytes().first(file.size()), file));
  DEVSHARE_TRY(exported, export_for<K>(std::move(memory)));
  DEVSHARE_TRY(ticket, exported.admit(pid));
  Invitation invitation{.importer = 1, .file_size = file.size()};
  std::copy_n(ticket.bytes().data(), ticket_size, invitation.ticket.begin());
  importer.send(invitation);

  importer.receive<Closed>();  // by key A must wait for that (R20); a handle it could have freed before
  DEVSHARE_TRY(back, std::move(exported).close());
  DEVSHARE_CHECK(std::move(back).close());
  fmt::print("exporter: shared, mechanism {}, sha256 {}\n", name_of(K::mechanism), to_hex(digest));
  return {};
}

Result<void> share(const Options& options) {
  const Listener listener(options.socket, Patience(options.patience));
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(importer_device, runtime.device(DeviceId{options.importer_device}));
  DEVSHARE_TRY(found, probe(device, importer_device));

  const auto importer = listener.accept();
  if (!importer) throw std::runtime_error("no importer came in time");
  const auto introduction = importer->receive<Introduction>();
  const Mechanisms importer_can = Mechanisms::from_message(introduction.importable);
  print(found, importer_can);

  // Once, before the first export: a handle can be exported in one way only (R27).
  DEVSHARE_TRY(mechanism, choose(found.working(), Prefer(options.prefer), importer_can));
  fmt::print("exporter: chose {}\n", name_of(mechanism));
  return with_mechanism(mechanism, [&]<class K>(K) {
    return share<K>(options, device, *importer, BarePid::from_peer_message(introduction.bare_pid));
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, Mechanism> names{
      {"by_key", Mechanism::by_key}, {"v1", Mechanism::v1}, {"v2", Mechanism::v2}, {"fabric", Mechanism::fabric}};
  Options options;
  CLI::App app{"Shares a file with an importer by the best mechanism that works for both."};
  app.add_option("file", options.file, "the file")->required()->check(CLI::ExistingFile);
  app.add_option("--prefer", options.prefer, "mechanisms, the best first; others are never chosen")
      ->transform(CLI::CheckedTransformer(names))
      ->delimiter(',');
  app.add_option("--socket", options.socket, "where the importer finds this process")->capture_default_str();
  app.add_option("--device", options.device, "the device whose memory is shared")->capture_default_str();
  app.add_option("--importer-device", options.importer_device, "the importer's device")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait, each time")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("exporter", [&] { return share(options); });
}
