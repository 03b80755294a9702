// SPDX-License-Identifier: Apache-2.0
// What the programs of the documents take for granted: a channel between two processes, and something to do.
#include <devshare/devshare.hpp>

#include <chrono>
#include <span>
#include <utility>

using namespace devshare;
using namespace std::chrono_literals;

struct Channel {
  BarePid receive_pid();
  void send(BarePid);
  void send(const TicketBytes&);
  std::span<const std::byte> receive();
  void say_opened();
  void wait_until_opened();
  void wait_until_closed();
};

Result<void> use(Device, DeviceSpan<std::byte>);
void run_the_engine(DeviceSpan<std::byte>);
void work_with(DeviceSpan<std::byte>);
