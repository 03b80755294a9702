// SPDX-License-Identifier: Apache-2.0
// Memory of aclrtMallocHost. It outlives aclFinalize, since programs hold plain pointers into it; aclrtFreeHost takes
// it back after the next aclInit too.
#pragma once

namespace devshare::host {

// Around fork, as a part of the blocks module.
void host_memory_before_fork();
void host_memory_after_fork_in_parent();
void host_memory_after_fork_in_child();

}  // namespace devshare::host
