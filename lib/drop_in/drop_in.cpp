// SPDX-License-Identifier: Apache-2.0
#include "drop_in.hpp"

#include "../core/drop_in.hpp"

extern "C" DEVSHARE_DROP_IN devshare::acl::aclError aclInit(const char* configPath);

const devshare::acl::Table& entries() noexcept {
  static const devshare::acl::Table& table = devshare::detail::join_as_drop_in(reinterpret_cast<const void*>(&aclInit));
  return table;
}

namespace {

// Before anybody calls: devshare's Runtime::open() may be the first to ask who is there.
[[gnu::constructor]] void join() { static_cast<void>(entries()); }

}  // namespace
