// SPDX-License-Identifier: Apache-2.0
// The device window: the range of addresses that device pointers come from. It is reserved without access, so that a
// host that touches a device address faults as it would without the card's memory behind it.
//
// Four parts, so that one kind of address never shifts the numbers of another. Each taker gets whole granules of its
// own: an address past the end of a block is in no other block unless its granule was taken anew.
//
// A table beside the window has one word for each granule; whoever takes granules writes its number there, and finding
// it again by an address is one load. Only a reservation may hold several things in one granule, where the pages of the
// device are smaller: such a granule's word says that its parts have words of their own.
#pragma once

#include "free_ranges.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace devshare::host {

inline constexpr std::uint64_t granule_bytes = std::uint64_t{2} << 20;
inline constexpr std::uint64_t part_bytes = std::uint64_t{64} << 10;

enum class WindowPart : std::uint8_t { allocations, imports, reservations, host_registered };

// Reserves the window, once in the life of the process; a forked child keeps it, with every word 0. False when none of
// the places that work can be had. Any thread.
bool reserve_window();

// What is free in the reserved window. One per process; the lock is the owner's.
class WindowRoom {
 public:
  WindowRoom();  // everything is free

  // No more than so many bytes of it, in all parts together.
  void set_limit(std::uint64_t bytes) noexcept { limit_ = bytes; }

  // Lowest first. 0 when the part has no `bytes` in a row at this alignment, or past the limit.
  std::uintptr_t take(WindowPart part, std::uint64_t bytes, std::uint64_t alignment);
  // Exactly there; false when a part of it is taken, or is in no part, or in two.
  bool take_at(std::uintptr_t address, std::uint64_t bytes);
  void give_back(std::uintptr_t address, std::uint64_t bytes);
  std::uint64_t largest_free(WindowPart part) const noexcept;

 private:
  FreeRanges* part_with(std::uintptr_t address, std::uint64_t bytes) noexcept;
  std::uint64_t left() const noexcept { return limit_ > taken_ ? limit_ - taken_ : 0; }

  std::array<FreeRanges, 4> parts_;
  std::uint64_t limit_ = UINT64_MAX;
  std::uint64_t taken_ = 0;  // whole granules
};

// For the functions below. Written once; the words last, which are null until then.
struct alignas(32) WindowMap {
  std::uintptr_t begin = 0;
  std::uint64_t bytes = 0;
  std::atomic<std::atomic<std::uint32_t>*> words{nullptr};
};
extern constinit WindowMap window_map [[gnu::visibility("hidden")]];

// True when any byte of [address, address + bytes) is in the window: then it is a device address, whatever the caller
// takes it for (h28: by this table, never by asking the kernel).
inline bool in_window(std::uintptr_t address, std::uint64_t bytes = 1) noexcept {
  if (window_map.words.load(std::memory_order_acquire) == nullptr) return false;
  if (address >= window_map.begin) return address - window_map.begin < window_map.bytes;
  return window_map.begin - address < bytes;
}

// In a word: look at the part.
inline constexpr std::uint32_t in_parts = UINT32_MAX;
std::uint32_t part_word(std::uintptr_t address) noexcept;

// The word of the granule that `address` is in, or of its part; 0 outside the window and where nobody wrote.
inline std::uint32_t window_word(std::uintptr_t address) noexcept {
  const std::atomic<std::uint32_t>* const words = window_map.words.load(std::memory_order_acquire);
  if (words == nullptr || address - window_map.begin >= window_map.bytes) return 0;
  const std::uint32_t word = words[(address - window_map.begin) / granule_bytes].load(std::memory_order_acquire);
  return word != in_parts ? word : part_word(address);
}

// How far it is from `address` to the next that may have another word.
std::uint64_t window_step(std::uintptr_t address) noexcept;

// Writes the words of a range that was taken. It begins with a granule, and what is left of its last one is nobody's.
void set_window_words(std::uintptr_t address, std::uint64_t bytes, std::uint32_t word) noexcept;

// The same for whole parts, beside others' in the same granules: those who do so take turns. Before the first,
// have_parts() must have been true: false, with errno set, when the machine has no memory for their words.
bool have_parts() noexcept;
void set_part_words(std::uintptr_t address, std::uint64_t bytes, std::uint32_t word) noexcept;

// Shows a file at a range of the window itself, for the host to touch, with `populate` all its pages at once, and takes
// it away again. 0 or an errno.
int open_window(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable, bool populate) noexcept;
void shut_window(std::uintptr_t address, std::uint64_t bytes) noexcept;

// At the start of a session in a forked child: what its parent showed in the window is gone.
void shut_inherited_window() noexcept;

// In a forked child, for a kernel that cannot wipe pages there: every word 0.
void wipe_window_words() noexcept;

}  // namespace devshare::host
