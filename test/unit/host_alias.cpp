// SPDX-License-Identifier: Apache-2.0
// The private view of a reservation, and the rooms in which many of its pieces are shown.
#include "host/alias.hpp"
#include "host/unique_fd.hpp"
#include "host/window.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <optional>
#include <vector>

using devshare::host::AliasRange;
using devshare::host::UniqueFd;
using devshare::host::window_map;
using devshare::test::demand;
using devshare::test::HostSession;
using devshare::test::in_child;

namespace {

constexpr std::uintptr_t base = 0x1000'0000;  // of no reservation: nobody looks there
constexpr std::uint64_t piece = std::uint64_t{2} << 20;

UniqueFd file_with(char first) {
  UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(file.get(), piece) == 0);
  REQUIRE(::pwrite(file.get(), &first, 1, 0) == 1);
  return file;
}

// Whether any mapping is there, of whatever kind.
bool mapped(std::byte* place) {
  unsigned char resident = 0;
  return ::mincore(place, 1, &resident) == 0;
}

std::byte* show_first(AliasRange& range) {
  std::byte* const shown = range.show(base, piece, file_with('a').get(), true, false);
  REQUIRE(shown != nullptr);
  return shown;
}

}  // namespace

TEST_CASE("pieces that are shown in a room lie as they lie in the reservation, and what is left is reserved again") {
  const HostSession session;
  AliasRange range(base, 8 * piece);
  std::byte* const first = show_first(range);
  {
    AliasRange::Room room(range, base + piece, 5 * piece);
    for (std::size_t i = 1; i < 6; ++i) CHECK_FALSE(mapped(first + i * piece));
    CHECK(mapped(first + 6 * piece));
    CHECK(room.show(base + 5 * piece, piece, file_with('f').get(), true, false) == first + 5 * piece);
    CHECK(room.show(base + 3 * piece, 2 * piece, file_with('d').get(), false, false) == first + 3 * piece);
  }
  CHECK(static_cast<char>(first[0]) == 'a');
  CHECK(static_cast<char>(first[3 * piece]) == 'd');
  CHECK(static_cast<char>(first[5 * piece]) == 'f');
  CHECK(mapped(first + piece));
  CHECK(mapped(first + 2 * piece + piece / 2));
  // Nobody shows anything there, but alone: over what is reserved.
  CHECK(range.show(base + 2 * piece, piece, file_with('c').get(), true, false) == first + 2 * piece);
  CHECK(static_cast<char>(first[2 * piece]) == 'c');
}

TEST_CASE("the kernel puts nothing of its own accord into a room") {
  const HostSession session;
  AliasRange range(base, 8 * piece);
  std::byte* const first = show_first(range);
  AliasRange::Room room(range, base + piece, 6 * piece);
  std::vector<void*> others;
  for (int i = 0; i < 64; ++i) {
    others.push_back(::mmap(nullptr, piece / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    REQUIRE(others.back() != MAP_FAILED);
  }
  for (std::size_t i = 1; i < 7; ++i) CHECK_FALSE(mapped(first + i * piece));
  for (void* const other : others) ::munmap(other, piece / 2);
}

TEST_CASE("what somebody maps into a room by its address stays, whatever the range does, and the piece is refused") {
  const HostSession session;
  std::optional<AliasRange> range(std::in_place, base, 4 * piece);
  std::byte* const first = show_first(*range);
  std::byte* const place = first + 2 * piece;
  const UniqueFd file = file_with('c');
  {
    AliasRange::Room room(*range, base + piece, 3 * piece);
    REQUIRE(::mmap(place, piece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
            place);
    std::memset(place, 'x', piece);
    CHECK(room.show(base + 3 * piece, piece, file_with('d').get(), true, false) == first + 3 * piece);
    errno = 0;
    CHECK(room.show(base + 2 * piece, piece, file.get(), true, false) == nullptr);
    CHECK(errno == EEXIST);
  }
  CHECK(static_cast<char>(first[3 * piece]) == 'd');
  {
    AliasRange::Room again(*range, base + piece, 2 * piece);
    CHECK(again.show(base + 2 * piece, piece, file.get(), true, false) == nullptr);
  }
  CHECK(range->show(base + 2 * piece, piece, file.get(), true, false) == nullptr);
  CHECK(range->show(base + piece / 2, piece, file.get(), true, false) == nullptr);
  CHECK(range->show(base + 2 * piece + piece / 2, piece, file.get(), true, false) == nullptr);
  CHECK(range->show(base + piece, piece, file_with('b').get(), true, false) == first + piece);
  CHECK(static_cast<char>(first[piece]) == 'b');
  range->hide(first + piece, piece);
  range->hide(first + 3 * piece, piece);
  range.reset();
  CHECK(static_cast<char>(place[0]) == 'x');
  CHECK(static_cast<char>(place[piece - 1]) == 'x');
  CHECK_FALSE(mapped(first));
  CHECK_FALSE(mapped(first + piece));
  CHECK_FALSE(mapped(first + 3 * piece));
  ::munmap(place, piece);
}

TEST_CASE("a range that is too long for its place beside the window shows without rooms") {
  const HostSession session;
  const std::uint64_t long_range = window_map.bytes / 2 + piece;
  AliasRange range(base, long_range);
  std::byte* const first = show_first(range);
  AliasRange::Room room(range, base + piece, 2 * piece);
  CHECK(mapped(first + piece));
  CHECK(room.show(base + 2 * piece, piece, file_with('c').get(), true, false) == first + 2 * piece);
  CHECK(static_cast<char>(first[2 * piece]) == 'c');
  CHECK(mapped(first + piece));
}

TEST_CASE("no two ranges have a place in common, and those for which none is left have no rooms") {
  const auto end = in_child([] {  // which uses up its own places
    const HostSession session;
    const std::uint64_t third = window_map.bytes / 2 / 3;
    const auto shown = [](AliasRange& range) {
      const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
      demand(::ftruncate(file.get(), piece) == 0, "a file");
      std::byte* const first = range.show(base, piece, file.get(), true, false);
      demand(first != nullptr, "shown");
      return first;
    };
    // Its place is not given again when it ends: another range may be told so at the same time.
    for (int i = 0; i < 2; ++i) {
      AliasRange ended(base, third);
      shown(ended);
    }
    AliasRange one(base, 4 * piece);
    std::byte* const first = shown(one);
    AliasRange::Room room(one, base + piece, 2 * piece);
    demand(!mapped(first + piece), "a room");
    std::list<AliasRange> others;
    for (int i = 0; i < 4; ++i) {
      std::byte* const other = shown(others.emplace_back(base, third));
      demand(other + third <= first || other >= first + 4 * piece, "each elsewhere");
    }
    demand(!mapped(first + piece), "nobody came into the room");
    AliasRange late(base, third);
    std::byte* const other = shown(late);
    AliasRange::Room none(late, base + piece, 2 * piece);
    demand(mapped(other + piece), "no room without a place");
  });
  INFO(end.in_words());
  CHECK(end.good());
}
