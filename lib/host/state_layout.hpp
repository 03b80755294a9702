// SPDX-License-Identifier: Apache-2.0
// What is in the state file: a header, and a slot for each process of the machine.
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

struct StateHeader {
  std::atomic<std::uint64_t> machine;     // number of layout and devices, 0 in a file that nobody has initialised
  std::atomic<std::uint32_t> high_water;  // slots from here on have never been used
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

inline constexpr std::size_t slots_offset = 4096;
inline constexpr std::size_t state_size = slots_offset + slot_count * sizeof(StateSlot);

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint16_t>::is_always_lock_free,
              "the words are shared between processes");
static_assert(sizeof(StateHeader) <= slots_offset && sizeof(StateSlot) == 320, "another layout needs another number");

}  // namespace devshare::host
