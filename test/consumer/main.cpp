// SPDX-License-Identifier: Apache-2.0
// What a user's first program looks like, built three ways by users' own build systems.
#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace {

devshare::Result<void> share() {
  DEVSHARE_TRY(runtime, devshare::Runtime::open());
  DEVSHARE_TRY(device, runtime.device(devshare::DeviceId{0}));
  DEVSHARE_TRY(memory, devshare::DeviceMemory::allocate(device, 5000));
  DEVSHARE_TRY(key, devshare::export_key(std::move(memory)));
  DEVSHARE_TRY(ticket, key.admit(devshare::BarePid::from_peer_message(1)));
  DEVSHARE_TRY(back, std::move(key).close());
  fmt::print("{} runtime, a ticket of {} bytes for {} bytes of memory\n", runtime.name(), ticket.bytes().size(),
             back.size());
  return std::move(back).close();
}

}  // namespace

int main() {
  if (const auto shared = share(); !shared) {
    fmt::print("{}\n", shared.error());
    return 1;
  }
  return 0;
}
