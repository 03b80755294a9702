// SPDX-License-Identifier: Apache-2.0
#include "sealed_memfd.hpp"

#include "../way.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace devshare::bench {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

int make_sealed_memfd(std::size_t size) {
  const int descriptor = ::memfd_create("by hand", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) give_up("memfd_create");
  if (::ftruncate(descriptor, static_cast<off_t>(size)) != 0) give_up("ftruncate");
  if (::fcntl(descriptor, F_ADD_SEALS, seals) != 0) give_up("sealing");
  return descriptor;
}

bool is_sealed_memfd(int descriptor, std::size_t size) {
  constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW;
  const int present = ::fcntl(descriptor, F_GET_SEALS);
  struct stat status {};
  return present >= 0 && (present & needed) == needed && ::fstat(descriptor, &status) == 0 &&
         static_cast<std::size_t>(status.st_size) >= size;
}

void write_at(int descriptor, std::size_t offset, const void* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t moved = ::pwrite(descriptor, static_cast<const std::byte*>(bytes) + done, count - done,
                                   static_cast<off_t>(offset + done));
    if (moved <= 0) give_up("pwrite");
    done += static_cast<std::size_t>(moved);
  }
}

void read_at(int descriptor, std::size_t offset, void* bytes, std::size_t count) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t moved =
        ::pread(descriptor, static_cast<std::byte*>(bytes) + done, count - done, static_cast<off_t>(offset + done));
    if (moved <= 0) give_up("pread");
    done += static_cast<std::size_t>(moved);
  }
}

std::byte* map_whole(int descriptor, std::size_t size) {
  void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) give_up("mmap");
  return static_cast<std::byte*>(mapped);
}

void unmap_whole(std::byte* bytes, std::size_t size) { ::munmap(bytes, size); }

}  // namespace devshare::bench
