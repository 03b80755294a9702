// SPDX-License-Identifier: Apache-2.0
// What is seen of mapped memory, by a kernel's views and by the host: where it lies, what it costs, when it ends.
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/watchdog.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::host::view_of;
using devshare::host::ViewAccess;
using devshare::test::demand;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::on_device;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;

namespace {

std::byte* view(const void* address, std::size_t size = piece_size) {
  return static_cast<std::byte*>(view_of(address, size, ViewAccess::read_write));
}

// Mappings of device memory in this process, as the kernel counts them.
std::size_t mapped_files() {
  std::ifstream maps("/proc/self/maps");
  std::size_t files = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:devshare") != std::string::npos) ++files;
  }
  return files;
}

// Takes mappings up to the kernel's limit.
class Filler {
 public:
  Filler() {
    taken_.reserve(200'000);
    // Shared anonymous pages are a mapping each, whatever lies beside them.
    while (taken_.size() < taken_.capacity()) {
      void* const one = ::mmap(nullptr, page_, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (one == MAP_FAILED) break;
      taken_.push_back(one);
    }
    full_ = taken_.size() < taken_.capacity();
  }
  ~Filler() { give_back(taken_.size()); }
  Filler(const Filler&) = delete;
  Filler& operator=(const Filler&) = delete;

  bool full() const { return full_; }
  void give_back(std::size_t count) {
    for (; count > 0; --count) {
      ::munmap(taken_.back(), page_);
      taken_.pop_back();
    }
  }

 private:
  const std::size_t page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::vector<void*> taken_;
  bool full_ = false;
};

}  // namespace

TEST_CASE("pieces that nobody views cost no mapping, and one each when somebody does") {
  constexpr std::size_t pieces = 64;
  PhysicalSession session;
  std::byte* const place = session.reserve(pieces * piece_size);
  for (std::size_t i = 0; i < pieces; ++i) session.fill_in(place + i * piece_size);
  CHECK(counters().mappings == pieces);
  CHECK(mapped_files() == 0);
  const auto bytes = pattern(3 * piece_size);
  REQUIRE(session.write(place + piece_size / 2, bytes) == 0);
  CHECK(mapped_files() == 0);
  CHECK(counters().views == 0);
  REQUIRE(view(place, pieces * piece_size) != nullptr);
  CHECK(mapped_files() == pieces);
  CHECK(counters().views == pieces);
}

TEST_CASE("a view across pieces is contiguous, whatever was viewed before, and ends piece by piece") {
  PhysicalSession session;
  std::byte* const place = session.reserve(6 * piece_size);
  for (int i = 0; i < 5; ++i) session.fill_in(place + i * static_cast<std::ptrdiff_t>(piece_size));
  std::byte* const third = view(place + 2 * piece_size);
  REQUIRE(third != nullptr);
  const auto bytes = pattern(4 * piece_size);
  REQUIRE(session.write(place + piece_size / 2, bytes) == 0);
  std::byte* const all = view(place + 100, 5 * piece_size - 100);
  REQUIRE(all != nullptr);
  CHECK(all + 2 * piece_size - 100 == third);
  CHECK(std::memcmp(all + piece_size / 2 - 100, bytes.data(), bytes.size()) == 0);
  devshare::detail::Cause why;
  CHECK(view_of(place, 5 * piece_size + 1, ViewAccess::read, &why) == nullptr);  // nothing is in the sixth
  CHECK(why.reason == Reason::out_of_bounds);

  REQUIRE(session.acl.aclrtUnmapMem(place + piece_size) == 0);
  CHECK(view_of(place, 2 * piece_size, ViewAccess::read) == nullptr);
  CHECK(view(place + 2 * piece_size, 3 * piece_size) == third);  // the others stay where they are
  CHECK(counters().views == 4);
  session.fill_in(place + piece_size);
  CHECK(view(place, 5 * piece_size) + 2 * piece_size == third);
  CHECK(session.read(place + piece_size, 1) == std::vector<unsigned char>{0});  // new memory
}

TEST_CASE("a reservation's views are right whether one piece fills it or several lie in it, one after the other") {
  constexpr std::size_t whole = 2 * piece_size;
  PhysicalSession session;
  std::byte* const place = session.reserve(whole);
  for (int round = 0; round < 2; ++round) {
    INFO("round " << round);
    session.fill_in(place, whole);
    std::byte* const filled = view(place, whole);
    REQUIRE(filled != nullptr);
    const auto bytes = pattern(whole);
    std::memcpy(filled, bytes.data(), whole);
    CHECK(session.read(place, whole) == bytes);
    CHECK(view(place + piece_size, piece_size) == filled + piece_size);
    CHECK(mapped_files() == 1);
    REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
    CHECK(mapped_files() == 0);
    CHECK(counters().views == 0);

    session.fill_in(place + piece_size);
    std::byte* const second = view(place + piece_size);
    REQUIRE(second != nullptr);
    session.fill_in(place);
    std::byte* const both = view(place, whole);
    REQUIRE(both != nullptr);
    CHECK(both + piece_size == second);
    std::memcpy(both, bytes.data(), whole);
    CHECK(session.read(place, whole) == bytes);
    REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
    CHECK(session.read(place + piece_size, 1) == std::vector<unsigned char>{bytes[piece_size]});
    REQUIRE(session.acl.aclrtUnmapMem(place + piece_size) == 0);
    CHECK(mapped_files() == 0);
  }
}

TEST_CASE("a device's address faults on the host, and so does a view whose piece is unmapped") {
  const auto touched = [](auto choose) {
    return in_child([&] {
      PhysicalSession session;
      std::byte* const place = session.reserve(3 * piece_size);
      for (int i = 0; i < 3; ++i) session.fill_in(place + i * static_cast<std::ptrdiff_t>(piece_size));
      std::byte* const seen = view(place, 3 * piece_size);
      demand(seen != nullptr, "a view");
      demand(session.acl.aclrtUnmapMem(place + piece_size) == 0, "unmapped");
      seen[piece_size - 1] = std::byte{1};
      seen[2 * piece_size] = std::byte{1};
      *const_cast<volatile std::byte*>(choose(place, seen)) = std::byte{1};
    });
  };
  CHECK(touched([](std::byte*, std::byte* seen) { return seen; }).good());
  CHECK_FALSE(touched([](std::byte*, std::byte* seen) { return seen + piece_size; }).good());
  CHECK_FALSE(touched([](std::byte* place, std::byte*) { return place; }).good());
}

TEST_CASE("memory of the host is touched at its own address, while it is mapped") {
  const auto touched_after = [](bool unmapped) {
    return in_child([&] {
      PhysicalSession session;
      std::byte* const place = session.reserve(3 * piece_size);
      session.fill_in(place + piece_size, piece_size, on_host());
      const auto bytes = pattern(piece_size);
      std::memcpy(place + piece_size, bytes.data(), bytes.size());
      demand(session.read(place + piece_size, piece_size) == bytes, "what the processor wrote is what is copied");
      demand(view(place + piece_size) == place + piece_size, "its address is its view");
      if (unmapped) demand(session.acl.aclrtUnmapMem(place + piece_size) == 0, "unmapped");
      *const_cast<volatile std::byte*>(place + piece_size) = std::byte{1};
    });
  };
  CHECK(touched_after(false).good());
  CHECK_FALSE(touched_after(true).good());
}

TEST_CASE("R4: a child that starts a runtime of its own finds nothing of its parent at its addresses") {
  PhysicalSession session;
  std::byte* const place = session.reserve(piece_size);
  session.fill_in(place, piece_size, on_host());
  const auto touched_in_child = [&](bool own_runtime) {
    return in_child([&] {
      if (own_runtime) devshare::host::table().aclInit(nullptr);
      *const_cast<volatile std::byte*>(place) = std::byte{1};
    });
  };
  CHECK_FALSE(touched_in_child(true).good());
  place[0] = std::byte{7};
  CHECK(session.read(place, 1) == std::vector<unsigned char>{7});
}

TEST_CASE("a process without mappings to spare is told the limit, and maps again when it has some") {
  if (devshare::test::sees_leaks()) DEVSHARE_SKIP("this sanitizer needs mappings of its own");
  const auto end = in_child([] {
    PhysicalSession session;
    std::byte* const place = session.reserve(4 * piece_size);
    std::byte* const own = session.reserve(4 * piece_size);
    session.fill_in(place);
    const auto handle = session.physical(piece_size, on_host());
    const Counters before = counters();
    devshare::detail::Cause why;
    void* seen = nullptr;
    acl::aclError mapped = 0;
    Reason reason{};
    {
      const Filler filler;
      demand(filler.full(), "vm.max_map_count is reached");
      seen = view_of(place, piece_size, ViewAccess::read, &why);
      mapped = session.acl.aclrtMapMem(own + piece_size, piece_size, 0, handle, 0);
      reason = last_reason();
    }
    demand(seen == nullptr && why.reason == Reason::mapping_limit, "no view");
    demand(mapped == code::rt_memory_allocation && reason == Reason::mapping_limit, "no mapping of the host's memory");
    demand(counters() == before, "nothing is left behind");
    demand(session.acl.aclrtMapMem(own + piece_size, piece_size, 0, handle, 0) == 0, "mapped");
    own[piece_size] = std::byte{1};
    demand(view(place) != nullptr, "viewed");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a view across pieces that finds too few mappings shows what it can, and the rest when there are more") {
  if (devshare::test::under_sanitizer()) DEVSHARE_SKIP("sanitizers need mappings of their own for each");
  const auto end = in_child([] {
    constexpr std::size_t pieces = 6;
    PhysicalSession session;
    std::byte* const place = session.reserve(pieces * piece_size);
    for (std::size_t i = 0; i < pieces; ++i) session.fill_in(place + i * piece_size);
    std::byte* const first = view(place);
    demand(first != nullptr, "the first");
    first[0] = std::byte{1};
    devshare::detail::Cause why;
    std::size_t shown = 0;
    {
      Filler filler;
      demand(filler.full(), "vm.max_map_count is reached");
      filler.give_back(3);  // for some of the pieces and not for all
      demand(view_of(place, pieces * piece_size, ViewAccess::read, &why) == nullptr, "refused");
      shown = counters().views;
      demand(first[0] == std::byte{1}, "what was seen before is seen still");
    }
    demand(why.reason == Reason::mapping_limit, "for want of mappings");
    demand(shown > 1 && shown < pieces, "some are shown, and some are not");
    const auto bytes = pattern(pieces * piece_size);
    demand(session.write(place, bytes) == 0, "written");
    demand(view(place, bytes.size()) == first, "all are shown, in their places");
    demand(std::memcmp(first, bytes.data(), bytes.size()) == 0, "with what was written");
    demand(counters().views == pieces, "each of them once");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("R4: forking while other threads map, view, copy and unmap never hangs and hurts neither side") {
  const devshare::test::Watchdog watchdog("forks under load", std::chrono::seconds(240));
  constexpr std::size_t pieces = 3;
  PhysicalSession session;
  const Counters before = counters();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 3; ++worker) {
    threads.emplace_back([&] {
      const auto& acl = session.acl;
      const auto must = [&](acl::aclError code) { wrong += code != 0 ? 1 : 0; };
      must(acl.aclrtSetDevice(0));
      const acl::aclrtPhysicalMemProp property = on_device();
      std::array<char, 100> bytes{};
      while (!stop) {
        void* place = nullptr;
        acl::aclrtDrvMemHandle handle = nullptr;
        must(acl.aclrtReserveMemAddress(&place, (pieces + 1) * piece_size, 0, nullptr, 0));
        must(acl.aclrtMallocPhysical(&handle, piece_size, &property, 0));
        const auto piece = [&](std::size_t i) { return static_cast<std::byte*>(place) + i * piece_size; };
        for (std::size_t i = 0; i < pieces; ++i) must(acl.aclrtMapMem(piece(i), piece_size, 0, handle, 0));
        must(acl.aclrtMemcpy(place, bytes.size(), bytes.data(), bytes.size(), acl::memcpy_kind::host_to_device));
        if (view_of(place, 1, ViewAccess::read) == nullptr) ++wrong;
        if (view_of(place, pieces * piece_size, ViewAccess::read) == nullptr) ++wrong;
        for (std::size_t i = 0; i < pieces; ++i) must(acl.aclrtUnmapMem(piece(i)));
        must(acl.aclrtFreePhysical(handle));
        must(acl.aclrtReleaseMemAddress(place));
      }
    });
  }
  const int rounds = devshare::test::under_sanitizer() ? 10 : 50;
  for (int round = 0; round < rounds; ++round) {
    const auto end = in_child([&] {
      demand(session.acl.aclrtUnmapMem(&stop) == code::rt_context_null, "the parent's runtime");
      const Counters none{};
      demand(session.acl.aclInit(nullptr) == 0 && session.acl.aclrtSetDevice(0) == 0, "a runtime of its own");
      demand(counters() == none, "with nothing in it");
      void* place = nullptr;
      acl::aclrtDrvMemHandle handle = nullptr;
      const acl::aclrtPhysicalMemProp property = on_host();
      demand(session.acl.aclrtReserveMemAddress(&place, piece_size, 0, nullptr, 0) == 0, "reserved");
      demand(session.acl.aclrtMallocPhysical(&handle, piece_size, &property, 0) == 0, "allocated");
      demand(session.acl.aclrtMapMem(place, piece_size, 0, handle, 0) == 0, "mapped");
      *static_cast<char*>(place) = 1;
      demand(session.acl.aclFinalize() == 0, "finalized");
    }, {.set = {}, .leaks = false});
    INFO("child of round " << round << ": " << end.in_words());
    CHECK(end.good());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(counters() == before);
}
