// SPDX-License-Identifier: Apache-2.0
// What fork does to the host runtime. Each module that has a lock or a descriptor offers three functions; fork.cpp
// calls them in one fixed order: lifecycle, devices and contexts, reservations, registrations, blocks, exports, imports
// of keys and of tokens, connections, handles, ledger, streams, journal, error texts (prepare), the reverse in the
// parent, and the same order in the child.
#pragma once

namespace devshare::host {

void install_fork_handlers();  // once, in the first aclInit / aclrtSetDevice; cheap afterwards

// Each of these takes all locks of its module / releases them / releases them and empties the module for a child
// process in which the runtime does not exist. No allocation, no joining, nothing that can block in the child.
#define DEVSHARE_HOST_FORK_MODULE(name) \
  void name##_before_fork();            \
  void name##_after_fork_in_parent();   \
  void name##_after_fork_in_child()
DEVSHARE_HOST_FORK_MODULE(devices);
DEVSHARE_HOST_FORK_MODULE(reservations);
DEVSHARE_HOST_FORK_MODULE(registrations);
DEVSHARE_HOST_FORK_MODULE(blocks);
DEVSHARE_HOST_FORK_MODULE(exports);
DEVSHARE_HOST_FORK_MODULE(imports);
DEVSHARE_HOST_FORK_MODULE(token_imports);
DEVSHARE_HOST_FORK_MODULE(client);
DEVSHARE_HOST_FORK_MODULE(server);
DEVSHARE_HOST_FORK_MODULE(handles);
DEVSHARE_HOST_FORK_MODULE(ledger);
DEVSHARE_HOST_FORK_MODULE(streams);
DEVSHARE_HOST_FORK_MODULE(instrument);
DEVSHARE_HOST_FORK_MODULE(failure);
#undef DEVSHARE_HOST_FORK_MODULE

}  // namespace devshare::host
