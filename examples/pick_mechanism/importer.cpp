// SPDX-License-Identifier: Apache-2.0
// Process B: says what it can import by, and opens what comes.
#include "common/agreement.hpp"
#include "common/content.hpp"
#include "common/program.hpp"
#include "common/rendezvous.hpp"
#include "introduction.hpp"

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
  std::string socket = "pick_mechanism.sock";
  std::int32_t device = 0;
  std::int64_t patience = 120;
};

Result<void> use(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  const Socket exporter = connect_to(options.socket, Patience(options.patience));
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(me, runtime.bare_pid());
  exporter.send(Introduction{.bare_pid = me.to_message(), .importable = importable(device).to_message()});
  const auto invitation = exporter.receive<Invitation>();

  DEVSHARE_TRY(ticket, ReceivedTicket::decode(invitation.ticket));
  DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
  const auto content = mapping.bytes().first(invitation.file_size);

  // Copies work for all but one combination: memory that came by key from another device is for kernels (R42).
  const auto by_copies = digest_by_copies(device, content);
  const bool kernels_only = !by_copies && by_copies.error() == Errc::cross_device_copy;
  DEVSHARE_TRY(in_memory, kernels_only ? digest_by_kernel(content) : by_copies);
  if (in_memory != digest_on_disk(options.file)) throw std::runtime_error("the memory does not hold " + options.file);
  fmt::print("importer: {} bytes by {} on device {}, read by {}: sha256 {}, the same as on disk\n", mapping.size(),
             name_of(mapping.mechanism()), options.device, kernels_only ? "a kernel" : "copies", to_hex(in_memory));

  DEVSHARE_CHECK(std::move(mapping).close());
  exporter.send(Closed{invitation.importer});
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Imports what an exporter shares, by whatever mechanism it chose."};
  app.add_option("file", options.file, "the file that the exporter was given")->required()->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket, "where the exporter waits")->capture_default_str();
  app.add_option("--device", options.device, "the device to use the memory on")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait, each time")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("importer", [&] { return use(options); });
}
