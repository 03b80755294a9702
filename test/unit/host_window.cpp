// SPDX-License-Identifier: Apache-2.0
// The device window: its addresses, who has them, and that nothing of the host can touch one.
#include "host/block.hpp"
#include "host/free_ranges.hpp"
#include "host/window.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <devshare/instrument.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

using devshare::host::FreeRanges;
using devshare::host::granule_bytes;
using devshare::host::ImportedBytes;
using devshare::host::Origin;
using devshare::host::PinnedBlock;
using devshare::host::UniqueFd;
using devshare::test::HostSession;
using devshare::test::in_child;
namespace code = devshare::acl::code;

namespace {

ImportedBytes some_import(std::uint64_t size) {
  ImportedBytes bytes;
  bytes.descriptor = UniqueFd(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(bytes.descriptor.get(), static_cast<off_t>(size)) == 0);
  bytes.size = size;
  bytes.page_size = 4096;
  bytes.device = 0;
  bytes.local_device = 0;
  return bytes;
}

void* import(std::uint64_t size) {
  void* address = nullptr;
  REQUIRE(devshare::host::adopt_import(some_import(size), &address) == 0);
  return address;
}

}  // namespace

TEST_CASE("granules are given lowest first and used again") {
  FreeRanges free;
  free.reset(10, 20);
  CHECK(free.take(3, 1) == 10u);
  CHECK(free.take(2, 1) == 13u);
  free.give_back(10, 3);
  CHECK(free.take(2, 1) == 10u);
  CHECK(free.take(2, 1) == 15u);  // one granule is free below, two in a row are not
  CHECK(free.take(1, 1) == 12u);
  CHECK(free.largest() == 3);
  CHECK_FALSE(free.take(4, 1));
  CHECK(free.take(3, 1) == 17u);
  CHECK_FALSE(free.take(1, 1));
  CHECK(free.largest() == 0);
}

TEST_CASE("granules can be asked for at a multiple of a number") {
  FreeRanges free;
  free.reset(1, 64);
  CHECK(free.take(4, 16) == 16u);
  CHECK(free.take(1, 1) == 1u);  // what alignment left out is still there
  CHECK(free.take(20, 1) == 20u);
  CHECK_FALSE(free.take(20, 48));
}

TEST_CASE("free granules grow together again whatever the order they come back in") {
  constexpr std::uint32_t all = 257;
  FreeRanges free;
  free.reset(0, all);
  std::mt19937 random(7);
  std::vector<bool> used(all, false);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken;
  const auto lowest_fit = [&](std::uint32_t count) -> std::optional<std::uint32_t> {
    for (std::uint32_t at = 0; at + count <= all; ++at) {
      bool fits = true;
      for (std::uint32_t i = 0; i < count; ++i) fits = fits && !used[at + i];
      if (fits) return at;
    }
    return std::nullopt;
  };
  for (int round = 0; round < 5000; ++round) {
    if (taken.empty() || random() % 2 == 0) {
      const std::uint32_t count = 1 + static_cast<std::uint32_t>(random() % 9);
      const auto expected = lowest_fit(count);
      const auto got = free.take(count, 1);
      REQUIRE(got == expected);
      if (!got) continue;
      for (std::uint32_t i = 0; i < count; ++i) used[*got + i] = true;
      taken.emplace_back(*got, count);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      const auto [begin, count] = taken.back();
      taken.pop_back();
      free.give_back(begin, count);
      for (std::uint32_t i = 0; i < count; ++i) used[begin + i] = false;
    }
  }
  for (const auto& [begin, count] : taken) free.give_back(begin, count);
  CHECK(free.largest() == all);
  CHECK(free.take(all, 1) == 0u);
}

TEST_CASE("touching a device address is a fault") {
  for (const bool write : {false, true}) {
    const auto end = in_child([&] {
      HostSession session;
      auto* const memory = static_cast<volatile char*>(session.allocate(4096));
      std::puts("touching");
      std::fflush(stdout);
      if (write) {
        *memory = 1;
      } else {
        static_cast<void>(*memory);
      }
      std::puts("survived");
    });
    INFO(end.in_words());
    CHECK_FALSE(end.good());
    CHECK_THAT(end.output, devshare::test::contains("touching"));
    CHECK_THAT(end.output, !devshare::test::contains("survived"));
  }
}

TEST_CASE("two processes that do the same get equal addresses for different memory") {
  const auto addresses = [] {
    return in_child([] {
      HostSession session;
      std::printf("%p ", session.allocate(5000));
      std::printf("%p ", session.allocate(std::size_t{64} << 20));
      std::printf("%p\n", session.allocate(1));
    });
  };
  const auto a = addresses();
  const auto b = addresses();
  INFO(a.in_words());
  REQUIRE(a.good());
  REQUIRE(b.good());
  CHECK_THAT(a.output, !devshare::test::contains("nil"));
  CHECK(a.output == b.output);
}

TEST_CASE("each allocation has granules of its own, and an address past its end is in no block") {
  HostSession session;
  auto* const a = static_cast<char*>(session.allocate(100));
  auto* const b = static_cast<char*>(session.allocate(100));
  REQUIRE(a != nullptr);
  CHECK(b - a == static_cast<std::ptrdiff_t>(granule_bytes));
  CHECK(PinnedBlock(a).id() != PinnedBlock(b).id());
  CHECK(PinnedBlock(a + 99).id() == PinnedBlock(a).id());
  CHECK_FALSE(PinnedBlock(a + 4096));
  CHECK_FALSE(PinnedBlock(a + granule_bytes - 1));
  CHECK_FALSE(PinnedBlock(a - 1));
}

TEST_CASE("a freed address is given out again under another identity") {
  HostSession session;
  void* const first = session.allocate(4096);
  void* const second = session.allocate(4096);
  const std::uint64_t id = PinnedBlock(first).id();
  REQUIRE(session.acl.aclrtFree(first) == 0);
  CHECK_FALSE(PinnedBlock(first));
  CHECK(PinnedBlock(second));
  CHECK(session.allocate(4096) == first);
  CHECK(PinnedBlock(first).id() != id);
}

TEST_CASE("imports have a part of the window to themselves") {
  HostSession session;
  void* const before = session.allocate(4096);
  void* const imported = import(std::uint64_t{10} << 20);
  void* const after = session.allocate(4096);
  CHECK(static_cast<char*>(after) - static_cast<char*>(before) == static_cast<std::ptrdiff_t>(granule_bytes));
  CHECK(PinnedBlock(imported).origin() == Origin::imported);
  CHECK(PinnedBlock(static_cast<char*>(imported) + (9 << 20)).base() == reinterpret_cast<std::uintptr_t>(imported));
  devshare::host::release_import(imported);
  CHECK_FALSE(PinnedBlock(imported));
  CHECK(import(4096) == imported);
}

TEST_CASE("an address is a device address by the window alone") {
  HostSession session;
  auto* const memory = static_cast<char*>(session.allocate(4096));
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  const auto on_stack = reinterpret_cast<std::uintptr_t>(&session);
  CHECK(devshare::host::in_window(at));
  CHECK(devshare::host::in_window(at + (std::uintptr_t{1} << 30)));  // nobody's, and no host address either
  CHECK_FALSE(devshare::host::in_window(on_stack, 64));
  CHECK_FALSE(devshare::host::in_window(at - 16, 16));  // the first allocation is at the window's start
  CHECK(devshare::host::in_window(at - 16, 17));
  CHECK_FALSE(devshare::host::in_window(UINTPTR_MAX - 3, 16));
}

TEST_CASE("lookups see whole blocks or none while others allocate and free") {
  HostSession session;
  std::array<std::atomic<char*>, 4> published{};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> seen{0};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      for (std::size_t i = 0; !stop; ++i) {
        char* const address = published[i % published.size()];
        if (address == nullptr) continue;
        const PinnedBlock block(address + 50);
        if (!block) continue;
        ++seen;
        if (block.base() != reinterpret_cast<std::uintptr_t>(address)) ++wrong;
        if (block.size() < 100 || block.size() > 103 || block.device() != 0 || block.descriptor() < 0) ++wrong;
      }
    });
  }
  for (std::size_t writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      if (session.acl.aclrtSetDevice(0) != 0) ++wrong;
      for (std::size_t round = 0; round < 300 || (seen == 0 && round < 1'000'000); ++round) {  // till a reader got on
        void* address = nullptr;
        if (session.acl.aclrtMalloc(&address, 100 + round % 4, 0) != 0) ++wrong;
        published[writer * 2 + round % 2] = static_cast<char*>(address);
        std::this_thread::yield();
        if (session.acl.aclrtFree(address) != 0) ++wrong;
      }
    });
  }
  threads[2].join();
  threads[3].join();
  stop = true;
  threads[0].join();
  threads[1].join();
  CHECK(wrong == 0);
  CHECK(seen > 0);
  CHECK(devshare::host::block_counters().allocations == 0);
}

// Hidden: it needs a process that has no window yet, and gets one from the case below.
TEST_CASE("places taken", "[.places-taken]") {
  for (const std::uintptr_t at : {std::uintptr_t{0x1100'0000'0000}, std::uintptr_t{0x7e80'0000'0000}}) {
    ::syscall(SYS_mmap, at, granule_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  HostSession session(-1);
  CHECK(session.start_code == code::rt_memory_allocation);
  CHECK(devshare::test::last_reason() == devshare::host::Reason::address_space);
  CHECK_FALSE(devshare::host::initialised());
  CHECK(devshare::host::counters() == devshare::host::Counters{});
}

TEST_CASE("aclInit says so when no place for the window is free") {
  const auto end = devshare::test::run_program({"/proc/self/exe", "[.places-taken]"});
  INFO(end.in_words());
  CHECK(end.good());
  CHECK_THAT(end.output, devshare::test::contains("4 assertions"));
}
