// SPDX-License-Identifier: Apache-2.0
#include "alias.hpp"

#include "machine_pages.hpp"

#include <sys/mman.h>

namespace devshare::host {
namespace {

constexpr int nothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

AliasRange::~AliasRange() {
  if (std::byte* const reserved = reserved_.load(std::memory_order_acquire)) ::munmap(reserved, reserved_bytes());
}

// One huge page more than is shown: the kernel reserves at any page, and a piece may be in huge ones.
std::uint64_t AliasRange::reserved_bytes() const noexcept { return bytes_ + huge_page_bytes; }

std::byte* AliasRange::begin_in(std::byte* reserved) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(reserved);
  return reserved + (huge_page_bytes - at % huge_page_bytes) % huge_page_bytes;
}

std::byte* AliasRange::begin() noexcept {
  std::byte* known = reserved_.load(std::memory_order_acquire);
  if (known != nullptr) return begin_in(known);
  void* const made = ::mmap(nullptr, reserved_bytes(), PROT_NONE, nothing, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* const reserved = static_cast<std::byte*>(made);
  if (reserved_.compare_exchange_strong(known, reserved, std::memory_order_acq_rel)) return begin_in(reserved);
  ::munmap(made, reserved_bytes());
  return begin_in(known);
}

std::byte* AliasRange::show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable,
                            bool populate) noexcept {
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const int shared = MAP_SHARED | (populate ? MAP_POPULATE : 0);
  if (bytes == bytes_ && !reserved_.load(std::memory_order_acquire)) {
    void* const shown = ::mmap(nullptr, bytes, access, shared, descriptor, 0);
    return shown == MAP_FAILED ? nullptr : static_cast<std::byte*>(shown);
  }
  std::byte* const begin = this->begin();
  if (begin == nullptr) return nullptr;
  std::byte* const place = begin + (address - base_);
  return ::mmap(place, bytes, access, shared | MAP_FIXED, descriptor, 0) == MAP_FAILED ? nullptr : place;
}

void AliasRange::hide(std::byte* shown, std::uint64_t bytes) noexcept {
  if (!reserved_.load(std::memory_order_acquire)) {  // it was the whole reservation, and is at a place of its own
    ::munmap(shown, bytes);
    return;
  }
  // Where the kernel has no mapping to spare, the file stays there and cannot be touched.
  if (::mmap(shown, bytes, PROT_NONE, nothing | MAP_FIXED, -1, 0) == MAP_FAILED) ::mprotect(shown, bytes, PROT_NONE);
}

}  // namespace devshare::host
