// SPDX-License-Identifier: Apache-2.0
// Sharing by key in processes that are set up unlike others: without standard streams, under a storm of signals, with a
// strict umask, with little address space.
#include "support/catch.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;

// A shares a few blocks with B, one after the other; each process first makes itself what the case is about.
void share_between(
    const std::function<void(Actor&)>& set_up, int rounds = 3,
    const std::function<void(Actor&)>& look_back = [](Actor&) {}) {
  Story story;
  story.actor("A", [&](Actor& me) {
    set_up(me);
    const Party a(me);
    const BarePid b = a.pid_of("B");
    for (int round = 0; round < rounds; ++round) {
      auto key = me.must(export_key(a.allocate(pattern(4 * KiB, static_cast<std::size_t>(round)))), "A exports");
      a.send("B", me.must(key.admit(b), "B is admitted"));
      me.expect_equal(me.receive<int>("B"), round, "B is done with it");
      me.expect(a.read(key.bytes()) == Bytes(4 * KiB, std::byte{7}), "A sees what B wrote");
      me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    }
    a.leave();
    look_back(me);
  });
  story.actor("B", [&](Actor& me) {
    set_up(me);
    const Party b(me);
    b.introduce_myself_to("A");
    for (int round = 0; round < rounds; ++round) {
      ImportedMapping mapping = b.import(b.ticket_from("A"));
      me.expect(b.read(mapping.bytes()) == pattern(4 * KiB, static_cast<std::size_t>(round)), "B reads");
      me.must(fill(b.device, mapping.bytes(), std::byte{7}), "B writes");
      me.must(std::move(mapping).close(), "B closes");
      me.send("A", round);
    }
    b.leave();
    look_back(me);
  });
  story.run();
}

volatile std::sig_atomic_t alarms = 0;

}  // namespace

TEST_CASE("a process without standard streams shares like any other: 0 is a descriptor, too", "[any library]") {
  share_between([](Actor&) {
    for (const int stream : {0, 1, 2}) ::close(stream);
  });
}

TEST_CASE("signals that interrupt every call of the system interrupt no sharing", "[any library]") {
  share_between(
      [](Actor& me) {
        struct sigaction action {};
        action.sa_handler = [](int) { alarms = alarms + 1; };  // without SA_RESTART
        me.expect(::sigaction(SIGALRM, &action, nullptr) == 0, "there is a handler");
        const itimerval often{{0, 700}, {0, 700}};
        me.expect(::setitimer(ITIMER_REAL, &often, nullptr) == 0, "it is called all the time");
      },
      100, [](Actor& me) { me.expect(alarms > 10, "there were signals in plenty"); });
}

TEST_CASE("a strict umask hinders nobody", "[any library]") {
  share_between([](Actor&) { ::umask(0077); });
}

TEST_CASE("a process with little address space is refused in words, and comes to no harm") {
  if (under_sanitizer()) DEVSHARE_SKIP("a sanitizer needs more addresses than there would be");
  Story story;
  story.actor("A", [](Actor& me) {
    const rlimit little{std::uint64_t{4} << 30, std::uint64_t{4} << 30};
    me.expect(::setrlimit(RLIMIT_AS, &little) == 0, "there are 4 GiB of addresses");
    const auto runtime = Runtime::open();
    const Error why = [&]() -> Error {
      if (!runtime) return runtime.error();
      const auto device = runtime->device(DeviceId{0});
      if (!device) return device.error();
      const auto memory = DeviceMemory::allocate(*device, 4 * KiB);
      return memory ? Error(Errc::closed, Operation::none) : memory.error();
    }();
    me.expect_equal(name_of(why.kind()), name_of(Errc::address_space_exhausted), in_words(why));
    me.expect(to_string(why, true).find("ulimit -v") != std::string::npos, to_string(why, true));
  });
  story.run();
}
