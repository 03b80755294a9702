// SPDX-License-Identifier: Apache-2.0
// Admit the number that getpid() gave: in a container it is not the driver's number (R14).
// reason: only a BarePid names a process: BarePid::from_peer_message(n)
#include <devshare/devshare.hpp>

#include <unistd.h>

using namespace devshare;

Result<KeyTicket> admit_myself(SharedMemoryKey<>& key) { return key.admit(::getpid()); }
