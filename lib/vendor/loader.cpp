// SPDX-License-Identifier: Apache-2.0
#include "loader.hpp"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include <dlfcn.h>

namespace devshare::vendor {
namespace {

constexpr const char* library_name = "libascendcl.so";

enum class Need : bool { required, optional };

}  // namespace

Found load(const char* path) noexcept {
  if (void* const library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL)) return {library, path, {}};
  const char* const said = ::dlerror();  // of this thread
  return {nullptr, path, said != nullptr ? said : ""};
}

Found already_loaded() noexcept {
  if (void* const library = ::dlopen(library_name, RTLD_NOW | RTLD_NOLOAD)) return {library, library_name, {}};
  return {};
}

Found installed() noexcept {
  Found nothing = load(library_name);
  if (nothing.library != nullptr) return nothing;
  static char path[512];
  for (const char* variable : {"ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH"}) {
    const char* const home = std::getenv(variable);
    if (home == nullptr || *home == '\0') continue;
    const int length = std::snprintf(path, sizeof path, "%s/lib64/%s", home, library_name);
    if (length <= 0 || static_cast<std::size_t>(length) >= sizeof path) continue;
    Found found = load(path);
    if (found.library != nullptr) return found;
    nothing.why += "; " + found.why;
  }
  return nothing;
}

bool fill(acl::Table& table, void* library, acl::Entry& missing) noexcept {
  missing = acl::Entry::none;
#define DEVSHARE_LOAD(name, result, parameters, need, since)                                     \
  table.name = reinterpret_cast<decltype(table.name)>(::dlsym(library, #name));                  \
  if (table.name == nullptr && Need::need == Need::required && missing == acl::Entry::none) {    \
    missing = acl::Entry::name;                                                                  \
  }
  DEVSHARE_ACL_ENTRIES(DEVSHARE_LOAD)
#undef DEVSHARE_LOAD
  return missing == acl::Entry::none;
}

}  // namespace devshare::vendor
