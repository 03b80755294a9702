// SPDX-License-Identifier: Apache-2.0
#include "backing_facts.hpp"

#include "block.hpp"
#include "machine_pages.hpp"
#include "physical.hpp"

#include <algorithm>
#include <cstdint>

namespace devshare::host {
namespace {

HostBacking facts(std::uint64_t page_bytes, bool populated) noexcept {
  const bool huge = page_bytes > normal_page_bytes();
  return {.pages = huge ? HostBacking::Pages::huge : HostBacking::Pages::normal,
          .populated = populated,
          .page_size = static_cast<std::size_t>(page_bytes)};
}

}  // namespace

HostBacking backing_at(const void* address, std::size_t size) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::uint64_t smallest = UINT64_MAX;
  bool populated = true;
  for (std::uint64_t done = 0; done < size;) {
    const PinnedBlock block(reinterpret_cast<const void*>(begin + done));
    if (!block || block.page_bytes() == 0) return {};
    smallest = std::min(smallest, block.page_bytes());
    populated = populated && block.populated();
    done = block.base() + std::max(block.size(), block.backed()) - begin;
  }
  return size != 0 ? facts(smallest, populated) : HostBacking{};
}

HostBacking backing_of(acl::aclrtDrvMemHandle handle) noexcept {
  const Physical memory = physical_of(handle);
  return memory != nullptr ? facts(memory->page_bytes, memory->populated) : HostBacking{};
}

}  // namespace devshare::host
