// SPDX-License-Identifier: Apache-2.0
// aclrtMemSetAccess and aclrtMemGetAccess, memory mapped without access, and what can be asked of an address.
#include "host/physical.hpp"
#include "host/window.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

using devshare::host::Reason;
using devshare::test::contains;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace mem_access = devshare::acl::mem_access;
namespace code = devshare::acl::code;
namespace host = devshare::host;
namespace location_type = devshare::acl::mem_location_type;

namespace {

acl::aclrtMemAccessDesc to_device(std::uint32_t device, acl::aclrtMemAccessFlags flags = mem_access::read_write) {
  return {flags, {device, location_type::device}, {}};
}

acl::aclrtMemAccessDesc to_host() { return {mem_access::read_write, {0, location_type::host}, {}}; }

acl::aclError give(const PhysicalSession& session, void* address, acl::aclrtMemAccessDesc desc,
                   std::size_t size = piece_size) {
  return session.acl.aclrtMemSetAccess(address, size, &desc, 1);
}

std::uint64_t access_of(const PhysicalSession& session, void* address, acl::aclrtMemLocation location) {
  std::uint64_t flag = 77;
  CHECK(session.acl.aclrtMemGetAccess(address, &location, &flag) == 0);
  return flag;
}

std::byte* without_access(const PhysicalSession& session, const acl::aclrtPhysicalMemProp& property = on_device()) {
  std::byte* const place = session.reserve(2 * piece_size);
  const auto handle = session.physical(piece_size, property);
  REQUIRE(session.acl.aclrtMemMapNoAccess(place, piece_size, 0, handle, 0) == 0);
  REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  return place;
}

}  // namespace

TEST_CASE("mapping gives access to the device of the memory and to nobody else") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  CHECK(access_of(session, place, {0, location_type::device}) == mem_access::read_write);
  CHECK(access_of(session, place, {1, location_type::device}) == mem_access::none);
  CHECK(access_of(session, place, {0, location_type::host}) == mem_access::none);
  CHECK(give(session, place, to_device(1)) == 0);
  CHECK(give(session, place, to_device(1)) == 0);
  CHECK(access_of(session, place, {1, location_type::device}) == mem_access::read_write);
}

TEST_CASE("memory mapped without access refuses copies, fills and views until access is given") {
  PhysicalSession session;
  std::byte* const place = without_access(session);
  session.fill_in(place + piece_size);
  const auto bytes = pattern(piece_size);
  CHECK(session.write(place, bytes) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::no_access);
  CHECK_THAT(session.message(), contains("aclrtMemSetAccess"));
  CHECK(session.acl.aclrtMemset(place, piece_size, 1, piece_size) == code::rt_drv_internal);
  CHECK(session.read(place + piece_size - 8, 1).empty());
  CHECK(session.write(place + piece_size, bytes) == 0);
  CHECK(session.acl.aclrtMemcpy(place + piece_size, 8, place, 8, 3) == code::rt_drv_internal);
  devshare::detail::Cause why;
  CHECK(host::view_of(place, 1, host::ViewAccess::read, &why) == nullptr);
  CHECK(why.reason == Reason::no_access);
  CHECK(access_of(session, place, {0, location_type::device}) == mem_access::none);

  REQUIRE(give(session, place, to_device(0)) == 0);
  CHECK(session.write(place, bytes) == 0);
  CHECK(session.read(place, piece_size) == bytes);
  CHECK(host::view_of(place, 2 * piece_size, host::ViewAccess::read_write) != nullptr);
  CHECK(session.acl.aclrtUnmapMem(place) == 0);
}

TEST_CASE("a copy that reaches into a piece without access moves nothing") {
  PhysicalSession session;
  std::byte* const place = session.reserve(2 * piece_size);
  session.fill_in(place);
  const auto handle = session.physical();
  REQUIRE(session.acl.aclrtMemMapNoAccess(place + piece_size, piece_size, 0, handle, 0) == 0);
  CHECK(session.write(place, pattern(piece_size + 1)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::no_access);
  CHECK(session.read(place, piece_size) == std::vector<unsigned char>(piece_size, 0));
}

TEST_CASE("R37: access takes the range of the map, reading and writing, and one kind of location") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  session.fill_in(place, 2 * piece_size);
  acl::aclrtMemAccessDesc desc = to_device(0);
  CHECK(session.acl.aclrtMemSetAccess(nullptr, 2 * piece_size, &desc, 1) == code::invalid_param);
  CHECK(session.acl.aclrtMemSetAccess(place, 2 * piece_size, nullptr, 1) == code::invalid_param);
  CHECK(session.acl.aclrtMemSetAccess(place, 2 * piece_size, &desc, 0) == code::invalid_param);
  for (const std::size_t size : {std::size_t{0}, piece_size, 4 * piece_size}) {
    CHECK(give(session, place, desc, size) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::out_of_bounds);
  }
  for (std::byte* const wrong : {place + piece_size, place + 1, place + 2 * piece_size}) {
    CHECK(give(session, wrong, desc, 2 * piece_size) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::not_reserved);
  }
  for (const acl::aclrtMemAccessFlags flags : {mem_access::none, mem_access::read}) {
    CHECK(give(session, place, to_device(0, flags), 2 * piece_size) == code::rt_feature_not_support);
    CHECK(last_reason() == Reason::unsupported);
  }
  CHECK(give(session, place, to_device(0, 2), 2 * piece_size) == code::rt_param_invalid);
  desc = {mem_access::read_write, {0, location_type::host_numa}, {}};
  CHECK(give(session, place, desc, 2 * piece_size) == code::rt_feature_not_support);
  // Several at once: all are looked at before one is given.
  std::array<acl::aclrtMemAccessDesc, 2> both{to_device(1), to_device(5)};
  CHECK(session.acl.aclrtMemSetAccess(place, 2 * piece_size, both.data(), 2) == code::rt_drv_internal);
  CHECK(access_of(session, place, {1, location_type::device}) == mem_access::none);
  both[1] = to_device(0);
  CHECK(session.acl.aclrtMemSetAccess(place, 2 * piece_size, both.data(), 2) == 0);
  CHECK(access_of(session, place, {1, location_type::device}) == mem_access::read_write);
}

TEST_CASE("R60: access takes the driver's number of a device, not the user's") {
  ::setenv("ASCEND_RT_VISIBLE_DEVICES", "1", 1);
  PhysicalSession session;
  std::byte* const place = without_access(session, on_device(0));  // which is the driver's 1
  CHECK(give(session, place, to_device(0)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::no_such_device);
  CHECK_THAT(session.message(), contains("aclrtGetLogicDevIdByUserDevId"));
  CHECK(session.write(place, pattern(16)) == code::rt_drv_internal);
  std::int32_t driver = -1;
  REQUIRE(session.acl.aclrtGetLogicDevIdByUserDevId(0, &driver) == 0);
  CHECK(give(session, place, to_device(static_cast<std::uint32_t>(driver))) == 0);
  CHECK(session.write(place, pattern(16)) == 0);
  CHECK(access_of(session, place, {1, location_type::device}) == mem_access::read_write);
}

TEST_CASE("devices that cannot reach each other get no access") {
  ::setenv("DEVSHARE_HOST_PEERS", "10/01", 1);
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  CHECK(give(session, place, to_device(1)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::peer_impossible);
}

TEST_CASE("the host gets access to memory of a device over HCCS only, and then touches it") {
  {
    PhysicalSession session;  // a2, on PCIe
    std::byte* const place = session.reserve(piece_size);
    session.fill_in(place);
    CHECK(give(session, place, to_host()) == code::rt_feature_not_support);
    CHECK(last_reason() == Reason::unsupported);
  }
  ::setenv("DEVSHARE_HOST_PROFILE", "a3", 1);
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  REQUIRE(give(session, place, to_host()) == 0);
  const auto bytes = pattern(piece_size);
  std::memcpy(place, bytes.data(), bytes.size());
  CHECK(session.read(place, piece_size) == bytes);
  // A repeat of another type, and a host that is not number 0.
  CHECK(give(session, place, to_device(1)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::already_mapped);
  CHECK(give(session, place, {mem_access::read_write, {1, location_type::host}, {}}) == code::rt_drv_internal);
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  CHECK_FALSE(in_child([&] { *const_cast<volatile std::byte*>(place) = std::byte{1}; }).good());
}

TEST_CASE("memory of the host is given to devices, and not to the host, which has it") {
  PhysicalSession session;
  std::byte* const place = without_access(session, on_host());
  CHECK(session.read(place, 1).empty());
  CHECK_FALSE(in_child([&] { *const_cast<volatile std::byte*>(place) = std::byte{1}; }).good());
  CHECK(give(session, place, to_host()) == code::rt_feature_not_support);
  REQUIRE(give(session, place, to_device(1)) == 0);
  place[0] = std::byte{9};
  CHECK(session.read(place, 1) == std::vector<unsigned char>{9});
}

TEST_CASE("aclrtMemGetAccess has codes of its own") {
  PhysicalSession session;
  std::byte* const place = session.reserve(2 * piece_size);
  session.fill_in(place);
  acl::aclrtMemLocation location{0, location_type::device};
  std::uint64_t flag = 0;
  CHECK(session.acl.aclrtMemGetAccess(nullptr, &location, &flag) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAccess(place, nullptr, &flag) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAccess(place, &location, nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAccess(place + piece_size, &location, &flag) == code::rt_drv_internal);
  location.id = 9;
  CHECK(session.acl.aclrtMemGetAccess(place, &location, &flag) == code::rt_drv_internal);
}

TEST_CASE("an address tells its range: of aclrtMalloc, of aclrtMallocHost and of a mapping") {
  PhysicalSession session;
  void* const device = session.allocate(1000);
  void* pinned = nullptr;
  REQUIRE(session.acl.aclrtMallocHost(&pinned, 500) == 0);
  std::byte* const place = session.reserve(8 * piece_size);
  session.fill_in(place + piece_size, 2 * piece_size);
  const auto range = [&](void* address) {
    void* base = nullptr;
    std::size_t size = 0;
    CHECK(session.acl.aclrtMemGetAddressRange(address, &base, &size) == 0);
    return std::pair(base, size);
  };
  CHECK(range(static_cast<std::byte*>(device) + 999) == std::pair(device, std::size_t{1000}));
  CHECK(range(static_cast<std::byte*>(pinned) + 499) == std::pair(pinned, std::size_t{500}));
  void* const base = place + piece_size;
  CHECK(range(place + 3 * piece_size - 1) == std::pair(base, 2 * piece_size));
  // And from there to the handle.
  acl::aclrtDrvMemHandle handle = nullptr;
  CHECK(session.acl.aclrtMemRetainAllocationHandle(base, &handle) == 0);

  void* out = nullptr;
  std::size_t size = 0;
  int local = 0;
  CHECK(session.acl.aclrtMemGetAddressRange(device, nullptr, &size) == 0);
  CHECK(session.acl.aclrtMemGetAddressRange(device, &out, nullptr) == 0);
  CHECK(session.acl.aclrtMemGetAddressRange(device, nullptr, nullptr) == code::rt_param_invalid);
  CHECK(session.acl.aclrtMemGetAddressRange(nullptr, &out, &size) == code::invalid_param);
  for (void* const nothing : {static_cast<void*>(place), static_cast<void*>(&local),
                              static_cast<void*>(static_cast<std::byte*>(pinned) + 500)}) {
    CHECK(session.acl.aclrtMemGetAddressRange(nothing, &out, &size) == code::rt_param_invalid);
    CHECK(last_reason() == Reason::not_device_memory);
  }
  REQUIRE(session.acl.aclrtFreeHost(pinned) == 0);
}

TEST_CASE("an address tells where it is and its pages") {
  ::setenv("ASCEND_RT_VISIBLE_DEVICES", "1", 1);
  PhysicalSession session;
  void* pinned = nullptr;
  REQUIRE(session.acl.aclrtMallocHost(&pinned, 500) == 0);
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  std::byte* const shared = session.reserve(piece_size);
  session.fill_in(shared, piece_size, on_host());
  const auto is = [&](const void* address, acl::aclrtMemLocationType type, std::uint32_t pages) {
    acl::aclrtPtrAttributes found{};
    found.location.id = 9;
    CHECK(session.acl.aclrtPointerGetAttributes(address, &found) == 0);
    return found.location.type == type && found.location.id == 0 && found.pageSize == pages;
  };
  int local = 0;
  CHECK(is(session.allocate(100), location_type::device, 4096));  // of the user's device 0
  CHECK(is(place + 5, location_type::device, piece_size));
  CHECK(is(shared, location_type::host, piece_size));
  CHECK(is(pinned, location_type::host, static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE))));
  CHECK(is(&local, location_type::unregistered, 0));
  acl::aclrtPtrAttributes found{};
  CHECK(session.acl.aclrtPointerGetAttributes(nullptr, &found) == code::invalid_param);
  CHECK(session.acl.aclrtPointerGetAttributes(place, nullptr) == code::invalid_param);
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  CHECK(session.acl.aclrtPointerGetAttributes(place, &found) == code::rt_param_invalid);
  REQUIRE(session.acl.aclrtFreeHost(pinned) == 0);
}

TEST_CASE("aclrtMemP2PMap is for memory of this process and devices with access to each other") {
  PhysicalSession session;
  void* const memory = session.allocate(1000);
  const auto map = [&](void* address, std::size_t size, std::int32_t device = 1, std::uint64_t flags = 0) {
    return session.acl.aclrtMemP2PMap(address, size, device, flags);
  };
  CHECK(map(nullptr, 8) == code::invalid_param);
  CHECK(map(memory, 8, 1, 1) == code::invalid_param);
  CHECK(map(memory, 0) == code::rt_param_invalid);
  CHECK(map(memory, 8, 2) == code::rt_invalid_deviceid);
  CHECK(map(memory, 8) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::peer_access_missing);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(1, 0) == 0);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(0, 0) == 0);
  CHECK(map(memory, 1000) == 0);
  CHECK(map(memory, 1001) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::out_of_bounds);
  int local = 0;
  CHECK(map(&local, 4) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_device_memory);
  std::array<char, acl::ipc_key_size> key{};
  REQUIRE(session.acl.aclrtIpcMemGetExportKey(memory, 1000, key.data(), key.size(), 1) == 0);
  void* imported = nullptr;
  REQUIRE(session.acl.aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  CHECK(map(imported, 8) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::imported_memory);
}
