// SPDX-License-Identifier: Apache-2.0
// The private view of a reservation: one range of the host's addresses, as long as the reservation, in which the pieces
// that somebody views lie as they lie in the reservation. So a view across pieces is contiguous, and a piece that
// nobody views costs no mapping. A piece that is the whole reservation has no neighbours to lie beside: it is mapped
// wherever the kernel likes, and no range is kept for it.
//
// The kernel maps into nothing in five sixths of the time that it takes over a reservation, so many pieces are shown in
// a room: a part of the range where nothing is reserved for that while. That is safe because of where ranges lie: each
// at a place of its own behind the window, where the kernel puts nothing of its own accord. A range that got no such
// place has no rooms. What another maps into a room by its address stays: that part of the range is lost from then on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace devshare::host {

class AliasRange {
 public:
  AliasRange(std::uintptr_t public_base, std::uint64_t bytes) noexcept : base_(public_base), bytes_(bytes) {}
  ~AliasRange();  // nobody views anything in it any more
  AliasRange(const AliasRange&) = delete;
  AliasRange& operator=(const AliasRange&) = delete;

  // For whoever is about to show a piece, until everybody can see that it is shown: one thread at a time, since showing
  // again would put a new mapping under those who use the first.
  std::unique_lock<std::mutex> alone() { return std::unique_lock(showing_); }

  // Shows the file at the place of `address`, a public one; with `populate` all its pages at once. Null with errno set
  // when the kernel gives no mapping.
  std::byte* show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable, bool populate) noexcept;

  // For showing the pieces of [address, address + bytes), none of which is shown: all of them, the last first. While it
  // lives, its owner is alone().
  class Room {
   public:
    Room(AliasRange& range, std::uintptr_t address, std::uint64_t bytes) noexcept;
    ~Room();  // what nothing was shown in is reserved again
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;

    // Shows as AliasRange does, each just before the one that was shown last.
    std::byte* show(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable, bool populate) noexcept;

   private:
    AliasRange& range_;
    std::byte* begin_ = nullptr;
    std::uint64_t empty_ = 0;  // from there on; 0: everything is reserved, as ever, or shown
  };

  // What show() returned is shown no more. In the range touching it faults, and the place stays reserved: never an
  // munmap there, since another mapping could fall into a hole that stays.
  void hide(std::byte* shown, std::uint64_t bytes) noexcept;

 private:
  std::byte* begin() noexcept;  // reserved at the first call; null with errno set
  std::uint64_t reserved_bytes() const noexcept;
  static std::byte* begin_in(std::byte* reserved) noexcept;
  bool is_lost(const std::byte* place, std::uint64_t bytes) const noexcept;
  static std::byte* show_in_nothing(std::byte* place, std::uint64_t bytes, int descriptor, bool writable,
                                    bool populate) noexcept;

  const std::uintptr_t base_;
  const std::uint64_t bytes_;
  std::atomic<std::byte*> reserved_{nullptr};
  std::mutex showing_;
  bool has_rooms_ = false;  // guarded by it

  // What could not be reserved again after a room: it may be another's, is shown only where nothing is, and is nothing
  // again when it is hidden. At most one, since there are no rooms after it. The end is written last.
  std::atomic<std::byte*> lost_begin_{nullptr};
  std::atomic<std::byte*> lost_end_{nullptr};
};

}  // namespace devshare::host
