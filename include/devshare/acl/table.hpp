// SPDX-License-Identifier: Apache-2.0
// The function table: one pointer for each entry of the list. A null pointer is an entry the runtime does not have.
// A table is filled when its runtime is opened, and stays as it is until that is opened anew.
#pragma once

#include <devshare/acl/entries.hpp>

namespace devshare::acl {

struct Table {
#define DEVSHARE_ACL_POINTER(name, result, parameters, need, since) result(*name) parameters = nullptr;
  DEVSHARE_ACL_ENTRIES(DEVSHARE_ACL_POINTER)
#undef DEVSHARE_ACL_POINTER
};

// The entries by number, for whoever must name one (an error, a journal, an injected fault).
enum class Entry : std::uint16_t {
#define DEVSHARE_ACL_NUMBER(name, result, parameters, need, since) name,
  DEVSHARE_ACL_ENTRIES(DEVSHARE_ACL_NUMBER)
#undef DEVSHARE_ACL_NUMBER
      none
};

inline constexpr std::size_t entry_count = static_cast<std::size_t>(Entry::none);

}  // namespace devshare::acl
