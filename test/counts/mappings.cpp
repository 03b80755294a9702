// SPDX-License-Identifier: Apache-2.0
// System calls of mapping physical memory piece by piece: none while nobody views it, one a piece when somebody does.
#include "host/host_runtime.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "traced.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/host.hpp>

#include <cstddef>

namespace acl = devshare::acl;
namespace test = devshare::test;
using test::demand;

namespace {

constexpr std::size_t pieces = 1024;
constexpr std::size_t piece_size = std::size_t{2} << 20;

// One memory at all places of a reservation of 2 GiB, so that it is the mappings alone that are counted.
class Pieces {
 public:
  Pieces() {
    const acl::aclrtPhysicalMemProp property{0, 0, acl::mem_attr::hbm_huge, {0, acl::mem_location_type::device}, 0};
    void* place = nullptr;
    demand(acl_.aclInit(nullptr) == 0 && acl_.aclrtSetDevice(0) == 0, "a session");
    demand(acl_.aclrtMallocPhysical(&handle_, piece_size, &property, 0) == 0, "memory");
    demand(acl_.aclrtReserveMemAddress(&place, pieces * piece_size, 0, nullptr, 0) == 0, "addresses");
    place_ = static_cast<std::byte*>(place);
    map();  // once for the heap, which grows as often as it likes
    unmap();
  }
  ~Pieces() { acl_.aclFinalize(); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  void map() const {
    for (std::size_t i = 0; i < pieces; ++i) {
      demand(acl_.aclrtMapMem(place_ + i * piece_size, piece_size, 0, handle_, 0) == 0, "maps");
    }
  }
  void unmap() const {
    for (std::size_t i = 0; i < pieces; ++i) demand(acl_.aclrtUnmapMem(place_ + i * piece_size) == 0, "unmaps");
  }
  void view(std::size_t count) const {
    demand(devshare::host::view_of(place_, count * piece_size, devshare::host::ViewAccess::read_write) != nullptr,
           "views");
  }

 private:
  const acl::Table& acl_ = devshare::host::table();
  acl::aclrtDrvMemHandle handle_ = nullptr;
  std::byte* place_ = nullptr;
};

}  // namespace

TEST_CASE("mapping and unmapping 1,024 pieces that nobody views makes no system call") {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const test::CountedCalls counted = test::count_calls([] {
    const Pieces all;
    test::begin_counting();
    all.map();
    all.unmap();
    test::end_counting();
  });
  INFO(counted.problem << "\n" << counted.in_words());
  REQUIRE(counted.problem.empty());
  CHECK(counted.total() == 0);
}

TEST_CASE("viewing 1,024 pieces costs one mapping each, and unmapping them takes each away") {
  if (const std::string why = test::why_no_counting(); !why.empty()) DEVSHARE_SKIP(why);
  const auto count = [](bool unmapping) {
    return test::count_calls([unmapping] {
      const Pieces all;
      all.map();
      all.view(1);  // which reserves the range of all views
      if (unmapping) all.view(pieces);
      test::begin_counting();
      if (unmapping) {
        all.unmap();
      } else {
        all.view(pieces);
      }
      test::end_counting();
    });
  };
  const test::CountedCalls viewed = count(false);
  INFO(viewed.problem << "\n" << viewed.in_words());
  REQUIRE(viewed.problem.empty());
  CHECK(viewed.named("mmap") - static_cast<long>(pieces - 1) <= 1);  // and one at most by the heap
  CHECK(viewed.named("mmap") >= static_cast<long>(pieces - 1));
  CHECK(viewed.named("munmap") == 1);  // of the part of the range that they are shown in
  CHECK(viewed.named("mprotect") <= 1);
  const test::CountedCalls ended = count(true);
  INFO(ended.problem << "\n" << ended.in_words());
  REQUIRE(ended.problem.empty());
  CHECK(ended.named("mmap") == static_cast<long>(pieces));
  CHECK(ended.total() == static_cast<long>(pieces));
}
