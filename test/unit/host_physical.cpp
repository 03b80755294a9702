// SPDX-License-Identifier: Apache-2.0
// aclrtMallocPhysical, aclrtFreePhysical and what can be asked of a handle: kinds, sizes, codes, counts.
#include "physical_session.hpp"
#include "support/catch.hpp"

#include <cstdlib>
#include <set>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::test::GiB;
using devshare::test::last_reason;
using devshare::test::MiB;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace attr = devshare::acl::mem_attr;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

acl::aclError try_kind(const PhysicalSession& session, const acl::aclrtPhysicalMemProp& property, std::size_t size) {
  acl::aclrtDrvMemHandle handle = nullptr;
  const acl::aclError made = session.acl.aclrtMallocPhysical(&handle, size, &property, 0);
  if (made == 0) REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  return made;
}

std::size_t granularity(const PhysicalSession& session, acl::aclrtPhysicalMemProp property) {
  std::size_t bytes = 0;
  REQUIRE(session.acl.aclrtMemGetAllocationGranularity(&property, acl::granularity::minimum, &bytes) == 0);
  std::size_t recommended = 0;
  REQUIRE(session.acl.aclrtMemGetAllocationGranularity(&property, acl::granularity::recommended, &recommended) == 0);
  CHECK(recommended == bytes);
  return bytes;
}

}  // namespace

TEST_CASE("aclrtMallocPhysical refuses what is null, no size, flags and what is no kind of memory") {
  PhysicalSession session;
  const Counters before = counters();
  acl::aclrtDrvMemHandle handle = nullptr;
  const auto property = on_device();
  CHECK(session.acl.aclrtMallocPhysical(nullptr, piece_size, &property, 0) == code::invalid_param);
  CHECK(session.acl.aclrtMallocPhysical(&handle, piece_size, nullptr, 0) == code::invalid_param);
  CHECK(session.acl.aclrtMallocPhysical(&handle, piece_size, &property, 1) == code::invalid_param);
  CHECK(session.acl.aclrtMallocPhysical(&handle, 0, &property, 0) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::bad_argument);
  auto changed = property;
  changed.handleType = acl::mem_handle_type::posix;
  CHECK(try_kind(session, changed, piece_size) == code::invalid_param);
  changed = property;
  changed.allocationType = 1;
  CHECK(try_kind(session, changed, piece_size) == code::invalid_param);
  for (const int type : {acl::mem_location_type::unregistered, acl::mem_location_type::managed, 5, -1}) {
    changed = property;
    changed.location.type = type;
    CHECK(try_kind(session, changed, piece_size) == code::invalid_param);
    CHECK(last_reason() == Reason::bad_argument);
  }
  CHECK(handle == nullptr);
  CHECK(counters() == before);
}

TEST_CASE("R1: a handle needs a current device") {
  PhysicalSession session(-1);
  acl::aclrtDrvMemHandle handle = nullptr;
  const auto property = on_device();
  CHECK(session.acl.aclrtMallocPhysical(&handle, piece_size, &property, 0) == code::rt_context_null);
  CHECK(session.acl.aclrtFreePhysical(&handle) == code::rt_context_null);
  CHECK(last_reason() == Reason::no_context);
}

TEST_CASE("each kind of memory is accepted where the card has it") {
  PhysicalSession session;
  const std::set<int> host_kinds{attr::ddr_huge, attr::ddr_normal, attr::ddr_p2p_huge, attr::ddr_p2p_normal,
                                 attr::normal,   attr::huge,       attr::p2p_normal,   attr::p2p_huge};
  const std::set<int> device_kinds{attr::hbm_huge, attr::hbm_normal, attr::normal,
                                   attr::huge,     attr::p2p_normal, attr::p2p_huge};
  const std::set<int> giant_kinds{attr::hbm_huge_1g, attr::huge_1g};  // on a2; 17 is tried below
  for (int kind = -1; kind <= 18; ++kind) {
    if (kind == attr::p2p_huge_1g) continue;
    INFO("memAttr " << kind);
    CHECK(try_kind(session, on_host(kind), piece_size) == (host_kinds.count(kind) != 0 ? 0 : code::invalid_param));
    const bool device_has = device_kinds.count(kind) != 0 || giant_kinds.count(kind) != 0;
    const std::size_t size = giant_kinds.count(kind) != 0 ? GiB : piece_size;
    CHECK(try_kind(session, on_device(0, kind), size) == (device_has ? 0 : code::invalid_param));
    acl::aclrtPhysicalMemProp property = on_device(0, kind);
    std::size_t bytes = 0;
    CHECK(session.acl.aclrtMemGetAllocationGranularity(&property, 0, &bytes) == (device_has ? 0 : code::invalid_param));
  }
}

TEST_CASE("pages of 1 GiB are for A2 and A3, with P2P for A3 alone") {
  const auto tried = [](const char* profile, int kind) {
    ::setenv("DEVSHARE_HOST_PROFILE", profile, 1);
    PhysicalSession session;
    const acl::aclError made = try_kind(session, on_device(0, kind), GiB);
    if (made != 0) CHECK(last_reason() == Reason::unsupported);
    return made;
  };
  for (const int kind : {attr::hbm_huge_1g, attr::huge_1g}) {
    CHECK(tried("a2", kind) == 0);
    CHECK(tried("a3", kind) == 0);
    CHECK(tried("training", kind) == code::rt_feature_not_support);
    CHECK(tried("310p", kind) == code::rt_feature_not_support);
    CHECK(tried("950", kind) == code::rt_feature_not_support);
  }
  CHECK(tried("a3", attr::p2p_huge_1g) == 0);
  CHECK(tried("a2", attr::p2p_huge_1g) == code::rt_feature_not_support);
}

TEST_CASE("R36: sizes are multiples of the granularity, which is that of the kind") {
  PhysicalSession session;
  CHECK(granularity(session, on_device()) == 2 * MiB);
  CHECK(granularity(session, on_host()) == 2 * MiB);
  CHECK(granularity(session, on_device(0, attr::huge_1g)) == GiB);
  for (const std::size_t size : {std::size_t{1}, MiB, 2 * MiB - 1, 2 * MiB + 4096, 3 * MiB}) {
    CHECK(try_kind(session, on_device(), size) == code::rt_param_invalid);
    CHECK(last_reason() == Reason::bad_argument);
  }
  CHECK(try_kind(session, on_device(0, attr::huge_1g), 512 * MiB) == code::rt_param_invalid);
  CHECK(try_kind(session, on_device(), 6 * MiB) == 0);
}

TEST_CASE("B031: the granularity is the emulated card's, 64 KiB at least, whatever the machine's pages are") {
  ::setenv("DEVSHARE_HOST_HUGE_PAGE", "16M", 1);
  {
    PhysicalSession session;
    CHECK(granularity(session, on_device()) == 16 * MiB);
    CHECK(try_kind(session, on_device(), 2 * MiB) == code::rt_param_invalid);
    CHECK(try_kind(session, on_device(), 16 * MiB) == 0);
  }
  ::setenv("DEVSHARE_HOST_HUGE_PAGE", "64K", 1);
  {
    PhysicalSession session;
    CHECK(granularity(session, on_device()) == 64 * 1024);
    CHECK(granularity(session, on_host()) == 64 * 1024);
    CHECK(granularity(session, on_device(0, attr::huge_1g)) == GiB);
    CHECK(try_kind(session, on_device(), 32 * 1024) == code::rt_param_invalid);
    CHECK(try_kind(session, on_device(), 192 * 1024) == 0);
  }
  ::setenv("DEVSHARE_HOST_HUGE_PAGE", "32K", 1);
  ::setenv("DEVSHARE_HOST_NORMAL_PAGE", "16K", 1);
  PhysicalSession session;
  CHECK(granularity(session, on_device()) == 64 * 1024);
}

TEST_CASE("the question for the granularity has codes of its own") {
  PhysicalSession session;
  acl::aclrtPhysicalMemProp property = on_device();
  std::size_t bytes = 0;
  CHECK(session.acl.aclrtMemGetAllocationGranularity(nullptr, 0, &bytes) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAllocationGranularity(&property, 0, nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAllocationGranularity(&property, 0xffff, &bytes) == code::invalid_param);
  property.handleType = acl::mem_handle_type::posix;  // is not looked at
  CHECK(session.acl.aclrtMemGetAllocationGranularity(&property, 0, &bytes) == 0);
  CHECK(bytes == 2 * MiB);
}

TEST_CASE("places that are not there are refused") {
  PhysicalSession session;
  CHECK(try_kind(session, on_device(2), piece_size) == code::rt_invalid_deviceid);
  CHECK(last_reason() == Reason::no_such_device);
  CHECK(try_kind(session, on_device(UINT32_MAX), piece_size) == code::rt_invalid_deviceid);
  auto property = on_host();
  property.location.id = 1;
  CHECK(try_kind(session, property, piece_size) == code::rt_feature_not_support);
  property.location = {0, acl::mem_location_type::host_numa};
  CHECK(try_kind(session, property, piece_size) == 0);
  property.location.id = 100'000;
  CHECK(try_kind(session, property, piece_size) == code::rt_param_invalid);
}

TEST_CASE("B019: the device of a handle is the user's, its bytes are the physical device's") {
  ::setenv("ASCEND_RT_VISIBLE_DEVICES", "1", 1);
  PhysicalSession session;
  const auto handle = session.physical(piece_size, on_device(0));
  CHECK(host::bytes_in_use(0) == 0);
  CHECK(host::bytes_in_use(1) == piece_size);
  acl::aclrtPhysicalMemProp property{};
  REQUIRE(session.acl.aclrtMemGetAllocationPropertiesFromHandle(handle, &property) == 0);
  CHECK(property.location.id == 0);
  CHECK(property.location.type == acl::mem_location_type::device);
  CHECK(property.memAttr == attr::hbm_huge);
  CHECK(try_kind(session, on_device(1), piece_size) == code::rt_invalid_deviceid);
}

TEST_CASE("physical memory is the device's, and the host's is not") {
  ::setenv("DEVSHARE_HOST_CAPACITY", "8M", 1);
  PhysicalSession session;
  const Counters before = counters();
  const auto handle = session.physical(6 * MiB);
  CHECK(host::bytes_in_use(0) == 6 * MiB);
  CHECK(counters().bytes == before.bytes + 6 * MiB);
  CHECK(counters().descriptors == before.descriptors + 1);
  CHECK(counters().handles == before.handles + 1);
  CHECK(try_kind(session, on_device(), 4 * MiB) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::capacity);
  CHECK(try_kind(session, on_device(1), 8 * MiB) == 0);  // another device
  CHECK(try_kind(session, on_host(), 16 * MiB) == 0);
  CHECK(session.acl.aclrtFreePhysical(handle) == 0);
  CHECK(host::bytes_in_use(0) == 0);
  CHECK(counters() == before);
}

TEST_CASE("sizes that nothing has are refused without a wrap-around") {
  PhysicalSession session;
  const std::size_t most = SIZE_MAX / piece_size * piece_size;
  CHECK(try_kind(session, on_device(), most) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::capacity);
  CHECK(try_kind(session, on_host(), most) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::no_space);
}
