// SPDX-License-Identifier: Apache-2.0
// The private view of a reservation: one range of the host's addresses, as long as the reservation, in which the pieces
// that somebody views lie as they lie in the reservation. So a view across pieces is contiguous, and a piece that
// nobody views costs no mapping. A piece that is the whole reservation has no neighbours to lie beside: it is mapped
// wherever the kernel likes, and no range is kept for it.
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

  // What show() returned is shown no more. In the range touching it faults: never an munmap there, since another
  // thread's mapping could fall into the hole.
  void hide(std::byte* shown, std::uint64_t bytes) noexcept;

 private:
  std::byte* begin() noexcept;  // reserved at the first call; null with errno set
  std::uint64_t reserved_bytes() const noexcept;
  static std::byte* begin_in(std::byte* reserved) noexcept;

  const std::uintptr_t base_;
  const std::uint64_t bytes_;
  std::atomic<std::byte*> reserved_{nullptr};
  std::mutex showing_;
};

}  // namespace devshare::host
