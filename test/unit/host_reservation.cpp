// SPDX-License-Identifier: Apache-2.0
// aclrtReserveMemAddress, its NoUC form and aclrtReleaseMemAddress: where, how large, and what is refused.
#include "host/window.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <vector>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::test::contains;
using devshare::test::GiB;
using devshare::test::last_reason;
using devshare::test::MiB;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;

namespace {

constexpr std::uintptr_t TiB = std::uintptr_t{1} << 40;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }
std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

acl::aclError reserve_at(const PhysicalSession& session, std::uintptr_t expected, std::size_t size, void** out) {
  return session.acl.aclrtReserveMemAddress(out, size, 0, at(expected), 0);
}

// Where a program may say that it wants an address; not so with ThreadSanitizer, whose window lies elsewhere.
bool window_is_the_cards() {
  PhysicalSession session;
  return devshare::host::in_window(20 * TiB);
}

}  // namespace

TEST_CASE("aclrtReserveMemAddress refuses null, no size, an alignment and unknown flags") {
  PhysicalSession session;
  const Counters before = counters();
  void* address = nullptr;
  CHECK(session.acl.aclrtReserveMemAddress(nullptr, piece_size, 0, nullptr, 0) == code::invalid_param);
  CHECK(session.acl.aclrtReserveMemAddress(&address, 0, 0, nullptr, 0) == code::invalid_param);
  CHECK(session.acl.aclrtReserveMemAddress(&address, piece_size, 0, nullptr, 2) == code::invalid_param);
  CHECK(session.acl.aclrtReserveMemAddress(&address, piece_size, piece_size, nullptr, 0) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(address == nullptr);
  CHECK(counters() == before);
  // 1 is what older programs pass for huge pages.
  CHECK(session.acl.aclrtReserveMemAddress(&address, piece_size, 0, nullptr, 1) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(address) == 0);
}

TEST_CASE("R1: a reservation needs a current device") {
  PhysicalSession session(-1);
  void* address = nullptr;
  CHECK(session.acl.aclrtReserveMemAddress(&address, piece_size, 0, nullptr, 0) == code::rt_context_null);
  CHECK(session.acl.aclrtReleaseMemAddress(&address) == code::rt_context_null);
}

TEST_CASE("a reservation starts at the power of two that holds it, from 512 MiB on at a GiB") {
  PhysicalSession session;
  const auto is_aligned = [&](std::size_t size, std::size_t alignment) {
    void* const spacer = session.reserve(1);  // so that the next one does not lie well by chance
    std::byte* const address = session.reserve(size);
    const bool aligned = number(address) % alignment == 0;
    CHECK(session.acl.aclrtReleaseMemAddress(address) == 0);
    CHECK(session.acl.aclrtReleaseMemAddress(spacer) == 0);
    return aligned;
  };
  CHECK(is_aligned(1, 2 * MiB));
  CHECK(is_aligned(2 * MiB + 1, 4 * MiB));
  CHECK(is_aligned(6 * MiB, 8 * MiB));
  CHECK(is_aligned(512 * MiB, 512 * MiB));
  CHECK(is_aligned(514 * MiB, GiB));
  CHECK(is_aligned(3 * GiB, GiB));
}

TEST_CASE("a reservation has whole pages of the card") {
  PhysicalSession session;
  std::byte* const first = session.reserve(1);
  CHECK(session.reserve(1) == first + 2 * MiB);
  CHECK(session.acl.aclrtReleaseMemAddress(first) == 0);
}

TEST_CASE("B041: addresses are deterministic, the lowest free first, and used again after release") {
  std::vector<std::byte*> first;
  for (int round = 0; round < 2; ++round) {
    PhysicalSession session;
    std::vector<std::byte*> now;
    for (const std::size_t size : {piece_size, 8 * piece_size, piece_size, GiB}) now.push_back(session.reserve(size));
    if (round == 0) first = now;
    CHECK(now == first);
    REQUIRE(session.acl.aclrtReleaseMemAddress(now[0]) == 0);
    CHECK(session.reserve(piece_size) == now[0]);
  }
  CHECK(counters() == Counters{});
}

TEST_CASE("an address may be asked for, in the card's range") {
  if (!window_is_the_cards()) DEVSHARE_SKIP("this build's device window is not in the card's range of addresses");
  PhysicalSession session;
  const Counters before = counters();
  void* address = nullptr;
  const std::uintptr_t place = 23 * TiB;
  REQUIRE(reserve_at(session, place, 4 * piece_size, &address) == 0);
  CHECK(number(address) == place);
  void* second = nullptr;
  CHECK(reserve_at(session, place, 4 * piece_size, &second) == code::rt_memory_allocation);  // taken
  CHECK(last_reason() == Reason::address_space);
  REQUIRE(reserve_at(session, place + 4 * piece_size, 2 * piece_size, &second) == 0);
  session.fill_in(static_cast<std::byte*>(address));
  REQUIRE(session.acl.aclrtUnmapMem(address) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(address) == 0);
  REQUIRE(reserve_at(session, place, 4 * piece_size, &address) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(second) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(address) == 0);
  CHECK(counters() == before);
}

TEST_CASE("an address that cannot be had is refused with its own code") {
  PhysicalSession session;
  void* address = nullptr;
  CHECK(reserve_at(session, 8 * TiB, piece_size, &address) == code::rt_param_invalid);
  CHECK(reserve_at(session, 24 * TiB, piece_size, &address) == code::rt_param_invalid);
  CHECK(reserve_at(session, 20 * TiB + 4096, piece_size, &address) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(reserve_at(session, 20 * TiB + piece_size, 4 * piece_size, &address) == code::rt_param_invalid);
  CHECK(reserve_at(session, 16 * TiB, piece_size, &address) == code::rt_memory_allocation);  // not in the window
  CHECK(last_reason() == Reason::address_space);
  CHECK(address == nullptr);
}

TEST_CASE("950 takes no asked-for address") {
  ::setenv("DEVSHARE_HOST_PROFILE", "950", 1);
  PhysicalSession session;
  void* address = nullptr;
  CHECK(reserve_at(session, 20 * TiB, piece_size, &address) == code::rt_feature_not_support);
  CHECK(last_reason() == Reason::unsupported);
}

TEST_CASE("reservations end where the addresses do") {
  PhysicalSession session;
  const Counters before = counters();
  void* address = nullptr;
  CHECK(session.acl.aclrtReserveMemAddress(&address, 4 * TiB, 0, nullptr, 0) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::address_space);
  CHECK(session.acl.aclrtReserveMemAddress(&address, SIZE_MAX, 0, nullptr, 0) == code::rt_memory_allocation);
  std::vector<void*> all;
  while (session.acl.aclrtReserveMemAddress(&address, 16 * GiB, 0, nullptr, 0) == 0) all.push_back(address);
  CHECK(last_reason() == Reason::address_space);
  CHECK(all.size() >= 2);
  for (void* const each : all) CHECK(session.acl.aclrtReleaseMemAddress(each) == 0);
  CHECK(counters() == before);
}

TEST_CASE("NoUC reservations: A3 alone, whole GiB, at an address that must be said") {
  {
    PhysicalSession session;
    void* address = nullptr;
    CHECK(session.acl.aclrtReserveMemAddressNoUCMemory(&address, GiB, 0, at(40 * TiB), 0) ==
          code::rt_feature_not_support);
    CHECK(last_reason() == Reason::unsupported);
  }
  ::setenv("DEVSHARE_HOST_PROFILE", "a3", 1);
  PhysicalSession session;
  const auto tried = [&](std::size_t size, std::uintptr_t expected) {
    void* address = nullptr;
    return session.acl.aclrtReserveMemAddressNoUCMemory(&address, size, 0, at(expected), 0);
  };
  CHECK(tried(0, 40 * TiB) == code::invalid_param);
  CHECK(tried(GiB + piece_size, 40 * TiB) == code::rt_param_invalid);
  CHECK(tried(GiB, 0) == code::rt_param_invalid);
  CHECK(tried(GiB, 39 * TiB) == code::rt_param_invalid);
  CHECK(tried(GiB, 224 * TiB) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(tried(GiB, 128 * TiB) == code::rt_feature_not_support);  // five levels of page tables
  CHECK(last_reason() == Reason::unsupported);
  CHECK(session.acl.aclrtReserveMemAddressNoUCMemory(nullptr, GiB, 0, at(40 * TiB), 0) == code::invalid_param);
}

TEST_CASE("R38: a reservation is released once, by its start, when nothing is mapped in it") {
  PhysicalSession session;
  const Counters before = counters();
  std::byte* const place = session.reserve(4 * piece_size);
  session.fill_in(place + 2 * piece_size);
  CHECK(session.acl.aclrtReleaseMemAddress(place) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::in_use);
  CHECK_THAT(session.message(), contains("1 mapping is left"));
  CHECK(session.acl.aclrtReleaseMemAddress(place + 2 * piece_size) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_reserved);
  CHECK(session.read(place + 2 * piece_size, 16).size() == 16);  // refused means untouched
  REQUIRE(session.acl.aclrtUnmapMem(place + 2 * piece_size) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(place) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(place) == code::rt_param_invalid);
  CHECK(session.acl.aclrtReleaseMemAddress(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtReleaseMemAddress(session.allocate(64)) == code::rt_param_invalid);
  CHECK(counters().reservations == before.reservations);
  CHECK(counters().mappings == before.mappings);
}

TEST_CASE("aclrtFree takes neither a reservation nor what is mapped in one") {
  PhysicalSession session;
  std::byte* const place = session.reserve(2 * piece_size);
  CHECK(session.acl.aclrtFree(place) == code::rt_param_invalid);
  session.fill_in(place);
  CHECK(session.acl.aclrtFree(place) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::mapped_memory);
  CHECK_THAT(session.message(), contains("aclrtUnmapMem"));
  CHECK(session.acl.aclrtFree(place + piece_size) == code::rt_param_invalid);
  CHECK(session.read(place, 16).size() == 16);
}
