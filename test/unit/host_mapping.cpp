// SPDX-License-Identifier: Apache-2.0
// aclrtMapMem and aclrtUnmapMem: places, codes, one origin and one device, views, and what they cost.
#include "host/reservation.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::HandleOrigin;
using devshare::host::PhysicalMemory;
using devshare::host::Reason;
using devshare::host::view_of;
using devshare::host::ViewAccess;
using devshare::test::contains;
using devshare::test::demand;
using devshare::test::GiB;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

std::byte* view(const void* address, std::size_t size = piece_size) {
  return static_cast<std::byte*>(view_of(address, size, ViewAccess::read_write));
}

// A handle as an import makes one.
acl::aclrtDrvMemHandle imported(HandleOrigin origin, const host::Physical& of) {
  const auto memory = std::make_shared<PhysicalMemory>();
  memory->descriptor = host::UniqueFd(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(memory->descriptor.get(), static_cast<off_t>(of->size)) == 0);
  memory->size = of->size;
  memory->page_size = of->page_size;
  memory->property = of->property;
  memory->device = of->device;
  memory->local_device = of->local_device;
  memory->origin = origin;
  return host::add_handle(memory);
}

// Mappings of device memory in this process, as the kernel counts them.
std::size_t mapped_files() {
  std::ifstream maps("/proc/self/maps");
  std::size_t files = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:devshare") != std::string::npos) ++files;
  }
  return files;
}

}  // namespace

TEST_CASE("aclrtMapMem refuses null, flags, an offset and another size than the memory's") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  const auto handle = session.physical(2 * piece_size);
  const Counters before = counters();
  const auto map = [&](void* address, std::size_t size, std::size_t offset, std::uint64_t flags) {
    CHECK(session.acl.aclrtMemMapNoAccess(address, size, offset, handle, flags) ==
          session.acl.aclrtMapMem(address, size, offset, handle, flags));
    return session.acl.aclrtMapMem(address, size, offset, handle, flags);
  };
  CHECK(map(nullptr, 2 * piece_size, 0, 0) == code::invalid_param);
  CHECK(session.acl.aclrtMapMem(place, 2 * piece_size, 0, nullptr, 0) == code::invalid_param);
  CHECK(map(place, 2 * piece_size, 0, 1) == code::invalid_param);
  CHECK(map(place, 2 * piece_size, piece_size, 0) == code::rt_param_invalid);
  for (const std::size_t size : {std::size_t{0}, piece_size, piece_size + 1, 4 * piece_size}) {
    CHECK(map(place, size, 0, 0) == code::rt_param_invalid);  // R36
    CHECK(last_reason() == Reason::out_of_bounds);
  }
  CHECK(counters() == before);
  CHECK(session.acl.aclrtFreePhysical(handle) == 0);  // no refused map has counted
  CHECK(session.acl.aclrtFreePhysical(handle) == code::rt_invalid_handle);
}

TEST_CASE("memory is mapped anywhere inside one reservation, and nowhere else") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  std::byte* const next = session.reserve(4 * piece_size);
  REQUIRE(next == place + 4 * piece_size);
  const auto handle = session.physical(2 * piece_size);
  const auto map = [&](std::byte* address) { return session.acl.aclrtMapMem(address, 2 * piece_size, 0, handle, 0); };
  CHECK(map(place + 4096) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(map(place + 3 * piece_size) == code::rt_drv_internal);  // over its end, into the next
  CHECK(last_reason() == Reason::not_reserved);
  CHECK(map(place - 2 * piece_size) == code::rt_drv_internal);
  int local = 0;
  CHECK(session.acl.aclrtMapMem(&local, 2 * piece_size, 0, handle, 0) == code::rt_drv_internal);
  REQUIRE(map(place + piece_size) == 0);
  for (int i = 0; i < 4; ++i) {
    INFO("at piece " << i);
    CHECK(map(place + i * static_cast<std::ptrdiff_t>(piece_size)) == code::rt_drv_internal);
    if (i < 3) CHECK(last_reason() == Reason::already_mapped);
  }
  CHECK(map(next + 2 * piece_size) == 0);  // one memory may be at two addresses
  const auto bytes = pattern(1000);
  REQUIRE(session.write(place + piece_size + 5, bytes) == 0);
  CHECK(session.read(next + 2 * piece_size + 5, 1000) == bytes);
}

TEST_CASE("R38: memory is unmapped by the address of the map, once") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  session.fill_in(place + piece_size, 2 * piece_size);
  const Counters mapped = counters();
  CHECK(session.acl.aclrtUnmapMem(nullptr) == code::invalid_param);
  for (std::byte* const wrong :
       {place, place + 2 * piece_size, place + piece_size + 1, place + 3 * piece_size, place + 4 * piece_size}) {
    CHECK(session.acl.aclrtUnmapMem(wrong) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::not_reserved);
  }
  CHECK(counters() == mapped);
  CHECK(session.acl.aclrtUnmapMem(place + piece_size) == 0);
  CHECK(counters().mappings == 0);
  CHECK(host::bytes_in_use(0) == 0);
  CHECK(session.acl.aclrtUnmapMem(place + piece_size) == code::rt_drv_internal);
  CHECK(session.read(place + piece_size, 1).empty());
  CHECK(last_reason() == Reason::not_device_memory);
}

TEST_CASE("R29: one reservation has memory of one device, while it has any") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  session.fill_in(place);
  const auto other = session.physical(piece_size, on_device(1));
  const auto map = [&](acl::aclrtDrvMemHandle handle) {
    return session.acl.aclrtMapMem(place + piece_size, piece_size, 0, handle, 0);
  };
  CHECK(map(other) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::mixed_memory);
  CHECK(map(session.physical(piece_size, on_host())) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::mixed_memory);
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  CHECK(map(other) == 0);
}

TEST_CASE("R29: one reservation has memory of one origin; the driver looks at the device only") {
  for (const bool lenient : {false, true}) {
    if (lenient) ::setenv("DEVSHARE_HOST_MIXING", "device_only", 1);
    PhysicalSession session;
    std::byte* const place = session.reserve(4 * piece_size);
    const auto own = session.physical();
    REQUIRE(session.acl.aclrtMapMem(place, piece_size, 0, own, 0) == 0);
    for (const HandleOrigin origin : {HandleOrigin::imported_v1, HandleOrigin::imported_v2}) {
      const auto handle = imported(origin, host::physical_of(own));
      const acl::aclError mapped = session.acl.aclrtMapMem(place + piece_size, piece_size, 0, handle, 0);
      CHECK(mapped == (lenient ? 0 : code::rt_drv_internal));
      if (lenient) {
        REQUIRE(session.acl.aclrtUnmapMem(place + piece_size) == 0);
      } else {
        CHECK(last_reason() == Reason::mixed_memory);
        CHECK_THAT(session.message(), contains("DEVSHARE_HOST_MIXING"));
      }
    }
  }
}

TEST_CASE("R12: mapped memory has no key") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  std::array<char, acl::ipc_key_size> key{};
  CHECK(session.acl.aclrtIpcMemGetExportKey(place, piece_size, key.data(), key.size(), 0) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::mapped_memory);
  CHECK_THAT(session.message(), contains("share its handle"));
}

TEST_CASE("pieces that nobody views cost no mapping, and one each when somebody does") {
  constexpr std::size_t pieces = 64;
  PhysicalSession session;
  std::byte* const place = session.reserve(pieces * piece_size);
  for (std::size_t i = 0; i < pieces; ++i) session.fill_in(place + i * piece_size);
  CHECK(counters().mappings == pieces);
  CHECK(mapped_files() == 0);
  const auto bytes = pattern(3 * piece_size);
  REQUIRE(session.write(place + piece_size / 2, bytes) == 0);
  CHECK(mapped_files() == 0);
  CHECK(counters().views == 0);
  REQUIRE(view(place, pieces * piece_size) != nullptr);
  CHECK(mapped_files() == pieces);
  CHECK(counters().views == pieces);
}

TEST_CASE("a view across pieces is contiguous, whatever was viewed before, and ends piece by piece") {
  PhysicalSession session;
  std::byte* const place = session.reserve(6 * piece_size);
  for (int i = 0; i < 5; ++i) session.fill_in(place + i * static_cast<std::ptrdiff_t>(piece_size));
  std::byte* const third = view(place + 2 * piece_size);
  REQUIRE(third != nullptr);
  const auto bytes = pattern(4 * piece_size);
  REQUIRE(session.write(place + piece_size / 2, bytes) == 0);
  std::byte* const all = view(place + 100, 5 * piece_size - 100);
  REQUIRE(all != nullptr);
  CHECK(all + 2 * piece_size - 100 == third);
  CHECK(std::memcmp(all + piece_size / 2 - 100, bytes.data(), bytes.size()) == 0);
  devshare::detail::Cause why;
  CHECK(view_of(place, 5 * piece_size + 1, ViewAccess::read, &why) == nullptr);  // nothing is in the sixth
  CHECK(why.reason == Reason::out_of_bounds);

  REQUIRE(session.acl.aclrtUnmapMem(place + piece_size) == 0);
  CHECK(view_of(place, 2 * piece_size, ViewAccess::read) == nullptr);
  CHECK(view(place + 2 * piece_size, 3 * piece_size) == third);  // the others stay where they are
  CHECK(counters().views == 4);
  session.fill_in(place + piece_size);
  CHECK(view(place, 5 * piece_size) + 2 * piece_size == third);
  CHECK(session.read(place + piece_size, 1) == std::vector<unsigned char>{0});  // new memory
}

TEST_CASE("a device's address faults on the host, and so does a view whose piece is unmapped") {
  const auto touched = [](auto choose) {
    return in_child([&] {
      PhysicalSession session;
      std::byte* const place = session.reserve(3 * piece_size);
      for (int i = 0; i < 3; ++i) session.fill_in(place + i * static_cast<std::ptrdiff_t>(piece_size));
      std::byte* const seen = view(place, 3 * piece_size);
      demand(seen != nullptr, "a view");
      demand(session.acl.aclrtUnmapMem(place + piece_size) == 0, "unmapped");
      seen[piece_size - 1] = std::byte{1};
      seen[2 * piece_size] = std::byte{1};
      *const_cast<volatile std::byte*>(choose(place, seen)) = std::byte{1};
    });
  };
  CHECK(touched([](std::byte*, std::byte* seen) { return seen; }).good());
  CHECK_FALSE(touched([](std::byte*, std::byte* seen) { return seen + piece_size; }).good());
  CHECK_FALSE(touched([](std::byte* place, std::byte*) { return place; }).good());
}

TEST_CASE("memory of the host is touched at its own address, while it is mapped") {
  const auto touched_after = [](bool unmapped) {
    return in_child([&] {
      PhysicalSession session;
      std::byte* const place = session.reserve(3 * piece_size);
      session.fill_in(place + piece_size, piece_size, on_host());
      const auto bytes = pattern(piece_size);
      std::memcpy(place + piece_size, bytes.data(), bytes.size());
      demand(session.read(place + piece_size, piece_size) == bytes, "what the processor wrote is what is copied");
      demand(view(place + piece_size) == place + piece_size, "its address is its view");
      if (unmapped) demand(session.acl.aclrtUnmapMem(place + piece_size) == 0, "unmapped");
      *const_cast<volatile std::byte*>(place + piece_size) = std::byte{1};
    });
  };
  CHECK(touched_after(false).good());
  CHECK_FALSE(touched_after(true).good());
}

TEST_CASE("R4: a child that starts a runtime of its own finds nothing of its parent at its addresses") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place, piece_size, on_host());
  const auto touched_in_child = [&](bool own_runtime) {
    return in_child([&] {
      if (own_runtime) devshare::host::table().aclInit(nullptr);
      *const_cast<volatile std::byte*>(place) = std::byte{1};
    });
  };
  CHECK_FALSE(touched_in_child(true).good());
  place[0] = std::byte{7};
  CHECK(session.read(place, 1) == std::vector<unsigned char>{7});
}

TEST_CASE("where the kernel gives no mapping, a view and memory of the host are refused, and nothing is left behind") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  std::byte* const own = session.reserve(4 * piece_size);
  session.fill_in(place);
  const auto handle = session.physical(piece_size, on_host());
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_AS, &limit) == 0);
  const Counters before = counters();
  devshare::detail::Cause why;
  const rlimit full{1 << 20, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_AS, &full) == 0);
  void* const seen = view_of(place, piece_size, ViewAccess::read, &why);
  REQUIRE(::setrlimit(RLIMIT_AS, &limit) == 0);
  CHECK(seen == nullptr);
  CHECK(why.reason == Reason::mapping_limit);
  CHECK(counters() == before);
  CHECK(view(place) != nullptr);
  CHECK(session.acl.aclrtMapMem(own, piece_size, 0, handle, 0) == 0);
}

TEST_CASE("injected faults of the new calls leave nothing") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  const auto handle = session.physical();
  const Counters before = counters();
  host::fail(acl::Entry::aclrtMapMem, 1, code::rt_drv_internal);
  CHECK(session.acl.aclrtMapMem(place, piece_size, 0, handle, 0) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::injected);
  CHECK(counters() == before);
  REQUIRE(session.acl.aclrtMapMem(place, piece_size, 0, handle, 0) == 0);
  host::fail(acl::Entry::aclrtUnmapMem, 1, code::rt_drv_internal);
  CHECK(session.acl.aclrtUnmapMem(place) == code::rt_drv_internal);
  CHECK(session.acl.aclrtUnmapMem(place) == 0);
  host::clear();
  CHECK(counters() == before);
}

TEST_CASE("B117: memory goes and comes back at its address a hundred times") {
  PhysicalSession session;
  std::byte* const place = session.reserve(2 * piece_size);
  session.fill_in(place + piece_size);
  const auto bytes = pattern(4096);
  REQUIRE(session.write(place + piece_size, bytes) == 0);
  Counters asleep{};
  for (int round = 0; round < 100; ++round) {
    if (round == 1) asleep = counters();
    if (round > 1) REQUIRE(counters() == asleep);
    session.fill_in(place);
    REQUIRE(session.read(place, 1) == std::vector<unsigned char>{0});
    REQUIRE(session.write(place, bytes) == 0);
    if (round % 3 == 0) REQUIRE(view(place, 2 * piece_size) != nullptr);
    if (round == 0) REQUIRE(view(place + piece_size) != nullptr);
    REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
    REQUIRE(session.read(place, 1).empty());
    REQUIRE(session.read(place + piece_size, 4096) == bytes);
  }
}
