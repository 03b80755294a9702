// SPDX-License-Identifier: Apache-2.0
// Two words that belong to one process and to no child of it: they lie on a page that the kernel hands out as zeros in
// a forked child (MADV_WIPEONFORK), also after a raw clone that runs no fork handlers. So one load tells a child from
// its parent, and no call asks for its pid.
#pragma once

#include <atomic>
#include <cstdint>

namespace devshare::host {

struct ProcessPage {
  std::atomic<std::uint32_t> session{0};
  std::atomic<std::uint32_t> token{0};  // process_generation() + 1; 0: not asked for yet in this process
};

ProcessPage& process_page() noexcept;

// In a forked child, for a kernel that cannot wipe pages.
void wipe_process_page() noexcept;

}  // namespace devshare::host
