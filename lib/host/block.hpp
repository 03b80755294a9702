// SPDX-License-Identifier: Apache-2.0
// Blocks: every range of device memory this process can name, its own allocations and its imports.
//
// A block's bytes are a sealed memfd. Its public address lies in the inaccessible window; copies reach the bytes
// through the descriptor (cold) or through a private view (mapped). Lookup by address is lock-free; a copy holds a pin,
// or a place in the slot of its thread, and nothing else.
#pragma once

#include "machine_pages.hpp"
#include "unique_fd.hpp"

#include <devshare/acl/types.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace devshare::host {

enum class Origin : std::uint8_t {
  allocated,   // aclrtMalloc
  imported,    // by key
  mapped,      // a piece of an address reservation, the bytes a physical memory's
  registered,  // the host's memory under an address for the device
};

// Where an imported block looks to see whether its exporter still has the memory: a slot of the exporter's control
// page that holds `expected` while it has, and the exporter's death word, whose owner-died bit the kernel sets.
// All null: nothing to watch.
struct ExporterWatch {
  const std::atomic<std::uint64_t>* slot = nullptr;
  std::uint64_t expected = 0;
  const std::atomic<std::uint32_t>* death = nullptr;

  // Of memory that nobody else could take away this is two loads.
  bool gone() const noexcept { return (slot != nullptr || death != nullptr) && gone_now(); }

 private:
  bool gone_now() const noexcept;
};

struct Block;  // defined in block_record.hpp, for the files that make, copy and free blocks
struct PhysicalMemory;
class AliasRange;

// Whose a pin is. Memory that a task in a stream has pinned is not freed: a free says so instead of waiting (R5). As a
// number, what the pin adds to the word of the block's life.
enum class Pin : std::uint64_t {
  of_call = 1,
  of_task = (std::uint64_t{1} << 32) + 1,
};

// A block that cannot go away while this object lives. Empty when the address names no live block.
class PinnedBlock {
 public:
  PinnedBlock() noexcept = default;
  explicit PinnedBlock(const void* address, Pin pin = Pin::of_call) noexcept;  // any address inside the block
  PinnedBlock(PinnedBlock&& other) noexcept : block_(std::exchange(other.block_, nullptr)), pin_(other.pin_) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    Block* const taken = std::exchange(other.block_, nullptr);
    if (block_ != nullptr) unpin();
    block_ = taken;
    pin_ = other.pin_;
    return *this;
  }
  ~PinnedBlock() {
    if (block_ != nullptr) unpin();
  }

  explicit operator bool() const noexcept { return block_ != nullptr; }
  std::uintptr_t base() const noexcept;
  std::uint64_t size() const noexcept;         // as asked for
  std::uint64_t backed() const noexcept;       // the whole pages that are there
  std::uint64_t page_size() const noexcept;    // of the emulated device
  std::int32_t device() const noexcept;        // physical: where the bytes are
  std::int32_t local_device() const noexcept;  // physical: the device an import was opened on; device() otherwise
  Origin origin() const noexcept;
  bool read_only() const noexcept;
  bool p2p() const noexcept;                  // allocated with a P2P policy (R43)
  bool sealed() const noexcept;               // false only with the fallback of a system without sealed memfds
  std::uint64_t page_bytes() const noexcept;  // of the machine's pages behind it; 0: memory that is the program's own
  bool populated() const noexcept;            // mapped with all its pages
  std::uint64_t id() const noexcept;          // unique in this process, never reused
  int descriptor() const noexcept;            // -1 for a mapped import
  bool exporter_gone() const noexcept;

  // Of a mapped piece. The memory is null and the reservation's view is null for everything else.
  const std::shared_ptr<const PhysicalMemory>& memory() const noexcept;
  const AliasRange* alias() const noexcept;  // the same for all pieces of a reservation, and for no others
  bool accessible() const noexcept;          // false after aclrtMemMapNoAccess, until aclrtMemSetAccess
  bool in_host_memory() const noexcept { return device() < 0; }

  // The private view of the whole block, made now if there is none (a kernel launch or devshare/host.hpp asks).
  // Null with a refusal recorded when it cannot be mapped or the exporter is gone.
  std::byte* view() const;
  bool may_be_viewed() const;  // false with a refusal recorded: without access, or the exporter is gone

  // For the files that include block_record.hpp.
  Block* record() const noexcept { return block_; }

 private:
  friend class EndedPins;
  void unpin() noexcept;

  Block* block_ = nullptr;
  Pin pin_ = Pin::of_call;
};

// Pins that are given up together: those of one block in one step, so that whoever pins it meanwhile has its word taken
// away once and not each time.
class EndedPins {
 public:
  EndedPins() noexcept = default;
  EndedPins(const EndedPins&) = delete;
  EndedPins& operator=(const EndedPins&) = delete;
  ~EndedPins();

  void add(PinnedBlock&& ended) noexcept;  // there may be none in it

 private:
  struct Sum {
    Block* block = nullptr;
    std::uint64_t pins = 0;
  };
  static void give_up(const Sum& sum) noexcept;

  std::array<Sum, 8> sums_;
  std::size_t next_ = 0;  // is given up when there is one more block
};

struct ImportedBytes {
  UniqueFd descriptor;
  std::uint64_t offset = 0;  // of the first byte in the descriptor
  std::uint64_t size = 0;
  std::uint64_t page_size = 0;
  std::int32_t device = -1;        // physical owner
  std::int32_t local_device = -1;  // physical importer
  bool read_only = false;
  bool sealed = true;
  std::uint64_t page_bytes = normal_page_bytes();  // of the machine
  bool populate = false;                           // maps it now, with all pages
  ExporterWatch watch;
};

// Gives an import its address in the window. The caller has checked seals and size of the descriptor.
acl::aclError adopt_import(ImportedBytes&& bytes, void** address);

// The end of an import, in two steps. It is taken out of sight, unless a task in a stream uses it (R5): false then, and
// nothing has happened. What is `retired`, if it was there, is to be ended, which waits for copies in flight.
bool retire_import(const void* address, Block** retired);
void end_retired_import(Block* retired);

// Ends an import, whatever uses it: waits for copies in flight, unmaps, closes, frees the address. Never fails for an address that
// adopt_import gave and that was not released since.
void release_import(void* address);

// When the descriptor table is full (EMFILE, or MSG_CTRUNC on a received descriptor): maps the import that was copied
// from least recently and closes its descriptor. True when a descriptor was closed, so that trying again makes sense.
bool release_cold_descriptor();

// aclInit: reserves the window and, in a forked child, forgets the parent's blocks. aclFinalize: frees every block
// that is left.
acl::aclError blocks_start();
void blocks_shut_down();

// Counters for the instrument, exact at any moment.
struct BlockCounters {
  std::uint64_t allocations = 0;
  std::uint64_t allocated_bytes = 0;
  std::uint64_t imports = 0;
  std::uint64_t views = 0;
  std::uint64_t descriptors = 0;
};
BlockCounters block_counters();

}  // namespace devshare::host
