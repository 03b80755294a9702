// SPDX-License-Identifier: Apache-2.0
// Notifies, as the rest of the runtime meets them.
#pragma once

#include "notify_record.hpp"

#include <devshare/acl/types.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace devshare::host {

std::size_t most_notifies();  // of this product

// No notify has this handle: null, destroyed, invented.
acl::aclError refuse_unknown_notify(acl::aclrtNotify notify);
// What only the creator may do (R46).
acl::aclError refuse_not_the_creator(acl::aclError code);
acl::aclError refuse_too_many_notifies();

// Another process has recorded it. Takes the lock.
void record_from_outside(NotifyBit& bit);

void notifies_shut_down();  // aclFinalize, after the streams
std::uint64_t notifies_held();

}  // namespace devshare::host
