// SPDX-License-Identifier: Apache-2.0
#include "runtime_state.hpp"

namespace devshare::detail {

// aclrtGetDevice first: where there is none it is refused without a text, and aclrtGetCurrentContext is not, so that
// what a program reads from aclGetRecentErrMsg afterwards would be about a question of ours.
void* current_context(const RuntimeRecord& record) noexcept {
  std::int32_t device = -1;
  void* context = nullptr;
  if (record.table.aclrtGetDevice(&device) != 0) return nullptr;
  return record.table.aclrtGetCurrentContext(&context) == 0 ? context : nullptr;
}

// A thread that has another context gets this device's for a while. A thread that has none gets the device by
// SetDevice and gives it back by ResetDevice, a pair (R3): the process keeps its own count on the device meanwhile,
// so the pair never tears anything down.
void CurrentDevice::enter(const RuntimeRecord& record, std::int32_t device) noexcept {
  void* const previous = current_context(record);
  code_ = previous != nullptr ? record.table.aclrtSetCurrentContext(device_context(record, device))
                              : record.table.aclrtSetDevice(device);
  if (code_ != 0) return;
  record_ = &record;
  previous_ = previous;
  device_ = device;
}

void CurrentDevice::leave() noexcept {
  // Nobody can be told of a failure here, and the operation it surrounded has its own result.
  if (previous_ != nullptr) {
    (void)record_->table.aclrtSetCurrentContext(previous_);
  } else {
    (void)record_->table.aclrtResetDevice(device_);
  }
}

}  // namespace devshare::detail
