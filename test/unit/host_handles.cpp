// SPDX-License-Identifier: Apache-2.0
// Handles of physical memory: what they count, when they end, and what a refused or ended one leaves.
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"

#include <sys/resource.h>

#include <array>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::test::contains;
using devshare::test::demand;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::on_device;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

acl::aclError try_kind(const PhysicalSession& session, const acl::aclrtPhysicalMemProp& property, std::size_t size) {
  acl::aclrtDrvMemHandle handle = nullptr;
  const acl::aclError made = session.acl.aclrtMallocPhysical(&handle, size, &property, 0);
  if (made == 0) REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  return made;
}

}  // namespace

TEST_CASE("R39: a handle lives as long as its counts, step by step") {
  PhysicalSession session;
  const Counters before = counters();
  std::byte* const place = session.reserve(2 * piece_size);
  const auto handle = session.physical();
  acl::aclrtDrvMemHandle again = nullptr;

  CHECK(session.acl.aclrtMemRetainAllocationHandle(place, &again) == code::rt_drv_internal);  // not mapped yet
  REQUIRE(session.acl.aclrtMapMem(place, piece_size, 0, handle, 0) == 0);
  REQUIRE(session.acl.aclrtMapMem(place + piece_size, piece_size, 0, handle, 0) == 0);
  CHECK(session.acl.aclrtMemRetainAllocationHandle(place + 4096, &again) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_reserved);
  REQUIRE(session.acl.aclrtMemRetainAllocationHandle(place, &again) == 0);
  CHECK(again == handle);
  CHECK(counters().handles == before.handles + 1);

  CHECK(session.acl.aclrtFreePhysical(handle) == 0);
  CHECK(session.acl.aclrtFreePhysical(handle) == 0);
  CHECK(session.acl.aclrtFreePhysical(handle) == code::rt_param_invalid);  // only the mappings are left
  CHECK(last_reason() == Reason::unknown_handle);
  CHECK_THAT(session.message(), contains("2 mappings still keep"));
  CHECK(host::bytes_in_use(0) == piece_size);

  // R40: what the program has given back it cannot use; an address gives it a handle again.
  acl::aclrtPhysicalMemProp property{};
  CHECK(session.acl.aclrtMemGetAllocationPropertiesFromHandle(handle, &property) == code::rt_invalid_handle);
  CHECK(session.acl.aclrtUnmapMem(place) == 0);
  REQUIRE(session.acl.aclrtMemRetainAllocationHandle(place + piece_size, &again) == 0);
  CHECK(again == handle);
  CHECK(session.acl.aclrtUnmapMem(place + piece_size) == 0);
  CHECK(host::bytes_in_use(0) == piece_size);  // the retained count
  CHECK(session.acl.aclrtFreePhysical(handle) == 0);
  CHECK(host::bytes_in_use(0) == 0);
  CHECK(session.acl.aclrtFreePhysical(handle) == code::rt_invalid_handle);
  CHECK(last_reason() == Reason::unknown_handle);
  CHECK(session.acl.aclrtReleaseMemAddress(place) == 0);
  CHECK(counters() == before);
}

TEST_CASE("R40: a handle that is gone, invented or null is refused by every call, and never used again") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  const auto gone = session.physical();
  REQUIRE(session.acl.aclrtFreePhysical(gone) == 0);
  CHECK(session.physical() != gone);
  int local = 0;
  const std::array<acl::aclrtDrvMemHandle, 3> wrong{gone, &local,
                                                    reinterpret_cast<acl::aclrtDrvMemHandle>(UINTPTR_MAX)};
  acl::aclrtPhysicalMemProp property{};
  for (const auto handle : wrong) {
    CHECK(session.acl.aclrtFreePhysical(handle) == code::rt_invalid_handle);
    CHECK(last_reason() == Reason::unknown_handle);
    CHECK_THAT(session.message(), contains("is no handle of this process"));
    CHECK(session.acl.aclrtMapMem(place, piece_size, 0, handle, 0) == code::rt_invalid_handle);
    CHECK(session.acl.aclrtMemGetAllocationPropertiesFromHandle(handle, &property) == code::rt_invalid_handle);
  }
  CHECK(session.acl.aclrtFreePhysical(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAllocationPropertiesFromHandle(nullptr, &property) == code::invalid_param);
  CHECK(session.acl.aclrtMemGetAllocationPropertiesFromHandle(gone, nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtMemRetainAllocationHandle(place, nullptr) == code::invalid_param);
  acl::aclrtDrvMemHandle retained = nullptr;
  CHECK(session.acl.aclrtMemRetainAllocationHandle(nullptr, &retained) == code::invalid_param);
}

TEST_CASE("a refused aclrtMallocPhysical leaves nothing, whatever refuses it") {
  PhysicalSession session;
  const Counters before = counters();
  host::fail(acl::Entry::aclrtMallocPhysical, 1, code::rt_memory_allocation);
  CHECK(try_kind(session, on_device(), piece_size) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::injected);
  host::clear();

  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit full{0, limit.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &full) == 0);
  const acl::aclError refused = try_kind(session, on_device(), piece_size);
  const Reason reason = last_reason();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  CHECK(refused == code::rt_memory_allocation);
  CHECK(reason == Reason::descriptor_limit);
  CHECK(counters() == before);
  CHECK(host::bytes_in_use(0) == 0);
}

TEST_CASE("the journal shows what was asked for, and what came back") {
  PhysicalSession session;
  host::record_calls(true);
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place);
  (void)try_kind(session, on_device(7), piece_size);
  acl::aclrtMemAccessDesc desc{acl::mem_access::read_write, {1, acl::mem_location_type::device}, {}};
  REQUIRE(session.acl.aclrtMemSetAccess(place, piece_size, &desc, 1) == 0);
  acl::aclrtPtrAttributes found{};
  REQUIRE(session.acl.aclrtPointerGetAttributes(place, &found) == 0);
  const std::vector<host::CallRecord> calls = host::recorded_calls();
  host::record_calls(false);
  REQUIRE(calls.size() == 7);
  CHECK_THAT(calls[0].arguments, contains(R"("size":2097152)") && contains(R"("virPtr":"0x)"));
  CHECK_THAT(calls[1].arguments,
             contains(R"("prop":{"handleType":0,"allocationType":0,"memAttr":4,"location":{"id":0,"type":1}})") &&
                 contains(R"("handle":"0x)"));
  CHECK_THAT(calls[2].arguments, contains(R"("offset":0)"));
  CHECK(calls[4].result == code::rt_invalid_deviceid);
  CHECK_THAT(calls[4].arguments, contains(R"("handle":null)") && contains(R"("location":{"id":7,"type":1})"));
  CHECK_THAT(calls[5].arguments, contains(R"("desc":{"flags":3,"location":{"id":1,"type":1}})"));
  CHECK_THAT(calls[6].arguments, contains(R"("attributes":{"location":{"id":0,"type":1},"pageSize":2097152})"));
}

TEST_CASE("aclFinalize frees every handle, mapped and retained ones too") {
  const std::size_t descriptors = devshare::test::count_descriptors();
  {
    PhysicalSession session;
    std::byte* const place = session.reserve(4 * piece_size);
    (void)session.physical();
    session.fill_in(place + piece_size);
    session.fill_in(place + 3 * piece_size);
    acl::aclrtDrvMemHandle handle = nullptr;
    REQUIRE(session.acl.aclrtMemRetainAllocationHandle(place + piece_size, &handle) == 0);
  }
  CHECK(counters() == Counters{});
  CHECK(devshare::test::count_descriptors() == descriptors);
}

TEST_CASE("R4: a forked child has none of its parent's handles, and its own from its aclInit on") {
  PhysicalSession session;
  const auto handle = session.physical();
  const auto end = in_child([&] {
    demand(session.acl.aclrtFreePhysical(handle) == code::rt_context_null, "the parent's runtime");
    PhysicalSession own;
    demand(own.start_code == 0, "aclInit in the child");
    demand(counters().handles == 0, "no handles yet");
    demand(own.acl.aclrtFreePhysical(handle) == code::rt_invalid_handle, "the parent's handle");
    demand(own.physical() != handle, "a handle of its own");
  });
  INFO(end.in_words());
  CHECK(end.good());
  CHECK(session.acl.aclrtFreePhysical(handle) == 0);
}
