// SPDX-License-Identifier: Apache-2.0
// Whether processes in different containers can tell each other apart.
#pragma once

#include "host/peer_identity.hpp"
#include "isolation.hpp"

#include <string>

namespace devshare::test {

// Empty when an actor can be put into a container and known from outside it, else the reason in words.
inline std::string why_no_container(Isolation container) {
  if (std::string why = why_no(container); !why.empty()) return why;
  if (host::pidfd_inodes_differ()) return {};
  return "where processes are told apart by number and start time, a number holds in one container";
}

}  // namespace devshare::test
