// SPDX-License-Identifier: Apache-2.0
// The owner of the weights: lends them, and rewrites them in place while workers use them.
#include "common/program.hpp"
#include "weights.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace devshare;

namespace {

struct Options {
  std::string socket = "weights.sock";
  std::int32_t device = 0;
  std::size_t mebibytes = 8;
  std::uint64_t updates = 10;
  std::int64_t pause = 50;
  std::int64_t patience = 60;
};

void tell(const LendingEvent& event, void*) {
  using Kind = LendingEvent::Kind;
  const std::int32_t pid = event.holder.pid;
  if (event.kind == Kind::imported) fmt::print("owner: worker {} has the {}\n", pid, event.offer);
  if (event.kind == Kind::returned) fmt::print("owner: worker {} has returned the {}\n", pid, event.offer);
  if (event.kind == Kind::died) fmt::print("owner: worker {} died, and its lease with it\n", pid);
}

Result<void> own(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  const std::size_t count = options.mebibytes * (1 << 20) / sizeof(std::uint32_t);
  const auto seed = static_cast<std::uint32_t>(::getpid());
  const auto write = [&](DeviceSpan<std::byte> to, std::uint64_t generation) {
    const std::vector<std::uint32_t> all = weights::of(generation, seed, count);
    return copy_to_device(device, to, std::as_bytes(std::span(all)));
  };
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, count * sizeof(std::uint32_t)));
  DEVSHARE_CHECK(write(memory.bytes(), 1));

  DEVSHARE_TRY(lender, Lender::at(runtime, Endpoint::path(options.socket), {.hook = &tell}));
  DEVSHARE_TRY(lent, lender.offer("weights", std::move(memory), {.access = AccessMode::read_only}));
  DEVSHARE_TRY(serving, serve(lender));
  fmt::print("owner: lends {} MiB of weights\n", options.mebibytes);
  for (std::uint64_t update = 0; update < options.updates; ++update) {
    std::this_thread::sleep_for(std::chrono::milliseconds(options.pause));
    DEVSHARE_TRY(writing, lent.publish());  // even: from here on nobody believes what it reads
    DEVSHARE_CHECK(write(lent.bytes(), writing + 1));
    DEVSHARE_CHECK(lent.publish());  // odd: ready, and whoever waits is woken
  }
  DEVSHARE_TRY(holders, lent.holders());
  fmt::print("owner: {} workers have the weights; asks for them\n", holders.size());
  DEVSHARE_TRY(back, std::move(lent).close(std::chrono::seconds(options.patience)));
  fmt::print("owner: has its weights back\n");
  return std::move(back).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Lends weights and updates them in place."};
  app.add_option("--socket", options.socket, "where to lend")->capture_default_str();
  app.add_option("--device", options.device, "the device to have them on")->capture_default_str();
  app.add_option("--size", options.mebibytes, "MiB of weights")->check(CLI::Range(1, 65'536));
  app.add_option("--updates", options.updates, "how often to update them before asking for them back");
  app.add_option("--pause", options.pause, "milliseconds between updates")->check(CLI::Range(0, 60'000));
  app.add_option("--patience", options.patience, "seconds to wait for the workers")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return examples::run("owner", [&] { return own(options); });
}
