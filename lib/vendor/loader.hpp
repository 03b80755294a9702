// SPDX-License-Identifier: Apache-2.0
// Finds a libascendcl.so at run time and fills a table from it. No CANN is needed to build.
#pragma once

#include <devshare/acl/table.hpp>

#include <string>

namespace devshare::vendor {

// What was found. `library` is a dlopen handle that is never closed: an ACL runtime has threads and exit handlers of
// its own. Null: nothing was found.
struct Found {
  void* library = nullptr;
  const char* path = nullptr;  // what it was opened by; static or the caller's string
  std::string why;             // nothing was found: what the dynamic loader said, of each place it was asked for
};

Found load(const char* path) noexcept;  // exactly this file
Found already_loaded() noexcept;        // one that the process has, without loading any
Found installed() noexcept;             // by the loader's path, then where CANN installs

// Fills the table. False when a required entry is missing; `missing` names it.
bool fill(acl::Table& table, void* library, acl::Entry& missing) noexcept;

}  // namespace devshare::vendor
