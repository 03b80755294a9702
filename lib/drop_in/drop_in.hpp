// SPDX-License-Identifier: Apache-2.0
// The drop-in: libascendcl.so for programs that have never heard of devshare. It is nothing but names: what they do is in
// the host runtime of libdevshare, so that a process that uses both has one runtime.
#pragma once

#include <devshare/acl/table.hpp>

#include <cstddef>
#include <cstdint>

#define DEVSHARE_DROP_IN __attribute__((visibility("default")))

// The host runtime's entries.
const devshare::acl::Table& entries() noexcept;
