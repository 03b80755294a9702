// SPDX-License-Identifier: Apache-2.0
// What is in the state file: a header, a slot for each process of the machine, and a table of the memory that several
// processes hold.
//
// A slot is written by its process alone (and cleared by others once that process is gone), so a kill leaves nothing
// half done. It counts only while its process holds the lock on it: see state_file.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace devshare::host {

inline constexpr std::size_t slot_count = 1024;
inline constexpr std::size_t state_devices = 16;
inline constexpr std::size_t shared_claim_count = 65'536;

struct StateHeader {
  std::atomic<std::uint64_t> machine;     // number of layout and devices, 0 in a file that nobody has initialised
  std::atomic<std::uint32_t> high_water;  // slots from here on have never been used
  std::atomic<std::uint32_t> claims_end;  // shared claims from here on are free
  // Bytes on each device that are claimed in the table, every block once. Never too few; those of the dead and of claims
  // that were dropped stay in it until somebody adds the table up.
  std::array<std::atomic<std::uint64_t>, state_devices> shared;
};

struct alignas(64) StateSlot {
  std::atomic<std::uint64_t> generation;  // changes whenever the slot changes hands
  std::atomic<std::int32_t> pid;          // as its process sees itself; 0: free
  std::atomic<std::uint64_t> version;     // bumped before every change of `committed`
  // Bytes on each device: claimed before the memory is made (and possibly taken back), committed when it exists.
  std::array<std::atomic<std::uint64_t>, state_devices> claimed;
  std::array<std::atomic<std::uint64_t>, state_devices> committed;
  std::array<std::atomic<std::uint16_t>, state_devices> reaches;  // peer access: a bit for each device it is on to

  void clear() noexcept {
    generation.fetch_add(1);
    version.fetch_add(1);
    for (std::size_t device = 0; device < state_devices; ++device) {
      claimed[device].store(0);
      committed[device].store(0);
      reaches[device].store(0);
    }
    pid.store(0);
  }
};

// That a process holds a block which others may hold, too. Written by that process with the lock of the file held, its
// owner last; free again without the lock. It counts only while its owner has the slot.
struct SharedClaim {
  std::atomic<std::uint64_t> owner;  // 0: free; else slot + 1 and the generation of the slot, see claim_owner
  std::atomic<std::uint64_t> block;  // inode of the block's memfd: the same in every process
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> device;
};

inline constexpr unsigned claim_slot_shift = 48;
constexpr std::uint64_t claim_owner(std::size_t slot, std::uint64_t generation) noexcept {
  constexpr std::uint64_t generation_mask = (std::uint64_t{1} << claim_slot_shift) - 1;
  return (std::uint64_t{slot} + 1) << claim_slot_shift | (generation & generation_mask);
}
constexpr std::size_t claim_slot(std::uint64_t owner) noexcept {
  return static_cast<std::size_t>(owner >> claim_slot_shift) - 1;
}

inline constexpr std::size_t slots_offset = 4096;
inline constexpr std::size_t claims_offset = slots_offset + slot_count * sizeof(StateSlot);
inline constexpr std::size_t state_size = claims_offset + shared_claim_count * sizeof(SharedClaim);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint16_t>::is_always_lock_free,
              "the words are shared between processes");
static_assert(sizeof(StateHeader) <= slots_offset && sizeof(StateSlot) == 320 && sizeof(SharedClaim) == 32, "another layout needs another number");

}  // namespace devshare::host
