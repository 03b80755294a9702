// SPDX-License-Identifier: Apache-2.0
// The machine's pages behind device memory: huge ones where they are wished and free, all of them from the start where
// that is wished, and what is said of them.
#include "physical_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/huge_pages.hpp"
#include "support/isolation.hpp"
#include "support/sanitizers.hpp"

#include "host/backing_facts.hpp"
#include "host/block.hpp"
#include "host/page_wish.hpp"
#include "host/physical.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using devshare::HostBacking;
using devshare::HostPages;
using devshare::Populate;
using devshare::host::backing_at;
using devshare::host::backing_of;
using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::PinnedBlock;
using devshare::host::Reason;
using devshare::host::view_of;
using devshare::host::ViewAccess;
using devshare::test::demand;
using devshare::test::HugePages;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::MiB;
using devshare::test::on_host;
using devshare::test::pattern;
using devshare::test::PhysicalSession;
using devshare::test::piece_size;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;

namespace {

constexpr HostBacking huge{HostBacking::Pages::huge, true, HugePages::bytes};

// What this thread asks for while it lives.
class Wish {
 public:
  explicit Wish(devshare::detail::HostWish wish) { host::wish_pages(wish); }
  ~Wish() { host::wish_pages({}); }
  Wish(const Wish&) = delete;
  Wish& operator=(const Wish&) = delete;
};
constexpr devshare::detail::HostWish for_huge{.pages = HostPages::huge_if_free};
constexpr devshare::detail::HostWish for_all_now{.populate = Populate::now};

bool is_normal(const HostBacking& backing) {
  return backing.pages == HostBacking::Pages::normal && backing.page_size < HugePages::bytes;
}

std::byte* view(const void* address, std::size_t size) {
  return static_cast<std::byte*>(view_of(address, size, ViewAccess::read_write));
}

// Writes a pattern by a copy, reads it by another and by a view.
void holds_bytes(const PhysicalSession& session, void* memory, std::size_t size, unsigned seed) {
  const std::vector<unsigned char> bytes = pattern(size, seed);
  REQUIRE(session.write(memory, bytes) == 0);
  CHECK((session.read(memory, size) == bytes));  // in brackets: megabytes are not to be printed
  const auto* const seen = reinterpret_cast<const unsigned char*>(view(memory, size));
  REQUIRE(seen != nullptr);
  CHECK((std::vector<unsigned char>(seen, seen + size) == bytes));
}

long faults() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

// Page faults of writing one byte to each page of a view.
long faults_of_touching(void* memory, std::size_t size) {
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(view(memory, size));
  const long before = faults();
  for (std::size_t at = 0; at < size; at += 4096) bytes[at] = 1;
  return faults() - before;
}

std::size_t in_use() { return static_cast<std::size_t>(host::bytes_in_use(0)); }

}  // namespace

TEST_CASE("memory that nobody asks anything for is in normal pages, none of them there yet, and says so") {
  PhysicalSession session;
  void* const memory = session.allocate(4 * MiB);
  CHECK(is_normal(backing_at(memory, 4 * MiB)));
  CHECK_FALSE(backing_at(memory, 4 * MiB).populated);
  const auto handle = session.physical();
  CHECK(is_normal(backing_of(handle)));
  CHECK_FALSE(backing_of(handle).populated);
}

TEST_CASE("of what is no memory of the runtime's the pages are unknown") {
  PhysicalSession session;
  int local = 0;
  CHECK(backing_at(&local, sizeof local) == HostBacking{});
  CHECK(backing_at(nullptr, 1) == HostBacking{});
  void* const memory = session.allocate(4096);
  CHECK(backing_at(memory, 0) == HostBacking{});
  CHECK(backing_at(memory, 4 * MiB) == HostBacking{});  // not all of it is memory
  REQUIRE(session.acl.aclrtFree(memory) == 0);
  CHECK(backing_at(memory, 4096) == HostBacking{});
  CHECK(backing_of(nullptr) == HostBacking{});

  std::vector<char> own(2 * 4096);
  void* const page = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(own.data()) + 4095) / 4096 * 4096);
  void* device_address = nullptr;
  REQUIRE(session.acl.aclrtHostRegister(page, 4096, acl::host_register_type::mapped, &device_address) == 0);
  CHECK(backing_at(device_address, 4096) == HostBacking{});  // the program's own
}

TEST_CASE("a wish for huge pages that the machine has not is no failure: memory is in normal ones, and says so") {
  const HugePages none(0);
  if (!none.why_not().empty()) DEVSHARE_SKIP(none.why_not());
  PhysicalSession session;
  const Wish wish(for_huge);
  void* const memory = session.allocate(100);
  CHECK(is_normal(backing_at(memory, 100)));
  CHECK(in_use() == 4096);  // not rounded to pages that it has not
  const auto handle = session.physical();
  CHECK(is_normal(backing_of(handle)));
  holds_bytes(session, memory, 100, 1);
}

TEST_CASE("aclrtMalloc takes huge pages where they are wished and free, gives them back, and counts whole ones") {
  const HugePages pool(4);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  const Counters before = counters();
  {
    const Wish wish(for_huge);
    void* const small = session.allocate(100);
    void* const large = session.allocate(3 * MiB);
    CHECK(backing_at(small, 100) == huge);
    CHECK(backing_at(large, 3 * MiB) == huge);
    CHECK(HugePages::free_pages() == 1);
    CHECK(in_use() == 6 * MiB);
    CHECK(counters().bytes == before.bytes + 6 * MiB);
    holds_bytes(session, small, 100, 1);
    holds_bytes(session, large, 3 * MiB, 2);
    CHECK(session.acl.aclrtMemset(large, 3 * MiB, 7, 3 * MiB) == 0);
    CHECK(session.read(static_cast<std::byte*>(large) + MiB, 5) == std::vector<unsigned char>(5, 7));
    // Between two of them, and inside one whose ranges overlap.
    CHECK(session.acl.aclrtMemcpy(small, 100, large, 100, acl::memcpy_kind::device_to_device) == 0);
    CHECK(session.read(small, 100) == std::vector<unsigned char>(100, 7));
    CHECK(session.acl.aclrtMemcpy(static_cast<std::byte*>(small) + 1, 99, small, 99,
                                  acl::memcpy_kind::device_to_device) == 0);

    const PinnedBlock block(large);
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    CHECK((::fcntl(block.descriptor(), F_GET_SEALS) & seals) == seals);
    struct stat file {};
    REQUIRE(::fstat(block.descriptor(), &file) == 0);
    CHECK(file.st_size == static_cast<off_t>(4 * MiB));
  }
  void* const other = session.allocate(4 * MiB);  // the wish has ended
  CHECK(is_normal(backing_at(other, 4 * MiB)));
  session.acl.aclFinalize();
  CHECK(HugePages::free_pages() == 4);
}

TEST_CASE("freed huge memory is back in the pool at once") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  const Wish wish(for_huge);
  for (int round = 0; round < 20; ++round) {
    const Counters before = counters();
    void* const memory = session.allocate(3 * MiB);
    REQUIRE(backing_at(memory, 3 * MiB) == huge);
    const std::byte* const bytes = view(memory, 3 * MiB);
    CHECK(bytes[0] == std::byte{0});  // fresh memory is zero, whoever had the page before
    CHECK(bytes[3 * MiB - 1] == std::byte{0});
    REQUIRE(session.acl.aclrtMemset(memory, 3 * MiB, 0x5a, 3 * MiB) == 0);
    REQUIRE(session.acl.aclrtFree(memory) == 0);
    CHECK(HugePages::free_pages() == 2);
    CHECK(counters() == before);
  }
}

TEST_CASE("a pool that has some huge pages and not enough keeps them: memory is in huge pages whole or not at all") {
  const HugePages pool(3);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  const Wish wish(for_huge);
  void* const first = session.allocate(3 * MiB);
  CHECK(backing_at(first, 3 * MiB) == huge);
  CHECK(HugePages::free_pages() == 1);
  void* const second = session.allocate(3 * MiB);
  CHECK(is_normal(backing_at(second, 3 * MiB)));
  CHECK(HugePages::free_pages() == 1);
  void* const third = session.allocate(MiB);
  CHECK(backing_at(third, MiB) == huge);
  CHECK(HugePages::free_pages() == 0);
  holds_bytes(session, first, 3 * MiB, 1);
  holds_bytes(session, second, 3 * MiB, 2);
  holds_bytes(session, third, MiB, 3);
}

TEST_CASE("a device that has room for the memory and not for whole huge pages gives normal ones") {
  const HugePages pool(4);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  ::setenv("DEVSHARE_HOST_CAPACITY", "3M", 1);
  PhysicalSession session;
  const Wish wish(for_huge);
  CHECK(backing_at(session.allocate(100), 100) == huge);
  CHECK(is_normal(backing_at(session.allocate(100), 100)));
  CHECK(in_use() == 2 * MiB + 4096);
  void* too_much = nullptr;
  CHECK(session.acl.aclrtMalloc(&too_much, 2 * MiB, 0) == code::rt_memory_allocation);
  CHECK(last_reason() == Reason::capacity);
  CHECK(HugePages::free_pages() == 3);
}

TEST_CASE("a process that may map no more gets normal pages, and what its limit allows") {
  if (devshare::test::under_sanitizer()) DEVSHARE_SKIP("a sanitizer needs more addresses than the limit leaves");
  const HugePages pool(8);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  const auto end = in_child([] {
    PhysicalSession session;
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit little{pages * 4096 + 8 * MiB, RLIM_INFINITY};
    demand(::setrlimit(RLIMIT_AS, &little) == 0, "a limit");
    const Wish wish({.pages = HostPages::huge_if_free, .populate = Populate::now});
    void* const memory = session.allocate(15 * MiB);
    demand(memory != nullptr, "memory");
    demand(is_normal(backing_at(memory, 15 * MiB)), "in normal pages");
    demand(!backing_at(memory, 15 * MiB).populated, "not mapped");
    demand(HugePages::free_pages() == 8, "and no huge page is kept");
    demand(session.acl.aclrtMemset(memory, MiB, 1, MiB) == 0, "it is used by its descriptor");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a sandbox that refuses any step to huge pages gets normal ones, and no page is lost") {
  if (const std::string why = devshare::test::why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  const auto outcome = [](auto refuse) {
    return in_child([&] {
      demand(refuse() == 0, "a filter");
      PhysicalSession session;
      const Wish wish(for_huge);
      void* const memory = session.allocate(3 * MiB);
      demand(memory != nullptr && is_normal(backing_at(memory, 3 * MiB)), "normal pages");
      demand(is_normal(backing_of(session.physical())), "also for a handle");
      demand(HugePages::free_pages() == 2, "the pool is whole");
    });
  };
  const auto creating = outcome([] { return devshare::test::refuse_memfd_create(EPERM, MFD_HUGETLB); });
  INFO(creating.in_words());
  CHECK(creating.good());
  for (const int error : {EPERM, ENOSYS, ENOSPC}) {
    const auto taking = outcome([error] { return devshare::test::refuse_system_call(SYS_fallocate, error); });
    INFO(error << ": " << taking.in_words());
    CHECK(taking.good());
  }
}

TEST_CASE("memory that is wanted at once has all its pages: touching it faults no more") {
  constexpr std::size_t size = 8 * MiB;
  constexpr long pages = size / 4096;
  PhysicalSession session;
  void* lazy = session.allocate(size);
  const long one_by_one = faults_of_touching(lazy, size);
  const Wish wish(for_all_now);
  const Counters before = counters();
  void* const ready = session.allocate(size);
  const HostBacking backing = backing_at(ready, size);
  CHECK(is_normal(backing));
  CHECK(backing.populated);
  if (!devshare::test::under_sanitizer()) CHECK(faults_of_touching(ready, size) < pages / 16);  // its own pages fault as well
  CHECK(one_by_one > pages / 16);
  holds_bytes(session, ready, size, 1);
  REQUIRE(session.acl.aclrtFree(ready) == 0);
  CHECK(counters() == before);
}

TEST_CASE("a handle whose memory is wanted at once has its pages before it is mapped, and its mappings have them all") {
  PhysicalSession session;
  const Wish wish(for_all_now);
  const auto handle = session.physical(8 * MiB);
  CHECK(backing_of(handle).populated);
  std::byte* const place = session.reserve(8 * MiB);
  REQUIRE(session.acl.aclrtMapMem(place, 8 * MiB, 0, handle, 0) == 0);
  CHECK(backing_at(place, 8 * MiB).populated);
  if (!devshare::test::under_sanitizer()) CHECK(faults_of_touching(place, 8 * MiB) < 2048 / 16);  // its own pages fault as well
  holds_bytes(session, place, 8 * MiB, 1);
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
}

TEST_CASE("a machine that has not all the pages that are wanted at once refuses with its errno, and nothing is left") {
  if (const std::string why = devshare::test::why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  for (const int error : {ENOSPC, ENOMEM}) {
    const auto end = in_child([error] {
      PhysicalSession session;
      const Counters before = counters();
      demand(devshare::test::refuse_system_call(SYS_fallocate, error) == 0, "a filter");
      const Wish wish(for_all_now);
      void* memory = nullptr;
      demand(session.acl.aclrtMalloc(&memory, MiB, 0) == code::rt_memory_allocation, "207001");
      demand(last_reason() == Reason::no_space, "no_space");
      demand(host::last_cause().system_errno == error, "with the errno");
      demand(host::last_cause().needed >= MiB, "and how much was needed");
      acl::aclrtDrvMemHandle handle = nullptr;
      const auto property = devshare::test::on_device();
      demand(session.acl.aclrtMallocPhysical(&handle, piece_size, &property, 0) == code::rt_memory_allocation,
             "207001");
      demand(last_reason() == Reason::no_space, "no_space for a handle");
      demand(counters() == before && in_use() == 0, "nothing is left");
    });
    INFO(error << ": " << end.in_words());
    CHECK(end.good());
  }
}

TEST_CASE("a sandbox that knows no way to take pages at once is no failure") {
  if (const std::string why = devshare::test::why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  const auto end = in_child([] {
    PhysicalSession session;
    demand(devshare::test::refuse_system_call(SYS_fallocate, EPERM) == 0, "a filter");
    const Wish wish(for_all_now);
    demand(session.allocate(MiB) != nullptr, "memory");
    demand(!backing_of(session.physical()).populated, "a handle says what it has not");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("a signal that comes again and again does not keep memory from getting its pages") {
  const auto end = in_child([] {
    PhysicalSession session;
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};
    demand(::sigaction(SIGALRM, &quiet, nullptr) == 0, "a handler");
    const itimerval often{{0, 4000}, {0, 4000}};
    demand(::setitimer(ITIMER_REAL, &often, nullptr) == 0, "a timer");
    const Wish wish(for_all_now);
    void* const memory = session.allocate(64 * MiB);
    demand(memory != nullptr && backing_at(memory, 64 * MiB).populated, "all pages");
    const itimerval never{};
    demand(::setitimer(ITIMER_REAL, &never, nullptr) == 0, "no timer");
  });
  INFO(end.in_words());
  CHECK(end.good());
}

TEST_CASE("the environment asks for a program that knows nothing of devshare") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  ::setenv("DEVSHARE_HOST_BACKING_PAGES", "huge_if_free", 1);
  {
    PhysicalSession session;
    CHECK(backing_at(session.allocate(100), 100) == huge);
    CHECK(backing_of(session.physical()) == huge);
    CHECK(is_normal(backing_at(session.allocate(100), 100)));  // no third is free
  }
  ::setenv("DEVSHARE_HOST_BACKING_PAGES", "normal", 1);
  ::setenv("DEVSHARE_HOST_BACKING_POPULATE", "now", 1);
  {
    PhysicalSession session;
    const HostBacking backing = backing_at(session.allocate(100), 100);
    CHECK(is_normal(backing));
    CHECK(backing.populated);
  }
  for (const char* const variable : {"DEVSHARE_HOST_BACKING_PAGES", "DEVSHARE_HOST_BACKING_POPULATE"}) {
    ::setenv(variable, "1", 1);
    PhysicalSession session;
    CHECK(session.start_code == code::invalid_param);
    ::unsetenv(variable);
  }
}

TEST_CASE("memory in files is in their pages, whatever is wished") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  ::setenv("DEVSHARE_HOST_BACKING", "/tmp", 1);
  PhysicalSession session;
  const Wish wish({.pages = HostPages::huge_if_free, .populate = Populate::now});
  void* const memory = session.allocate(MiB);
  CHECK(is_normal(backing_at(memory, MiB)));
  holds_bytes(session, memory, MiB, 1);
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("pieces in huge and in normal pages lie side by side in one reservation, and end one by one") {
  const HugePages pool(4);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  const auto fill = [&](std::size_t i, std::size_t size, bool wished) {
    const Wish wish(wished ? for_huge : devshare::detail::HostWish{});
    session.fill_in(place + i * piece_size, size);
  };
  fill(0, piece_size, false);
  fill(1, 2 * piece_size, true);
  fill(3, piece_size, false);
  CHECK(backing_at(place + piece_size, 2 * piece_size) == huge);
  CHECK(is_normal(backing_at(place, 4 * piece_size)));  // the smallest there are
  CHECK_FALSE(backing_at(place, 4 * piece_size).populated);
  CHECK(HugePages::free_pages() == 2);
  holds_bytes(session, place, 4 * piece_size, 1);
  holds_bytes(session, place + piece_size - 10, 20, 2);

  REQUIRE(session.acl.aclrtUnmapMem(place + piece_size) == 0);
  CHECK(HugePages::free_pages() == 4);
  CHECK(view(place, piece_size) != nullptr);
  CHECK(view(place, 2 * piece_size) == nullptr);  // a hole
  fill(1, piece_size, false);
  fill(2, piece_size, true);
  CHECK(HugePages::free_pages() == 3);
  holds_bytes(session, place, 4 * piece_size, 3);
}

TEST_CASE("one memory in huge pages may be mapped at two addresses, and goes with the last") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  const Wish wish(for_huge);
  const auto handle = session.physical(2 * piece_size);
  std::byte* const first = session.reserve(2 * piece_size);
  std::byte* const second = session.reserve(2 * piece_size);
  REQUIRE(session.acl.aclrtMapMem(first, 2 * piece_size, 0, handle, 0) == 0);
  REQUIRE(session.acl.aclrtMapMem(second, 2 * piece_size, 0, handle, 0) == 0);
  REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  holds_bytes(session, first, 2 * piece_size, 1);
  CHECK((session.read(second, 2 * piece_size) == pattern(2 * piece_size, 1)));
  REQUIRE(session.acl.aclrtUnmapMem(first) == 0);
  CHECK((session.read(second, 2 * piece_size) == pattern(2 * piece_size, 1)));
  CHECK(HugePages::free_pages() == 0);
  REQUIRE(session.acl.aclrtUnmapMem(second) == 0);
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("memory of the host in huge pages is touched at its own address while it is mapped and given") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  PhysicalSession session;
  const Wish wish(for_huge);
  const auto handle = session.physical(2 * piece_size, on_host());
  CHECK(backing_of(handle) == huge);
  std::byte* const place = session.reserve(2 * piece_size);
  REQUIRE(session.acl.aclrtMemMapNoAccess(place, 2 * piece_size, 0, handle, 0) == 0);
  CHECK_FALSE(backing_at(place, 2 * piece_size).populated);  // there is nothing to touch
  acl::aclrtMemAccessDesc access{
      .flags = acl::mem_access::read_write, .location = {.id = 0, .type = acl::mem_location_type::device}, .rsv = {}};
  REQUIRE(session.acl.aclrtMemSetAccess(place, 2 * piece_size, &access, 1) == 0);
  CHECK(backing_at(place, 2 * piece_size) == huge);
  place[3 * MiB] = std::byte{9};
  CHECK(session.read(place + 3 * MiB, 1) == std::vector<unsigned char>{9});
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  REQUIRE(session.acl.aclrtMapMem(place, 2 * piece_size, 0, handle, 0) == 0);
  CHECK(backing_at(place, 2 * piece_size) == huge);
  CHECK(place[3 * MiB] == std::byte{9});
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  REQUIRE(session.acl.aclrtFreePhysical(handle) == 0);
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("memory of a device in huge pages that a3 gives to the host is touched at its own address") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  ::setenv("DEVSHARE_HOST_PROFILE", "a3", 1);
  PhysicalSession session;
  const Wish wish(for_huge);
  std::byte* const place = session.reserve(2 * piece_size);
  session.fill_in(place, 2 * piece_size);
  holds_bytes(session, place, 2 * piece_size, 1);
  acl::aclrtMemAccessDesc access{
      .flags = acl::mem_access::read_write, .location = {.id = 0, .type = acl::mem_location_type::host}, .rsv = {}};
  REQUIRE(session.acl.aclrtMemSetAccess(place, 2 * piece_size, &access, 1) == 0);
  CHECK(std::to_integer<unsigned char>(place[3 * MiB]) == pattern(2 * piece_size, 1)[3 * MiB]);
  place[3 * MiB] = std::byte{9};
  CHECK(session.read(place + 3 * MiB, 1) == std::vector<unsigned char>{9});
  REQUIRE(session.acl.aclrtUnmapMem(place) == 0);
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("an import by key of memory in huge pages holds no descriptor, and keeps the pages until it is closed") {
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  ::setenv("DEVSHARE_HOST_EXPORTER_DEATH", "keep", 1);
  PhysicalSession session;
  const Wish wish(for_huge);
  void* const memory = session.allocate(3 * MiB);
  holds_bytes(session, memory, 3 * MiB, 1);
  char key[acl::ipc_key_size];
  REQUIRE(session.acl.aclrtIpcMemGetExportKey(memory, 3 * MiB, key, sizeof key,
                                              acl::ipc_export::disable_pid_validation) == 0);
  const std::uint64_t descriptors = counters().descriptors;
  void* imported = nullptr;
  REQUIRE(session.acl.aclrtIpcMemImportByKey(&imported, key, 0) == 0);  // open to all, the exporter included
  CHECK(counters().descriptors == descriptors);
  CHECK(backing_at(imported, 3 * MiB) == huge);
  CHECK((session.read(imported, 3 * MiB) == pattern(3 * MiB, 1)));
  holds_bytes(session, imported, 3 * MiB, 2);
  CHECK((session.read(memory, 3 * MiB) == pattern(3 * MiB, 2)));
  REQUIRE(session.acl.aclrtFree(memory) == 0);
  CHECK(HugePages::free_pages() == 0);
  REQUIRE(session.acl.aclrtIpcMemClose(key) == 0);
  CHECK(HugePages::free_pages() == 2);
}

TEST_CASE("an import whose view cannot be had is refused, and nothing is left of it") {
  if (devshare::test::under_sanitizer()) DEVSHARE_SKIP("a sanitizer needs more addresses than the limit leaves");
  const HugePages pool(9);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  const auto end = in_child([] {
    PhysicalSession session;
    const Wish wish(for_huge);
    void* const memory = session.allocate(16 * MiB);
    char key[acl::ipc_key_size];
    demand(session.acl.aclrtIpcMemGetExportKey(memory, 16 * MiB, key, sizeof key,
                                               acl::ipc_export::disable_pid_validation) == 0,
           "a key");
    const Counters before = counters();
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit little{pages * 4096 + 8 * MiB, RLIM_INFINITY};
    demand(::setrlimit(RLIMIT_AS, &little) == 0, "a limit");
    void* imported = nullptr;
    demand(session.acl.aclrtIpcMemImportByKey(&imported, key, 0) == code::rt_memory_allocation, "207001");
    demand(last_reason() == Reason::mapping_limit, "mapping_limit");
    demand(counters() == before, "nothing is left");
  });
  INFO(end.in_words());
  CHECK(end.good());
}
