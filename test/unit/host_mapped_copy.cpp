// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpy and aclrtMemset on mapped memory: across pieces, over holes, beside threads that map and unmap.
#include "host/physical.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/watchdog.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::test::last_reason;
using devshare::test::MiB;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
using devshare::test::Watchdog;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;
namespace kind = devshare::acl::memcpy_kind;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr std::ptrdiff_t piece = static_cast<std::ptrdiff_t>(piece_size);

// Pieces of 2, 4 and 2 MiB in a row.
std::byte* three_pieces(const PhysicalSession& session) {
  std::byte* const place = session.reserve(8 * piece_size);
  session.fill_in(place);
  session.fill_in(place + piece, 2 * piece_size);
  session.fill_in(place + 3 * piece);
  return place;
}

}  // namespace

TEST_CASE("a copy goes across pieces, cold and through views") {
  PhysicalSession session;
  std::byte* const place = three_pieces(session);
  for (const bool viewed : {false, true}) {
    if (viewed) REQUIRE(host::view_of(place + 3 * piece, 1, host::ViewAccess::read) != nullptr);  // of one piece
    const Bytes bytes = pattern(7 * MiB, viewed ? 3 : 4);
    REQUIRE(session.write(place + 1234, bytes) == 0);
    CHECK(session.read(place + 1234, bytes.size()) == bytes);
    CHECK(session.read(place + 2 * MiB - 10, 20) ==
          Bytes(bytes.begin() + 2 * MiB - 1244, bytes.begin() + 2 * MiB - 1224));
  }
}

TEST_CASE("a copy between two ranges of pieces meets the borders of both") {
  PhysicalSession session;
  std::byte* const from = three_pieces(session);
  std::byte* const to = session.reserve(8 * piece_size);
  for (int i = 0; i < 4; ++i) session.fill_in(to + i * piece);
  const Bytes bytes = pattern(8 * MiB);
  REQUIRE(session.write(from, bytes) == 0);
  REQUIRE(session.acl.aclrtMemcpy(to + 100, 8 * MiB - 100, from + 5000, 7 * MiB, kind::device_to_device) == 0);
  CHECK(session.read(to + 100, 7 * MiB) == Bytes(bytes.begin() + 5000, bytes.begin() + 5000 + 7 * MiB));
  void* const plain = session.allocate(8 * MiB);
  REQUIRE(session.acl.aclrtMemcpy(plain, 8 * MiB, from, 8 * MiB, kind::device_to_device) == 0);
  CHECK(session.read(plain, 8 * MiB) == bytes);
  REQUIRE(session.acl.aclrtMemcpy(to, 8 * MiB, plain, 8 * MiB, kind::automatic) == 0);
  CHECK(session.read(to, 8 * MiB) == bytes);
}

TEST_CASE("overlapping ranges keep their bytes, across pieces and where one memory is mapped twice") {
  PhysicalSession session;
  std::byte* const place = three_pieces(session);
  const Bytes bytes = pattern(6 * MiB);
  for (const std::ptrdiff_t shift : {std::ptrdiff_t{1000}, std::ptrdiff_t{-1000}}) {
    std::byte* const source = place + MiB;
    REQUIRE(session.write(source, bytes) == 0);
    REQUIRE(session.acl.aclrtMemcpy(source + shift, 6 * MiB, source, 6 * MiB, kind::device_to_device) == 0);
    CHECK(session.read(source + shift, 6 * MiB) == bytes);
  }
  std::byte* const twice = session.reserve(2 * piece_size);
  const auto handle = session.physical();
  REQUIRE(session.acl.aclrtMapMem(twice, piece_size, 0, handle, 0) == 0);
  REQUIRE(session.acl.aclrtMapMem(twice + piece, piece_size, 0, handle, 0) == 0);
  const Bytes half = pattern(MiB);
  REQUIRE(session.write(twice, half) == 0);
  REQUIRE(session.acl.aclrtMemcpy(twice + piece + 500, MiB, twice, MiB, kind::device_to_device) == 0);
  CHECK(session.read(twice + 500, MiB) == half);
}

TEST_CASE("aclrtMemset goes across pieces") {
  PhysicalSession session;
  std::byte* const place = three_pieces(session);
  REQUIRE(session.acl.aclrtMemset(place, 8 * MiB, 0x11, 8 * MiB) == 0);
  REQUIRE(session.acl.aclrtMemset(place + MiB, 6 * MiB, 0x22, 6 * MiB) == 0);
  Bytes expected(8 * MiB, 0x11);
  std::fill(expected.begin() + MiB, expected.begin() + 7 * MiB, static_cast<unsigned char>(0x22));
  CHECK(session.read(place, 8 * MiB) == expected);
}

TEST_CASE("a hole refuses the whole copy: nothing is moved") {
  PhysicalSession session;
  std::byte* const place = three_pieces(session);
  REQUIRE(session.acl.aclrtMemset(place, 8 * MiB, 0x33, 8 * MiB) == 0);
  REQUIRE(session.acl.aclrtUnmapMem(place + piece) == 0);
  const Bytes bytes = pattern(8 * MiB);
  CHECK(session.write(place, bytes) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::out_of_bounds);
  CHECK(host::last_cause().needed == 8 * MiB);
  CHECK(session.acl.aclrtMemset(place, 8 * MiB, 0, 8 * MiB) == code::rt_drv_internal);
  CHECK(session.write(place + 3 * piece, Bytes(piece_size + 1)) == code::rt_drv_internal);  // over the end
  CHECK(session.write(place + piece, Bytes(1)) == code::rt_drv_internal);                   // into the hole
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK(session.read(place, piece_size) == Bytes(piece_size, 0x33));
  CHECK(session.read(place + 3 * piece, piece_size) == Bytes(piece_size, 0x33));
}

TEST_CASE("a copy does not run from one reservation into the next") {
  PhysicalSession session;
  std::byte* const first = session.reserve(piece_size);
  std::byte* const second = session.reserve(piece_size);
  REQUIRE(second == first + piece);
  session.fill_in(first);
  session.fill_in(second);
  CHECK(session.write(first, Bytes(piece_size + 1)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::out_of_bounds);
  CHECK(host::view_of(first, piece_size + 1, host::ViewAccess::read) == nullptr);
}

TEST_CASE("memory of the host in a reservation is copied like any other, across pieces too") {
  PhysicalSession session;
  std::byte* const place = session.reserve(2 * piece_size);
  session.fill_in(place, piece_size, on_host());
  session.fill_in(place + piece, piece_size, on_host());
  const Bytes bytes = pattern(3 * MiB);
  REQUIRE(session.write(place + 500, bytes) == 0);
  CHECK(std::memcmp(place + 500, bytes.data(), bytes.size()) == 0);
  void* const device = session.allocate(4 * MiB);
  REQUIRE(session.acl.aclrtMemcpy(device, 4 * MiB, place + 500, bytes.size(), kind::host_to_device) == 0);
  CHECK(session.read(device, bytes.size()) == bytes);
}

TEST_CASE("mapped memory is not copied to another device by the blocking call") {
  const auto copied = [](const char* allowed) {
    if (allowed != nullptr) ::setenv("DEVSHARE_HOST_CROSS_DEVICE_COPY", allowed, 1);
    PhysicalSession session;
    std::byte* const place = session.reserve(piece_size);
    std::byte* const there = session.reserve(piece_size);
    session.fill_in(place);
    session.fill_in(there, piece_size, on_device(1));
    const acl::aclError copy = session.acl.aclrtMemcpy(there, 64, place, 64, kind::device_to_device);
    CHECK(last_reason() == (allowed != nullptr ? Reason::peer_access_missing : Reason::cross_device_copy));
    return copy;
  };
  CHECK(copied(nullptr) == code::rt_feature_not_support);
  CHECK(copied("allow") == code::rt_drv_internal);  // peer access is off
}

TEST_CASE("threads map and unmap while others copy: a copy moves all or is refused, and unmapping waits for nobody") {
  const Watchdog watchdog("copies beside maps");
  PhysicalSession session;
  const Counters before = counters();
  std::byte* const place = session.reserve(4 * piece_size);
  session.fill_in(place);
  session.fill_in(place + 2 * piece);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> copies{0};
  // Each across a border of its own of the piece that comes and goes.
  const auto copy = [&](std::byte* border, unsigned char value) {
    session.acl.aclrtSetDevice(0);
    const Bytes bytes(64 << 10, value);
    while (!stop) {
      const acl::aclError code = session.write(border - (32 << 10), bytes);
      if (code != 0 && code != code::rt_drv_internal) ++wrong;
      if (code == 0) ++copies;
    }
    session.acl.aclrtResetDevice(0);
  };
  std::thread first([&] { copy(place + piece, 1); });
  std::thread second([&] { copy(place + 2 * piece, 2); });
  const auto handle = session.physical();
  int unmapped = 0;
  while (unmapped < 50 || copies < 50) {
    const acl::aclError mapped = session.acl.aclrtMapMem(place + piece, piece_size, 0, handle, 0);
    if (mapped != 0) ++wrong;
    std::this_thread::yield();  // on a busy machine the others get no turn otherwise
    for (;;) {
      const acl::aclError ended = session.acl.aclrtUnmapMem(place + piece);
      if (ended == 0) break;
      if (ended != code::rt_drv_internal || last_reason() != Reason::in_use) ++wrong;
      std::this_thread::yield();
    }
    ++unmapped;
  }
  stop = true;
  first.join();
  second.join();
  CHECK(wrong == 0);
  CHECK(unmapped >= 50);
  CHECK(copies >= 50);
  REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  REQUIRE(session.acl.aclrtUnmapMem(place + 2 * piece) == 0);
  REQUIRE(session.acl.aclrtReleaseMemAddress(place) == 0);
  CHECK(counters() == before);
}
