// SPDX-License-Identifier: Apache-2.0
// The bodies of the ACL calls, one function for each entry of the list, with its exact signature. They check their
// arguments in the order of the facts and do the work; the entry layer around them (entry.cpp) does what is common to
// all: fork check, injected faults, delays, journal, recent error text.
#pragma once

#include <devshare/acl/table.hpp>

namespace devshare::host::calls {

using namespace devshare::acl;  // NOLINT: the list is written in these names

#define DEVSHARE_HOST_CALL(name, result, parameters, need, since) result name parameters;
DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_CALL)
#undef DEVSHARE_HOST_CALL

}  // namespace devshare::host::calls
