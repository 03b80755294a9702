// SPDX-License-Identifier: Apache-2.0
// The state of the devices that all processes of a machine share: bytes in use and peer-access grants, in one small
// file, exact also after kill -9 of anyone.
//
// Each process writes a slot of its own, which counts while it lives. A claim that fits is made without a system call:
// it adds to its slot first and then sums all slots, so that of two that do not fit together at least one sees the
// other. Only one that does not fit takes the lock of the file, sweeps away the slots of the dead and decides.
//
// Physical memory that several processes hold is claimed by each of them and counted once, until the last one lets go or
// dies (shared_claims.hpp).
#pragma once

#include <devshare/acl/types.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace devshare::host {

// Claims `bytes` on a physical device for this process; 207001 (Reason::capacity) when the device is full.
// claim, create the memory, then commit; or take the claim back. Readers of the exact state count commits only.
acl::aclError ledger_claim(std::int32_t device, std::uint64_t bytes);
void ledger_commit(std::int32_t device, std::uint64_t bytes);
void ledger_take_back(std::int32_t device, std::uint64_t bytes);  // a claim that was not committed
void ledger_release(std::int32_t device, std::uint64_t bytes);    // committed bytes that are free again

// Memory that may be held by several processes, known to all of them by the inode of its memfd. ledger_share turns what
// this process has claimed and committed for it into a claim that others may join, once; ledger_hold joins, with 207001 when
// nobody holds the block any more and there is no room for it. Both: 207005 when the table is full. A process may join
// several times over; ledger_let_go answers one share or join, and is false when none is left.
acl::aclError ledger_share(std::int32_t device, std::uint64_t block, std::uint64_t bytes);
acl::aclError ledger_hold(std::int32_t device, std::uint64_t block, std::uint64_t bytes);
bool ledger_let_go(std::uint64_t block);

// Bytes in use on a device, all processes, exact.
std::uint64_t ledger_bytes_in_use(std::int32_t device);

// Peer-access counts of this process, per directed pair of physical devices.
acl::aclError ledger_grant(std::int32_t from, std::int32_t to);   // 207001 at the limits
acl::aclError ledger_revoke(std::int32_t from, std::int32_t to);  // 507899 without a grant of this process
bool ledger_direction_on(std::int32_t from, std::int32_t to);     // by any live process

// Directions this process holds on, each as often as it enabled it.
std::uint64_t ledger_grants_held();

// "machine" when the file is shared with the other processes of this user that have the same devices, "process" when
// there is none; then the note says why, and the numbers above are this process's own.
std::string_view ledger_scope();
std::string ledger_note();

void ledger_shut_down();  // aclFinalize: this process's slot is given up

}  // namespace devshare::host
