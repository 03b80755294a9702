// SPDX-License-Identifier: Apache-2.0
// Pass on what another process shared: only the process that allocated memory may export it (R12).
// reason: a key needs memory of aclrtMalloc that this process owns (R10, R12)
#include <devshare/devshare.hpp>

using namespace devshare;

auto pass_on(ImportedMapping mapping) { return export_key(std::move(mapping)); }
