// SPDX-License-Identifier: Apache-2.0
#include "host_memory.hpp"

#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "per_process.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <unordered_set>

namespace devshare::host {
namespace {

constexpr std::size_t host_alignment = 64;

struct State : ProcessState<State> {
  std::unordered_set<void*> blocks;

  void close_inherited() noexcept {}
};

PerProcess<State> state;

}  // namespace

void host_memory_before_fork() { state.before_fork(); }
void host_memory_after_fork_in_parent() { state.after_fork_in_parent(); }
void host_memory_after_fork_in_child() { state.after_fork_in_child(); }

acl::aclError calls::aclrtMallocHost(void** hostPtr, std::size_t size) {
  if (hostPtr == nullptr || size == 0) {
    return refuse(acl::code::invalid_param, Reason::bad_argument,
                  hostPtr == nullptr ? "hostPtr is null" : "size is 0: ask for one byte at least");
  }
  DeviceNumber device;
  if (const acl::aclError code = current_device(&device)) return code;
  void* memory = nullptr;
  // Not through operator new: that would throw. Pages are not pinned; nothing here does DMA.
  if (const int error = ::posix_memalign(&memory, host_alignment, size)) {
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::no_space, .system_errno = error, .needed = size},
                  fmt::format("the host has no {} bytes for aclrtMallocHost", size));
  }
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  all.blocks.insert(memory);
  *hostPtr = memory;
  return 0;
}

acl::aclError calls::aclrtFreeHost(void* hostPtr) {
  if (hostPtr == nullptr) return refuse(acl::code::invalid_param, Reason::bad_argument, "hostPtr is null");
  DeviceNumber device;
  if (const acl::aclError code = current_device(&device)) return code;
  State& all = state.get();
  {
    const std::lock_guard lock(all.mutex);
    if (all.blocks.erase(hostPtr) == 0) {
      return refuse(acl::code::rt_param_invalid, Reason::bad_argument,
                    fmt::format("{} is not of aclrtMallocHost, or freed already", hostPtr));
    }
  }
  std::free(hostPtr);
  return 0;
}

}  // namespace devshare::host
