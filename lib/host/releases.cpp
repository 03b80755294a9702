// SPDX-License-Identifier: Apache-2.0
// How the host runtime looks like an older release (DEVSHARE_HOST_INTERFACE): by the calls that there are.
#include "releases.hpp"

#include "host_runtime.hpp"
#include "profile.hpp"

namespace devshare::host {
namespace {

enum class Need : bool { required, optional };

#define DEVSHARE_HOST_CHECK(name, result, parameters, need, since)                                            \
  static_assert(first_release(acl::Entry::name) <= newest_release, "a release that is not in release_names"); \
  static_assert(Need::need == Need::optional || first_release(acl::Entry::name) == 0,                         \
                "a required entry is in every release");
DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_CHECK)
#undef DEVSHARE_HOST_CHECK

}  // namespace

acl::Table table_of_session() noexcept {
  acl::Table shown = table();
  const Release played = profile().interface;
#define DEVSHARE_HOST_HIDE(name, result, parameters, need, since) \
  if (first_release(acl::Entry::name) > played) shown.name = nullptr;
  DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_HIDE)
#undef DEVSHARE_HOST_HIDE
  return shown;
}

}  // namespace devshare::host
