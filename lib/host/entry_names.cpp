// SPDX-License-Identifier: Apache-2.0
#include <devshare/instrument.hpp>

namespace devshare::host {
namespace {

constexpr const char* names[] = {
#define DEVSHARE_HOST_NAME(name, result, parameters, need, since) #name,
    DEVSHARE_ACL_ENTRIES(DEVSHARE_HOST_NAME)
#undef DEVSHARE_HOST_NAME
};

}  // namespace

std::string_view entry_name(acl::Entry entry) noexcept {
  const auto number = static_cast<std::size_t>(entry);
  return number < acl::entry_count ? names[number] : "none";
}

acl::Entry entry_by_name(std::string_view name) noexcept {
  for (std::size_t number = 0; number < acl::entry_count; ++number) {
    if (name == names[number]) return static_cast<acl::Entry>(number);
  }
  return acl::Entry::none;
}

}  // namespace devshare::host
