// SPDX-License-Identifier: Apache-2.0
// Views that fit into a page table lie at the start of one, and those that come and go stay where they are.
#include "host/block.hpp"
#include "host/view_place.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using devshare::host::map_view;
using devshare::host::PinnedBlock;
using devshare::host::unmap_view;
using devshare::test::HostSession;

namespace {

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t table = 2048 * KiB;

class File {
 public:
  explicit File(std::uint64_t bytes) : descriptor_(::memfd_create("file", MFD_CLOEXEC)) {
    REQUIRE(::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uintptr_t map(std::uint64_t bytes) const {
    void* const view = map_view(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    REQUIRE(view != MAP_FAILED);
    return reinterpret_cast<std::uintptr_t>(view);
  }

 private:
  int descriptor_;
};

void unmap(std::uintptr_t view, std::uint64_t bytes) { unmap_view(reinterpret_cast<void*>(view), bytes); }

}  // namespace

TEST_CASE("of views that come and go all but the first lie at the start of a page table") {
  const File file(table);
  for (const std::uint64_t bytes : {1028 * KiB, 1536 * KiB, table}) {
    unmap(file.map(bytes), bytes);
    for (int round = 0; round < 10; ++round) {
      const std::uintptr_t view = file.map(bytes);
      CHECK(view % table == 0);
      unmap(view, bytes);
    }
  }
}

TEST_CASE("views of any number that come and go do not wander through the address space") {
  constexpr std::uint64_t bytes = table;
  const File file(bytes);
  std::uintptr_t lowest = UINTPTR_MAX;
  std::uintptr_t lowest_later = UINTPTR_MAX;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uintptr_t> views;
    for (int i = 0; i < 5; ++i) views.push_back(file.map(bytes));
    std::uintptr_t& low = round < 20 ? lowest : lowest_later;
    low = std::min(low, *std::min_element(views.begin(), views.end()));
    if (round % 2 != 0) std::reverse(views.begin(), views.end());
    if (round % 3 != 0) std::swap(views[1], views[3]);
    for (const std::uintptr_t view : views) unmap(view, bytes);
  }
  CHECK(lowest_later + 10 * bytes > lowest);
}

TEST_CASE("a place that is taken is nobody's loss") {
  const File file(table);
  unmap(file.map(table), table);
  const std::uintptr_t known = file.map(table);
  REQUIRE(known % table == 0);
  unmap(known, table);
  auto* const place = reinterpret_cast<unsigned char*>(known);
  void* const other = ::mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  REQUIRE(other == place);
  *place = 77;
  const std::uintptr_t view = file.map(table);
  CHECK(view != known);
  *reinterpret_cast<unsigned char*>(view) = 1;
  CHECK(*place == 77);
  unmap(view, table);
  ::munmap(other, 4096);
}

TEST_CASE("smaller and larger views lie where the kernel puts them, and leave the place that is known") {
  const File file(2 * table);
  unmap(file.map(table), table);
  const std::uintptr_t known = file.map(table);
  unmap(known, table);
  for (const std::uint64_t bytes : {4 * KiB, 1024 * KiB, table + 4 * KiB, 2 * table}) unmap(file.map(bytes), bytes);
  CHECK(file.map(table) == known);
  unmap(known, table);
}

TEST_CASE("views of device memory lie so") {
  HostSession session;
  for (int round = 0; round < 3; ++round) {
    void* const memory = session.allocate(table);
    const auto view = reinterpret_cast<std::uintptr_t>(PinnedBlock(memory).view());
    REQUIRE(view != 0);
    if (round > 0) CHECK(view % table == 0);
    REQUIRE(session.acl.aclrtFree(memory) == 0);
  }
}
