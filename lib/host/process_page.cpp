// SPDX-License-Identifier: Apache-2.0
#include "process_page.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace devshare::host {
namespace {

constinit ProcessPage stand_in;  // where no page is to be had: the fork handlers wipe it
constinit std::atomic<std::uint32_t> tokens_given{0};

}  // namespace

ProcessPage& make_process_page() noexcept {
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ProcessPage* made = &stand_in;
  if (fresh != MAP_FAILED) {
    made = ::new (fresh) ProcessPage;
    ::madvise(fresh, bytes, MADV_WIPEONFORK);
  }
  ProcessPage* first = nullptr;
  if (made_process_page.compare_exchange_strong(first, made, std::memory_order_acq_rel)) return *made;
  if (fresh != MAP_FAILED) ::munmap(fresh, bytes);
  return *first;
}

// Somebody else may be changing the other half.
void set_session(std::uint32_t number) noexcept {
  std::atomic<std::uint64_t>& word = process_page().session;
  const auto before = static_cast<std::uint32_t>(word.load(std::memory_order_relaxed));
  word.fetch_add(std::uint64_t{number} - before, std::memory_order_release);
}

void wipe_process_page() noexcept {
  set_session(0);
  process_page().token.store(0, std::memory_order_relaxed);
}

std::uint32_t new_process_generation() noexcept {
  // Counted first, so that a fork in between can only leave a number out and never give one twice.
  const std::uint32_t fresh = tokens_given.fetch_add(1, std::memory_order_relaxed) + 1;
  std::uint32_t mine = 0;
  const bool first = process_page().token.compare_exchange_strong(mine, fresh, std::memory_order_acq_rel);
  return (first ? fresh : mine) - 1;
}

}  // namespace devshare::host
