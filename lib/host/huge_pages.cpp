// SPDX-License-Identifier: Apache-2.0
#include "huge_pages.hpp"

#include "machine_pages.hpp"
#include "profile.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace devshare::host {
namespace {

constexpr unsigned huge_memory = MFD_HUGETLB | MFD_HUGE_2MB;

// Whether the pool has so many pages, at this moment: a mapping sets aside all or none, and costs nothing more.
bool pool_has(int descriptor, std::uint64_t bytes) noexcept {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) return false;
  ::munmap(mapped, bytes);
  return true;
}

}  // namespace

bool make_huge_backing(std::uint64_t bytes, Backing* out) {
  if (!profile().backing_directory.empty()) return false;
  UniqueFd memory(::memfd_create("devshare", MFD_CLOEXEC | MFD_ALLOW_SEALING | huge_memory));
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return false;
  if (!pool_has(memory.get(), bytes) || reserve_file(memory.get(), bytes) != 0) return false;
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return false;
  *out = {.descriptor = std::move(memory), .sealed = true, .page_bytes = huge_page_bytes, .populated = true};
  return true;
}

}  // namespace devshare::host
