// SPDX-License-Identifier: Apache-2.0
// copy_bulk and fill_bulk: every way of copying puts each byte where it belongs and none beside, whatever the alignment
// and the length; which way is taken; and copies of many bytes by the calls that are made of them.
#include "host/block.hpp"
#include "host/bulk_copy.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

namespace bulk = devshare::host::bulk;
using bulk::Way;
using devshare::host::copy_bulk;
using devshare::host::fill_bulk;
using devshare::host::PinnedBlock;
using devshare::test::contains;
using devshare::test::HostSession;
using devshare::test::in_child;
namespace kind = devshare::acl::memcpy_kind;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t line = 64;
constexpr std::size_t stretch = 16 * KiB;  // streamed copies go by so many bytes, after the first start of a line
constexpr std::size_t guard = 256;
constexpr unsigned char untouched = 0xa5;

std::string name_of(Way way) {
  switch (way) {
    case Way::plain:
      return "the C library";
    case Way::stream_16:
      return "streaming stores of 16 bytes";
    case Way::stream_32:
      return "streaming stores of 32 bytes";
    case Way::string:
      return "rep movsb";
    case Way::wide:
      return "stores of 64 bytes";
  }
  return "?";
}

// No byte is like its neighbours, nor like those a line, a page or a stretch away.
std::vector<unsigned char> pattern(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i * 2654435761u + 1) >> 11);
  return bytes;
}

// Memory that starts at a line, with a guard at both ends.
class Guarded {
 public:
  explicit Guarded(std::size_t size) : bytes_(guard + size + guard + line, untouched) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    start_ = bytes_.data() + guard + (line - address % line) % line;
  }
  unsigned char* at(std::size_t offset) { return start_ + offset; }

  // How the `count` bytes from `offset` on differ from those expected, or the bytes around them from what they were;
  // the range is untouched again afterwards.
  std::string difference(std::size_t offset, const unsigned char* expected, std::size_t count) {
    std::string found;
    if (std::memcmp(at(offset), expected, count) != 0) found = "other bytes";
    for (std::size_t i = 1; i <= guard; ++i) {
      if (*(at(offset) - i) != untouched) found = "a byte before";
      if (*(at(offset) + count + i - 1) != untouched) found = "a byte behind";
    }
    std::memset(at(offset), untouched, count);
    return found;
  }

 private:
  std::vector<unsigned char> bytes_;
  unsigned char* start_;
};

// Around each length at which something begins.
std::vector<std::size_t> lengths_to_try() {
  std::vector<std::size_t> lengths{0, 1, 15, 16, 4 * KiB};
  for (const std::size_t begin : {line, 2 * line, stretch, 2 * stretch, 3 * stretch}) {
    for (const std::size_t more : {0u, 1u, 2u, 14u, 63u, 64u, 65u}) lengths.push_back(begin - 1 + more);
  }
  return lengths;
}

void copies_right(Way way) {
  if (!bulk::possible(way)) DEVSHARE_SKIP("this processor, or this build, has no " + name_of(way));
  const auto source = pattern(4 * stretch + line);
  Guarded target(4 * stretch + line);
  // All alignments of both ends; the lengths take turns, so that each meets every alignment of one end.
  const std::vector<std::size_t> lengths = lengths_to_try();
  std::size_t turn = 0;
  for (std::size_t to = 0; to < line; ++to) {
    for (std::size_t from = 0; from < line; ++from) {
      for (int i = 0; i < 3; ++i) {
        const std::size_t count = lengths[turn++ % lengths.size()];
        bulk::copy(way, target.at(to), source.data() + from, count);
        INFO(count << " bytes from alignment " << from << " to " << to);
        REQUIRE(target.difference(to, source.data() + from, count) == "");
      }
    }
  }
  for (const std::size_t to : {0u, 1u, 48u, 63u}) {
    for (std::size_t count = 0; count <= 4 * line; ++count) {
      bulk::copy(way, target.at(to), source.data() + 3, count);
      REQUIRE(target.difference(to, source.data() + 3, count) == "");
    }
    for (std::size_t count = stretch - 2 * line; count <= stretch + 2 * line; ++count) {
      bulk::copy(way, target.at(to), source.data() + 3, count);
      REQUIRE(target.difference(to, source.data() + 3, count) == "");
    }
  }
}

void fills_right(Way way) {
  if (!bulk::possible(way)) DEVSHARE_SKIP("this processor, or this build, has no " + name_of(way));
  Guarded target(4 * stretch + line);
  for (const std::uint8_t value : std::initializer_list<std::uint8_t>{0x00, 0x7f, 0x80, 0xff}) {
    const std::vector<unsigned char> expected(4 * stretch, value);
    for (std::size_t to = 0; to < line; ++to) {
      for (const std::size_t count : lengths_to_try()) {
        bulk::fill(way, target.at(to), value, count);
        INFO(count << " bytes to alignment " << to);
        REQUIRE(target.difference(to, expected.data(), count) == "");
      }
    }
  }
}

// What the kernel calls it; "" where it does not.
std::string processor_says(const std::string& name) {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string words; std::getline(lines, words);) {
    const std::size_t colon = words.find(": ");
    if (words.starts_with(name) && colon != std::string::npos) return words.substr(colon + 2);
  }
  return {};
}

}  // namespace

TEST_CASE("the C library's copy is right at every alignment and length") { copies_right(Way::plain); }
TEST_CASE("streaming stores of 16 bytes copy right at every alignment and length") { copies_right(Way::stream_16); }
TEST_CASE("streaming stores of 32 bytes copy right at every alignment and length") { copies_right(Way::stream_32); }
TEST_CASE("rep movsb copies right at every alignment and length") { copies_right(Way::string); }
TEST_CASE("stores of 64 bytes copy right at every alignment and length") { copies_right(Way::wide); }

TEST_CASE("the C library's fill is right at every alignment and length") { fills_right(Way::plain); }
TEST_CASE("streaming stores of 16 bytes fill right at every alignment and length") { fills_right(Way::stream_16); }
TEST_CASE("streaming stores of 32 bytes fill right at every alignment and length") { fills_right(Way::stream_32); }

TEST_CASE("the ways that are chosen are possible, and are the C library's where a sanitizer looks") {
  const bulk::Plan plan = bulk::plan();
  CHECK(bulk::possible(plan.copy_few));
  CHECK(bulk::possible(plan.copy_more));
  CHECK(bulk::possible(plan.copy));
  CHECK(bulk::possible(plan.fill));
  if (devshare::test::under_sanitizer()) {
    CHECK(plan.copy_few == Way::plain);
    CHECK(plan.copy_more == Way::plain);
    CHECK(plan.copy == Way::plain);
    CHECK(plan.fill == Way::plain);
    return;
  }
  const std::string maker = processor_says("vendor_id");
  const bool zen_5 = maker == "AuthenticAMD" && std::stoi(processor_says("cpu family")) >= 26;
  CHECK(plan.copy_few == (zen_5 && bulk::possible(Way::wide) ? Way::wide : Way::plain));
  CHECK(plan.copy_more == (zen_5 ? Way::string : Way::plain));
  if (maker == "GenuineIntel" && bulk::possible(Way::stream_16)) {
    CHECK(plan.copy == (bulk::possible(Way::stream_32) ? Way::stream_32 : Way::stream_16));
    CHECK(plan.fill == plan.copy);
  } else {
    CHECK(plan.copy == (zen_5 ? Way::string : Way::plain));
    CHECK(plan.fill == Way::plain);
  }
}

TEST_CASE("many bytes start where a cache does, and always at the same") {
  CHECK(bulk::plan().many >= 1024 * KiB);
  CHECK(bulk::plan().many <= 16 * 1024 * KiB);
  CHECK(bulk::plan().many == bulk::plan().many);
}

TEST_CASE("few bytes and many are copied and filled alike") {
  const std::size_t many = bulk::plan().many;
  const auto source = pattern(many + 2 * line);
  Guarded target(many + 2 * line);
  for (const std::size_t count : {bulk::least_of_few - 1, bulk::least_of_few, bulk::most_of_few, bulk::most_of_few + 1,
                                  many - 1, many, many + 1, many + 77}) {
    INFO(count << " bytes");
    copy_bulk(target.at(5), source.data() + 9, count);
    CHECK(target.difference(5, source.data() + 9, count) == "");
    fill_bulk(target.at(5), 0x3c, count);
    CHECK(target.difference(5, std::vector<unsigned char>(count, 0x3c).data(), count) == "");
  }
}

TEST_CASE("ranges that overlap keep their bytes, few or many, in both directions") {
  const std::size_t many = bulk::plan().many + 3 * stretch;
  for (const std::size_t count : {std::size_t{100}, bulk::least_of_few + 5, bulk::most_of_few + 5, many}) {
    for (const std::size_t apart : {std::size_t{0}, std::size_t{1}, std::size_t{64}, count / 2, count - 1, count}) {
      INFO(count << " bytes, " << apart << " apart");
      const auto source = pattern(count);
      std::vector<unsigned char> both(apart + count);
      std::memcpy(both.data(), source.data(), count);
      copy_bulk(both.data() + apart, both.data(), count);
      CHECK(std::memcmp(both.data() + apart, source.data(), count) == 0);
      std::memcpy(both.data() + apart, source.data(), count);
      copy_bulk(both.data(), both.data() + apart, count);
      CHECK(std::memcmp(both.data(), source.data(), count) == 0);
    }
  }
}

TEST_CASE("many bytes go in, inside and out through mappings, at any offset") {
  HostSession session;
  const std::size_t count = bulk::plan().many + 12345;
  const std::size_t size = count + 2 * line;
  auto* const memory = static_cast<unsigned char*>(session.allocate(size));
  auto* const other = static_cast<unsigned char*>(session.allocate(size));
  const std::byte* const view = PinnedBlock(memory).view();
  const std::byte* const other_view = PinnedBlock(other).view();
  REQUIRE(view != nullptr);
  REQUIRE(other_view != nullptr);
  const auto source = pattern(count);
  REQUIRE(session.acl.aclrtMemcpy(memory + 3, count, source.data(), count, kind::host_to_device) == 0);
  CHECK(std::memcmp(view + 3, source.data(), count) == 0);
  REQUIRE(session.acl.aclrtMemcpy(other + 70, count, memory + 3, count, kind::device_to_device) == 0);
  CHECK(std::memcmp(other_view + 70, source.data(), count) == 0);
  Guarded target(count + line);
  REQUIRE(session.acl.aclrtMemcpy(target.at(9), count, other + 70, count, kind::device_to_host) == 0);
  CHECK(target.difference(9, source.data(), count) == "");
  REQUIRE(session.acl.aclrtMemset(memory + 3, count, 0x3c, count) == 0);
  CHECK(std::memcmp(view + 3, std::vector<unsigned char>(count, 0x3c).data(), count) == 0);
  for (const std::size_t edge : {std::size_t{2}, count + 3}) CHECK(view[edge] == std::byte{0});
  for (const std::size_t edge : {std::size_t{69}, count + 70}) CHECK(other_view[edge] == std::byte{0});
}

TEST_CASE("many bytes inside a block may overlap") {
  HostSession session;
  const std::size_t count = bulk::plan().many + 12345;
  const std::size_t apart = 1000;
  const auto source = pattern(count);
  auto* const memory = static_cast<unsigned char*>(session.allocate(count + apart));
  const std::byte* const view = PinnedBlock(memory).view();
  REQUIRE(view != nullptr);
  REQUIRE(session.acl.aclrtMemcpy(memory, count, source.data(), count, kind::host_to_device) == 0);
  REQUIRE(session.acl.aclrtMemcpy(memory + apart, count, memory, count, kind::device_to_device) == 0);
  CHECK(std::memcmp(view + apart, source.data(), count) == 0);
  REQUIRE(session.acl.aclrtMemcpy(memory, count, memory + apart, count, kind::device_to_device) == 0);
  CHECK(std::memcmp(view, source.data(), count) == 0);
}

TEST_CASE("AddressSanitizer sees many bytes leave the memory of the host") {
  if (!devshare::test::sees_leaks()) DEVSHARE_SKIP("no AddressSanitizer looks");
  const auto end = in_child([] {
    HostSession session;
    const std::size_t count = bulk::plan().many;
    void* const memory = session.allocate(count);
    if (PinnedBlock(memory).view() == nullptr) return;
    std::vector<unsigned char> short_of_one(count - 1);
    session.acl.aclrtMemcpy(short_of_one.data(), count, memory, count, kind::device_to_host);
  });
  CHECK(!end.good());
  CHECK_THAT(end.output, contains("heap-buffer-overflow"));
}
