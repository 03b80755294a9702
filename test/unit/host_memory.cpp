// SPDX-License-Identifier: Apache-2.0
// aclrtMalloc, aclrtFree, aclrtMallocHost, aclrtFreeHost: sizes, pages, codes, and every way the system can say no.
#include "host/block.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"
#include "support/isolation.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_directory.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

using devshare::host::block_counters;
using devshare::host::last_cause;
using devshare::host::PinnedBlock;
using devshare::host::Reason;
using devshare::test::contains;
using devshare::test::demand;
using devshare::test::HostSession;
using devshare::test::in_child;
using devshare::test::last_reason;
namespace code = devshare::acl::code;
namespace policy = devshare::acl::malloc_policy;

namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t GiB = 1024 * MiB;

std::uint64_t page_of(const void* address) { return PinnedBlock(address).page_size(); }

}  // namespace

TEST_CASE("aclrtMalloc refuses a null pointer and no bytes") {
  HostSession session;
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(nullptr, 1, 0) == code::invalid_param);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(session.acl.aclrtMalloc(&address, 0, 0) == code::invalid_param);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(address == nullptr);
}

TEST_CASE("R1: memory calls need a current device") {
  HostSession session(-1);
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(&address, 1, 0) == code::rt_context_null);
  CHECK(last_reason() == Reason::no_context);
  CHECK(session.acl.aclrtMallocHost(&address, 1) == code::rt_context_null);
  CHECK(session.acl.aclrtFree(&address) == code::rt_context_null);
  CHECK(session.acl.aclrtFreeHost(&address) == code::rt_context_null);
  CHECK(session.acl.aclrtMemset(&address, 1, 0, 1) == code::rt_context_null);
  CHECK(session.acl.aclrtMemcpy(&address, 1, &session, 1, 0) == code::rt_context_null);
  CHECK(address == nullptr);
}

TEST_CASE("the policy decides the pages, and the size where it leaves that open") {
  HostSession session;
  CHECK(page_of(session.allocate(MiB, policy::huge_first)) == 4 * KiB);
  CHECK(page_of(session.allocate(MiB + 1, policy::huge_first)) == 2 * MiB);
  CHECK(page_of(session.allocate(1, policy::huge_only)) == 2 * MiB);
  CHECK(page_of(session.allocate(64 * MiB, policy::normal_only)) == 4 * KiB);
  CHECK(page_of(session.allocate(1, policy::huge_first_p2p)) == 4 * KiB);
  CHECK(page_of(session.allocate(1, policy::huge_only_p2p)) == 2 * MiB);
  CHECK(page_of(session.allocate(5, policy::normal_only_p2p)) == 4 * KiB);
  // A number that is no policy: huge pages from one huge page on.
  CHECK(page_of(session.allocate(2 * MiB - 1, 77)) == 4 * KiB);
  CHECK(page_of(session.allocate(2 * MiB, 77)) == 2 * MiB);
  CHECK(page_of(session.allocate(1, policy::low_band_width)) == 4 * KiB);
}

TEST_CASE("B031: the pages are those of the emulated card, whatever the machine's are") {
  ::setenv("DEVSHARE_HOST_NORMAL_PAGE", "64K", 1);
  ::setenv("DEVSHARE_HOST_HUGE_PAGE", "16M", 1);
  HostSession session;
  void* const small = session.allocate(1);
  void* const large = session.allocate(2 * MiB);
  CHECK(page_of(small) == 64 * KiB);
  CHECK(page_of(large) == 16 * MiB);
  CHECK(PinnedBlock(large).base() % (16 * MiB) == 0);
  CHECK(PinnedBlock(small).backed() == 64 * KiB);
}

TEST_CASE("pages of 1 GiB are for products that have them") {
  {
    HostSession session;
    void* const memory = session.allocate(GiB, policy::huge_1g_only);
    CHECK(page_of(memory) == GiB);
    CHECK(PinnedBlock(memory).backed() == GiB);  // without the 32 bytes that other policies add
    CHECK(PinnedBlock(memory).base() % GiB == 0);
  }
  ::setenv("DEVSHARE_HOST_PROFILE", "training", 1);
  HostSession session;
  void* memory = nullptr;
  CHECK(session.acl.aclrtMalloc(&memory, GiB, policy::huge_1g_only) == code::rt_feature_not_support);
  CHECK(last_reason() == Reason::unsupported);
}

TEST_CASE("a block takes its size in units of 32 bytes and 32 more, in whole pages") {
  const auto backed = [](std::size_t size) {
    HostSession session;
    return PinnedBlock(session.allocate(size)).backed();
  };
  CHECK(backed(1) == 4096);
  CHECK(backed(4064) == 4096);
  CHECK(backed(4065) == 8192);
  CHECK(backed(2 * MiB) == 4 * MiB);
  ::setenv("DEVSHARE_HOST_PROFILE", "950", 1);
  CHECK(backed(4096) == 4096);
  CHECK(backed(2 * MiB) == 2 * MiB);
}

TEST_CASE("a block is as large as was asked for, and aligned") {
  HostSession session;
  void* const memory = session.allocate(100);
  const PinnedBlock block(memory);
  CHECK(block.size() == 100);
  CHECK(block.base() % 64 == 0);
  CHECK(block.base() == reinterpret_cast<std::uintptr_t>(memory));
}

TEST_CASE("fresh memory reads zero, also at an address that held something else") {
  HostSession session;
  std::vector<unsigned char> bytes(3 * MiB, 0xee);
  for (int round = 0; round < 3; ++round) {
    void* const memory = session.allocate(bytes.size());
    std::vector<unsigned char> read(bytes.size(), 1);
    REQUIRE(session.acl.aclrtMemcpy(read.data(), read.size(), memory, read.size(), 2) == 0);
    CHECK(std::count(read.begin(), read.end(), 0) == static_cast<std::ptrdiff_t>(read.size()));
    REQUIRE(session.acl.aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), 1) == 0);
    REQUIRE(session.acl.aclrtFree(memory) == 0);
  }
}

TEST_CASE("sizes that no device has are refused without a wrap-around") {
  HostSession session;
  void* address = nullptr;
  for (const std::size_t size : {SIZE_MAX, SIZE_MAX - 31, SIZE_MAX - 63, SIZE_MAX / 2, 65 * GiB}) {
    for (const int asked : {policy::huge_first, policy::normal_only, policy::huge_1g_only}) {
      CHECK(session.acl.aclrtMalloc(&address, size, asked) == code::rt_memory_allocation);
      CHECK(last_reason() == Reason::capacity);
    }
  }
  CHECK(address == nullptr);
  CHECK(session.allocate(4096) != nullptr);
}

TEST_CASE("B047: a device that is full says what was needed and what is there, and is unharmed") {
  ::setenv("DEVSHARE_HOST_CAPACITY", "1M", 1);
  HostSession session;
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(&address, MiB, 0) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::capacity);
  CHECK(last_cause().needed >= MiB);
  CHECK(last_cause().available == MiB);
  void* const half = session.allocate(MiB / 2);
  REQUIRE(half != nullptr);
  CHECK(session.acl.aclrtMalloc(&address, MiB / 2, 0) == code::rt_memory_allocation);
  CHECK(last_cause().available == MiB - MiB / 2 - 4 * KiB);
  REQUIRE(session.acl.aclrtFree(half) == 0);
  CHECK(session.allocate(MiB / 2) != nullptr);
}

TEST_CASE("aclrtFree refuses what it did not give") {
  HostSession session;
  auto* const memory = static_cast<char*>(session.allocate(8192));
  int local = 0;
  CHECK(session.acl.aclrtFree(nullptr) == code::invalid_param);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(session.acl.aclrtFree(&local) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK_THAT(session.message(), contains("host memory"));
  CHECK(session.acl.aclrtFree(memory + 4096) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_block_start);
  CHECK(session.acl.aclrtFree(memory + (std::size_t{1} << 30)) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK(session.acl.aclrtFreeWithDevSync(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtFreeWithDevSync(memory) == 0);
  CHECK(session.acl.aclrtFreeWithDevSync(memory) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_device_memory);
}

TEST_CASE("freeing twice is refused, from one thread and from eight at once") {
  HostSession session;
  void* const memory = session.allocate(4096);
  CHECK(session.acl.aclrtFree(memory) == 0);
  CHECK(session.acl.aclrtFree(memory) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK_THAT(session.message(), contains("aclrtFree: RT_PARAM_INVALID"));
  for (int round = 0; round < 50; ++round) {
    void* const contested = session.allocate(4096);
    std::atomic<int> freed{0};
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        if (session.acl.aclrtSetDevice(0) != 0) return;
        (session.acl.aclrtFree(contested) == 0 ? freed : refused)++;
      });
    }
    for (std::thread& thread : threads) thread.join();
    REQUIRE(freed == 1);
    REQUIRE(refused == 7);
  }
}

TEST_CASE("R23: an imported address ends with its key, not with aclrtFree") {
  HostSession session;
  devshare::host::ImportedBytes bytes;
  bytes.descriptor = devshare::host::UniqueFd(::memfd_create("test", MFD_CLOEXEC));
  REQUIRE(::ftruncate(bytes.descriptor.get(), 4096) == 0);
  bytes.size = bytes.page_size = 4096;
  bytes.device = bytes.local_device = 0;
  void* address = nullptr;
  REQUIRE(devshare::host::adopt_import(std::move(bytes), &address) == 0);
  CHECK(session.acl.aclrtFree(address) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::imported_memory);
  CHECK(PinnedBlock(address));
  devshare::host::release_import(address);
  devshare::host::release_import(address);  // once more is harmless
  CHECK(block_counters().imports == 0);
}

TEST_CASE("aclFinalize takes back all that was not freed") {
  const std::size_t before = devshare::test::count_descriptors();
  {
    HostSession session;
    for (int i = 0; i < 50; ++i) REQUIRE(session.allocate(4000) != nullptr);
    REQUIRE(PinnedBlock(session.allocate(4000)).view() != nullptr);
    CHECK(block_counters().allocations == 51);
    CHECK(block_counters().allocated_bytes == 51 * 4096);
    CHECK(block_counters().descriptors == 51);
    CHECK(block_counters().views == 1);
  }
  CHECK(block_counters().allocations == 0);
  CHECK(block_counters().allocated_bytes == 0);
  CHECK(block_counters().descriptors == 0);
  CHECK(block_counters().views == 0);
  CHECK(devshare::test::count_descriptors() == before);
  HostSession again;
  CHECK(again.allocate(4096) != nullptr);
}

TEST_CASE("B049: a thousand rounds of allocate, copy and free leave no descriptor") {
  HostSession session;
  REQUIRE(session.allocate(1) != nullptr);  // what is opened once is open now
  const std::size_t before = devshare::test::count_descriptors();
  char byte = 1;
  for (int round = 0; round < 1000; ++round) {
    void* const memory = session.allocate(4096);
    if (session.acl.aclrtMemcpy(memory, 1, &byte, 1, 1) != 0) FAIL("copy");
    if (session.acl.aclrtFree(memory) != 0) FAIL("free");
  }
  CHECK(devshare::test::count_descriptors() == before);
}

TEST_CASE("B066: every descriptor of device memory is close-on-exec and sealed") {
  HostSession session;
  const PinnedBlock block(session.allocate(4096));
  CHECK(block.sealed());
  CHECK((::fcntl(block.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(::fcntl(block.descriptor(), F_GET_SEALS) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
  CHECK(::ftruncate(block.descriptor(), 0) == -1);
}

TEST_CASE("B051: with 64 descriptors, allocations end in a clear refusal and one free makes room") {
  const auto end = in_child([] {
    HostSession session;
    demand(session.allocate(1) != nullptr, "a first allocation");
    const rlimit few{64, 64};
    demand(::setrlimit(RLIMIT_NOFILE, &few) == 0, "a limit of 64");
    std::vector<void*> blocks;
    void* address = nullptr;
    int last = 0;
    while (blocks.size() < 500 && (last = session.acl.aclrtMalloc(&address, 4096, 0)) == 0) blocks.push_back(address);
    demand(last == code::rt_memory_allocation, "207001");
    demand(last_reason() == Reason::descriptor_limit, "descriptor_limit");
    demand(last_cause().system_errno == EMFILE, "errno 24 is kept");
    demand(last_cause().available == 64, "the limit is named");
    demand(session.message().find("64 file descriptors of RLIMIT_NOFILE") != std::string::npos, "and in the text");
    demand(blocks.size() > 40 && blocks.size() < 64, "one descriptor for each allocation");
    for (void* block : blocks) {
      char byte = 7;
      demand(session.acl.aclrtMemcpy(block, 1, &byte, 1, 1) == 0, "earlier blocks are unharmed");
    }
    demand(session.acl.aclrtFree(blocks.back()) == 0, "free one");
    demand(session.acl.aclrtMalloc(&address, 4096, 0) == 0, "and one fits again");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("DEVSHARE_HOST_RAISE_NOFILE=1 raises the soft limit in aclInit, and nothing else does") {
  const auto limit_after_init = [](const char* asked) {
    return in_child([asked] {
      const rlimit soft{256, 512};
      demand(::setrlimit(RLIMIT_NOFILE, &soft) == 0, "a soft limit below the hard one");
      if (asked != nullptr) ::setenv("DEVSHARE_HOST_RAISE_NOFILE", asked, 1);
      HostSession session;
      demand(session.start_code == 0, "aclInit");
      rlimit now{};
      ::getrlimit(RLIMIT_NOFILE, &now);
      demand(now.rlim_cur == (asked != nullptr && *asked == '1' ? 512 : 256), "the soft limit");
    });
  };
  for (const char* asked : {static_cast<const char*>(nullptr), "0", "1"}) {
    const auto end = limit_after_init(asked);
    INFO((asked != nullptr ? asked : "unset") << ": " << end.in_words());
    CHECK(end.good());
  }
}

TEST_CASE("B047: a backing file system that is too small is a refusal with both numbers and no SIGBUS") {
  if (const std::string reason = devshare::test::why_no(devshare::test::Isolation::user); !reason.empty()) {
    DEVSHARE_SKIP(reason);
  }
  const devshare::test::TempDirectory directory("small");
  const auto end = in_child([&] {
    std::string error;
    demand(devshare::test::isolate(devshare::test::Isolation::user, &error) == 0, error.c_str());
    demand(::unshare(CLONE_NEWNS) == 0, "a mount namespace");
    demand(::mount("small", directory.path().c_str(), "tmpfs", 0, "size=64k") == 0, "a tmpfs of 64 KiB");
    ::setenv("DEVSHARE_HOST_BACKING", directory.path().c_str(), 1);
    HostSession session;
    void* address = nullptr;
    demand(session.acl.aclrtMalloc(&address, MiB, 0) == code::rt_memory_allocation, "207001");
    demand(last_reason() == Reason::no_space, "no_space");
    demand(last_cause().system_errno == ENOSPC, "ENOSPC");
    demand(last_cause().needed >= MiB, "needed");
    demand(last_cause().available == 64 * KiB, "available: nothing of the attempt is left behind");
    void* const small = session.allocate(16 * KiB);
    demand(small != nullptr, "what fits is given");
    std::array<char, 16 * KiB> bytes;
    bytes.fill(3);
    demand(session.acl.aclrtMemcpy(small, bytes.size(), bytes.data(), bytes.size(), 1) == 0, "and is there");
    demand(PinnedBlock(small).view()[16 * KiB - 1] == std::byte{3}, "also by its view");
    demand(session.acl.aclrtFree(small) == 0, "freed");
    demand(::rmdir((directory.path() + "/.").c_str()) == -1 && errno != ENOTEMPTY, "no file has a name");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a backing directory that is not there is named in the refusal") {
  ::setenv("DEVSHARE_HOST_BACKING", "/nonexistent/devshare", 1);
  HostSession session;
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(&address, 4096, 0) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::backend_unavailable);
  CHECK(last_cause().system_errno == ENOENT);
  CHECK_THAT(session.message(), contains("/nonexistent/devshare"));
}

namespace {

struct MemfdRefusal {
  const char* what;
  unsigned flags;
  int error;
};

constexpr MemfdRefusal memfd_refusals[] = {
    {"EPERM", 0, EPERM},
    {"ENOSYS", 0, ENOSYS},
    {"EPERM for the sealing flag", MFD_ALLOW_SEALING, EPERM},
};

}  // namespace

TEST_CASE("B099: a system that refuses memfd_create is a refusal with its errno") {
  if (const std::string reason = devshare::test::why_no_refused_system_calls(); !reason.empty()) DEVSHARE_SKIP(reason);
  for (const MemfdRefusal& refusal : memfd_refusals) {
    const auto end = in_child([&] {
      demand(devshare::test::refuse_memfd_create(refusal.error, refusal.flags) == 0, "a filter");
      HostSession session;
      void* address = nullptr;
      demand(session.acl.aclrtMalloc(&address, 4096, 0) == code::rt_memory_allocation, "207001");
      demand(last_reason() == Reason::backend_unavailable, "backend_unavailable");
      demand(last_cause().system_errno == refusal.error, "with the errno");
      demand(session.message().find("memfd_create") != std::string::npos, "and the name of the call");
    });
    INFO(refusal.what << ": " << end.in_words());
    CHECK(end.good());
  }
}

TEST_CASE("B099: with the fallback allowed memory works, is visibly unsealed and has no name") {
  if (const std::string reason = devshare::test::why_no_refused_system_calls(); !reason.empty()) DEVSHARE_SKIP(reason);
  ::setenv("DEVSHARE_HOST_FALLBACK", "allow", 1);
  for (const MemfdRefusal& refusal : memfd_refusals) {
    const devshare::test::TempDirectory directory("fallback");
    const auto end = in_child([&] {
      ::setenv("XDG_RUNTIME_DIR", directory.path().c_str(), 1);
      demand(devshare::test::refuse_memfd_create(refusal.error, refusal.flags) == 0, "a filter");
      HostSession session;
      void* const memory = session.allocate(3 * MiB);
      demand(memory != nullptr, "memory");
      const PinnedBlock block(memory);
      demand(!block.sealed(), "it is not sealed, and says so");
      struct stat info {};
      demand(::fstat(block.descriptor(), &info) == 0 && info.st_nlink == 0, "it has no name");
      demand((::fcntl(block.descriptor(), F_GETFD) & FD_CLOEXEC) != 0, "it is close-on-exec");
      std::vector<char> bytes(3 * MiB, 9);
      demand(session.acl.aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), 1) == 0, "copied in");
      bytes.assign(bytes.size(), 0);
      demand(session.acl.aclrtMemcpy(bytes.data(), bytes.size(), memory, bytes.size(), 2) == 0, "copied out");
      demand(bytes.front() == 9 && bytes.back() == 9, "the same bytes");
    });
    INFO(refusal.what << ": " << end.in_words());
    CHECK(end.good());
    CHECK(::rmdir(directory.path().c_str()) == 0);  // nothing left in it
    CHECK(::mkdir(directory.path().c_str(), 0700) == 0);
  }
}

TEST_CASE("where memfd cannot be sealed at all the refusal names the seals") {
  if (const std::string reason = devshare::test::why_no_refused_system_calls(); !reason.empty()) DEVSHARE_SKIP(reason);
  const auto end = in_child([] {
    HostSession session;
    demand(session.allocate(4096) != nullptr, "the state file is open now");
    demand(devshare::test::refuse_system_call(SYS_fcntl, EPERM) == 0, "a filter");
    void* address = nullptr;
    demand(session.acl.aclrtMalloc(&address, 4096, 0) == code::rt_memory_allocation, "207001");
    demand(last_reason() == Reason::backend_unavailable, "backend_unavailable");
    demand(session.message().find("F_ADD_SEALS") != std::string::npos, "names the call");
    demand(block_counters().allocations == 1, "nothing of the attempt is left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("host memory is aligned, freed once, and only what was given") {
  HostSession session;
  void* memory = nullptr;
  CHECK(session.acl.aclrtMallocHost(nullptr, 1) == code::invalid_param);
  CHECK(session.acl.aclrtMallocHost(&memory, 0) == code::invalid_param);
  CHECK(session.acl.aclrtMallocHost(&memory, SIZE_MAX / 2) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::no_space);
  REQUIRE(memory == nullptr);
  REQUIRE(session.acl.aclrtMallocHost(&memory, 1000) == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  std::memset(memory, 5, 1000);
  CHECK(session.acl.aclrtFreeHost(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtFreeHost(static_cast<char*>(memory) + 64) == code::rt_param_invalid);
  CHECK(session.acl.aclrtFree(memory) == code::rt_param_invalid);
  void* const device = session.allocate(100);
  CHECK(session.acl.aclrtFreeHost(device) == code::rt_param_invalid);
  CHECK(session.acl.aclrtFreeHost(memory) == 0);
  CHECK(session.acl.aclrtFreeHost(memory) == code::rt_param_invalid);
}

TEST_CASE("host memory stays readable after aclFinalize and can be freed in the next session") {
  void* memory = nullptr;
  {
    HostSession session;
    REQUIRE(session.acl.aclrtMallocHost(&memory, 64) == 0);
    std::memset(memory, 5, 64);
  }
  CHECK(static_cast<char*>(memory)[63] == 5);
  CHECK(devshare::host::table().aclrtFreeHost(memory) == code::uninitialize);
  HostSession session;
  CHECK(session.acl.aclrtFreeHost(memory) == 0);
}

TEST_CASE("eight threads allocate, copy and free") {
  HostSession session;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned worker = 0; worker < 8; ++worker) {
    threads.emplace_back([&, worker] {
      const auto& acl = session.acl;
      if (acl.aclrtSetDevice(static_cast<std::int32_t>(worker % 2)) != 0) ++wrong;
      std::vector<unsigned char> bytes(20'000);
      for (unsigned round = 0; round < 100; ++round) {
        const std::size_t size = 1 + (worker * 131 + round * 7919) % bytes.size();
        const auto value = static_cast<unsigned char>(worker * 16 + round % 16);
        void* memory = nullptr;
        if (acl.aclrtMalloc(&memory, size, 0) != 0) ++wrong;
        for (int pass = 0; pass < 8; ++pass) {  // enough to switch to a mapping
          std::fill_n(bytes.begin(), size, value);
          if (acl.aclrtMemcpy(memory, size, bytes.data(), size, 1) != 0) ++wrong;
          std::fill_n(bytes.begin(), size, static_cast<unsigned char>(~value));
          if (acl.aclrtMemcpy(bytes.data(), size, memory, size, 2) != 0) ++wrong;
          if (bytes[0] != value || bytes[size - 1] != value) ++wrong;
        }
        if (acl.aclrtFree(memory) != 0) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(block_counters().allocations == 0);
  CHECK(block_counters().descriptors == 0);
  CHECK(block_counters().views == 0);
}
