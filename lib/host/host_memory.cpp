// SPDX-License-Identifier: Apache-2.0
#include "host_memory.hpp"

#include "calls.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "per_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

namespace devshare::host {
namespace {

constexpr std::size_t host_alignment = 64;

struct Allocation {
  explicit Allocation(std::size_t bytes) noexcept : size(bytes) {}
  std::size_t size;
  TaskCount tasks;
};

struct State : ProcessState<State> {
  using Blocks = std::map<std::uintptr_t, Allocation>;
  Blocks blocks;  // by address

  // That which has the address, or end.
  Blocks::iterator with(std::uintptr_t at) {
    const auto after = blocks.upper_bound(at);
    if (after == blocks.begin()) return blocks.end();
    const auto below = std::prev(after);
    return at - below->first < below->second.size ? below : blocks.end();
  }

  void close_inherited() noexcept {}
};

PerProcess<State> state;

std::uint64_t machine_memory() {
  static const auto bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

std::optional<HostBlock> host_block_with(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.with(at);
  if (found == all.blocks.end()) return std::nullopt;
  return HostBlock{reinterpret_cast<void*>(found->first), found->second.size};
}

HostHold hold_host_block(const void* address, std::size_t count) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  HostHold hold;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const auto found = all.with(at);
  if (found != all.blocks.end() && count <= found->second.size - (at - found->first)) hold.add(found->second.tasks);
  return hold;
}

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
  // Pages are not pinned, since nothing here does DMA; but what could never be pinned is refused. Not through operator
  // new: that would throw.
  if (size > machine_memory() || ::posix_memalign(&memory, host_alignment, size) != 0) {
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::no_space, .system_errno = ENOMEM, .needed = size, .available = machine_memory()},
                  fmt::format("the host has no {} bytes for aclrtMallocHost", size));
  }
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  all.blocks.try_emplace(reinterpret_cast<std::uintptr_t>(memory), size);
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
    const auto found = all.blocks.find(reinterpret_cast<std::uintptr_t>(hostPtr));
    if (found == all.blocks.end()) {
      return refuse(acl::code::rt_param_invalid, Reason::bad_argument,
                    fmt::format("{} is not of aclrtMallocHost, or freed already", hostPtr));
    }
    if (found->second.tasks.any()) {
      return refuse(acl::code::rt_drv_internal, Reason::in_use,
                    fmt::format("a task in a stream uses the memory at {}: synchronise the stream first (R5)", hostPtr));
    }
    all.blocks.erase(found);
  }
  std::free(hostPtr);
  return 0;
}

}  // namespace devshare::host
