// SPDX-License-Identifier: Apache-2.0
// Peer access between devices, with the quirks of the vendor's calls: a direction is enabled from the current device to
// another, counted per process, and nothing works until both directions are on (R45).
#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "ledger.hpp"
#include "profile.hpp"

#include <fmt/format.h>

namespace devshare::host {
namespace {

acl::aclError refuse_same(std::int32_t device) {
  return refuse(acl::code::invalid_param,
                Cause{.reason = Reason::bad_argument, .device = device, .peer_device = device},
                fmt::format("device {} is no peer of itself (R44)", device));
}

// One direction on, between physical devices.
acl::aclError enable(std::int32_t from, std::int32_t to) {
  if (!profile().can_reach(from, to)) {
    return refuse(
        acl::code::rt_drv_internal, Cause{.reason = Reason::peer_impossible, .device = from, .peer_device = to},
        fmt::format("physical device {} cannot reach physical device {}: they have no common link", from, to));
  }
  return ledger_grant(from, to);
}

// The current device and a peer of it by user id, checked in the vendor's order.
acl::aclError find_pair(std::int32_t peer_user, DeviceNumber* device, DeviceNumber* peer) {
  if (const acl::aclError refused = current_device(device)) return refused;
  if (device->user == peer_user) return refuse_same(peer_user);
  return find_device(peer_user, peer);
}

}  // namespace

bool peer_access_effective(std::int32_t a, std::int32_t b) {
  return a == b || (ledger_direction_on(a, b) && ledger_direction_on(b, a));
}

acl::aclError enable_peer_access_for_import(std::int32_t importer, std::int32_t owner) {
  if (importer == owner) return acl::code::success;
  if (const acl::aclError refused = enable(importer, owner)) return refused;
  if (const acl::aclError refused = enable(owner, importer)) {
    const Cause cause = last_cause();
    (void)ledger_revoke(importer, owner);
    return refuse(refused, cause,
                  fmt::format("peer access from device {} back to device {} is refused", owner, importer));
  }
  return acl::code::success;
}

namespace calls {

aclError aclrtDeviceCanAccessPeer(std::int32_t* canAccessPeer, std::int32_t deviceId, std::int32_t peerDeviceId) {
  if (canAccessPeer == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "canAccessPeer is null");
  if (deviceId == peerDeviceId) return refuse_same(deviceId);
  DeviceNumber device;
  DeviceNumber peer;
  if (const aclError refused = find_device(deviceId, &device)) return refused;
  if (const aclError refused = find_device(peerDeviceId, &peer)) return refused;
  *canAccessPeer = profile().can_reach(device.physical, peer.physical) ? 1 : 0;
  return code::success;
}

aclError aclrtDeviceEnablePeerAccess(std::int32_t peerDeviceId, std::uint32_t flags) {
  if (flags != 0) {
    return refuse(code::feature_unsupported, Reason::bad_argument, fmt::format("flags is {}, must be 0 (R44)", flags));
  }
  DeviceNumber device;
  DeviceNumber peer;
  if (const aclError refused = find_pair(peerDeviceId, &device, &peer)) return refused;
  return enable(device.physical, peer.physical);
}

aclError aclrtDeviceDisablePeerAccess(std::int32_t peerDeviceId) {
  DeviceNumber device;
  DeviceNumber peer;
  if (const aclError refused = find_pair(peerDeviceId, &device, &peer)) return refused;
  return ledger_revoke(device.physical, peer.physical);
}

// deviceId is translated and peerDeviceId is not, and a query that fails is a success that says 0: as the vendor's
// runtime has it (R60).
aclError aclrtDevicePeerAccessStatus(std::int32_t deviceId, std::int32_t peerDeviceId, std::int32_t* status) {
  if (status == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "status is null");
  DeviceNumber device;
  if (const aclError refused = find_device(deviceId, &device)) return refused;
  const std::int32_t peer = peerDeviceId;
  const bool answerable = peer >= 0 && peer < profile().device_count && peer != device.physical;
  *status = answerable && peer_access_effective(device.physical, peer) ? 1 : 0;
  return code::success;
}

}  // namespace calls
}  // namespace devshare::host
