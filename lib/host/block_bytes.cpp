// SPDX-License-Identifier: Apache-2.0
#include "block_bytes.hpp"

#include "alias.hpp"
#include "bulk_copy.hpp"
#include "per_process.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

namespace devshare::host {
namespace {

struct State : ProcessState<State> {
  std::vector<Block*> cold_imports;  // guarded by the mutex; few, so searched from end to end
  std::size_t cold_bound = 64;
  std::atomic<std::uint64_t> views{0};
  std::atomic<std::uint64_t> descriptors{0};

  // A child keeps its parent's descriptors until exec and its views, unreachable: closing thousands inside fork would
  // be worse, and a number may be the program's own by the time of aclInit.
  void close_inherited() noexcept {}
};

PerProcess<State> state;
constinit std::atomic<std::uint64_t> use_clock{0};

std::uint64_t cold_limit(const Block& block) noexcept {
  return std::max(cold_bytes_at_least, cold_copies_of_size * block.size);
}

// A mapping starts at a page of the host, and a block may start inside one: the bytes of the mapping before the view.
std::uint64_t bytes_before(const Block& block) noexcept { return block.file_offset % block.page_bytes; }

// As many as may be used, not all that the device has taken; in whole pages, since of huge ones no part can be
// unmapped.
std::uint64_t mapped_bytes(const Block& block) noexcept {
  return (bytes_before(block) + block.size + block.page_bytes - 1) / block.page_bytes * block.page_bytes;
}

bool use_descriptor(Block& block) noexcept {
  std::uint32_t users = block.descriptor_users.load(std::memory_order_relaxed);
  do {
    if (users == 0) return false;
  } while (!block.descriptor_users.compare_exchange_weak(users, users + 1, std::memory_order_acquire));
  return true;
}

// True when this was the last user, and so the descriptor is closed now.
bool drop_descriptor(Block& block) noexcept {
  const int descriptor = block.descriptor;  // before the drop: afterwards the record may be another block's
  const bool lent = block.descriptor_lent;
  if (block.descriptor_users.fetch_sub(1, std::memory_order_acq_rel) != 1 || lent) return false;
  ::close(descriptor);
  state.get().descriptors.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

// Wherever the kernel likes. MAP_FAILED with errno set.
void* map_file(Block& block, std::uint64_t before, bool writable) {
  return ::mmap(nullptr, mapped_bytes(block), writable ? PROT_READ | PROT_WRITE : PROT_READ,
                MAP_SHARED | (block.populate ? MAP_POPULATE : 0), block.descriptor,
                static_cast<off_t>(block.file_offset - before));
}

void unmap_file(Block& block, std::byte* view) {
  if (block.alias != nullptr) return block.alias->hide(view, block.backed);
  ::munmap(view - bytes_before(block), mapped_bytes(block));
}

bool writable(const Block& block) noexcept { return !(block.read_only && block.origin != Origin::allocated); }

// Shows a piece of a reservation in its place. Its descriptor is its memory's, and stays open as long as the piece.
std::byte* show_piece(Block& block) {
  const auto alone = block.alias->alone();
  if (std::byte* const view = block.view.load(std::memory_order_relaxed)) return view;
  std::byte* const view =
      block.alias->show(block.base, block.backed, block.descriptor, writable(block), block.populate);
  if (view == nullptr) return nullptr;
  block.view.store(view, std::memory_order_release);
  state.get().views.fetch_add(1, std::memory_order_relaxed);
  return view;
}

bool is_shown(const PinnedBlock& piece) noexcept {
  return piece.record()->view.load(std::memory_order_acquire) != nullptr;
}

// Shows pieces of which none is shown. The last first: what was made and pinned last is what the processor still has at
// hand.
bool show_pieces(AliasRange& alias, std::span<const PinnedBlock> pieces) {
  const PinnedBlock& last = pieces.back();
  AliasRange::Room room(alias, pieces.front().base(), last.base() + last.backed() - pieces.front().base());
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    Block& block = *piece->record();
    std::byte* const view = room.show(block.base, block.backed, block.descriptor, writable(block), block.populate);
    if (view == nullptr) return false;
    block.view.store(view, std::memory_order_release);
    state.get().views.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

// Maps the block; `closed` tells whether that closed its descriptor.
std::byte* map_and_tell(Block& block, bool* closed) {
  *closed = false;
  if (std::byte* const view = block.view.load(std::memory_order_acquire)) return view;
  if (block.alias != nullptr) return show_piece(block);
  if (!use_descriptor(block)) return block.view.load(std::memory_order_acquire);  // mapped meanwhile
  const std::uint64_t before = bytes_before(block);
  void* const mapped = map_file(block, before, writable(block));
  if (mapped == MAP_FAILED) {
    const int error = errno;
    drop_descriptor(block);
    errno = error;
    return nullptr;
  }
  std::byte* current = nullptr;
  auto* const view = static_cast<std::byte*>(mapped) + before;
  if (!block.view.compare_exchange_strong(current, view, std::memory_order_acq_rel)) {
    unmap_file(block, view);
    drop_descriptor(block);
    return current;
  }
  state.get().views.fetch_add(1, std::memory_order_relaxed);
  drop_descriptor(block);
  if (block.origin == Origin::imported) *closed = drop_descriptor(block);  // being open was a use of its own
  return view;
}

void set_bytes(Block& block, int descriptor, std::byte* view) noexcept {
  block.descriptor = descriptor;
  block.descriptor_lent = false;
  block.view_lent = false;
  block.descriptor_users.store(descriptor >= 0 ? 1 : 0, std::memory_order_release);
  block.view.store(view, std::memory_order_relaxed);
  block.copied.store(0, std::memory_order_relaxed);
  block.last_use.store(use_clock.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
}

// What one copy goes through: the view, or the descriptor, which then stays open for the life of this object.
class Access {
 public:
  Access(Block& block, std::uint64_t bytes) : block_(block), view_(block.view.load(std::memory_order_acquire)) {
    if (view_ != nullptr) [[likely]]
      return;
    if (block.copied.fetch_add(bytes, std::memory_order_relaxed) >= cold_limit(block)) {
      view_ = map_block(block);
      if (view_ != nullptr) return;  // else it stays cold: slower, not wrong
    }
    block.last_use.store(use_clock.fetch_add(1, std::memory_order_relaxed), std::memory_order_relaxed);
    cold_ = use_descriptor(block);
    if (!cold_) view_ = block.view.load(std::memory_order_acquire);  // mapped meanwhile
  }
  ~Access() {
    if (cold_) drop_descriptor(block_);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  std::byte* view() const noexcept { return view_; }
  int descriptor() const noexcept { return block_.descriptor; }
  std::uint64_t in_file(std::uint64_t offset) const noexcept { return block_.file_offset + offset; }

 private:
  Block& block_;
  std::byte* view_;
  bool cold_ = false;
};

// Calls `step(done)` until `count` bytes are through; it returns what pread and pwrite do.
template <class Step>
int until_done(std::uint64_t count, Step step) {
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t moved = step(done);
    if (moved > 0) {
      done += static_cast<std::uint64_t>(moved);
    } else if (moved == 0) {
      return EIO;  // the file is shorter than its block: somebody truncated an unsealed one
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int read_descriptor(int descriptor, std::uint64_t offset, void* host, std::uint64_t count) {
  return until_done(count, [&](std::uint64_t done) {
    return ::pread(descriptor, static_cast<std::byte*>(host) + done, count - done, static_cast<off_t>(offset + done));
  });
}

int write_descriptor(int descriptor, std::uint64_t offset, const void* host, std::uint64_t count) {
  return until_done(count, [&](std::uint64_t done) {
    return ::pwrite(descriptor, static_cast<const std::byte*>(host) + done, count - done,
                    static_cast<off_t>(offset + done));
  });
}

int fill_descriptor(int descriptor, std::uint64_t offset, unsigned char value, std::uint64_t count) {
  std::array<unsigned char, 32 << 10> pattern;
  std::memset(pattern.data(), value, std::min<std::uint64_t>(count, pattern.size()));
  std::array<iovec, 64> vectors;
  return until_done(count, [&](std::uint64_t done) {
    std::uint64_t left = count - done;
    int used = 0;
    for (; left > 0 && used < static_cast<int>(vectors.size()); ++used) {
      const std::uint64_t piece = std::min<std::uint64_t>(left, pattern.size());
      vectors[static_cast<std::size_t>(used)] = {pattern.data(), piece};
      left -= piece;
    }
    return ::pwritev(descriptor, vectors.data(), used, static_cast<off_t>(offset + done));
  });
}

// Both sides cold and apart: through a buffer that stays in the cache.
int move_descriptors(int to, std::uint64_t to_offset, int from, std::uint64_t from_offset, std::uint64_t count) {
  std::array<std::byte, 64 << 10> buffer;
  for (std::uint64_t done = 0; done < count;) {
    const std::uint64_t piece = std::min<std::uint64_t>(count - done, buffer.size());
    if (const int error = read_descriptor(from, from_offset + done, buffer.data(), piece)) return error;
    if (const int error = write_descriptor(to, to_offset + done, buffer.data(), piece)) return error;
    done += piece;
  }
  return 0;
}

}  // namespace

int read_block(Block& block, std::uint64_t offset, void* host, std::uint64_t count) {
  const Access access(block, count);
  if (access.view() == nullptr) return read_descriptor(access.descriptor(), access.in_file(offset), host, count);
  copy_bulk(host, access.view() + offset, count);
  return 0;
}

int write_block(Block& block, std::uint64_t offset, const void* host, std::uint64_t count) {
  const Access access(block, count);
  if (access.view() == nullptr) return write_descriptor(access.descriptor(), access.in_file(offset), host, count);
  copy_bulk(access.view() + offset, host, count);
  return 0;
}

int fill_block(Block& block, std::uint64_t offset, unsigned char value, std::uint64_t count) {
  const Access access(block, count);
  if (access.view() == nullptr) return fill_descriptor(access.descriptor(), access.in_file(offset), value, count);
  fill_bulk(access.view() + offset, value, count);
  return 0;
}

int move_block(Block& to, std::uint64_t to_offset, Block& from, std::uint64_t from_offset, std::uint64_t count) {
  if (&to == &from) {  // the ranges may overlap, which only a mapping can do
    std::byte* const view = map_block(to);
    if (view == nullptr) return errno;
    copy_bulk(view + to_offset, view + from_offset, count);
    return 0;
  }
  const Access destination(to, count);
  const Access source(from, count);
  if (source.view() != nullptr && destination.view() != nullptr) {
    copy_bulk(destination.view() + to_offset, source.view() + from_offset, count);
    return 0;
  }
  if (source.view() != nullptr) {
    return write_descriptor(destination.descriptor(), destination.in_file(to_offset), source.view() + from_offset,
                            count);
  }
  if (destination.view() != nullptr) {
    return read_descriptor(source.descriptor(), source.in_file(from_offset), destination.view() + to_offset, count);
  }
  return move_descriptors(destination.descriptor(), destination.in_file(to_offset), source.descriptor(),
                          source.in_file(from_offset), count);
}

std::byte* map_block(Block& block) {
  if (std::byte* const view = block.view.load(std::memory_order_acquire)) return view;
  bool closed = false;
  std::byte* const view = map_and_tell(block, &closed);
  if (view != nullptr && block.origin == Origin::imported) forget_cold_import(block);
  return view;
}

bool map_pieces(std::span<const PinnedBlock> pieces) {
  if (std::all_of(pieces.begin(), pieces.end(), is_shown)) return true;
  AliasRange& alias = *pieces.front().record()->alias;
  const auto alone = alias.alone();
  for (auto next = pieces.begin(); next != pieces.end();) {
    const auto hidden = std::find_if_not(next, pieces.end(), is_shown);
    const auto end = std::find_if(hidden, pieces.end(), is_shown);
    if (hidden != end && !show_pieces(alias, {hidden, end})) return false;
    next = end;
  }
  return true;
}

void open_block_bytes(Block& block, UniqueFd descriptor, std::uint64_t file_offset) noexcept {
  set_bytes(block, descriptor.release(), nullptr);
  block.file_offset = file_offset;
  state.get().descriptors.fetch_add(1, std::memory_order_relaxed);
}

void lend_block_bytes(Block& block, int descriptor, std::byte* view) noexcept {
  set_bytes(block, descriptor, view);
  block.file_offset = 0;
  block.descriptor_lent = true;
  block.view_lent = view != nullptr;
}

void admit_cold_import(Block& block) {
  State& all = state.get();
  bool full = false;
  {
    const std::lock_guard lock(all.mutex);
    all.cold_imports.push_back(&block);
    full = all.cold_imports.size() > all.cold_bound;
  }
  if (full) release_cold_descriptor();
}

void forget_cold_import(Block& block) {
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  std::erase(all.cold_imports, &block);
}

bool release_cold_descriptor() {
  State& all = state.get();
  for (;;) {
    Block* oldest = nullptr;
    {
      const std::lock_guard lock(all.mutex);
      const auto last_use = [](const Block* block) { return block->last_use.load(std::memory_order_relaxed); };
      const auto found = std::min_element(all.cold_imports.begin(), all.cold_imports.end(),
                                          [&](const Block* a, const Block* b) { return last_use(a) < last_use(b); });
      if (found == all.cold_imports.end()) return false;
      oldest = *found;
      all.cold_imports.erase(found);
      if (!oldest->pin()) continue;  // ending: its descriptor is closed anyway
    }
    bool closed = false;
    const bool mapped = map_and_tell(*oldest, &closed) != nullptr;
    if (!mapped) {  // no mapping to be had: it stays cold
      const std::lock_guard lock(all.mutex);
      all.cold_imports.push_back(oldest);
    }
    oldest->unpin();
    if (!mapped) return false;
    if (closed) return true;  // else a copy is in the middle of it, or it was mapped already: take the next
  }
}

void close_block_bytes(Block& block) {
  std::byte* const view = block.view.exchange(nullptr, std::memory_order_acq_rel);
  if (view != nullptr && !block.view_lent) {
    unmap_file(block, view);
    state.get().views.fetch_sub(1, std::memory_order_relaxed);
  }
  if (block.descriptor_users.load(std::memory_order_acquire) != 0) drop_descriptor(block);
  block.descriptor = -1;
}

void set_cold_import_bound() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  State& all = state.get();
  const std::lock_guard lock(all.mutex);
  all.cold_bound = static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 8, 1, 64));
}

ByteCounters byte_counters() {
  const State& all = state.get();
  return {all.views.load(std::memory_order_relaxed), all.descriptors.load(std::memory_order_relaxed)};
}

void block_bytes_before_fork() { state.before_fork(); }
void block_bytes_after_fork_in_parent() { state.after_fork_in_parent(); }
void block_bytes_after_fork_in_child() { state.after_fork_in_child(); }

}  // namespace devshare::host
