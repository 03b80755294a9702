// SPDX-License-Identifier: Apache-2.0
// A borrower in a poll loop of the program's own.
#include "common/program.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include <poll.h>
#include <unistd.h>

using namespace devshare;

namespace {

struct Options {
  std::string socket = "event_loop.sock";
  std::int64_t patience = 30;
};

Result<void> follow(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{0}));
  DEVSHARE_TRY(lease, borrow(device, Endpoint::path(options.socket), "counter", std::chrono::seconds(options.patience)));
  DEVSHARE_TRY(handle, lease.native_handle());
  std::uint64_t seen = lease.generation();
  std::uint64_t count = 0;
  while (!lease.wanted_back()) {
    pollfd waiting{handle, POLLIN, 0};  // and whatever else the program waits for
    if (::poll(&waiting, 1, -1) < 0) continue;
    const std::uint64_t generation = lease.generation();
    if (generation == seen) continue;
    seen = generation;
    DEVSHARE_TRY(bytes, lease.checked_bytes());
    DEVSHARE_CHECK(copy_to_host(device, std::as_writable_bytes(std::span(&count, 1)), bytes.first(sizeof count)));
  }
  DEVSHARE_CHECK(copy_to_host(device, std::as_writable_bytes(std::span(&count, 1)), lease.bytes().first(sizeof count)));
  fmt::print("borrower {}: the count was {} in the end\n", ::getpid(), count);
  return std::move(lease).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Follows a counter that another process lends."};
  app.add_option("--socket", options.socket, "where it is lent")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait for the lender")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return examples::run("borrower", [&] { return follow(options); });
}
