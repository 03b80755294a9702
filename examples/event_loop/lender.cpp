// SPDX-License-Identifier: Apache-2.0
// A lender in an epoll loop of the program's own: no thread, and nothing that blocks.
#include "common/program.hpp"

#include <devshare/devshare.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

using namespace devshare;

namespace {

struct Options {
  std::string socket = "event_loop.sock";
  std::uint64_t ticks = 20;
  std::int64_t interval = 20;
  std::int64_t patience = 30;
};

// What else the program's loop watches: here a timer.
class Timer {
 public:
  explicit Timer(std::int64_t milliseconds) : fd_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    const timespec each{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
    const itimerspec setting{each, each};
    if (fd_ < 0 || ::timerfd_settime(fd_, 0, &setting, nullptr) != 0) throw std::runtime_error("no timer");
  }
  ~Timer() { ::close(fd_); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  int fd() const noexcept { return fd_; }
  void take() const noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(fd_, &count, sizeof count);
  }

 private:
  int fd_;
};

class Loop {
 public:
  Loop() : fd_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("no epoll");
  }
  ~Loop() { ::close(fd_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  void watch(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (::epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) throw std::runtime_error("epoll refuses");
  }
  int next() const noexcept {
    epoll_event event{};
    return ::epoll_wait(fd_, &event, 1, -1) == 1 ? event.data.fd : -1;
  }

 private:
  int fd_;
};

void tell(const LendingEvent& event, void* borrowers) {
  using Kind = LendingEvent::Kind;
  if (event.kind == Kind::imported) ++*static_cast<int*>(borrowers);
  if (event.kind == Kind::imported) fmt::print("lender: process {} has it\n", event.holder.pid);
  if (event.kind == Kind::returned) fmt::print("lender: process {} returned it\n", event.holder.pid);
  if (event.kind == Kind::died) fmt::print("lender: process {} died\n", event.holder.pid);
}

Result<void> lend(const Options& options) {
  DEVSHARE_TRY(runtime, Runtime::open());
  DEVSHARE_TRY(device, runtime.device(DeviceId{0}));
  DEVSHARE_TRY(memory, DeviceMemory::allocate(device, 4096));
  int borrowers = 0;
  DEVSHARE_TRY(lender, Lender::at(runtime, Endpoint::path(options.socket), {.hook = &tell, .user = &borrowers}));
  DEVSHARE_TRY(lent, lender.offer("counter", std::move(memory)));

  const Loop loop;
  const Timer timer(options.interval);
  loop.watch(lender.native_handle());
  loop.watch(timer.fd());
  for (std::uint64_t tick = 0; tick < options.ticks;) {
    const int ready = loop.next();
    if (ready == lender.native_handle()) DEVSHARE_CHECK(lender.dispatch());
    if (ready != timer.fd()) continue;
    timer.take();
    if (borrowers == 0) continue;  // the count begins when somebody is there
    ++tick;
    DEVSHARE_CHECK(copy_to_device(device, lent.bytes().first(sizeof tick), std::as_bytes(std::span(&tick, 1))));
    DEVSHARE_CHECK(lent.publish());
  }

  // The same without blocking: ask for it, go on with the loop, and close once nobody holds it.
  DEVSHARE_CHECK(lent.withdraw());
  const Deadline patience = std::chrono::seconds(options.patience);
  for (;;) {
    DEVSHARE_TRY(holders, lent.holders());
    if (holders.empty() || patience.passed()) break;
    const int ready = loop.next();
    if (ready == timer.fd()) timer.take();
    if (ready == lender.native_handle()) DEVSHARE_CHECK(lender.dispatch());
  }
  DEVSHARE_TRY(back, std::move(lent).close(Deadline::now()));
  fmt::print("lender: counted to {}; nobody holds it any more\n", options.ticks);
  return std::move(back).close();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Lends a counter, and counts."};
  app.add_option("--socket", options.socket, "where to lend")->capture_default_str();
  app.add_option("--ticks", options.ticks, "how far to count")->check(CLI::Range(1, 1'000'000));
  app.add_option("--interval", options.interval, "milliseconds between counts")->check(CLI::Range(1, 60'000));
  app.add_option("--patience", options.patience, "seconds to wait for the borrowers")->check(CLI::Range(1, 86'400));
  CLI11_PARSE(app, argc, argv);
  return examples::run("lender", [&] { return lend(options); });
}
