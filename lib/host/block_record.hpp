// SPDX-License-Identifier: Apache-2.0
// The record of a block. For the files that make, copy and free blocks; everybody else has PinnedBlock.
//
// Records never move and are used again, so a stale pointer to one is harmless: whoever looks a block up first
// pins it, or names it in the slot of its thread (copy_at_hand.cpp), and believes the record only if it is live then. A
// live record that is pinned or named does not change.
#pragma once

#include "block.hpp"
#include "machine_pages.hpp"

#include <algorithm>

namespace devshare::host {

struct Block {
  // What the block is. Written before it is published, constant until its last pin is gone and no slot names it. First
  // what every copy looks at, on one cache line.
  alignas(64) std::uintptr_t base = 0;
  std::uint64_t size = 0;    // as asked for
  std::uint64_t backed = 0;  // whole pages of the emulated device: what the ledger holds and the memfd is long
  std::atomic<std::byte*> view{nullptr};  // of its bytes: see below
  ExporterWatch watch;
  std::int32_t device = -1;
  Origin origin = Origin::allocated;
  bool read_only = false;
  // By aclrtMalloc or by key, and used on the device that has the bytes: a copy from it or to it, within its bounds,
  // asks for nothing but whether its exporter still has it.
  bool plain_source = false;
  bool plain_target = false;

  std::int32_t local_device = -1;
  std::uint32_t number = 0;       // of this record; never changes
  std::uint64_t file_offset = 0;  // of the first byte in the descriptor: 0 but for an import of an interior range
  std::uint64_t page_size = 0;    // of the emulated device
  std::uint64_t id = 0;
  bool p2p = false;
  bool sealed = true;
  std::uint64_t page_bytes = 0;  // of the machine, behind it; 0: memory that is the program's own
  bool populate = false;         // a mapping of it has all pages from the start
  std::atomic<bool> accessible{true};
  std::shared_ptr<const PhysicalMemory> memory;  // of a mapped piece
  AliasRange* alias = nullptr;                   // of its reservation, where it is shown
  std::atomic<bool> populated{false};            // it was mapped with all its pages

  // Of a mapped piece too, and guarded by the mutex of the reservations.
  bool shown = false;              // the host may touch it at `base`
  std::uint32_t access = 0;        // who may use it: bits of access_bits.hpp
  std::int32_t access_given = -1;  // the type of location that aclrtMemSetAccess named, -1: it was not called

  // Its life: the live bit, how many of the pins are those of tasks in streams, and the pins. A dying block takes no
  // new pins; whoever ends it waits for the old ones. All in one word, on a cache line of its own: it is what two
  // threads that work on the same memory take from each other.
  static constexpr std::uint64_t live_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t queued_one = std::uint64_t{1} << 32;
  alignas(64) std::atomic<std::uint64_t> life{0};

  // Its bytes: cold (descriptor only), mapped (view). A mapped import has no descriptor. The count of users lets a
  // descriptor be closed under copies that are in a system call on it: one for being open, one for each such copy.
  alignas(64) int descriptor = -1;
  bool descriptor_lent = false;  // another's: not closed, not counted
  bool view_lent = false;        // likewise
  std::atomic<std::uint32_t> descriptor_users{0};
  std::atomic<std::uint64_t> copied{0};    // bytes copied while cold
  std::atomic<std::uint64_t> last_use{0};  // of a cold import: a growing number

  bool pin(Pin pin = Pin::of_call) noexcept {
    if ((life.fetch_add(static_cast<std::uint64_t>(pin), std::memory_order_acquire) & live_bit) != 0) [[likely]]
      return true;
    unpin(pin);
    return false;
  }

  void unpin(Pin pin = Pin::of_call) noexcept { unpin(static_cast<std::uint64_t>(pin)); }
  void unpin(std::uint64_t pins) noexcept {  // a sum of them
    if (life.fetch_sub(pins, std::memory_order_acq_rel) == pins) [[unlikely]]
      life.notify_all();
  }

  // Ends its life, unless a task in a stream has a pin. Other pins are waited for by whoever ends it.
  enum class Retired : std::uint8_t { yes, in_stream, before };
  Retired retire_unless_queued() noexcept {
    std::uint64_t seen = life.load(std::memory_order_acquire);
    do {
      if ((seen & live_bit) == 0) return Retired::before;
      if ((seen & ~live_bit) >= queued_one) return Retired::in_stream;
    } while (!life.compare_exchange_weak(seen, seen & ~live_bit, std::memory_order_seq_cst, std::memory_order_acquire));
    return Retired::yes;
  }
  // Ends its life if the caller's pin is the only one; the pin stays.
  bool retire_unless_used() noexcept {
    std::uint64_t alone = live_bit | 1;
    return life.compare_exchange_strong(alone, 1, std::memory_order_seq_cst);
  }

  // Not by its descriptor: it has a view from its birth to its end.
  bool needs_view() const noexcept { return page_bytes > normal_page_bytes(); }

  bool contains(std::uintptr_t address) const noexcept { return address - base < std::max(size, backed); }
};

}  // namespace devshare::host
