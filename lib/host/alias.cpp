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

// A place for a range: behind the window, in an area half as long, which on every kind of build is more than 100 GiB
// below the lowest place that the kernel begins to look from. No place is given twice, since what is not reserved for a
// while in one range must not look free to another. Null when the area is used up.
void* next_place(std::uint64_t bytes) noexcept {
  static constinit std::atomic<std::uint64_t> given{0};
  std::uint64_t offset = given.load(std::memory_order_relaxed);
  do {
    if (bytes > window_map.bytes / 2 - offset) return nullptr;
  } while (!given.compare_exchange_weak(offset, offset + bytes, std::memory_order_relaxed));
  return reinterpret_cast<void*>(window_map.begin + window_map.bytes + offset);
}

}  // namespace

AliasRange::~AliasRange() {
  std::byte* const reserved = reserved_.load(std::memory_order_acquire);
  if (reserved == nullptr) return;
  std::byte* const end = reserved + reserved_bytes();
  std::byte* const lost_end = lost_end_.load(std::memory_order_acquire);
  if (lost_end == nullptr) {
    ::munmap(reserved, reserved_bytes());
    return;
  }
  std::byte* const lost_begin = lost_begin_.load(std::memory_order_relaxed);
  if (lost_begin != reserved) ::munmap(reserved, static_cast<std::size_t>(lost_begin - reserved));
  if (lost_end != end) ::munmap(lost_end, static_cast<std::size_t>(end - lost_end));
}

// Any byte of it.
bool AliasRange::is_lost(const std::byte* place, std::uint64_t bytes) const noexcept {
  return place < lost_end_.load(std::memory_order_acquire) &&
         place + bytes > lost_begin_.load(std::memory_order_relaxed);
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
  void* const wish = next_place(reserved_bytes());
  void* const made = ::mmap(wish, reserved_bytes(), PROT_NONE, nothing, -1, 0);
  if (made == MAP_FAILED) return nullptr;
  has_rooms_ = made == wish;
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
  if (is_lost(place, bytes)) return show_in_nothing(place, bytes, descriptor, writable, populate);
  void* const shown = ::mmap(place, bytes, access_of(writable), sharing(populate) | MAP_FIXED, descriptor, 0);
  return shown == MAP_FAILED ? nullptr : place;
}

std::byte* AliasRange::show_in_nothing(std::byte* place, std::uint64_t bytes, int descriptor, bool writable,
                                       bool populate) noexcept {
  const int flags = sharing(populate) | MAP_FIXED_NOREPLACE;
  void* const shown = ::mmap(place, bytes, access_of(writable), flags, descriptor, 0);
  if (shown == MAP_FAILED) return nullptr;
  if (shown == place) return place;
  ::munmap(shown, bytes);  // a kernel older than the flag took the place for a wish
  errno = EEXIST;
  return nullptr;
}

AliasRange::Room::Room(AliasRange& range, std::uintptr_t address, std::uint64_t bytes) noexcept : range_(range) {
  std::byte* const begin = range.begin();
  if (begin == nullptr || !range.has_rooms_) return;
  std::byte* const place = begin + (address - range.base_);
  if (::munmap(place, bytes) != 0) return;
  begin_ = place;
  empty_ = bytes;
}

AliasRange::Room::~Room() {
  if (empty_ == 0) return;
  const int error = errno;
  void* const reserved = ::mmap(begin_, empty_, PROT_NONE, nothing | MAP_FIXED_NOREPLACE, -1, 0);
  if (reserved != begin_) {
    if (reserved != MAP_FAILED) ::munmap(reserved, empty_);
    range_.has_rooms_ = false;
    range_.lost_begin_.store(begin_, std::memory_order_relaxed);
    range_.lost_end_.store(begin_ + empty_, std::memory_order_release);
  }
  errno = error;
}

std::byte* AliasRange::Room::show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable,
                                  bool populate) noexcept {
  if (empty_ == 0) return range_.show(address, bytes, descriptor, writable, populate);
  std::byte* const place = range_.show_in_nothing(begin_ + empty_ - bytes, bytes, descriptor, writable, populate);
  if (place != nullptr) empty_ -= bytes;
  return place;
}

void AliasRange::hide(std::byte* shown, std::uint64_t bytes) noexcept {
  if (!reserved_.load(std::memory_order_acquire)) {  // it was the whole reservation, and is at a place of its own
    ::munmap(shown, bytes);
    return;
  }
  if (is_lost(shown, bytes)) {
    ::munmap(shown, bytes);
    return;
  }
  // Where the kernel has no mapping to spare, the file stays there and cannot be touched.
  if (::mmap(shown, bytes, PROT_NONE, nothing | MAP_FIXED, -1, 0) == MAP_FAILED) ::mprotect(shown, bytes, PROT_NONE);
}

}  // namespace devshare::host
