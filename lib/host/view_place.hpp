// SPDX-License-Identifier: Apache-2.0
// Where views go in the program's address space. One that fits into a page table goes where a page table starts, if such a
// place is known: left to the kernel it would lie across two, and to make, clear and free one costs more than the mapping
// itself (25 us of 64, for 2 MiB of which both ends are touched). Larger ones have two ends in two tables in any case, and
// the kernel's place for them is better: below another mapping, whose table they share.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace devshare::host {

// As mmap and munmap, for views. Which place it is is a hint for the kernel: no call more, and no mapping is replaced.
void* map_view(std::uint64_t bytes, int access, int flags, int descriptor, off_t offset) noexcept;
void unmap_view(void* view, std::uint64_t bytes) noexcept;

}  // namespace devshare::host
