// SPDX-License-Identifier: Apache-2.0
#include "alias.hpp"

#include "machine_pages.hpp"
#include "window.hpp"

#include <sys/mman.h>

#include <cerrno>

namespace devshare::host {
namespace {

constexpr int nothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

constexpr int access_of(bool writable) noexcept { return writable ? PROT_READ | PROT_WRITE : PROT_READ; }

constexpr int sharing(bool populate) noexcept { return MAP_SHARED | (populate ? MAP_POPULATE : 0); }

// Where ranges are to lie: behind the window and half as long. On every kind of build that is more than 100 GiB below
// the highest place that the kernel begins to look from.
struct Area {
  std::uintptr_t begin;
  std::uint64_t bytes;
};

Area area() noexcept {
  const WindowMap& window = *window_map.load(std::memory_order_acquire);
  return {window.begin + window.bytes, window.bytes / 2};
}

bool in_area(const std::byte* place) noexcept {
  const auto [begin, bytes] = area();
  return reinterpret_cast<std::uintptr_t>(place) - begin < bytes;
}

// One place after the other, and from the start again. Null where the end is too near.
void* next_place(std::uint64_t bytes) noexcept {
  static constinit std::atomic<std::uint64_t> given{0};
  const auto [begin, size] = area();
  const std::uint64_t offset = given.fetch_add(bytes, std::memory_order_relaxed) % size;
  return bytes <= size - offset ? reinterpret_cast<void*>(begin + offset) : nullptr;
}

}  // namespace

AliasRange::~AliasRange() {
  if (std::byte* const reserved = reserved_.load(std::memory_order_acquire)) ::munmap(reserved, reserved_bytes());
}

// In whole huge pages, and one more than is shown: the kernel reserves at any page, and a piece may be in huge ones.
std::uint64_t AliasRange::reserved_bytes() const noexcept {
  return (bytes_ + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes + huge_page_bytes;
}

std::byte* AliasRange::begin_in(std::byte* reserved) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(reserved);
  return reserved + (huge_page_bytes - at % huge_page_bytes) % huge_page_bytes;
}

// The place is a wish: where another mapping is already, the kernel gives another.
std::byte* AliasRange::begin() noexcept {
  std::byte* known = reserved_.load(std::memory_order_acquire);
  if (known != nullptr) return begin_in(known);
  void* const made = ::mmap(next_place(reserved_bytes()), reserved_bytes(), PROT_NONE, nothing, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  auto* const reserved = static_cast<std::byte*>(made);
  if (reserved_.compare_exchange_strong(known, reserved, std::memory_order_acq_rel)) return begin_in(reserved);
  ::munmap(made, reserved_bytes());
  return begin_in(known);
}

std::byte* AliasRange::show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable,
                            bool populate) noexcept {
  if (bytes == bytes_ && !reserved_.load(std::memory_order_acquire)) {
    void* const shown = ::mmap(nullptr, bytes, access_of(writable), sharing(populate), descriptor, 0);
    return shown == MAP_FAILED ? nullptr : static_cast<std::byte*>(shown);
  }
  std::byte* const begin = this->begin();
  if (begin == nullptr) return nullptr;
  std::byte* const place = begin + (address - base_);
  void* const shown = ::mmap(place, bytes, access_of(writable), sharing(populate) | MAP_FIXED, descriptor, 0);
  return shown == MAP_FAILED ? nullptr : place;
}

AliasRange::Room::Room(AliasRange& range, std::uintptr_t address, std::uint64_t bytes) noexcept : range_(range) {
  std::byte* const begin = range.begin();
  if (begin == nullptr || !in_area(begin)) return;
  std::byte* const place = begin + (address - range.base_);
  if (::munmap(place, bytes) != 0) return;
  begin_ = place;
  empty_ = bytes;
}

AliasRange::Room::~Room() {
  if (empty_ == 0) return;
  const int error = errno;
  // Where the kernel has no mapping to spare, nothing is there, and nothing comes there.
  (void)::mmap(begin_, empty_, PROT_NONE, nothing | MAP_FIXED_NOREPLACE, -1, 0);
  errno = error;
}

std::byte* AliasRange::Room::show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable,
                                  bool populate) noexcept {
  if (empty_ == 0) return range_.show(address, bytes, descriptor, writable, populate);
  std::byte* const place = begin_ + empty_ - bytes;
  const int flags = sharing(populate) | MAP_FIXED_NOREPLACE;
  void* const shown = ::mmap(place, bytes, access_of(writable), flags, descriptor, 0);
  if (shown == MAP_FAILED) return nullptr;
  if (shown != place) {  // a kernel older than the flag took the place for a wish
    ::munmap(shown, bytes);
    errno = EEXIST;
    return nullptr;
  }
  empty_ -= bytes;
  return place;
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
