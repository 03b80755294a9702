// SPDX-License-Identifier: Apache-2.0
// Peer access of device pairs. Enabling is a call on the current device that names the other one, so each direction
// is one call on its own device.
#include <devshare/peer.hpp>

namespace devshare {
namespace {

Result<void> enable(const detail::RuntimeRecord& record, std::int32_t from, std::int32_t to) noexcept {
  const detail::CurrentDevice current(record, from);
  acl::aclError code = current.code();
  if (code == 0) code = record.table.aclrtDeviceEnablePeerAccess(to, 0);
  if (code == 0) return {};
  return detail::refusal(record, Operation::enable_peer_access, acl::Entry::aclrtDeviceEnablePeerAccess, code,
                         {.device = from, .peer_device = to});
}

Result<void> disable(const detail::RuntimeRecord& record, std::int32_t from, std::int32_t to) noexcept {
  const detail::CurrentDevice current(record, from);
  acl::aclError code = current.code();
  if (code == 0) code = record.table.aclrtDeviceDisablePeerAccess(to);
  if (code == 0) return {};
  return detail::refusal(record, Operation::disable_peer_access, acl::Entry::aclrtDeviceDisablePeerAccess, code,
                         {.device = from, .peer_device = to});
}

// What is common to both factories: two different devices of one live session.
Result<void> check_pair(const Device& a, const Device& b, Operation operation) noexcept {
  if (!a.session().alive()) return detail::unusable(a.session(), operation);
  if (!b.session().alive()) return detail::unusable(b.session(), operation);
  if (a == b) {
    return Error(Errc::peer_access_impossible, operation, {.device = a.number(), .peer_device = b.number()});
  }
  return {};
}

}  // namespace

Result<bool> can_access_peer(const Device& from, const Device& to) noexcept {
  DEVSHARE_CHECK(check_pair(from, to, Operation::can_access_peer));
  const detail::RuntimeRecord& record = *from.session().record;
  std::int32_t can = 0;
  const acl::aclError code = record.table.aclrtDeviceCanAccessPeer(&can, from.number(), to.number());
  if (code == 0) return can != 0;
  return detail::refusal(record, Operation::can_access_peer, acl::Entry::aclrtDeviceCanAccessPeer, code,
                         {.device = from.number(), .peer_device = to.number()});
}

Result<PeerAccess> PeerAccess::both_ways(const Device& a, const Device& b) noexcept {
  DEVSHARE_CHECK(check_pair(a, b, Operation::enable_peer_access));
  const detail::RuntimeRecord& record = *a.session().record;
  DEVSHARE_CHECK(enable(record, a.number(), b.number()));
  if (auto back = enable(record, b.number(), a.number()); !back) {
    if (auto undone = disable(record, a.number(), b.number()); !undone) {
      detail::report({DiagnosticEvent::close_failed, undone.error(), nullptr});
    }
    return back.error();
  }
  return PeerAccess(a.session(), {a.number(), b.number(), true});
}

Result<PeerAccess> PeerAccess::half(const Device& from, const Device& to) noexcept {
  DEVSHARE_CHECK(check_pair(from, to, Operation::enable_peer_access));
  DEVSHARE_CHECK(enable(*from.session().record, from.number(), to.number()));
  return PeerAccess(from.session(), {from.number(), to.number(), false});
}

Result<void, Refused<PeerAccess>> PeerAccess::close() && noexcept {
  return detail::close_or_give_back(*this, owned_, Operation::disable_peer_access);
}

// Both directions are given back even if the first refuses; the first error is the one returned, and what was refused is
// left.
Result<void> detail::PeerPolicy::close(const Session& session, Value& value) noexcept {
  auto first = disable(*session.record, value.first, value.second);
  if (!value.both) return first;
  auto second = disable(*session.record, value.second, value.first);
  if (first && !second) value = {value.second, value.first, false};
  if (!first && second) value.both = false;
  return first ? std::move(second) : std::move(first);
}

}  // namespace devshare
