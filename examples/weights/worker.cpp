// SPDX-License-Identifier: Apache-2.0
// A worker: uses the newest weights, until their owner wants them back. If the owner dies it borrows from the next one.
#include "common/program.hpp"
#include "weights.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

using namespace devshare;
using namespace std::chrono_literals;

namespace {

struct Options {
  std::string socket = "weights.sock";
  std::int32_t device = 0;
  std::int64_t patience = 60;
};

// Copies the weights as they are now. False: the owner was at them meanwhile.
Result<bool> read_weights(const ConstLease& lease, std::uint64_t generation, std::vector<std::uint32_t>& into) {
  DEVSHARE_TRY(bytes, lease.checked_bytes());
  into.resize(bytes.size() / sizeof(std::uint32_t));
  DEVSHARE_CHECK(copy_to_host(lease.device(), std::as_writable_bytes(std::span(into)), bytes));
  return lease.generation() == generation;
}

// Works with one lease until the owner wants it back.
Result<void> work(const ConstLease& lease) {
  std::vector<std::uint32_t> weights;
  std::uint64_t used = 0;
  while (!lease.wanted_back()) {
    const auto newer = lease.wait_newer(used, 100ms);
    if (!newer && newer.error() == Errc::timed_out) continue;
    DEVSHARE_TRY(generation, newer);
    if (!weights::is_ready(generation)) {
      used = generation;
      continue;
    }
    DEVSHARE_TRY(whole, read_weights(lease, generation, weights));
    if (!whole) continue;
    if (!weights::are_of_one_generation(weights) || weights.front() != static_cast<std::uint32_t>(generation)) {
      throw std::runtime_error(fmt::format("generation {} is torn", generation));
    }
    used = generation;
    fmt::print("worker {}: works with generation {}\n", ::getpid(), generation);
  }
  return lease.check();
}

Result<void> be_worker(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  for (;;) {
    DEVSHARE_TRY(lease, borrow_to_read(device, Endpoint::path(options.socket), "weights", std::chrono::seconds(options.patience)));
    const auto done = work(lease);
    if (done) return std::move(lease).close();
    if (done.error() != Errc::exporter_gone) return done;
    fmt::print("worker {}: the owner has gone; waits for the next\n", ::getpid());
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Works with the weights of an owner."};
  app.add_option("--socket", options.socket, "where they are lent")->capture_default_str();
  app.add_option("--device", options.device, "the device to use them on")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait for an owner")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return examples::run("worker", [&] { return be_worker(options); });
}
