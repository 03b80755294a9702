// SPDX-License-Identifier: Apache-2.0
// Two words that belong to one process and to no child of it: they lie on a page that the kernel hands out as zeros in
// a forked child (MADV_WIPEONFORK), also after a raw clone that runs no fork handlers. So one load tells a child from
// its parent, and no call asks for its pid.
#pragma once

#include <atomic>
#include <cstdint>

namespace devshare::host {

struct ProcessPage {
  // The lower half is the runtime's number of its session; the upper one is left to whoever runs on top of it.
  std::atomic<std::uint64_t> session{0};
  std::atomic<std::uint32_t> token{0};  // process_generation() + 1; 0: not asked for yet in this process
};

inline constinit std::atomic<ProcessPage*> made_process_page{nullptr};
ProcessPage& make_process_page() noexcept;

// One load: every call asks it several times.
inline ProcessPage& process_page() noexcept {
  ProcessPage* const made = made_process_page.load(std::memory_order_acquire);
  return made != nullptr ? *made : make_process_page();
}

// Differs between a process and its forked children, also after a raw clone: 0 in the first that asks, another number
// in each generation.
std::uint32_t new_process_generation() noexcept;
inline std::uint32_t process_generation() noexcept {
  const std::uint32_t token = process_page().token.load(std::memory_order_acquire);
  return token != 0 ? token - 1 : new_process_generation();
}

// The runtime's half becomes `number`.
void set_session(std::uint32_t number) noexcept;

// In a forked child, for a kernel that cannot wipe pages.
void wipe_process_page() noexcept;

}  // namespace devshare::host
