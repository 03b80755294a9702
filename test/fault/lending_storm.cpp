// SPDX-License-Identifier: Apache-2.0
// B074: many threads lend and borrow while one in ten calls of the runtime fails, and hooks call back into lending. No
// lock of the library is held while the runtime or a hook is called, so that nobody waits for ever.
#include "support/sharing.hpp"
#include "support/soak.hpp"
#include "support/soon.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t size = 4096;
constexpr std::size_t names = 4;
constexpr std::size_t threads_of_each = 8;

std::string name_of_offer(std::size_t i) { return "offer " + std::to_string(i % names); }

std::chrono::seconds how_long() { return times_over() > 1 ? 60s : 3s; }

// One in ten calls of those that sharing by key makes.
void fail_often(std::uint64_t seed) {
  using acl::Entry;
  for (const Entry call : {Entry::aclrtMalloc, Entry::aclrtFree, Entry::aclrtIpcMemGetExportKey,
                           Entry::aclrtIpcMemSetImportPid, Entry::aclrtIpcMemImportByKey, Entry::aclrtIpcMemClose,
                           Entry::aclrtDeviceGetBareTgid, Entry::aclrtSetCurrentContext, Entry::aclrtMemcpy}) {
    host::fail_with_probability(call, 0.1, seed + static_cast<std::uint64_t>(call), code::rt_drv_internal);
  }
}

template <class Body>
void in_threads(std::size_t count, Body body) {
  std::vector<std::thread> all;
  const auto until = std::chrono::steady_clock::now() + how_long();
  for (std::size_t i = 0; i < count; ++i) {
    all.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i + 1));
      while (std::chrono::steady_clock::now() < until) body(i, random);
    });
  }
  for (std::thread& each : all) each.join();
}

// Whether this thread is in a hook already: what a hook does may call it again.
thread_local bool in_hook = false;
struct InHook {
  InHook() { in_hook = true; }
  ~InHook() { in_hook = false; }
};

struct LenderSide {
  Lender* lender = nullptr;
  const Lent<DeviceMemory>* kept = nullptr;
  const Party* party = nullptr;
  Endpoint endpoint;
  std::atomic<std::uint64_t> told{0};
  std::atomic<std::uint64_t> reported{0};

  void call_back() {
    if (in_hook || lender == nullptr) return;
    const InHook here;
    (void)kept->publish();
    (void)kept->holders();
    (void)lender->dispatch();
    if (auto memory = DeviceMemory::allocate(party->device, size)) {
      if (auto made = lender->offer("of a hook", *std::move(memory))) {
        Lent lent = *std::move(made);
        (void)std::move(lent).close(Deadline::now());
      }
    }
    (void)borrow(party->device, endpoint, "kept", 1ms);
  }
  static void hook(const LendingEvent&, void* self) {
    auto& side = *static_cast<LenderSide*>(self);
    if (++side.told % 16 == 0) side.call_back();
  }
  static void diagnostic(const Diagnostic&, void* self) {
    auto& side = *static_cast<LenderSide*>(self);
    ++side.reported;
    side.call_back();
  }
};

struct BorrowerSide {
  const Borrower* borrower = nullptr;
  std::atomic<std::uint64_t> borrowed{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> reported{0};

  static void diagnostic(const Diagnostic&, void* self) {
    auto& side = *static_cast<BorrowerSide*>(self);
    ++side.reported;
    if (in_hook || side.borrower == nullptr) return;
    const InHook here;
    if (auto borrowed = side.borrower->borrow("kept", 20ms)) {
      Lease lease = *std::move(borrowed);
      (void)std::move(lease).close();
    }
  }
};

}  // namespace

TEST_CASE("eight threads of a lender and eight of a borrower go on while calls fail and hooks call back (B074)") {
  Story story(how_long() + 60s);
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    LenderSide side{.party = &a, .endpoint = endpoint};
    (void)set_diagnostic_handler({&LenderSide::diagnostic, &side});
    {
      Lender lender =
          me.must(Lender::at(a.runtime, endpoint, {.hook = &LenderSide::hook, .user = &side}), "A has an endpoint");
      Lent kept = me.must(lender.offer("kept", a.allocate(pattern(size))), "A offers what stays");
      side.kept = &kept;
      side.lender = &lender;
      Serving serving = me.must(serve(lender), "a thread serves");
      me.step("serves");
      fail_often(1);
      std::atomic<std::uint64_t> offered{0};
      std::atomic<std::uint64_t> closed{0};
      in_threads(threads_of_each, [&](std::size_t i, std::mt19937& random) {
        auto memory = DeviceMemory::allocate(a.device, size);
        if (!memory) return;
        auto made = lender.offer(name_of_offer(i), *std::move(memory));
        if (!made) return (void)kept.publish();  // another thread has the name
        Lent lent = *std::move(made);
        ++offered;
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
        (void)lent.publish();
        switch (random() % 4) {
          case 0:
            if (std::move(lent).revoke(Deadline::in_milliseconds(1))) ++closed;
            break;
          case 1:
            (void)lent.withdraw();  // and its end is the destructor's
            break;
          default:
            auto back = std::move(lent).close(Deadline::in_milliseconds(20));
            if (back) ++closed;
        }
      });
      host::clear();
      me.expect(offered > 10 && closed > 0,
                fmt::format("{} were offered and {} closed", offered.load(), closed.load()));
      me.expect(side.told > 100 && side.reported > 0,
                fmt::format("{} events and {} reports", side.told.load(), side.reported.load()));
      me.step("over");
      me.pause_until_ended("B");
      me.expect(soon([&] { return me.must(kept.holders(), "A looks").empty(); }), "nobody holds anything");
      me.must(std::move(serving).stop(), "the thread ends");
      side.lender = nullptr;  // from here on hooks have nothing to call
      me.must(me.must(std::move(kept).close(10s), "A closes").close(), "and frees");
    }
    (void)set_diagnostic_handler({});
    me.must(a.runtime.finalize(), "A leaves");
  });
  story.actor("B", [&](Actor& me) {
    me.pause_until("A", "serves");
    const Party b(me);
    BorrowerSide side;
    (void)set_diagnostic_handler({&BorrowerSide::diagnostic, &side});
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      side.borrower = &borrower;
      fail_often(2);
      in_threads(threads_of_each, [&](std::size_t, std::mt19937& random) {
        const std::string name = random() % 4 == 0 ? "kept" : name_of_offer(random());
        auto made = random() % 8 == 0 ? borrow(b.device, endpoint, name, 20ms) : borrower.borrow(name, 20ms);
        if (!made) return (void)++side.refused;
        Lease lease = *std::move(made);
        ++side.borrowed;
        (void)lease.check();
        if (random() % 4 == 0) (void)lease.wait_newer(lease.generation(), Deadline::in_milliseconds(2));
        if (random() % 2 == 0) (void)std::move(lease).close();
      });
      host::clear();
      me.expect(side.borrowed > 100 && side.refused > 10 && side.reported > 0,
                fmt::format("{} borrowed, {} refused, {} reports", side.borrowed.load(), side.refused.load(),
                            side.reported.load()));
      side.borrower = nullptr;
      me.pause_until("A", "over");
      Lease lease = me.must(borrower.borrow("kept", 10s), "then all is as before");
      me.expect(b.read(lease.bytes()) == pattern(size), "with its bytes");
      me.must(std::move(lease).close(), "B returns it");
    }
    (void)set_diagnostic_handler({});
    me.must(b.runtime.finalize(), "B leaves");
  });
  story.run();
}
