// SPDX-License-Identifier: Apache-2.0
#include "block.hpp"

#include "backing.hpp"
#include "block_bytes.hpp"
#include "block_lifetime.hpp"
#include "block_pool.hpp"
#include "call_gate.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "fork.hpp"
#include "host_memory.hpp"
#include "huge_pages.hpp"
#include "ledger.hpp"
#include "machine_pages.hpp"
#include "mapping_limit.hpp"
#include "page_wish.hpp"
#include "per_process.hpp"
#include "profile.hpp"
#include "window.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <mutex>
#include <thread>
#include <utility>

namespace devshare::host {
namespace {

struct State : ProcessState<State> {
  // Under the mutex, which lookups and copies never see.
  BlockPool pool;
  WindowRoom room;

  std::atomic<std::uint64_t> allocations{0};
  std::atomic<std::uint64_t> allocated_bytes{0};
  std::atomic<std::uint64_t> imports{0};

  void close_inherited() noexcept {}
};

PerProcess<State> state;

constinit std::atomic<std::uint64_t> next_id{1};

bool has_own_addresses(const Block& block) {
  return block.origin == Origin::allocated || block.origin == Origin::imported;
}

std::uint64_t whole_huge_pages(std::uint64_t bytes) {
  return (bytes + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
}

acl::aclError refuse_addresses(const State& all, WindowPart part, std::uint64_t bytes) {
  const std::uint64_t largest = all.room.largest_free(part);
  return refuse(
      acl::code::rt_memory_allocation, {.reason = Reason::address_space, .needed = bytes, .available = largest},
      fmt::format("the device window has no {} bytes in a row left, the longest free range has {}", bytes, largest));
}

// A record with an address, not yet published; null after a refusal.
Block* take_record(Origin origin, std::uint64_t backed, std::uint64_t page_size) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const WindowPart part = origin == Origin::allocated ? WindowPart::allocations : WindowPart::imports;
  const std::uintptr_t base = all.room.take(part, backed, page_size);
  Block* const block = base != 0 ? all.pool.take() : nullptr;
  if (block == nullptr) {
    if (base != 0) all.room.give_back(base, backed);
    (void)refuse_addresses(all, part, backed);
    return nullptr;
  }
  block->base = base;
  block->backed = backed;
  block->page_size = page_size;
  block->origin = origin;
  block->populated.store(false, std::memory_order_relaxed);
  block->accessible.store(true, std::memory_order_relaxed);
  block->id = next_id.fetch_add(1, std::memory_order_relaxed);
  return block;
}

// A piece of a reservation may be smaller than a granule, or begin or end inside one.
bool is_in_parts(const Block& block) {
  return block.origin == Origin::mapped && (block.base % granule_bytes != 0 || block.backed % granule_bytes != 0);
}

void set_words(const Block& block, std::uint32_t word) {
  is_in_parts(block) ? set_part_words(block.base, block.backed, word)
                     : set_window_words(block.base, block.backed, word);
}

void publish(Block& block) {
  block.plain_source = (block.origin == Origin::allocated || block.origin == Origin::imported) && block.device >= 0 &&
                       block.device == block.local_device;
  block.plain_target = block.plain_source && (block.origin == Origin::allocated || !block.read_only);
  set_words(block, block.number);
  block.life.fetch_or(Block::live_bit, std::memory_order_release);  // keeps the count: a stale lookup may be in it
}

// Takes the block out of sight. False when another thread was first.
bool retire(Block& block) {
  if ((block.life.fetch_and(~Block::live_bit, std::memory_order_seq_cst) & Block::live_bit) == 0) return false;
  set_words(block, 0);
  return true;
}

// A call that is refused after all has had a task's pin for a moment, and is no stream's.
Block::Retired retire_unless_in_stream(Block& block) {
  Block::Retired retired = block.retire_unless_queued();
  for (int tried = 0; retired == Block::Retired::in_stream && tried < 10; ++tried) {
    std::this_thread::yield();
    retired = block.retire_unless_queued();
  }
  return retired;
}

// Gives back the bytes, the address and the record of a block that nobody can find.
void discard(Block& block) {
  close_block_bytes(block);
  block.memory.reset();
  block.alias = nullptr;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  if (has_own_addresses(block)) all.room.give_back(block.base, block.backed);
  all.pool.give_back(block);
}

// Maps a block that is not published yet where its pages want that. False, with errno set, where it cannot be and must.
bool map_if_wanted(Block& block) {
  if (!block.populate && !block.needs_view()) return true;
  const std::byte* const view = map_block(block);
  if (view == nullptr) return !block.needs_view();
  block.populated.store(all_resident(view, block.size), std::memory_order_relaxed);
  return true;
}

void wait_for_users(Block& block) {
  wait_until_let_go(&block);
  for (std::uint64_t pins = block.life.load(std::memory_order_acquire); pins != 0;
       pins = block.life.load(std::memory_order_acquire)) {
    block.life.wait(pins, std::memory_order_acquire);
  }
}

// The end of a retired block that has its bytes from elsewhere: after the last copy, its address and record.
void dismantle(Block& block) {
  wait_for_users(block);
  if (block.origin == Origin::imported) forget_cold_import(block);
  discard(block);
}

void end_allocation(Block& block) {
  const std::uint64_t backed = block.backed;
  const std::int32_t device = block.device;
  const bool on_its_way = exports_block_freed(block.id);
  wait_for_users(block);
  if (on_its_way) empty_file(block.descriptor, backed);
  discard(block);
  ledger_release(device, backed);
  state.get().allocations.fetch_sub(1, std::memory_order_relaxed);
  state.get().allocated_bytes.fetch_sub(backed, std::memory_order_relaxed);
}

void end_import(Block& block) {
  dismantle(block);
  state.get().imports.fetch_sub(1, std::memory_order_relaxed);
}

acl::aclError refuse_no_memory() {
  return refuse(acl::code::rt_memory_allocation, {.reason = Reason::no_space, .system_errno = ENOMEM},
                "the machine has no memory left for another mapping");
}

acl::aclError not_an_allocation(const void* address, Reason reason, std::string_view what) {
  return refuse(acl::code::rt_param_invalid, reason, fmt::format("{} {}", address, what));
}

}  // namespace

namespace {

enum class Pages : std::uint8_t { normal, populated, huge };

acl::aclError allocate_in(Pages pages, const AllocationRequest& request, void** address) {
  const bool huge = pages == Pages::huge;
  const std::uint64_t backed = huge ? whole_huge_pages(request.backed) : request.backed;
  if (const acl::aclError code = ledger_claim(request.device, backed)) return code;
  Backing backing;
  acl::aclError code = 0;
  if (huge) {
    code = make_huge_backing(backed, &backing) ? 0 : acl::code::rt_memory_allocation;
  } else {
    code = make_backing(backed, pages == Pages::populated, &backing);
  }
  Block* const block = code == 0 ? take_record(Origin::allocated, backed, request.page_size) : nullptr;
  if (block == nullptr) {
    ledger_take_back(request.device, backed);
    return code != 0 ? code : acl::code::rt_memory_allocation;
  }
  block->size = request.size;
  block->device = request.device;
  block->local_device = request.device;
  block->read_only = request.read_only;
  block->p2p = request.p2p;
  block->sealed = backing.sealed;
  block->page_bytes = backing.page_bytes;
  block->populate = pages != Pages::normal;
  block->watch = {};
  open_block_bytes(*block, std::move(backing.descriptor), 0);
  if (!map_if_wanted(*block)) {
    code = refuse_mapping(backed, errno);
    discard(*block);
    ledger_take_back(request.device, backed);
    return code;
  }
  state.get().allocations.fetch_add(1, std::memory_order_relaxed);
  state.get().allocated_bytes.fetch_add(backed, std::memory_order_relaxed);
  ledger_commit(request.device, backed);
  *address = reinterpret_cast<void*>(block->base);
  publish(*block);
  return 0;
}

}  // namespace

// Whatever is in the way of huge pages is none of the caller's.
acl::aclError allocate_block(const AllocationRequest& request, void** address) {
  const PageWish wish = page_wish();
  if (wish.huge && allocate_in(Pages::huge, request, address) == 0) return 0;
  return allocate_in(wish.populate ? Pages::populated : Pages::normal, request, address);
}

acl::aclError free_block(void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Block* block = nullptr;
  {
    const PinnedBlock pinned(address);
    if (!pinned) {
      return not_an_allocation(address, Reason::not_device_memory,
                               in_window(at) ? "is no device memory any more: freed already, or never allocated"
                                             : "is host memory, not of aclrtMalloc");
    }
    if (pinned.origin() == Origin::imported) {
      return not_an_allocation(address, Reason::imported_memory,
                               "was imported: it ends with aclrtIpcMemClose of its key, not with aclrtFree (R23)");
    }
    if (pinned.origin() == Origin::mapped) {
      return not_an_allocation(address, Reason::mapped_memory,
                               "is mapped from a physical handle: it ends with aclrtUnmapMem, its addresses with "
                               "aclrtReleaseMemAddress and its memory with aclrtFreePhysical, not with aclrtFree");
    }
    if (pinned.origin() == Origin::registered) {
      return not_an_allocation(address, Reason::not_device_memory,
                               "is the device's address of registered host memory: aclrtHostUnregister ends it");
    }
    if (pinned.base() != at) {
      return not_an_allocation(address, Reason::not_block_start,
                               fmt::format("lies {} bytes inside the allocation at {:#x}: free that one",
                                           at - pinned.base(), pinned.base()));
    }
    block = pinned.record();
    switch (retire_unless_in_stream(*block)) {
      case Block::Retired::in_stream:
        return refuse(acl::code::rt_drv_internal, Reason::in_use,
                      fmt::format("{} is used by a task that is still in a stream: synchronise the stream first, or "
                                  "free by aclrtFreeWithDevSync (R5)",
                                  address));
      case Block::Retired::before:
        return not_an_allocation(address, Reason::not_device_memory, "is being freed by another thread");
      case Block::Retired::yes:
        set_words(*block, 0);
    }
  }
  end_allocation(*block);
  return 0;
}

acl::aclError adopt_import(ImportedBytes&& bytes, void** address) {
  Block* const block = take_record(Origin::imported, bytes.size, bytes.page_size);
  if (block == nullptr) return acl::code::rt_memory_allocation;
  block->size = bytes.size;
  block->device = bytes.device;
  block->local_device = bytes.local_device;
  block->read_only = bytes.read_only;
  block->p2p = false;
  block->sealed = bytes.sealed;
  block->page_bytes = bytes.page_bytes;
  block->populate = bytes.populate || block->needs_view();
  block->watch = bytes.watch;
  open_block_bytes(*block, std::move(bytes.descriptor), bytes.offset);
  if (!map_if_wanted(*block)) {
    const acl::aclError refused = refuse_mapping(block->backed, errno);
    discard(*block);
    return refused;
  }
  state.get().imports.fetch_add(1, std::memory_order_relaxed);
  *address = reinterpret_cast<void*>(block->base);
  const bool cold = block->view.load(std::memory_order_relaxed) == nullptr;
  publish(*block);
  if (cold) admit_cold_import(*block);
  return 0;
}

std::uintptr_t take_addresses(WindowPart part, std::uint64_t bytes, std::uint64_t alignment) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  const std::uintptr_t base = all.room.take(part, bytes, alignment);
  if (base == 0) (void)refuse_addresses(all, part, bytes);
  return base;
}

std::uintptr_t take_addresses_at(std::uintptr_t address, std::uint64_t bytes) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  if (all.room.take_at(address, bytes)) return address;
  (void)refuse(acl::code::rt_memory_allocation, {.reason = Reason::address_space, .needed = bytes},
               fmt::format("{} bytes at {:#x} are not free in the device window", bytes, address));
  return 0;
}

void give_back_addresses(std::uintptr_t address, std::uint64_t bytes) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  all.room.give_back(address, bytes);
}

acl::aclError place_block(PlacedBlock&& placed) {
  Block* block = nullptr;
  {
    State& all = state.get();
    const std::lock_guard lock(all.mutex);
    block = all.pool.take();
  }
  if (block == nullptr) return refuse_no_memory();
  block->base = placed.address;
  block->size = placed.size;
  block->backed = placed.backed;
  block->page_size = placed.page_size;
  block->origin = placed.origin;
  block->id = next_id.fetch_add(1, std::memory_order_relaxed);
  block->device = placed.device;
  block->local_device = placed.local_device;
  block->read_only = placed.read_only;
  block->p2p = placed.p2p;
  block->sealed = placed.sealed;
  block->watch = {};
  block->memory = std::move(placed.memory);
  block->alias = placed.alias;
  block->accessible.store(placed.accessible, std::memory_order_relaxed);
  block->shown = placed.shown;
  block->page_bytes = placed.page_bytes;
  block->populate = placed.populate;
  block->populated.store(placed.populated, std::memory_order_relaxed);
  block->access = placed.access;
  block->access_given = -1;
  lend_block_bytes(*block, placed.descriptor, placed.view);
  if (is_in_parts(*block) && !have_parts()) {
    discard(*block);
    return refuse_no_memory();
  }
  if (placed.view == nullptr && !map_if_wanted(*block)) {
    const acl::aclError refused = refuse_mapping(block->backed, errno);
    discard(*block);
    return refused;
  }
  publish(*block);
  return 0;
}

Removed remove_block(std::uintptr_t address, Origin origin) {
  Block* block = nullptr;
  {
    const PinnedBlock pinned(reinterpret_cast<const void*>(address));
    if (!pinned || pinned.origin() != origin || pinned.base() != address) return Removed::no_such_block;
    block = pinned.record();
    // A call that only looks at the block is waited for; a copy, which takes its time, is not.
    bool retired = block->retire_unless_used();
    for (int tried = 0; !retired && tried < 100; ++tried) {
      std::this_thread::yield();
      retired = block->retire_unless_used();
    }
    if (!retired) return Removed::in_use;
    set_words(*block, 0);
  }
  dismantle(*block);
  return Removed::yes;
}

bool retire_import(const void* address, Block** retired) {
  const PinnedBlock pinned(address);
  if (!pinned || pinned.origin() != Origin::imported) return true;
  Block* const block = pinned.record();
  switch (retire_unless_in_stream(*block)) {
    case Block::Retired::in_stream:
      return false;
    case Block::Retired::yes:
      set_words(*block, 0);
      *retired = block;
      break;
    case Block::Retired::before:
      break;
  }
  return true;
}

void end_retired_import(Block* retired) {
  if (retired != nullptr) end_import(*retired);
}

void release_import(void* address) {
  Block* block = nullptr;
  {
    const PinnedBlock pinned(address);
    if (!pinned || pinned.origin() != Origin::imported || !retire(*pinned.record())) return;
    block = pinned.record();
  }
  end_import(*block);
}

acl::aclError blocks_start() {
  if (!reserve_window()) {
    return refuse(acl::code::rt_memory_allocation, {.reason = Reason::address_space, .system_errno = errno},
                  "no address range for device memory can be reserved in this process: RLIMIT_AS is too small, or "
                  "something else lies at all places that the host runtime knows");
  }
  shut_inherited_window();
  {
    State& all = state.get();
    const std::lock_guard lock(all.mutex);
    all.room.set_limit(profile().address_space);
    named_pool.store(&all.pool, std::memory_order_release);
  }
  set_cold_import_bound();
  return 0;
}

void blocks_shut_down() {
  state.get().pool.for_each([](Block& block) {
    if (!retire(block)) return;
    if (block.origin == Origin::allocated) {
      end_allocation(block);
    } else if (block.origin == Origin::imported) {
      end_import(block);
    }
  });
}

BlockCounters block_counters() {
  const State* const all = state.existing();  // none may be possible: asked of a process that has no window
  if (all == nullptr) return {};
  const ByteCounters bytes = byte_counters();
  return {.allocations = all->allocations.load(std::memory_order_relaxed),
          .allocated_bytes = all->allocated_bytes.load(std::memory_order_relaxed),
          .imports = all->imports.load(std::memory_order_relaxed),
          .views = bytes.views,
          .descriptors = bytes.descriptors};
}

void blocks_before_fork() {
  state.before_fork();
  block_bytes_before_fork();
  host_memory_before_fork();
}

void blocks_after_fork_in_parent() {
  host_memory_after_fork_in_parent();
  block_bytes_after_fork_in_parent();
  state.after_fork_in_parent();
}

void blocks_after_fork_in_child() {
  wipe_window_words();  // from here on no address names a block
  state.after_fork_in_child();
  block_bytes_after_fork_in_child();
  host_memory_after_fork_in_child();
}

}  // namespace devshare::host
