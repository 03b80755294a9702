// SPDX-License-Identifier: Apache-2.0
// Who this runtime says it is, and the text of the last error.
#include "calls.hpp"
#include "failure.hpp"
#include "profile.hpp"

namespace devshare::host {

const char* calls::aclGetRecentErrMsg() { return take_recent_message(); }

// The version that CANN 9.0 and later print, whose calls these are.
acl::aclError calls::aclrtGetVersion(std::int32_t* major, std::int32_t* minor, std::int32_t* patch) {
  if (major == nullptr || minor == nullptr || patch == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument, "major, minor or patch is null");
  }
  *major = 1;
  *minor = 17;
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
