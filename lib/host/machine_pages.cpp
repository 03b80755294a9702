// SPDX-License-Identifier: Apache-2.0
#include "machine_pages.hpp"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace devshare::host {

std::uint64_t page_bytes_of(int descriptor) noexcept {
  // st_blksize does not tell: a file of normal pages may say there that it takes huge ones where it can.
  struct statfs system {};
  const bool huge = ::fstatfs(descriptor, &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
  return huge ? static_cast<std::uint64_t>(system.f_bsize) : normal_page_bytes();
}

std::uint64_t normal_page_bytes() noexcept {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

bool all_resident(const void* mapped, std::uint64_t bytes) noexcept {
  std::array<unsigned char, 8192> there;
  const std::uint64_t before = reinterpret_cast<std::uintptr_t>(mapped) % normal_page_bytes();
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(mapped) - before;
  bytes += before;
  const std::uint64_t step = there.size() * normal_page_bytes();
  for (std::uint64_t done = 0; done < bytes; done += step) {
    const std::uint64_t part = std::min(step, bytes - done);
    const auto pages = static_cast<std::ptrdiff_t>((part + normal_page_bytes() - 1) / normal_page_bytes());
    if (::mincore(reinterpret_cast<void*>(begin + done), part, there.data()) != 0) return false;
    if (!std::all_of(there.begin(), there.begin() + pages, [](unsigned char page) { return (page & 1) != 0; })) {
      return false;
    }
  }
  return true;
}

}  // namespace devshare::host
