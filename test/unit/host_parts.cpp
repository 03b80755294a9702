// SPDX-License-Identifier: Apache-2.0
// Physical memory whose pages are smaller than what the window gives addresses in: several pieces to a granule.
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/huge_pages.hpp"

#include "host/backing_facts.hpp"
#include "host/block.hpp"
#include "host/page_wish.hpp"
#include "host/window.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

using devshare::host::counters;
using devshare::host::Counters;
using devshare::host::granule_bytes;
using devshare::host::PinnedBlock;
using devshare::host::Reason;
using devshare::host::view_of;
using devshare::host::ViewAccess;
using devshare::test::demand;
using devshare::test::HugePages;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::MiB;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;

namespace {

constexpr std::size_t part = 64 * 1024;

void small_pages() { ::setenv("DEVSHARE_HOST_HUGE_PAGE", "64K", 1); }

std::uintptr_t number(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

TEST_CASE("B025 pieces of 64 KiB lie one behind the other in a granule, each a block of its own") {
  small_pages();
  PhysicalSession session;
  const Counters before = counters();
  std::byte* const place = session.reserve(2 * granule_bytes);
  constexpr std::size_t pieces = 2 * granule_bytes / part;
  for (std::size_t i = 0; i < pieces; ++i) {
    session.fill_in(place + i * part, part);
    REQUIRE(session.write(place + i * part, pattern(part, static_cast<unsigned>(i))) == 0);
  }
  CHECK(devshare::host::bytes_in_use(0) == pieces * part);
  for (std::size_t i = 0; i < pieces; ++i) {
    CHECK(PinnedBlock(place + i * part + part - 1).base() == number(place + i * part));
    CHECK((session.read(place + i * part, part) == pattern(part, static_cast<unsigned>(i))));
  }
  // Copies and views go across them, as across others.
  const auto all = pattern(2 * granule_bytes, 7);
  REQUIRE(session.write(place, all) == 0);
  const auto* const seen = static_cast<const unsigned char*>(view_of(place, all.size(), ViewAccess::read));
  REQUIRE(seen != nullptr);
  CHECK((std::vector<unsigned char>(seen, seen + all.size()) == all));

  // A hole of one piece refuses what goes across it, and its neighbours stay.
  REQUIRE(session.acl.aclrtUnmapMem(place + 3 * part) == 0);
  CHECK_FALSE(PinnedBlock(place + 3 * part));
  CHECK(session.read(place + 2 * part, 2 * part).empty());
  CHECK(session.read(place + 4 * part, part) ==
        std::vector<unsigned char>(all.begin() + 4 * part, all.begin() + 5 * part));
  CHECK(session.acl.aclrtReleaseMemAddress(place) == code::rt_drv_internal);
  for (std::size_t i = 0; i < pieces; ++i) {
    if (i != 3) REQUIRE(session.acl.aclrtUnmapMem(place + i * part) == 0);
  }
  REQUIRE(session.acl.aclrtReleaseMemAddress(place) == 0);
  CHECK(counters() == before);
}

TEST_CASE("B025 a piece that begins and ends inside granules is found everywhere, and nothing can be mapped over it") {
  small_pages();
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * granule_bytes);
  std::byte* const piece = place + granule_bytes - part;
  constexpr std::size_t size = granule_bytes + 2 * part;  // one part, a whole granule, one part
  session.fill_in(piece, size);
  for (std::size_t at = 0; at < size; at += part) CHECK(PinnedBlock(piece + at).base() == number(piece));
  CHECK_FALSE(PinnedBlock(piece - 1));
  CHECK_FALSE(PinnedBlock(piece + size));
  const auto handle = session.physical(2 * part);
  for (std::byte* const taken : {piece - part, piece, piece + granule_bytes, piece + size - part}) {
    CHECK(session.acl.aclrtMapMem(taken, 2 * part, 0, handle, 0) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::already_mapped);
  }
  CHECK(session.acl.aclrtMapMem(piece - part / 2, 2 * part, 0, handle, 0) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(session.acl.aclrtMapMem(piece - 2 * part, 2 * part, 0, handle, 0) == 0);
  CHECK(session.acl.aclrtMapMem(piece + size, 2 * part, 0, handle, 0) == 0);
  CHECK(session.acl.aclrtUnmapMem(piece + part) == code::rt_drv_internal);  // not its start
  CHECK(session.acl.aclrtUnmapMem(piece) == 0);
  // Whole granules that were divided hold whole ones again, and the other way round.
  session.fill_in(place + granule_bytes, granule_bytes);
  CHECK(PinnedBlock(place + granule_bytes + part).base() == number(place + granule_bytes));
  CHECK(session.acl.aclrtUnmapMem(place + granule_bytes) == 0);
  session.fill_in(place + granule_bytes + part, part);
  CHECK_FALSE(PinnedBlock(place + granule_bytes));
  CHECK(PinnedBlock(place + granule_bytes + part));
}

TEST_CASE("B025 the end of a session ends small pieces too, and the next one has their addresses") {
  small_pages();
  std::byte* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    PhysicalSession session;
    std::byte* const place = session.reserve(granule_bytes);
    if (round == 0) first = place;
    CHECK(place == first);
    for (std::size_t i = 0; i < 5; ++i) session.fill_in(place + 3 * i * part, part);
    REQUIRE(session.acl.aclFinalize() == 0);
    CHECK(counters() == Counters{});
    CHECK(devshare::host::bytes_in_use(0) == 0);
    CHECK_FALSE(PinnedBlock(place));
  }
}

TEST_CASE("memory of the host in small pages is touched at its own address, between holes") {
  small_pages();
  PhysicalSession session;
  std::byte* const place = session.reserve(granule_bytes);
  session.fill_in(place + part, part, on_host());
  session.fill_in(place + 3 * part, 2 * part, on_host());
  place[part] = std::byte{1};
  place[5 * part - 1] = std::byte{2};
  CHECK(session.read(place + part, 1) == std::vector<unsigned char>{1});
  CHECK(session.read(place + 5 * part - 1, 1) == std::vector<unsigned char>{2});
  REQUIRE(session.acl.aclrtUnmapMem(place + part) == 0);
  CHECK(place[3 * part] == std::byte{0});
}

TEST_CASE("a forked child finds nothing of its parent's small pieces") {
  small_pages();
  PhysicalSession session;
  std::byte* const place = session.reserve(granule_bytes);
  session.fill_in(place + part, part);
  const auto end = in_child([&] {
    demand(!PinnedBlock(place + part), "nothing is there");
    demand(session.acl.aclInit(nullptr) == 0 && session.acl.aclrtSetDevice(0) == 0, "a runtime of its own");
    void* range = nullptr;
    demand(session.acl.aclrtReserveMemAddress(&range, granule_bytes, 0, nullptr, 0) == 0, "addresses");
    auto* const own = static_cast<std::byte*>(range);
    demand(own == place, "the same ones");
    acl::aclrtDrvMemHandle handle = nullptr;
    const auto property = on_device();
    demand(session.acl.aclrtMallocPhysical(&handle, part, &property, 0) == 0, "memory");
    demand(session.acl.aclrtMapMem(own + 2 * part, part, 0, handle, 0) == 0, "mapped");
    demand(!PinnedBlock(own + part) && PinnedBlock(own + 2 * part), "with what is its own");
    demand(session.acl.aclFinalize() == 0, "it ends");
  });
  INFO(end.in_words());
  CHECK(end.good());
  CHECK(PinnedBlock(place + part).base() == number(place + part));
}

TEST_CASE("memory that may be mapped where no huge page can lie is in normal ones") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  small_pages();
  PhysicalSession session;
  devshare::host::wish_pages({.pages = devshare::HostPages::huge_if_free});
  const auto handle = session.physical(granule_bytes);
  CHECK(devshare::host::backing_of(handle).pages == devshare::HostBacking::Pages::normal);
  void* const memory = session.allocate(100);
  CHECK(devshare::host::backing_at(memory, 100).pages == devshare::HostBacking::Pages::huge);
  devshare::host::wish_pages({});
}

TEST_CASE("lookups see whole pieces or none while others in their granule come and go") {
  small_pages();
  PhysicalSession session;
  std::byte* const place = session.reserve(granule_bytes);
  session.fill_in(place, part);
  const auto handle = session.physical(2 * part);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop) {
      const PinnedBlock still(place + 10);
      if (!still || still.base() != number(place)) ++wrong;
      const PinnedBlock moving(place + 3 * part + 10);
      if (moving && moving.base() != number(place + 2 * part) && moving.base() != number(place + 3 * part)) ++wrong;
    }
  });
  for (int round = 0; round < 500; ++round) {
    std::byte* const at = place + (round % 2 == 0 ? 2 : 3) * part;
    if (session.acl.aclrtMapMem(at, 2 * part, 0, handle, 0) != 0) ++wrong;
    while (session.acl.aclrtUnmapMem(at) != 0) std::this_thread::yield();  // the reader looks at it
  }
  stop = true;
  reader.join();
  CHECK(wrong == 0);
}
