// SPDX-License-Identifier: Apache-2.0
#include "window.hpp"

#include "immortal.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>

namespace devshare::host {

constinit WindowMap window_map;

namespace {

struct Candidate {
  std::uintptr_t begin;
  std::uint64_t bytes;
};

// The card's own addresses start at 16 TiB, where AddressSanitizer keeps its shadow; one TiB above is free with it,
// with valgrind and without. ThreadSanitizer leaves programs only a few narrow ranges: the second is in one. One of the
// two is granted on each kind of build, whatever the address randomisation, so numbers are equal in all processes of
// it.
constexpr Candidate candidates[] = {
    {0x1100'0000'0000, std::uint64_t{7} << 40},
    {0x7e80'0000'0000, std::uint64_t{256} << 30},
};

// Memcheck keeps a record for each 64 KiB of a mapping: 7 TiB would cost it all of a machine's memory.
constexpr Candidate under_valgrind[] = {{0x1100'0000'0000, std::uint64_t{64} << 30}};

bool on_valgrind() noexcept {
  const char* const preloaded = std::getenv("LD_PRELOAD");  // how its core gets into a program, on every platform
  return preloaded != nullptr && std::strstr(preloaded, "vgpreload") != nullptr;
}

// Sixteenths of the window: allocations, imports, reservations, host-registered.
constexpr std::array<std::uint32_t, 5> borders{0, 8, 12, 15, 16};

std::atomic<std::uint32_t>* words() noexcept { return window_map.words.load(std::memory_order_acquire); }

std::uint32_t granules(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + granule_bytes - 1) / granule_bytes);
}

std::uint64_t whole_granules(std::uint64_t bytes) noexcept { return granules(bytes) * granule_bytes; }

std::uint32_t granule_at(std::uintptr_t address) noexcept {
  return static_cast<std::uint32_t>((address - window_map.begin) / granule_bytes);
}

// The raw system call: a sanitizer's mmap judges the asked address by its own ranges, and ThreadSanitizer's ends the
// process over one it does not like.
bool reserve(const Candidate& candidate) noexcept {
  const long got = ::syscall(SYS_mmap, candidate.begin, candidate.bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == -1) return false;
  if (static_cast<std::uintptr_t>(got) == candidate.begin) return true;
  ::syscall(SYS_munmap, got, candidate.bytes);  // a kernel older than MAP_FIXED_NOREPLACE took it for a hint
  return false;
}

// The words of all parts, made when the first granule is divided. Few of them are ever touched.
constinit std::atomic<std::atomic<std::uint32_t>*> part_words{nullptr};

std::size_t part_at(std::uintptr_t address) noexcept { return (address - window_map.begin) / part_bytes; }

std::uint64_t bytes_of_part_words() noexcept { return window_map.bytes / part_bytes * sizeof(std::uint32_t); }

// Ranges of the window that hold a file now. A forked child inherits the files, and must not find its parent's bytes
// under addresses of its own.
constinit std::atomic<std::uint64_t> opened{0};

bool make_map() noexcept {
  for (const Candidate& candidate : on_valgrind() ? std::span<const Candidate>(under_valgrind) : candidates) {
    if (!reserve(candidate)) continue;
    void* const made = ::mmap(nullptr, granules(candidate.bytes) * sizeof(std::uint32_t), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED) {
      ::syscall(SYS_munmap, candidate.begin, candidate.bytes);
      return false;
    }
    ::madvise(made, granules(candidate.bytes) * sizeof(std::uint32_t), MADV_WIPEONFORK);
    window_map.begin = candidate.begin;
    window_map.bytes = candidate.bytes;
    window_map.words.store(static_cast<std::atomic<std::uint32_t>*>(made), std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

bool reserve_window() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return window_map.words.load(std::memory_order_acquire) != nullptr || make_map();
}

WindowRoom::WindowRoom() {
  const std::uint32_t sixteenth = granules(window_map.bytes) / 16;
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    parts_[part].reset(borders[part] * sixteenth, borders[part + 1] * sixteenth);
  }
}

std::uintptr_t WindowRoom::take(WindowPart part, std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes > window_map.bytes || alignment > window_map.bytes || whole_granules(bytes) > left()) return 0;
  const auto first = parts_[static_cast<std::size_t>(part)].take(granules(bytes), granules(alignment));
  if (!first) return 0;
  taken_ += whole_granules(bytes);
  return window_map.begin + *first * granule_bytes;
}

FreeRanges* WindowRoom::part_with(std::uintptr_t address, std::uint64_t bytes) noexcept {
  if (address < window_map.begin || address - window_map.begin >= window_map.bytes) return nullptr;
  const std::uint32_t sixteenth = granules(window_map.bytes) / 16;
  const std::uint32_t first = granule_at(address);
  for (std::size_t part = 0; part < parts_.size(); ++part) {
    const std::uint32_t end = borders[part + 1] * sixteenth;
    if (first < end) return bytes / granule_bytes <= end - first ? &parts_[part] : nullptr;
  }
  return nullptr;
}

bool WindowRoom::take_at(std::uintptr_t address, std::uint64_t bytes) {
  FreeRanges* const part = part_with(address, bytes);
  if (part == nullptr || whole_granules(bytes) > left()) return false;
  if (!part->take_at(granule_at(address), granules(bytes))) return false;
  taken_ += whole_granules(bytes);
  return true;
}

void WindowRoom::give_back(std::uintptr_t address, std::uint64_t bytes) {
  part_with(address, bytes)->give_back(granule_at(address), granules(bytes));
  taken_ -= whole_granules(bytes);
}

std::uint64_t WindowRoom::largest_free(WindowPart part) const noexcept {
  return std::min(parts_[static_cast<std::size_t>(part)].largest() * granule_bytes, left());
}

void set_window_words(std::uintptr_t address, std::uint64_t bytes, std::uint32_t word) noexcept {
  std::atomic<std::uint32_t>* const first = words() + granule_at(address);
  const std::uint32_t count = granules(bytes);
  for (std::uint32_t i = 0; i < count; ++i) first[i].store(word, std::memory_order_release);
}

std::uint32_t part_word(std::uintptr_t address) noexcept {
  return part_words.load(std::memory_order_acquire)[part_at(address)].load(std::memory_order_acquire);
}

std::uint64_t window_step(std::uintptr_t address) noexcept {
  const bool divided = words()[granule_at(address)].load(std::memory_order_acquire) == in_parts;
  const std::uint64_t unit = divided ? part_bytes : granule_bytes;
  return unit - (address - window_map.begin) % unit;
}

bool have_parts() noexcept {
  if (part_words.load(std::memory_order_acquire) != nullptr) return true;
  const std::uint64_t bytes = bytes_of_part_words();
  void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) return false;
  ::madvise(made, bytes, MADV_WIPEONFORK);
  std::atomic<std::uint32_t>* none = nullptr;
  if (!part_words.compare_exchange_strong(none, static_cast<std::atomic<std::uint32_t>*>(made))) ::munmap(made, bytes);
  return true;
}

void set_part_words(std::uintptr_t address, std::uint64_t bytes, std::uint32_t word) noexcept {
  std::atomic<std::uint32_t>* const parts = part_words.load(std::memory_order_acquire);
  for (std::uint64_t done = 0; done < bytes; done += part_bytes) {
    parts[part_at(address + done)].store(word, std::memory_order_release);
    words()[granule_at(address + done)].store(in_parts, std::memory_order_release);
  }
}

int open_window(std::uintptr_t address, std::uint64_t bytes, int descriptor, bool writable, bool populate) noexcept {
  // Counted first: a child forked in between shuts a range too many and none too few.
  opened.fetch_add(1, std::memory_order_relaxed);
  const long got = ::syscall(SYS_mmap, address, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                             MAP_SHARED | MAP_FIXED | (populate ? MAP_POPULATE : 0), descriptor, std::uint64_t{0});
  if (got != -1) return 0;
  const int error = errno;
  shut_window(address, bytes);  // the kernel may have taken away before it failed to give
  return error;
}

void shut_window(std::uintptr_t address, std::uint64_t bytes) noexcept {
  const long got = ::syscall(SYS_mmap, address, bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, std::uint64_t{0});
  // Where the kernel has no mapping to spare, the file stays there and cannot be touched.
  if (got == -1) ::syscall(SYS_mprotect, address, bytes, PROT_NONE);
  opened.fetch_sub(1, std::memory_order_relaxed);
}

void shut_inherited_window() noexcept {
  if (words() == nullptr || opened.exchange(0, std::memory_order_relaxed) == 0) return;
  ::syscall(SYS_mmap, window_map.begin, window_map.bytes, PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, std::uint64_t{0});
}

void wipe_window_words() noexcept {
  if (words() == nullptr) return;
  ::madvise(words(), granules(window_map.bytes) * sizeof(std::uint32_t), MADV_DONTNEED);
  if (void* const parts = part_words.load(std::memory_order_acquire)) {
    ::madvise(parts, bytes_of_part_words(), MADV_DONTNEED);
  }
}

}  // namespace devshare::host
