// SPDX-License-Identifier: Apache-2.0
// Peer access between devices of the host runtime, with the quirks of the vendor's calls.
#include "support/catch.hpp"
#include "support/host_session.hpp"

#include "host/device.hpp"

#include <string>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
namespace code = acl::code;

namespace {

std::int32_t status(const HostSession& session, std::int32_t device, std::int32_t peer) {
  std::int32_t on = -7;
  return session->aclrtDevicePeerAccessStatus(device, peer, &on) == 0 ? on : -1;
}

acl::aclError enable(const HostSession& session, std::int32_t from, std::int32_t to) {
  if (const acl::aclError failed = session->aclrtSetDevice(from)) return failed;
  return session->aclrtDeviceEnablePeerAccess(to, 0);
}

acl::aclError disable(const HostSession& session, std::int32_t from, std::int32_t to) {
  if (const acl::aclError failed = session->aclrtSetDevice(from)) return failed;
  return session->aclrtDeviceDisablePeerAccess(to);
}

}  // namespace

TEST_CASE("who can reach whom is a question of the matrix, one direction at a time") {
  HostSession session({{"PEERS", "01/00"}});
  std::int32_t can = -1;
  CHECK(session->aclrtDeviceCanAccessPeer(&can, 0, 1) == 0);
  CHECK(can == 1);
  CHECK(session->aclrtDeviceCanAccessPeer(&can, 1, 0) == 0);
  CHECK(can == 0);
  CHECK(session->aclrtDeviceCanAccessPeer(nullptr, 0, 1) == code::invalid_param);
  CHECK(session->aclrtDeviceCanAccessPeer(&can, 1, 1) == code::invalid_param);
  CHECK(session->aclrtDeviceCanAccessPeer(&can, 0, 2) == code::rt_invalid_deviceid);
  CHECK(session->aclrtDeviceCanAccessPeer(&can, -1, 0) == code::rt_invalid_deviceid);
}

TEST_CASE("enabling checks flags, context, self and range, in that order (R44)") {
  HostSession session;
  CHECK(session->aclrtDeviceEnablePeerAccess(9, 1) == code::feature_unsupported);
  CHECK(session->aclrtDeviceEnablePeerAccess(1, 0) == code::rt_context_null);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtDeviceEnablePeerAccess(0, 1) == code::feature_unsupported);
  CHECK(session->aclrtDeviceEnablePeerAccess(0, 0) == code::invalid_param);
  CHECK(session->aclrtDeviceEnablePeerAccess(2, 0) == code::rt_invalid_deviceid);
  CHECK(session->aclrtDeviceDisablePeerAccess(0) == code::invalid_param);
  CHECK(session->aclrtDeviceDisablePeerAccess(2) == code::rt_invalid_deviceid);
}

TEST_CASE("peer access works only when both directions are on (R45)") {
  HostSession session;
  CHECK(status(session, 0, 1) == 0);
  REQUIRE(enable(session, 0, 1) == 0);
  CHECK(status(session, 0, 1) == 0);
  CHECK(status(session, 1, 0) == 0);
  CHECK_FALSE(host::peer_access_effective(0, 1));
  REQUIRE(enable(session, 1, 0) == 0);
  CHECK(status(session, 0, 1) == 1);
  CHECK(status(session, 1, 0) == 1);
  CHECK(host::peer_access_effective(0, 1));
  CHECK(host::counters().peer_grants == 2);
  REQUIRE(disable(session, 0, 1) == 0);
  CHECK(status(session, 1, 0) == 0);
  REQUIRE(disable(session, 1, 0) == 0);
  CHECK(host::counters().peer_grants == 0);
}

TEST_CASE("a repeated enable counts, and a disable without one is 507899") {
  HostSession session;
  CHECK(disable(session, 0, 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::peer_access_missing);
  REQUIRE(enable(session, 1, 0) == 0);
  CHECK(disable(session, 0, 1) == code::rt_drv_internal);  // the other direction is another matter
  for (int times = 0; times < 3; ++times) REQUIRE(enable(session, 0, 1) == 0);
  for (int times = 0; times < 3; ++times) {
    CHECK(status(session, 0, 1) == 1);
    CHECK(disable(session, 0, 1) == 0);
  }
  CHECK(status(session, 0, 1) == 0);
  CHECK(disable(session, 0, 1) == code::rt_drv_internal);
}

TEST_CASE("devices without a link cannot be enabled, and the refusal names both") {
  HostSession session({{"PEERS", "00/10"}});
  CHECK(enable(session, 0, 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::peer_impossible);
  CHECK(host::last_cause().device == 0);
  CHECK(host::last_cause().peer_device == 1);
  CHECK(enable(session, 1, 0) == 0);
}

TEST_CASE("a device has at most 8 peers, 16 on 950") {
  const std::string everybody = [] {
    std::string matrix;
    for (int row = 0; row < 16; ++row) matrix += (row == 0 ? "" : "/") + std::string(16, '1');
    return matrix;
  }();
  SECTION("a2") {
    HostSession session({{"DEVICES", "16"}, {"PEERS", everybody}});
    for (std::int32_t peer = 1; peer <= 8; ++peer) REQUIRE(enable(session, 0, peer) == 0);
    CHECK(enable(session, 0, 9) == code::rt_memory_allocation);
    CHECK(HostSession::reason() == Reason::peer_access_limit);
    CHECK(enable(session, 0, 8) == 0);  // one it has already
    CHECK(enable(session, 9, 0) == 0);  // another device's own limit
    REQUIRE(disable(session, 0, 1) == 0);
    CHECK(enable(session, 0, 9) == 0);
  }
  SECTION("950") {
    HostSession session({{"DEVICES", "16"}, {"PROFILE", "950"}});
    for (std::int32_t peer = 1; peer <= 15; ++peer) CHECK(enable(session, 0, peer) == 0);
  }
}

TEST_CASE("the status call translates its first id and not its second, and says 0 when it cannot tell (R60)") {
  HostSession session({{"DEVICES", "4"}, {"ASCEND_RT_VISIBLE_DEVICES", "2,3"}});
  REQUIRE(enable(session, 0, 1) == 0);
  REQUIRE(enable(session, 1, 0) == 0);
  CHECK(host::peer_access_effective(2, 3));
  CHECK(status(session, 0, 1) == 0);  // asks about physical 2 and physical 1
  CHECK(status(session, 0, 3) == 1);  // asks about physical 2 and physical 3
  CHECK(status(session, 1, 2) == 1);
  CHECK(status(session, 0, 99) == 0);  // a success, though there is no such device
  CHECK(status(session, 0, -1) == 0);
  CHECK(status(session, 0, 2) == 0);  // with itself
  std::int32_t on = 0;
  CHECK(session->aclrtDevicePeerAccessStatus(2, 0, &on) == code::rt_invalid_deviceid);
  CHECK(session->aclrtDevicePeerAccessStatus(0, 1, nullptr) == code::invalid_param);
}

TEST_CASE("an import's flag turns both directions on, and leaves none on when it cannot") {
  SECTION("it can") {
    HostSession session;
    CHECK(host::enable_peer_access_for_import(1, 1) == 0);
    CHECK(host::counters().peer_grants == 0);
    CHECK(host::enable_peer_access_for_import(1, 0) == 0);
    CHECK(host::peer_access_effective(0, 1));
    CHECK(host::counters().peer_grants == 2);
  }
  SECTION("one direction has no link") {
    HostSession session({{"PEERS", "01/00"}});
    CHECK(host::enable_peer_access_for_import(0, 1) == code::rt_drv_internal);
    CHECK(host::last_cause().reason == Reason::peer_impossible);
    CHECK(host::counters().peer_grants == 0);
  }
}

TEST_CASE("aclFinalize gives every grant back") {
  {
    HostSession session;
    REQUIRE(enable(session, 0, 1) == 0);
    REQUIRE(enable(session, 1, 0) == 0);
  }
  HostSession session;
  CHECK(status(session, 0, 1) == 0);
  CHECK(host::counters().peer_grants == 0);
}
