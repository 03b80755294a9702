// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpy and aclrtMemset: directions, bounds, what is refused across devices (R42), and when bytes go through a
// descriptor and when through a view.
#include "host/block.hpp"
#include "host/block_bytes.hpp"
#include "imported_memory.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using devshare::host::block_counters;
using devshare::host::ExporterWatch;
using devshare::host::ImportedBytes;
using devshare::host::last_cause;
using devshare::host::PinnedBlock;
using devshare::host::Reason;
using devshare::host::UniqueFd;
using devshare::test::contains;
using devshare::test::demand;
using devshare::test::enable_both_ways;
using devshare::test::HostSession;
using devshare::test::import;
using devshare::test::in_child;
using devshare::test::last_reason;
namespace code = devshare::acl::code;
namespace kind = devshare::acl::memcpy_kind;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

std::vector<unsigned char> pattern(std::size_t size, unsigned seed = 1) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 7);
  return bytes;
}

std::vector<unsigned char> read_back(const HostSession& session, const void* address, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  if (session.acl.aclrtMemcpy(bytes.data(), size, address, size, kind::device_to_host) != 0) bytes.clear();
  return bytes;
}

int put(const HostSession& session, void* address, const std::vector<unsigned char>& bytes) {
  return session.acl.aclrtMemcpy(address, bytes.size(), bytes.data(), bytes.size(), kind::host_to_device);
}

}  // namespace

TEST_CASE("bytes come back as they went in, from every offset and size") {
  HostSession session;
  for (const std::size_t size : {std::size_t{1}, std::size_t{4095}, std::size_t{4096}, 100 * KiB, 3 * MiB}) {
    auto* const memory = static_cast<unsigned char*>(session.allocate(size));
    const auto bytes = pattern(size);
    REQUIRE(put(session, memory, bytes) == 0);
    CHECK(read_back(session, memory, size) == bytes);
    if (size < 10) continue;
    const auto middle = pattern(size / 2, 9);
    REQUIRE(put(session, memory + 3, middle) == 0);
    const auto all = read_back(session, memory, size);
    REQUIRE(all.size() == size);
    CHECK(std::equal(middle.begin(), middle.end(), all.begin() + 3));
    CHECK(all[2] == bytes[2]);
    CHECK(all[3 + middle.size()] == bytes[3 + middle.size()]);
  }
}

TEST_CASE("no bytes are success without a look at the pointers") {
  HostSession session(-1);
  CHECK(session.acl.aclrtMemcpy(nullptr, 0, nullptr, 0, 99) == 0);
}

TEST_CASE("copies check their arguments in the order of the facts") {
  HostSession session;
  char host[16] = {};
  void* const memory = session.allocate(16);
  CHECK(session.acl.aclrtMemcpy(nullptr, 0, host, 16, 99) == code::invalid_param);  // null before kind and bound
  CHECK(session.acl.aclrtMemcpy(memory, 0, nullptr, 16, 99) == code::invalid_param);
  for (const int wrong : {kind::inner_device_to_device, kind::inter_device_to_device, 8, -1}) {
    CHECK(session.acl.aclrtMemcpy(memory, 0, host, 16, wrong) == code::invalid_param);  // kind before bound
    CHECK(last_reason() == Reason::bad_argument);
  }
  CHECK(session.acl.aclrtMemcpy(memory, 15, host, 16, kind::host_to_device) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::out_of_bounds);
  CHECK(last_cause().needed == 16);
  CHECK(last_cause().available == 15);
}

TEST_CASE("the addresses decide the direction, whatever the kind says") {
  HostSession session;
  void* const a = session.allocate(64);
  void* const b = session.allocate(64);
  const auto bytes = pattern(64);
  for (const int any : {kind::host_to_host, kind::host_to_device, kind::device_to_host, kind::device_to_device,
                        kind::automatic, kind::host_to_buffer_to_device}) {
    INFO("kind " << any);
    REQUIRE(session.acl.aclrtMemset(a, 64, 0, 64) == 0);
    REQUIRE(session.acl.aclrtMemcpy(a, 64, bytes.data(), 64, any) == 0);
    REQUIRE(session.acl.aclrtMemcpy(b, 64, a, 64, any) == 0);
    std::vector<unsigned char> out(64);
    REQUIRE(session.acl.aclrtMemcpy(out.data(), 64, b, 64, any) == 0);
    CHECK(out == bytes);
    std::vector<unsigned char> host_copy(64);
    REQUIRE(session.acl.aclrtMemcpy(host_copy.data(), 64, out.data(), 64, any) == 0);
    CHECK(host_copy == bytes);
  }
}

TEST_CASE("memory of aclrtMallocHost is host memory") {
  HostSession session;
  void* host = nullptr;
  REQUIRE(session.acl.aclrtMallocHost(&host, 64) == 0);
  std::memset(host, 6, 64);
  void* const memory = session.allocate(64);
  REQUIRE(session.acl.aclrtMemcpy(memory, 64, host, 64, kind::host_to_device) == 0);
  CHECK(read_back(session, memory, 64) == std::vector<unsigned char>(64, 6));
  CHECK(session.acl.aclrtFreeHost(host) == 0);
}

TEST_CASE("copying an address onto itself does nothing and succeeds") {
  HostSession session;
  void* const memory = session.allocate(64);
  CHECK(session.acl.aclrtMemcpy(memory, 64, memory, 64, kind::device_to_device) == 0);
  REQUIRE(session.acl.aclrtFree(memory) == 0);
  CHECK(session.acl.aclrtMemcpy(memory, 64, memory, 64, kind::device_to_device) == 0);  // not even looked up
}

TEST_CASE("a copy or a set that leaves its block is refused, to the byte") {
  HostSession session;
  auto* const memory = static_cast<char*>(session.allocate(1000));
  std::vector<char> host(8192);
  CHECK(session.acl.aclrtMemcpy(memory, 1000, host.data(), 1000, kind::host_to_device) == 0);
  CHECK(session.acl.aclrtMemcpy(memory, 1001, host.data(), 1001, kind::host_to_device) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::out_of_bounds);
  CHECK(session.acl.aclrtMemcpy(host.data(), 2, memory + 999, 2, kind::device_to_host) == code::rt_drv_internal);
  CHECK(last_cause().available == 1);
  CHECK(session.acl.aclrtMemcpy(host.data(), 1, memory + 1000, 1, kind::device_to_host) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::out_of_bounds);
  CHECK(session.acl.aclrtMemcpy(host.data(), 1, memory + 8000, 1, kind::device_to_host) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK(session.acl.aclrtMemset(memory + 500, 501, 1, 501) == code::rt_drv_internal);
  CHECK(session.acl.aclrtMemset(memory + 500, 500, 1, 500) == 0);
  CHECK(session.acl.aclrtMemset(memory, 10, 1, 11) == code::rt_param_invalid);
  CHECK(session.acl.aclrtMemset(nullptr, 1, 0, 1) == code::invalid_param);
  CHECK(session.acl.aclrtMemset(memory, 1, 0, 0) == 0);
}

TEST_CASE("a pointer of freed memory is no host pointer") {
  HostSession session;
  void* const memory = session.allocate(4096);
  REQUIRE(session.acl.aclrtFree(memory) == 0);
  char host[16] = {};
  CHECK(session.acl.aclrtMemcpy(memory, 16, host, 16, kind::automatic) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK(session.acl.aclrtMemcpy(host, 16, memory, 16, kind::host_to_host) == code::rt_drv_internal);
  CHECK(session.acl.aclrtMemset(memory, 16, 0, 16) == code::rt_drv_internal);
}

TEST_CASE("a host range that runs into the window is a device range, and not a block's") {
  HostSession session;
  void* const memory = session.allocate(4096);
  void* const other = session.allocate(4096);
  const auto* const before = static_cast<const char*>(memory) - 16;
  CHECK(session.acl.aclrtMemcpy(other, 64, before, 64, kind::host_to_device) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_device_memory);
}

TEST_CASE("setting bytes works on device and host memory") {
  HostSession session;
  const std::size_t size = 5 * MiB + 77;  // more than one system call of the cold path fills
  auto* const memory = static_cast<unsigned char*>(session.allocate(size));
  REQUIRE(session.acl.aclrtMemset(memory, size, 0x1ab, size) == 0);  // the low byte counts
  REQUIRE(session.acl.aclrtMemset(memory + 10, 5, 0, 5) == 0);
  const auto bytes = read_back(session, memory, size);
  REQUIRE(bytes.size() == size);
  CHECK(std::count(bytes.begin(), bytes.end(), 0xab) == static_cast<std::ptrdiff_t>(size - 5));
  CHECK(std::count(bytes.begin() + 10, bytes.begin() + 15, 0) == 5);
  char host[8] = {};
  CHECK(session.acl.aclrtMemset(host, 8, 7, 8) == 0);
  CHECK(host[7] == 7);
}

TEST_CASE("a copy inside one block may overlap") {
  HostSession session;
  for (const bool forward : {false, true}) {
    const std::size_t size = 300 * KiB;
    auto* const memory = static_cast<unsigned char*>(session.allocate(size));
    auto expected = pattern(size);
    REQUIRE(put(session, memory, expected) == 0);
    const std::size_t from = forward ? 0 : 1000;
    const std::size_t to = forward ? 1000 : 0;
    std::memmove(expected.data() + to, expected.data() + from, size - 1000);
    REQUIRE(session.acl.aclrtMemcpy(memory + to, size - 1000, memory + from, size - 1000, kind::device_to_device) == 0);
    CHECK(read_back(session, memory, size) == expected);
  }
}

TEST_CASE("copies between blocks work with either of them mapped or not") {
  HostSession session;
  const std::size_t size = 200 * KiB;
  const auto bytes = pattern(size);
  for (const bool map_source : {false, true}) {
    for (const bool map_destination : {false, true}) {
      void* const source = session.allocate(size);
      void* const destination = session.allocate(size);
      REQUIRE(put(session, source, bytes) == 0);
      if (map_source) REQUIRE(PinnedBlock(source).view() != nullptr);
      if (map_destination) REQUIRE(PinnedBlock(destination).view() != nullptr);
      REQUIRE(session.acl.aclrtMemcpy(destination, size, source, size, kind::device_to_device) == 0);
      CHECK(read_back(session, destination, size) == bytes);
      REQUIRE(session.acl.aclrtFree(source) == 0);
      REQUIRE(session.acl.aclrtFree(destination) == 0);
    }
  }
}

TEST_CASE("a block is mapped when four times its size was copied, a small one after 64 KiB") {
  HostSession session;
  const auto copies_until_mapped = [&](std::size_t size) {
    void* const memory = session.allocate(size);
    const auto bytes = pattern(size);
    int copies = 0;
    while (block_counters().views == 0 && copies < 1000) {
      if (put(session, memory, bytes) != 0) return -1;
      ++copies;
    }
    if (read_back(session, memory, size) != bytes) return -1;
    if (session.acl.aclrtFree(memory) != 0) return -1;
    return copies;
  };
  CHECK(copies_until_mapped(MiB) == 5);  // the fifth finds four times the size copied
  CHECK(copies_until_mapped(KiB) == 65);
  CHECK(block_counters().views == 0);
}

TEST_CASE("a view and copies see the same bytes") {
  HostSession session;
  void* const memory = session.allocate(8192);
  REQUIRE(put(session, memory, pattern(8192)) == 0);
  const PinnedBlock block(memory);
  std::byte* const view = block.view();
  REQUIRE(view != nullptr);
  CHECK(std::memcmp(view, pattern(8192).data(), 8192) == 0);
  view[5000] = std::byte{0x5a};
  CHECK(read_back(session, memory, 8192)[5000] == 0x5a);
  CHECK(block.view() == view);
  CHECK(static_cast<void*>(view) != memory);
}

TEST_CASE("a view maps what was asked for, not all that the device has taken") {
  HostSession session;
  constexpr std::size_t size = 2 << 20;
  void* const memory = session.allocate(size);
  const PinnedBlock block(memory);
  REQUIRE(block.backed() > size);  // aclrtMalloc takes a few bytes more, and so a page
  const auto view = reinterpret_cast<std::uintptr_t>(block.view());
  std::uintptr_t end = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    words >> std::hex >> begin;
    if (begin == view) words.ignore(1) >> end;
  }
  CHECK(end == view + size);
}

TEST_CASE("a host pointer that is not mapped is a refusal on the cold path, not a crash") {
  HostSession session;
  void* const memory = session.allocate(8192);
  void* const hole = ::mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(hole != MAP_FAILED);
  CHECK(session.acl.aclrtMemcpy(memory, 8192, hole, 8192, kind::host_to_device) == code::rt_invalid_handle);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(last_cause().system_errno == EFAULT);
  CHECK(session.acl.aclrtMemcpy(hole, 8192, memory, 8192, kind::device_to_host) == code::rt_invalid_handle);
  ::munmap(hole, 8192);
  CHECK(put(session, memory, pattern(8192)) == 0);
}

TEST_CASE("copies between devices need access in both directions (R45)") {
  HostSession session;
  void* const on_0 = session.allocate(4096);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  void* const on_1 = session.allocate(4096);
  REQUIRE(put(session, on_1, pattern(4096)) == 0);
  const auto copy = [&] { return session.acl.aclrtMemcpy(on_0, 4096, on_1, 4096, kind::device_to_device); };
  CHECK(copy() == code::rt_drv_internal);
  CHECK(last_reason() == Reason::peer_access_missing);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(0, 0) == 0);
  CHECK(copy() == code::rt_drv_internal);  // one direction is none
  REQUIRE(session.acl.aclrtSetDevice(0) == 0);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(1, 0) == 0);
  CHECK(copy() == 0);
  CHECK(read_back(session, on_0, 4096) == pattern(4096));
}

TEST_CASE("memory imported on its own device is copied like one's own") {
  HostSession session;
  void* const own = session.allocate(4096);
  void* const imported = import({});
  REQUIRE(put(session, imported, pattern(4096)) == 0);
  CHECK(session.acl.aclrtMemcpy(own, 4096, imported, 4096, kind::automatic) == 0);
  CHECK(read_back(session, own, 4096) == pattern(4096));
  CHECK(session.acl.aclrtMemset(imported, 4096, 1, 4096) == 0);
  CHECK(read_back(session, imported, 4096) == std::vector<unsigned char>(4096, 1));
}

TEST_CASE("R42: memory imported from another device is refused to host copies, inferred and same-device copies") {
  HostSession session;
  enable_both_ways(session);
  void* const imported = import({.device = 1, .local_device = 0});
  void* const own = session.allocate(4096);
  std::vector<unsigned char> host(4096);
  const auto refused = [&](void* to, const void* from, int how) {
    const int got = session.acl.aclrtMemcpy(to, 4096, from, 4096, how);
    return got == code::rt_feature_not_support && last_reason() == Reason::cross_device_copy;
  };
  CHECK(refused(imported, host.data(), kind::host_to_device));
  CHECK(refused(host.data(), imported, kind::device_to_host));
  CHECK(refused(imported, own, kind::device_to_device));
  CHECK(refused(own, imported, kind::device_to_device));
  CHECK(refused(own, imported, kind::automatic));
  CHECK_THAT(session.message(), contains("R42"));
  // What is not on the list: a set, and a copy to a third place.
  CHECK(session.acl.aclrtMemset(imported, 4096, 3, 4096) == 0);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  void* const on_1 = session.allocate(4096);
  CHECK(session.acl.aclrtMemcpy(on_1, 4096, imported, 4096, kind::device_to_device) == 0);
  CHECK(read_back(session, on_1, 4096) == std::vector<unsigned char>(4096, 3));
}

TEST_CASE("R42: the switch allows what some cards do, with peer access") {
  ::setenv("DEVSHARE_HOST_CROSS_DEVICE_COPY", "allow", 1);
  HostSession session;
  void* const imported = import({.device = 1, .local_device = 0});
  CHECK(put(session, imported, pattern(4096)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::peer_access_missing);
  CHECK(session.acl.aclrtMemset(imported, 1, 1, 1) == code::rt_drv_internal);
  enable_both_ways(session);
  CHECK(put(session, imported, pattern(4096)) == 0);
  CHECK(read_back(session, imported, 4096) == pattern(4096));
  void* const own = session.allocate(4096);
  CHECK(session.acl.aclrtMemcpy(own, 4096, imported, 4096, kind::automatic) == 0);
  CHECK(read_back(session, own, 4096) == pattern(4096));
}

TEST_CASE("memory imported for reading is not written") {
  HostSession session;
  void* const imported = import({.read_only = true});
  CHECK(put(session, imported, pattern(16)) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::read_only);
  CHECK(session.acl.aclrtMemset(imported, 1, 1, 1) == code::rt_drv_internal);
  CHECK(read_back(session, imported, 16) == std::vector<unsigned char>(16, 0));
}

TEST_CASE("memory whose exporter has gone cannot be reached in any way") {
  HostSession session;
  std::atomic<std::uint64_t> slot{7};
  std::atomic<std::uint32_t> death{1234};
  const ExporterWatch watch{.slot = &slot, .expected = 7, .death = &death};
  void* const imported = import({.watch = watch});
  void* const own = session.allocate(4096);
  const auto all_refused = [&] {
    char host[16];
    const auto& acl = session.acl;
    const bool view = PinnedBlock(imported).view() == nullptr && last_reason() == Reason::exporter_gone;
    return PinnedBlock(imported).exporter_gone() && view &&
           put(session, imported, pattern(16)) == code::rt_drv_internal && last_reason() == Reason::exporter_gone &&
           acl.aclrtMemcpy(host, 16, imported, 16, kind::device_to_host) == code::rt_drv_internal &&
           acl.aclrtMemcpy(own, 16, imported, 16, kind::device_to_device) == code::rt_drv_internal &&
           acl.aclrtMemset(imported, 16, 0, 16) == code::rt_drv_internal && last_reason() == Reason::exporter_gone;
  };
  REQUIRE(put(session, imported, pattern(16)) == 0);
  slot = 8;  // closed, or freed
  CHECK(all_refused());
  slot = 7;
  CHECK(put(session, imported, pattern(16)) == 0);
  death = 1234 | FUTEX_OWNER_DIED;
  CHECK(all_refused());
  devshare::host::release_import(imported);
}

TEST_CASE("an import begins at its offset in the descriptor, cold and mapped") {
  HostSession session;
  void* const whole = session.allocate(64 * KiB);
  REQUIRE(put(session, whole, pattern(64 * KiB)) == 0);
  ImportedBytes bytes;
  bytes.descriptor = UniqueFd(::dup(PinnedBlock(whole).descriptor()));
  bytes.offset = 8192 + 512;  // not at a page of the host
  bytes.size = 4096;
  bytes.page_size = 4096;
  bytes.device = bytes.local_device = 0;
  void* part = nullptr;
  REQUIRE(devshare::host::adopt_import(std::move(bytes), &part) == 0);
  const auto all = pattern(64 * KiB);
  const std::vector<unsigned char> expected(all.begin() + 8704, all.begin() + 8704 + 4096);
  CHECK(read_back(session, part, 4096) == expected);
  REQUIRE(PinnedBlock(part).view() != nullptr);
  CHECK(std::memcmp(PinnedBlock(part).view(), expected.data(), 4096) == 0);
  CHECK(read_back(session, part, 4096) == expected);
  REQUIRE(session.acl.aclrtMemset(part, 1, 0x77, 1) == 0);
  CHECK(read_back(session, whole, 64 * KiB)[8704] == 0x77);
  devshare::host::release_import(part);
  CHECK(block_counters().views == 0);
}

TEST_CASE("B051: 500 imports live on 64 descriptors, and all of them can be copied") {
  const auto end = in_child([] {
    const rlimit few{64, 64};
    demand(::setrlimit(RLIMIT_NOFILE, &few) == 0, "a limit of 64");
    HostSession session;
    void* const own = session.allocate(4096);
    demand(own != nullptr && put(session, own, pattern(4096)) == 0, "bytes to share");
    const int shared = PinnedBlock(own).descriptor();
    std::vector<void*> imports;
    for (int i = 0; i < 500; ++i) {
      imports.push_back(import({.descriptor = shared}));
      demand(imports.back() != nullptr, "an import");
      demand(block_counters().descriptors <= 1 + 8, "an eighth of the limit is cold");
    }
    for (void* address : imports) demand(read_back(session, address, 4096) == pattern(4096), "its bytes");
    demand(block_counters().views >= 500 - 8, "the others are mapped");
    for (void* address : imports) devshare::host::release_import(address);
    demand(block_counters().views == 0 && block_counters().descriptors == 1, "nothing left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a full descriptor table takes one from the import used least recently") {
  const auto end = in_child([] {
    HostSession session;
    demand(session.allocate(1) != nullptr, "what is opened once is open");
    void* const idle = import({});
    void* const busy = import({});
    char byte = 0;
    demand(session.acl.aclrtMemcpy(&byte, 1, busy, 1, kind::device_to_host) == 0, "a copy");
    const rlimit few{64, 64};
    demand(::setrlimit(RLIMIT_NOFILE, &few) == 0, "a limit of 64");
    while (::dup(0) >= 0) {
    }
    demand(errno == EMFILE, "no descriptor left");
    demand(PinnedBlock(idle).descriptor() >= 0, "both are cold");
    demand(session.allocate(4096) != nullptr, "an allocation finds room");
    demand(PinnedBlock(idle).descriptor() < 0 && PinnedBlock(busy).descriptor() >= 0, "the idle one was mapped");
    demand(session.allocate(4096) != nullptr, "and again");
    void* none = nullptr;
    demand(session.acl.aclrtMalloc(&none, 4096, 0) == code::rt_memory_allocation, "then there is none");
    demand(last_reason() == Reason::descriptor_limit, "descriptor_limit");
    demand(!devshare::host::release_cold_descriptor(), "nothing cold is left");
    demand(session.acl.aclrtMemcpy(&byte, 1, busy, 1, kind::device_to_host) == 0, "they work as before");
    demand(session.acl.aclrtMemcpy(&byte, 1, idle, 1, kind::device_to_host) == 0, "both");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a process without mappings to spare is told the limit, and copies go on without") {
  const auto end = in_child([] {
    HostSession session;
    void* const memory = session.allocate(64 * KiB);
    demand(memory != nullptr, "memory");
    std::vector<unsigned char> bytes(64 * KiB, 4);
    // A sanitizer maps memory for each size that is allocated first, and ends the program where it cannot.
    std::vector<std::vector<char>> of_every_size;
    for (std::size_t size = 16; size <= 64 * KiB; size += size / 16 + 1) of_every_size.emplace_back(size);
    // Shared anonymous pages are a mapping each, whatever lies beside them: up to the kernel's limit.
    const std::size_t page = 4096;
    std::vector<void*> filler;
    filler.reserve(200'000);
    while (filler.size() < filler.capacity()) {
      void* const one = ::mmap(nullptr, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (one == MAP_FAILED) break;
      filler.push_back(one);
    }
    const bool full = filler.size() < filler.capacity();
    std::byte* const view = PinnedBlock(memory).view();
    const auto cause = last_cause();
    int copied = 0;
    for (int i = 0; i < 10 && copied == 0; ++i) copied = put(session, memory, bytes);
    for (void* one : filler) ::munmap(one, page);
    demand(full, "vm.max_map_count is reached");
    demand(view == nullptr, "no view");
    demand(cause.reason == Reason::mapping_limit, "mapping_limit");
    demand(cause.available > 0, "with the limit");
    demand(copied == 0, "copies stay on the descriptor");
    demand(PinnedBlock(memory).view() != nullptr, "and a view is there when there is room");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("freeing waits for the copies in flight") {
  HostSession session;
  std::atomic<int> wrong{0};
  for (int round = 0; round < 30; ++round) {
    const std::size_t size = MiB;
    void* const memory = session.allocate(size);
    const bool mapped = round % 2 == 0;
    if (mapped) REQUIRE(PinnedBlock(memory).view() != nullptr);
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        const auto& acl = session.acl;
        if (acl.aclrtSetDevice(0) != 0) ++wrong;
        std::vector<unsigned char> bytes(size);
        ++ready;
        for (;;) {
          const int got = acl.aclrtMemcpy(bytes.data(), size, memory, size, kind::device_to_host);
          if (got == 0) continue;
          if (got != code::rt_drv_internal || last_reason() != Reason::not_device_memory) ++wrong;
          return;
        }
      });
    }
    while (ready < 3) std::this_thread::yield();
    CHECK(session.acl.aclrtFree(memory) == 0);
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(wrong == 0);
  CHECK(block_counters().views == 0);
  CHECK(block_counters().descriptors == 0);
}

TEST_CASE("imports are mapped under copies that use their descriptor") {
  HostSession session;
  std::atomic<int> wrong{0};
  for (int round = 0; round < 30; ++round) {
    void* const imported = import({.size = 256 * KiB});
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        if (session.acl.aclrtSetDevice(0) != 0) ++wrong;
        std::vector<unsigned char> bytes(256 * KiB, 1);
        for (int pass = 0; pass < 6; ++pass) {
          if (read_back(session, imported, bytes.size()) != std::vector<unsigned char>(bytes.size(), 0)) ++wrong;
        }
      });
    }
    while (devshare::host::release_cold_descriptor()) {
    }
    for (std::thread& thread : threads) thread.join();
    if (block_counters().descriptors != 0) ++wrong;
    devshare::host::release_import(imported);
  }
  CHECK(wrong == 0);
  CHECK(block_counters().views == 0);
}
