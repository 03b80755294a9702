// SPDX-License-Identifier: Apache-2.0
#include "alias.hpp"

#include <sys/mman.h>

namespace devshare::host {
namespace {

constexpr int nothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

AliasRange::~AliasRange() {
  if (std::byte* const begin = begin_.load(std::memory_order_acquire)) ::munmap(begin, bytes_);
}

std::byte* AliasRange::begin() noexcept {
  std::byte* begin = begin_.load(std::memory_order_acquire);
  if (begin != nullptr) return begin;
  void* const reserved = ::mmap(nullptr, bytes_, PROT_NONE, nothing, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  if (begin_.compare_exchange_strong(begin, static_cast<std::byte*>(reserved), std::memory_order_acq_rel)) {
    return static_cast<std::byte*>(reserved);
  }
  ::munmap(reserved, bytes_);
  return begin;
}

std::byte* AliasRange::show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable) noexcept {
  std::byte* const begin = this->begin();
  if (begin == nullptr) return nullptr;
  std::byte* const place = begin + (address - base_);
  void* const shown =
      ::mmap(place, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0);
  return shown == MAP_FAILED ? nullptr : place;
}

void AliasRange::hide(std::uintptr_t address, std::uint64_t bytes) noexcept {
  std::byte* const begin = begin_.load(std::memory_order_acquire);
  if (begin == nullptr) return;
  std::byte* const place = begin + (address - base_);
  // Where the kernel has no mapping to spare, the file stays there and cannot be touched.
  if (::mmap(place, bytes, PROT_NONE, nothing | MAP_FIXED, -1, 0) == MAP_FAILED) ::mprotect(place, bytes, PROT_NONE);
}

}  // namespace devshare::host
