// SPDX-License-Identifier: Apache-2.0
// The file in which processes share the state of their devices, and the locks on it.
//
// POSIX record locks: byte 0 is the lock of the file, held for moments; byte 1 + n is slot n's, held by its process for
// life. The kernel drops both when the process ends, however it ends, and a forked child that lives on does not keep
// them. They also fall when the process closes any descriptor of the file, so it has exactly one, here. A program
// that closes all descriptors closes that too: intact() tells.
//
// Not synchronised between threads: the ledger holds its lock.
#pragma once

#include "file_identity.hpp"
#include "state_directory.hpp"
#include "state_layout.hpp"
#include "unique_fd.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace devshare::host {

class StateFile {
 public:
  StateFile() noexcept = default;
  StateFile(StateFile&& other) noexcept;
  StateFile& operator=(StateFile&& other) noexcept;
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
  ~StateFile();

  // The file of a machine in a directory, made when missing. On failure it is not open and *refused says why, in words;
  // it says nothing when the lock could not be had in time.
  static StateFile open(StateDirectory directory, std::uint64_t machine, std::uint32_t deadline_ms,
                        std::string* refused);

  explicit operator bool() const noexcept { return mapping_ != nullptr; }

  bool intact() const noexcept;       // our descriptors are still ours
  bool named() const noexcept;        // newcomers open this same file
  void close_descriptors() noexcept;  // in a forked child: nothing but close

  bool lock(std::uint32_t deadline_ms) noexcept;  // false when its holder does not let go in time
  void unlock() noexcept;

  // With the lock held. take_slot is false when another process has it; a process may take its own slot again.
  bool slot_held_by_other(std::size_t slot) const noexcept;
  bool take_slot(std::size_t slot) noexcept;
  void drop_slot(std::size_t slot) noexcept;
  bool reserve(std::size_t slots) noexcept;  // makes sure that so many have real storage: errno says why not
  bool reserve_claims(std::size_t claims) noexcept;
  void remove() noexcept;                    // takes away the name, if it still is ours

  StateHeader& header() const noexcept { return *reinterpret_cast<StateHeader*>(mapping_); }
  StateSlot& slot(std::size_t index) const noexcept { return slots_base()[index]; }
  std::span<StateSlot> used_slots() const noexcept { return {slots_base(), header().high_water.load()}; }
  SharedClaim& claim(std::size_t index) const noexcept { return claims_base()[index]; }
  std::span<SharedClaim> used_claims() const noexcept { return {claims_base(), header().claims_end.load()}; }

 private:
  StateSlot* slots_base() const noexcept { return reinterpret_cast<StateSlot*>(mapping_ + slots_offset); }
  SharedClaim* claims_base() const noexcept { return reinterpret_cast<SharedClaim*>(mapping_ + claims_offset); }
  void swap(StateFile& other) noexcept;
  std::string initialise(std::uint64_t machine);

  UniqueFd file_;
  FileIdentity file_identity_;
  UniqueFd directory_;
  FileIdentity directory_identity_;
  std::string name_;
  std::byte* mapping_ = nullptr;
};

}  // namespace devshare::host
