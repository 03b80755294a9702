// SPDX-License-Identifier: Apache-2.0
// aclrtMapMem and aclrtUnmapMem: places, codes, one origin and one device, and what a refusal leaves.
#include "host/physical.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::HandleOrigin;
using devshare::host::PhysicalMemory;
using devshare::host::PinnedBlock;
using devshare::host::Reason;
using devshare::test::contains;
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

TEST_CASE("R5, R38: memory that a call is using is not unmapped, nor is its reservation released") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  {
    const PinnedBlock in_use(place + 100);  // what a copy holds while it runs
    CHECK(session.acl.aclrtUnmapMem(place) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::in_use);
    CHECK(session.acl.aclrtReleaseMemAddress(place) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::in_use);
    CHECK(counters().mappings == 1);
    CHECK(session.read(place, 16).size() == 16);
  }
  CHECK(session.acl.aclrtUnmapMem(place) == 0);
  CHECK(session.acl.aclrtReleaseMemAddress(place) == 0);
}

TEST_CASE("R1: every call about handles, addresses and mappings needs a current device") {
  PhysicalSession session(-1);
  const Counters before = counters();
  int local = 0;
  void* address = &local;
  acl::aclrtDrvMemHandle handle = &local;
  acl::aclrtPhysicalMemProp property = on_device();
  acl::aclrtMemAccessDesc desc{acl::mem_access::read_write, {0, acl::mem_location_type::device}, {}};
  acl::aclrtPtrAttributes attributes{};
  std::size_t size = 0;
  std::uint64_t flag = 0;
  const std::vector<acl::aclError> codes{
      session.acl.aclrtMemGetAllocationGranularity(&property, 0, &size),
      session.acl.aclrtMemRetainAllocationHandle(address, &handle),
      session.acl.aclrtMemGetAllocationPropertiesFromHandle(handle, &property),
      session.acl.aclrtMapMem(address, piece_size, 0, handle, 0),
      session.acl.aclrtMemMapNoAccess(address, piece_size, 0, handle, 0),
      session.acl.aclrtUnmapMem(address),
      session.acl.aclrtMemSetAccess(address, piece_size, &desc, 1),
      session.acl.aclrtMemGetAccess(address, &desc.location, &flag),
      session.acl.aclrtMemGetAddressRange(address, &address, &size),
      session.acl.aclrtPointerGetAttributes(address, &attributes),
      session.acl.aclrtMemP2PMap(address, piece_size, 1, 0),
      session.acl.aclrtHostRegister(address, 8, acl::host_register_type::mapped, &address),
      session.acl.aclrtHostRegisterV2(address, 8, acl::host_register_flag::mapped),
      session.acl.aclrtHostGetDevicePointer(address, &address, 0),
      session.acl.aclrtHostUnregister(address),
  };
  CHECK(codes == std::vector<acl::aclError>(codes.size(), code::rt_context_null));
  CHECK(last_reason() == Reason::no_context);
  CHECK(address == &local);
  CHECK(counters() == before);
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
    if (round % 3 == 0) REQUIRE(host::view_of(place, 2 * piece_size, host::ViewAccess::read) != nullptr);
    REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
    REQUIRE(session.read(place, 1).empty());
    REQUIRE(session.read(place + piece_size, 4096) == bytes);
  }
}
