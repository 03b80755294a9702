// SPDX-License-Identifier: Apache-2.0
// What tests take for the host runtime's calls, when they are run again through the drop-in: its C functions.
#include "host/host_runtime.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace devshare::host {

static acl::Table entries_of(const char* path) {
  void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "no drop-in: %s\n", ::dlerror());
    std::abort();
  }
  acl::Table entries;
#define DEVSHARE_ENTRY(name, result, parameters, need, since) \
  entries.name = reinterpret_cast<decltype(entries.name)>(::dlsym(library, #name));
  DEVSHARE_ACL_ENTRIES(DEVSHARE_ENTRY)
#undef DEVSHARE_ENTRY
  return entries;
}

const acl::Table& table() noexcept {
  static const acl::Table entries = entries_of(std::getenv("DEVSHARE_TEST_RUNTIME"));
  return entries;
}

}  // namespace devshare::host
