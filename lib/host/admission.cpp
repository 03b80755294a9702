// SPDX-License-Identifier: Apache-2.0
#include "admission.hpp"

namespace devshare::host {
namespace {

using detail::Reason;

Reason reason_for(Whitelist::Verdict verdict) noexcept {
  switch (verdict) {
    case Whitelist::Verdict::listed_too_early:
      return Reason::admitted_too_early;
    case Whitelist::Verdict::foreign_namespace:
      return Reason::foreign_pid_namespace;
    default:
      return Reason::not_admitted;
  }
}

}  // namespace

bool admits(const Whitelist& list, const Request& request, const Peer& peer, Reply* reply) noexcept {
  const Whitelist::Verdict verdict = list.judge(peer, request.bare_pid);
  if (verdict == Whitelist::Verdict::admitted) return true;
  reply->reason = reason_for(verdict);
  reply->pid = request.bare_pid;
  reply->listed_pid = list.any();
  reply->listed_count = static_cast<std::uint32_t>(list.size());
  return false;
}

}  // namespace devshare::host
