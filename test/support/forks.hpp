// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer (of clang 14 as of g++ 12) does not take the locks of its allocator when a process forks. A thread
// that was inside it at that moment, as each is that just begins, leaves the child a lock that nobody will open.
#pragma once

namespace devshare::test {

// Waits, in a build with AddressSanitizer, until the other threads of this process sleep; not for ever, since some
// tests fork while others are at work.
void let_threads_rest();

// Does so in every fork() from now on, after all that is taken before a fork by those who ask for it later.
void let_threads_rest_at_forks();

}  // namespace devshare::test
