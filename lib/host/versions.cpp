// SPDX-License-Identifier: Apache-2.0
// Who this runtime says it is, and the text of the last error.
#include "calls.hpp"
#include "failure.hpp"
#include "profile.hpp"

namespace devshare::host {

const char* calls::aclGetRecentErrMsg() { return take_recent_message(); }

// As the headers of the release that is played have it: 1.17 since 9.0.0, 1.16 in 8.5.0, and 1.15 in those from before
// that were found. It tells releases apart no better on a card.
acl::aclError calls::aclrtGetVersion(std::int32_t* major, std::int32_t* minor, std::int32_t* patch) {
  if (major == nullptr || minor == nullptr || patch == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument, "major, minor or patch is null");
  }
  *major = 1;
  const Release played = profile().interface;
  *minor = played >= release_by_name("9.0.0") ? 17 : played >= release_by_name("8.5.0") ? 16 : 15;
  *patch = 0;
  return 0;
}

const char* calls::aclrtGetSocName() {
  switch (profile().product) {
    case Product::a2:
      return "Ascend910B3";
    case Product::a3:
      return "Ascend910_9392";
    case Product::training:
      return "Ascend910A";
    case Product::p310:
      return "Ascend310P3";
    case Product::p950:
      return "Ascend950PR";
  }
  return nullptr;
}

}  // namespace devshare::host
