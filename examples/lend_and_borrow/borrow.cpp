// SPDX-License-Identifier: Apache-2.0
// Process B: borrows the file and compares it with the one on disk.
#include "common/content.hpp"
#include "common/program.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

using namespace devshare;
using namespace examples;

namespace {

struct Options {
  std::string file;
  std::string socket = "lend_and_borrow.sock";
  std::int32_t device = 0;
  std::int64_t patience = 120;
};

Result<void> use(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{options.device}));
  DEVSHARE_TRY(lease, borrow_to_read(device, Endpoint::path(options.socket), "file", std::chrono::seconds(options.patience)));

  // Copies work for all but memory that came by key from another device, which is for kernels (R42).
  const auto by_copies = digest_by_copies(device, lease.bytes());
  const bool kernels_only = !by_copies && by_copies.error() == Errc::cross_device_copy;
  DEVSHARE_TRY(in_memory, kernels_only ? digest_by_kernel(lease.bytes()) : by_copies);
  if (in_memory != digest_on_disk(options.file)) throw std::runtime_error("the memory does not hold " + options.file);
  fmt::print("borrower: {} bytes on device {}, read by {}: sha256 {}, the same as on disk\n", lease.size(),
             options.device, kernels_only ? "a kernel" : "copies", to_hex(in_memory));
  return std::move(lease).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Borrows a file that another process lends, in device memory."};
  app.add_option("file", options.file, "the file that the lender was given")->required()->check(CLI::ExistingFile);
  app.add_option("--socket", options.socket, "where it is lent")->capture_default_str();
  app.add_option("--device", options.device, "the device to use it on")->capture_default_str();
  app.add_option("--patience", options.patience, "seconds to wait for the lender")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return run("borrower", [&] { return use(options); });
}
