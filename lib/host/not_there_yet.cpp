// SPDX-License-Identifier: Apache-2.0
// Calls of the list that this runtime does not make yet: each says so, by 207000 and its own name.
#include "calls.hpp"
#include "failure.hpp"
#include "profile.hpp"

#include <fmt/format.h>

namespace devshare::host::calls {
namespace {

aclError not_there(Entry call) {
  return refuse(code::rt_feature_not_support, Reason::unsupported,
                fmt::format("{} is not there in the host runtime", entry_name(call)));
}

}  // namespace

aclError aclrtIpcGetEventHandle(aclrtEvent, aclrtIpcEventHandle*) { return not_there(Entry::aclrtIpcGetEventHandle); }
aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle, aclrtEvent*) { return not_there(Entry::aclrtIpcOpenEventHandle); }
aclError aclrtValueWrite(void*, std::uint64_t, std::uint32_t, aclrtStream) { return not_there(Entry::aclrtValueWrite); }
aclError aclrtValueWait(void*, std::uint64_t, std::uint32_t, aclrtStream) { return not_there(Entry::aclrtValueWait); }

}  // namespace devshare::host::calls
