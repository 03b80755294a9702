// SPDX-License-Identifier: Apache-2.0
// The directory in which the processes of one user meet, and the rules for trusting one.
#pragma once

#include "unique_fd.hpp"

#include <string>

namespace devshare::host {

struct StateDirectory {
  UniqueFd descriptor;
  std::string path;
  std::string refused;  // why there is no descriptor, in words; "" when there is one
};

// `asked` is an absolute path, "none", or "" for the user's own: $XDG_RUNTIME_DIR/devshare, else
// /dev/shm/devshare-<uid>. Made with mode 0700 when missing. A directory that is a link, belongs to somebody else, or
// is open to group or others may hold what somebody else has put there: it is refused, never used, and no other is
// tried in its place, since two processes would then meet in two places.
StateDirectory open_state_directory(const std::string& asked);

}  // namespace devshare::host
