// SPDX-License-Identifier: Apache-2.0
// PeerAccess: two devices that may reach each other's memory, for as long as the object lives.
#pragma once

#include <devshare/detail/owned.hpp>
#include <devshare/device.hpp>

namespace devshare {

namespace detail {

struct PeerValue {
  std::int32_t first = -1;
  std::int32_t second = -1;
  bool both = false;
};

struct PeerPolicy {
  using Value = PeerValue;
  static void abandon(const Value&) noexcept {}
  static const void* identity(const Value&) noexcept { return nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, Value& value) noexcept;
};

}  // namespace detail

// Whether the topology lets the two devices reach each other at all. ACL: aclrtDeviceCanAccessPeer.
// Errors: peer_access_impossible (the same device twice), no_such_device, runtime_gone.
DEVSHARE_API Result<bool> can_access_peer(const Device& from, const Device& to) noexcept;

// One grant of peer access. The runtime counts grants per process and direction: each object is one, however many
// there are for a pair. Movable, not copyable; one thread at a time.
//
// A direction alone has no effect: the driver lets traffic pass only where both are on (R45). So both_ways() is what
// an importer wants; half() is for two processes that each enable their own side.
class DEVSHARE_CONSUMABLE [[nodiscard("peer access ends when this object ends")]] PeerAccess {
 public:
  // Errors: peer_access_impossible, peer_access_limit (8 peers of a device, 32 processes of a direction),
  // unsupported_by_runtime, no_device_context, runtime_gone. After a failure nothing is enabled.
  // ACL: aclrtDeviceEnablePeerAccess on each device.
  DEVSHARE_API static Result<PeerAccess> both_ways(const Device& a, const Device& b) noexcept;
  DEVSHARE_API static Result<PeerAccess> half(const Device& from, const Device& to) noexcept;

  // Whether this grant, by itself, lets the two devices reach each other.
  DEVSHARE_READS bool joins(const Device& a, const Device& b) const noexcept {
    const detail::PeerValue& pair = owned_.value();
    return owned_.holds() && pair.both && ((pair.first == a.number() && pair.second == b.number()) ||
                                           (pair.first == b.number() && pair.second == a.number()));
  }

  // Whether there is a grant to close: false of an object that was moved from or closed. Of two directions a close() that
  // was refused may have given one back: joins() tells.
  DEVSHARE_READS bool holds() const noexcept { return owned_.holds(); }

  // Gives the grant back. What is refused comes back inside the error.
  // Errors: closed, forked, runtime_gone, refused. ACL: aclrtDeviceDisablePeerAccess.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<PeerAccess>> close() && noexcept;
  void close() & = delete;       // write std::move(access).close(): it ends the grant
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library's own headers: no grant at all, what a mapping holds that was opened by flag; and what is left of one
  // whose session is over and told of.
  PeerAccess() noexcept = default;
  DEVSHARE_CONSUMES detail::PeerValue release() && noexcept { return owned_.release(); }

 private:
  PeerAccess(const detail::Session& session, const detail::PeerValue& value) noexcept : owned_(session, value) {}

  detail::Owned<detail::PeerPolicy> owned_;
};

}  // namespace devshare
