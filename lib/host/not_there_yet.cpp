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
aclError aclrtCreateNotify(aclrtNotify*, std::uint64_t) { return not_there(Entry::aclrtCreateNotify); }
aclError aclrtDestroyNotify(aclrtNotify) { return not_there(Entry::aclrtDestroyNotify); }
aclError aclrtRecordNotify(aclrtNotify, aclrtStream) { return not_there(Entry::aclrtRecordNotify); }
aclError aclrtWaitAndResetNotify(aclrtNotify, aclrtStream, std::uint32_t) {
  return not_there(Entry::aclrtWaitAndResetNotify);
}
aclError aclrtGetNotifyId(aclrtNotify, std::uint32_t*) { return not_there(Entry::aclrtGetNotifyId); }
aclError aclrtNotifyBatchReset(aclrtNotify*, std::size_t) { return not_there(Entry::aclrtNotifyBatchReset); }
aclError aclrtNotifyGetExportKey(aclrtNotify, char*, std::size_t, std::uint64_t) {
  return not_there(Entry::aclrtNotifyGetExportKey);
}
aclError aclrtNotifySetImportPid(aclrtNotify, std::int32_t*, std::size_t) {
  return not_there(Entry::aclrtNotifySetImportPid);
}
aclError aclrtNotifySetImportPidInterServer(aclrtNotify, aclrtServerPid*, std::size_t) {
  return not_there(Entry::aclrtNotifySetImportPidInterServer);
}
aclError aclrtNotifyImportByKey(aclrtNotify*, const char*, std::uint64_t) {
  return not_there(Entry::aclrtNotifyImportByKey);
}
aclError aclrtValueWrite(void*, std::uint64_t, std::uint32_t, aclrtStream) { return not_there(Entry::aclrtValueWrite); }
aclError aclrtValueWait(void*, std::uint64_t, std::uint32_t, aclrtStream) { return not_there(Entry::aclrtValueWait); }

}  // namespace devshare::host::calls
