// SPDX-License-Identifier: Apache-2.0
// The short way of a copy: what goes it, what does not, and that no memory is freed under one.
#include "host/call_gate.hpp"
#include "host/copy_at_hand.hpp"
#include "host/instrument.hpp"
#include "host/lifecycle.hpp"
#include "host_session.hpp"
#include "imported_memory.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

using devshare::host::copied_without_call;
using devshare::test::demand;
using devshare::test::enable_both_ways;
using devshare::test::HostSession;
using devshare::test::import;
using devshare::test::ImportWish;
using devshare::test::in_child;
using devshare::test::Watchdog;
namespace acl = devshare::acl;
namespace host = devshare::host;
namespace kind = devshare::acl::memcpy_kind;

namespace {

constexpr std::size_t size = 64 << 10;
constexpr std::size_t most = std::size_t{1} << 20;  // that is copied so

std::uint64_t session_now() { return *host::session_word(); }

// Device memory that was copied to often enough to be mapped.
class Warm {
 public:
  explicit Warm(const HostSession& session, std::size_t bytes = size) : acl_(session.acl) {
    address = session.allocate(bytes);
    REQUIRE(address != nullptr);
    const std::vector<std::byte> fill(bytes, std::byte{7});
    for (int i = 0; i < 6; ++i) {
      REQUIRE(acl_.aclrtMemcpy(address, bytes, fill.data(), bytes, kind::host_to_device) == 0);
    }
  }
  ~Warm() {
    if (address != nullptr) acl_.aclrtFree(address);
  }
  Warm(const Warm&) = delete;
  Warm& operator=(const Warm&) = delete;

  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(address) + offset; }
  void free() {
    CHECK(acl_.aclrtFree(address) == 0);
    address = nullptr;
  }

  void* address = nullptr;

 private:
  const acl::Table& acl_;
};

bool copied(void* to, const void* from, std::size_t count, std::int32_t device = 0) {
  return copied_without_call(session_now(), device, to, from, count);
}

}  // namespace

TEST_CASE("plain memory that is mapped is copied at hand: in, out, inside, and between buffers of the host") {
  HostSession session;
  const Warm memory(session);
  const Warm other(session);
  std::vector<std::byte> source(size);
  for (std::size_t i = 0; i < size; ++i) source[i] = static_cast<std::byte>(i * 31 >> 3);
  std::vector<std::byte> target(size);
  CHECK(copied(memory.address, source.data(), size));
  CHECK(copied(other.at(100), memory.at(3), 5000));
  CHECK(copied(target.data(), other.at(100), 5000));
  CHECK(std::memcmp(target.data(), source.data() + 3, 5000) == 0);
  CHECK(copied(memory.at(1), memory.at(0), 5000));  // it overlaps
  CHECK(copied(target.data(), memory.at(1), 5000));
  CHECK(std::memcmp(target.data(), source.data(), 5000) == 0);
  CHECK(copied(target.data(), source.data(), size));
  CHECK(target == source);
}

TEST_CASE("what asks for a closer look is not copied at hand, and nothing of it is written") {
  ::setenv("DEVSHARE_HOST_DEVICES", "2", 1);
  HostSession session;
  const Warm memory(session);
  std::vector<std::byte> host(most + 1, std::byte{1});
  const auto refused = [&](void* to, const void* from, std::size_t count) {
    return !copied(to, from, count) && host == std::vector<std::byte>(most + 1, std::byte{1});
  };
  CHECK(refused(memory.address, host.data(), 0));
  CHECK(refused(host.data(), host.data(), 5));
  CHECK(refused(nullptr, host.data(), 5));
  CHECK(refused(host.data(), nullptr, 5));
  CHECK(refused(memory.at(1), host.data(), size));         // past its end
  CHECK(refused(memory.at(size), host.data(), 1));         // behind it
  CHECK(refused(host.data(), memory.at(size - 1), 2));     // likewise
  CHECK(refused(memory.at(2u << 20), host.data(), 1));     // nothing is there
  CHECK(refused(host.data(), host.data() + 1, most + 1));  // too long
  CHECK(refused(host.data(), memory.at(0) - 10, 20));      // it begins in front of it
  Warm freed(session);
  void* const was = freed.address;
  freed.free();
  CHECK(refused(was, host.data(), 5));
  void* const cold = session.allocate(size);
  CHECK(refused(cold, host.data(), 5));
  CHECK(session.acl.aclrtFree(cold) == 0);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  const Warm on_other_device(session);
  CHECK(!copied(on_other_device.address, memory.address, 5, 1));  // which takes peer access
  CHECK(copied(on_other_device.address, host.data(), 5, 1));
}

TEST_CASE("what a thread knows of its device ends with its own choice, with a context, and with the session") {
  ::setenv("DEVSHARE_HOST_DEVICES", "2", 1);
  HostSession session;
  std::byte host[64] = {};
  {
    const Warm memory(session);
    CHECK(copied(memory.address, host, 64));
    CHECK(!copied(memory.address, host, 64, 1));
    REQUIRE(session.acl.aclrtSetDevice(1) == 0);
    CHECK(!copied(memory.address, host, 64));
    CHECK(copied(memory.address, host, 64, 1));  // as aclrtMemcpy does: both ends are of one device
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    CHECK(copied(memory.address, host, 64));
    acl::aclrtContext context = nullptr;
    REQUIRE(session.acl.aclrtCreateContext(&context, 0) == 0);  // current from now on
    CHECK(copied(memory.address, host, 64));
    std::thread([&] { CHECK(session.acl.aclrtDestroyContext(context) == 0); }).join();
    CHECK(!copied(memory.address, host, 64));
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    CHECK(copied(memory.address, host, 64));
  }
  const std::uint64_t before = session_now();
  Warm memory(session);
  void* const address = memory.address;
  CHECK(copied_without_call(before, 0, address, host, 64));
  REQUIRE(session.acl.aclFinalize() == 0);
  CHECK(!copied_without_call(before, 0, address, host, 64));
  REQUIRE(session.acl.aclInit(nullptr) == 0);
  std::thread([&] {
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    memory.address = nullptr;
    const Warm again(session);
    CHECK(again.address == address);  // the lowest that is free
    CHECK(copied(address, host, 64));
    std::thread([&] { CHECK(!copied(address, host, 64)); }).join();  // a thread that has no device
    CHECK(!copied_without_call(before, 0, address, host, 64));
  }).join();
  CHECK(!copied_without_call(before, 0, address, host, 64));
  CHECK(!copied(address, host, 64));  // nothing is current on this thread since the new aclInit
}

TEST_CASE("within a call, as a signal handler is, and while somebody watches the calls, none is left out") {
  HostSession session;
  const Warm memory(session);
  std::byte host[64] = {};
  CHECK(copied(memory.address, host, 64));
  {
    const host::CallGate in_a_call;
    CHECK(!copied(memory.address, host, 64));
  }
  CHECK(copied(memory.address, host, 64));
  const bool armed = host::instrument_is_armed.exchange(true);
  CHECK(!copied(memory.address, host, 64));
  host::instrument_is_armed = armed;
  CHECK(copied(memory.address, host, 64));
}

TEST_CASE("where threads cannot be fenced all copies go the long way") {
  HostSession session;
  Warm memory(session);
  std::byte host[64] = {};
  CHECK(copied(memory.address, host, 64));
  const bool fenced = host::threads_can_be_fenced.exchange(false);
  const bool at_hand = copied(memory.address, host, 64);
  const bool by_call = session.acl.aclrtMemcpy(memory.address, 64, host, 64, kind::host_to_device) == 0;
  memory.free();
  host::threads_can_be_fenced = fenced;
  CHECK_FALSE(at_hand);
  CHECK(by_call);
}

TEST_CASE("at a closed gate nothing is copied at hand") {
  HostSession session;
  const Warm memory(session);
  std::byte host[64] = {};
  CHECK(copied(memory.address, host, 64));
  host::close_gate();
  const bool through = copied(memory.address, host, 64);
  host::open_gate();
  CHECK_FALSE(through);
  CHECK(copied(memory.address, host, 64));
}

TEST_CASE("imports are copied at hand as long as their exporter has them, and not to where they are read-only") {
  ::setenv("DEVSHARE_HOST_DEVICES", "2", 1);
  HostSession session;
  enable_both_ways(session);
  std::byte host[64] = {};
  const auto warm_import = [&](const ImportWish& wish) {
    void* const address = import(wish);
    REQUIRE(address != nullptr);
    REQUIRE(host::PinnedBlock(address).view() != nullptr);
    return address;
  };
  std::atomic<std::uint64_t> slot{5};
  void* const watched = warm_import({.watch = {.slot = &slot, .expected = 5}});
  CHECK(copied(watched, host, 64));
  CHECK(copied(host, watched, 64));
  slot = 6;
  CHECK(!copied(watched, host, 64));
  CHECK(!copied(host, watched, 64));
  void* const for_reading = warm_import({.read_only = true});
  CHECK(copied(host, for_reading, 64));
  CHECK(!copied(for_reading, host, 64));
  void* const from_afar = warm_import({.device = 1});
  CHECK(!copied(host, from_afar, 64));
  CHECK(!copied(from_afar, host, 64));
  for (void* const address : {watched, for_reading, from_afar}) host::release_import(address);
}

namespace {

// Copies when its thread ends, or the process.
struct CopiesAtItsEnd {
  ~CopiesAtItsEnd() {
    if (to == nullptr) return;
    std::byte host[64] = {};
    const bool at_hand = copied(to, host, 64);
    const bool by_call = acl->aclrtMemcpy(to, 64, host, 64, kind::host_to_device) == 0;
    demand(!at_hand && by_call && copied(to, host, 64), "a call finds the thread another slot");
  }
  void* to = nullptr;
  const acl::Table* acl = nullptr;
};

}  // namespace

TEST_CASE("a thread whose slot is gone, since it ends, copies by a call and then at hand again") {
  HostSession session;
  const auto end = in_child([&] {
    demand(session.acl.aclInit(nullptr) == 0 && session.acl.aclrtSetDevice(0) == 0, "a session");
    static const Warm memory(session);
    const auto copy_and_leave = [&](CopiesAtItsEnd& last) {
      std::byte host[64] = {};
      demand(copied(memory.address, host, 64), "at hand");
      last.to = memory.address;
      last.acl = &session.acl;
    };
    std::thread([&] {
      thread_local CopiesAtItsEnd last;
      CopiesAtItsEnd& made_before_the_slot = last;
      demand(session.acl.aclrtSetDevice(0) == 0, "aclrtSetDevice");
      copy_and_leave(made_before_the_slot);
    }).join();
    static CopiesAtItsEnd last;
    copy_and_leave(last);
    std::exit(0);
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("R4: a forked child copies nothing of its parent's at hand, and what is its own") {
  HostSession session;
  const Warm memory(session);
  std::byte host[64] = {};
  CHECK(copied(memory.address, host, 64));
  const std::uint64_t parents = session_now();
  const auto end = in_child([&] {
    demand(!copied_without_call(parents, 0, memory.address, host, 64), "not in the parent's session");
    demand(!copied(memory.address, host, 64), "nor in none");
    demand(session.acl.aclInit(nullptr) == 0, "aclInit");
    demand(!copied(memory.address, host, 64), "without a device");
    demand(session.acl.aclrtSetDevice(0) == 0, "aclrtSetDevice");
    Warm own(session);
    demand(copied(own.address, host, 64), "its own");
    demand(!copied_without_call(parents, 0, own.address, host, 64), "in its own session");
    own.free();
    demand(session.acl.aclFinalize() == 0, "aclFinalize");
  });
  INFO(end.in_words());
  CHECK(end.good());
  CHECK(copied(memory.address, host, 64));
}

TEST_CASE("no memory is freed under a copy at hand, whether it is freed or its session ends") {
  const Watchdog watchdog("memory freed under copies");
  constexpr std::size_t large = most;
  for (int round = 0; round < 60; ++round) {
    HostSession session;
    Warm memory(session, large);
    void* const address = memory.address;
    const std::uint64_t number = session_now();
    std::atomic<int> reading{0};
    const auto read = [&](bool by_call) {
      if (session.acl.aclrtSetDevice(0) != 0) return;
      std::vector<std::byte> target(large);
      for (bool first = true;; first = false) {
        const bool done = by_call ? session.acl.aclrtMemcpy(target.data(), large, address, large, kind::automatic) == 0
                                  : copied_without_call(number, 0, target.data(), address, large);
        if (!done) break;
        if (first) ++reading;
      }
    };
    std::thread plain(read, false);
    std::thread calls(read, true);
    while (reading != 2) std::this_thread::yield();
    if (round % 2 == 0) {
      memory.free();
    } else {
      memory.address = nullptr;
      CHECK(session.acl.aclFinalize() == 0);
    }
    plain.join();
    calls.join();
  }
}
