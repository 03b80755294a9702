// SPDX-License-Identifier: Apache-2.0
#include "queued_end.hpp"

#include "host_memory.hpp"
#include "registration.hpp"

namespace devshare::host {

bool page_locked(const CopyEnd& end, std::uint64_t count) {
  if (end.in_block()) return true;
  const auto at = reinterpret_cast<std::uintptr_t>(end.address);
  if (const auto block = host_block_with(end.address)) {
    return count <= block->size - (at - reinterpret_cast<std::uintptr_t>(block->base));
  }
  return is_registered(end.address) && is_registered(reinterpret_cast<const void*>(at + count - 1));
}

}  // namespace devshare::host
