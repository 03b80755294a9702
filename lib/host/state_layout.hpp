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
inline constexpr std::size_t claims_stored_at_once = 128;
inline constexpr std::uint64_t state_layout_number = 2;  // of what its words mean; their sizes speak for themselves

struct StateHeader {
  std::atomic<std::uint64_t> machine;        // number of layout and devices, 0 in a file that nobody has initialised
  std::atomic<std::uint32_t> high_water;     // slots from here on have never been used
  std::atomic<std::uint32_t> claims_end;     // shared claims from here on have not been used
  std::atomic<std::uint32_t> claims_stored;  // and those from here on have no storage yet
  // Bytes on each device that are claimed in the table, every block once. Never too few; those of the dead, of claims
  // that were dropped and of blocks that several hold stay in it until somebody adds the table up.
  std::array<std::atomic<std::uint64_t>, state_devices> shared;
};

struct alignas(64) StateSlot {
  std::atomic<std::uint64_t> generation;  // changes whenever the slot changes hands
  std::atomic<std::int32_t> pid;          // as its process sees itself; 0: free
  // Grows before every change of `committed` or of a settled claim; odd during one that takes several words.
  std::atomic<std::uint64_t> version;
  // Bytes on each device: claimed before the memory is made (and possibly taken back), committed when it exists.
  std::array<std::atomic<std::uint64_t>, state_devices> claimed;
  std::array<std::atomic<std::uint64_t>, state_devices> committed;
  std::array<std::atomic<std::uint16_t>, state_devices> reaches;  // peer access: a bit for each device it is on to

  void clear() noexcept {
    generation.fetch_add(1);
    version.store((version.load() | 1) + 1);
    for (std::size_t device = 0; device < state_devices; ++device) {
      claimed[device].store(0);
      committed[device].store(0);
      reaches[device].store(0);
    }
    pid.store(0);
  }
};

// That a process holds a block which others may hold, too. It counts only while its owner has the slot.
struct SharedClaim {
  std::atomic<std::uint64_t> owner;  // 0: free; else who made it, which of his it is and how far he is: ClaimWord
  std::atomic<std::uint64_t> block;  // inode of the block's memfd: the same in every process
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> device;
};

enum class ClaimStage : std::uint8_t {
  none,
  writing,  // somebody's, with nothing in it yet
  pending,  // whoever adds up counts it; the block may turn out not to fit, or counts in its owner's slot still
  settled,  // the block is in use
};

// The word of a claim: the slot of its owner and its generation, a serial number by which two claims of one owner
// differ, and the stage. It changes at once, so a claim whose word is the same before and after was one claim
// meanwhile.
struct ClaimWord {
  static constexpr unsigned serial_shift = 2;
  static constexpr unsigned generation_shift = 31;
  static constexpr unsigned slot_shift = 53;
  static constexpr std::uint64_t generations = std::uint64_t{1} << (slot_shift - generation_shift);
  static constexpr std::uint64_t serials = std::uint64_t{1} << (generation_shift - serial_shift);

  std::uint64_t bits = 0;

  static constexpr ClaimWord of(std::size_t slot, std::uint64_t generation, std::uint64_t serial) noexcept {
    return {(std::uint64_t{slot} + 1) << slot_shift | generation % generations << generation_shift |
            serial % serials << serial_shift};
  }
  constexpr ClaimWord at(ClaimStage stage) const noexcept {
    return {(bits & ~std::uint64_t{3}) | static_cast<std::uint64_t>(stage)};
  }
  constexpr ClaimStage stage() const noexcept { return static_cast<ClaimStage>(bits & 3); }
  constexpr std::size_t slot() const noexcept { return static_cast<std::size_t>(bits >> slot_shift) - 1; }
  constexpr bool of_generation(std::uint64_t generation) const noexcept {
    return (bits >> generation_shift) % generations == generation % generations;
  }
  constexpr bool same_claim(ClaimWord other) const noexcept {
    return at(ClaimStage::none).bits == other.at(ClaimStage::none).bits;
  }
};
static_assert(ClaimWord::of(slot_count - 1, ~std::uint64_t{0}, ~std::uint64_t{0}).slot() == slot_count - 1);

inline constexpr std::size_t slots_offset = 4096;
inline constexpr std::size_t claims_offset = slots_offset + slot_count * sizeof(StateSlot);
inline constexpr std::size_t state_size = claims_offset + shared_claim_count * sizeof(SharedClaim);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint16_t>::is_always_lock_free,
              "the words are shared between processes");
static_assert(sizeof(StateHeader) <= slots_offset && sizeof(StateSlot) == 320 && sizeof(SharedClaim) == 32,
              "another layout needs another number");

}  // namespace devshare::host
