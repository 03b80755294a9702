// SPDX-License-Identifier: Apache-2.0
#include "view_place.hpp"

#include <atomic>

#include <sys/mman.h>

namespace devshare::host {
namespace {

// What a page table maps, in pages of 4 KiB.
constexpr std::uintptr_t table_bytes = std::uintptr_t{2} << 20;

// A place at the start of a table that was free when it was seen: left by a view, or below one that the kernel placed. 0:
// none is known. Never below one that was asked for, so that views do not wander through the address space.
constinit std::atomic<std::uintptr_t> free_place{0};

// Smaller ones seldom lie across two.
bool has_a_table(std::uint64_t bytes) noexcept { return bytes <= table_bytes && bytes > table_bytes / 2; }

void note_free(std::uintptr_t place) noexcept { free_place.store(place, std::memory_order_relaxed); }

}  // namespace

void* map_view(std::uint64_t bytes, int access, int flags, int descriptor, off_t offset) noexcept {
  if (!has_a_table(bytes)) return ::mmap(nullptr, bytes, access, flags, descriptor, offset);
  const std::uintptr_t wished = free_place.exchange(0, std::memory_order_relaxed);
  void* const view = ::mmap(reinterpret_cast<void*>(wished), bytes, access, flags, descriptor, offset);
  const auto place = reinterpret_cast<std::uintptr_t>(view);
  // The kernel goes down from the top: below what it chose itself nothing is, as a rule.
  if (view != MAP_FAILED && place != wished && place % table_bytes != 0 && place > table_bytes) {
    note_free((place - bytes) / table_bytes * table_bytes);
  }
  return view;
}

void unmap_view(void* view, std::uint64_t bytes) noexcept {
  ::munmap(view, bytes);
  const auto place = reinterpret_cast<std::uintptr_t>(view);
  if (has_a_table(bytes) && place % table_bytes == 0) note_free(place);
}

}  // namespace devshare::host
