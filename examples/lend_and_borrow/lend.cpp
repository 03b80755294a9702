// SPDX-License-Identifier: Apache-2.0
// Process A: lends a file, in device memory, to whoever borrows it.
#include "common/content.hpp"
#include "common/program.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <string>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string file;
  std::string socket = "lend_and_borrow.sock";
  std::int32_t device = 0;
  std::uint32_t borrowers = 1;
  std::int64_t patience = 120;
};

// How many have returned what they borrowed. Told by the thread that dispatches, which is this program's own here.
struct Returned {
  std::uint32_t count = 0;
  static void note(const LendingEvent& event, void* self) {
    if (event.kind == LendingEvent::Kind::imported) fmt::print("lender: process {} has it\n", event.holder.pid);
    if (event.kind == LendingEvent::Kind::returned) ++static_cast<Returned*>(self)->count;
  }
};

Result<void> lend(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  FileReader file(options.file);
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, file.size()));
  DEVSHARE_TRY(digest, load(device, memory.bytes(), file));

  Returned returned;
  DEVSHARE_TRY(lender, Lender::at(runtime, Endpoint::path(options.socket), {.hook = &Returned::note, .user = &returned}));
  DEVSHARE_TRY(lent, lender.offer("file", std::move(memory)));
  fmt::print("lender: lends {} bytes, sha256 {}\n", file.size(), to_hex(digest));
  const Deadline patience = std::chrono::seconds(options.patience);
  while (returned.count < options.borrowers && !patience.passed()) DEVSHARE_CHECK(lender.dispatch(patience));

  DEVSHARE_TRY(back, std::move(lent).close(patience));
  fmt::print("lender: {} borrowed and returned it; the memory is mine alone again\n", returned.count);
  return std::move(back).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Lends a file, in device memory, by the name `file`."};
  app.add_option("file", options.file, "what to lend")->required()->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket, "where to lend")->capture_default_str();
  app.add_option("--device", options.device, "the device to have it on")->capture_default_str();
  app.add_option("--borrowers", options.borrowers, "how many to wait for")->check(CLI::Range(1, 1'000));
  app.add_option("--patience", options.patience, "seconds to wait for them")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("lender", [&] { return lend(options); });
}
