// SPDX-License-Identifier: Apache-2.0
// Identities of processes, the whitelist that is made of them, and the control page by which an end is seen.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"
#include "support/sanitizers.hpp"
#include "support/soon.hpp"

#include "host/control_page.hpp"
#include "host/peer_identity.hpp"
#include "host/whitelist.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare::host;
using namespace devshare::test;

namespace {

UniqueFd pidfd_of(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

ProcessIdentity identity(pid_t pid) { return identity_of(pidfd_of(pid).get(), pid); }

// A child that waits to be ended.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~Sleeper() { end(); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

Peer peer_for(pid_t pid) { return {identity(pid), pid, ::geteuid()}; }

bool owner_died(const ExporterWatch& watch) { return (watch.death->load() & FUTEX_OWNER_DIED) != 0; }

}  // namespace

TEST_CASE("a process has one identity, and no two processes have the same") {
  const ProcessIdentity mine = identity(::getpid());
  REQUIRE(mine);
  CHECK(mine == identity(::getpid()));
  Sleeper child;
  const ProcessIdentity childs = identity(child.pid());
  REQUIRE(childs);
  CHECK_FALSE(childs == mine);
  child.end();
  CHECK_FALSE(identity(child.pid()));
}

TEST_CASE("exec keeps an identity, as it keeps a start time") {
  int gate[2];
  REQUIRE(::pipe2(gate, O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    static_cast<void>(::read(gate[0], &byte, 1));
    ::execlp("sleep", "sleep", "60", static_cast<char*>(nullptr));
    ::_exit(1);
  }
  const ProcessIdentity before = identity(child);
  ::close(gate[0]);
  CHECK(::write(gate[1], "x", 1) >= -1);
  ::close(gate[1]);
  CHECK(soon([&] {
    char name[64] = {};
    const std::string path = "/proc/" + std::to_string(child) + "/comm";
    const UniqueFd file(::open(path.c_str(), O_RDONLY));
    return file && ::read(file.get(), name, sizeof name) > 0 && std::string(name).starts_with("sleep");
  }));
  CHECK(identity(child) == before);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("the kernel names both ends of a connection to each other") {
  int both[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) == 0);
  const UniqueFd left(both[0]);
  const UniqueFd right(both[1]);
  const auto peer = identify_peer(left.get());
  REQUIRE(peer);
  CHECK(peer->pid == ::getpid());
  CHECK(peer->uid == ::geteuid());
  CHECK(peer->identity == identity(::getpid()));
  CHECK(peer_user(left.get()) == ::geteuid());
  const UniqueFd no_socket(::dup(0));
  CHECK_FALSE(identify_peer(no_socket.get()));
}

TEST_CASE("a number made from an inode is positive and larger than any pid") {
  for (const std::uint64_t inode : {std::uint64_t{1}, std::uint64_t{4242}, UINT64_MAX, std::uint64_t{1} << 31}) {
    CHECK(inode_number({inode, 0}) >= first_inode_number);
  }
  CHECK(inode_number({1, 0}) != inode_number({2, 0}));
}

TEST_CASE("the directory finds live processes, keeps them, and notices that one has ended") {
  ProcessDirectory directory;
  Sleeper child;
  ProcessIdentity found;
  REQUIRE(directory.resolve(child.pid(), &found) == ProcessDirectory::Outcome::alive);
  CHECK(found == identity(child.pid()));
  const std::size_t held = count_descriptors();
  CHECK(directory.resolve(child.pid(), &found) == ProcessDirectory::Outcome::alive);
  CHECK(count_descriptors() == held);  // asked again: one descriptor, one poll
  const pid_t ended = child.pid();
  child.end();
  CHECK(directory.resolve(ended, &found) == ProcessDirectory::Outcome::nobody);
  CHECK(count_descriptors() == held - 1);
  for (const pid_t nobody : {0, -1, -ended, 1 << 22, INT32_MAX}) {
    CHECK(directory.resolve(nobody, &found) == ProcessDirectory::Outcome::nobody);
  }
}

TEST_CASE("a zombie and a thread are no processes to be admitted") {
  ProcessDirectory directory;
  ProcessIdentity found;
  const pid_t zombie = ::fork();
  if (zombie == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(zombie), &info, WEXITED | WNOWAIT) == 0);
  CHECK(directory.resolve(zombie, &found) == ProcessDirectory::Outcome::nobody);
  ::waitpid(zombie, nullptr, 0);
  pid_t thread_number = 0;
  std::thread([&] {
    thread_number = ::gettid();
    CHECK(directory.resolve(thread_number, &found) == ProcessDirectory::Outcome::nobody);
  }).join();
}

TEST_CASE("a whitelist lets in whom it lists, by either form of the number, and nobody else") {
  if (!in_initial_pid_namespace()) DEVSHARE_SKIP("plain pids are not believed inside a container");
  ProcessDirectory directory;
  const Sleeper first;
  const Sleeper second;
  Whitelist list;
  CHECK(list.any() == 0);
  CHECK(list.judge(peer_for(first.pid()), 0) == Whitelist::Verdict::not_listed);
  REQUIRE(list.admit(first.pid(), directory));
  CHECK(list.judge(peer_for(first.pid()), 0) == Whitelist::Verdict::admitted);
  CHECK(list.judge(peer_for(second.pid()), 0) == Whitelist::Verdict::not_listed);
  // What a peer claims to be lets nobody in.
  CHECK(list.judge(peer_for(second.pid()), first.pid()) == Whitelist::Verdict::not_listed);
  if (pidfd_inodes_differ()) {
    REQUIRE(list.admit(inode_number(identity(second.pid())), directory));
    CHECK(list.judge(peer_for(second.pid()), 0) == Whitelist::Verdict::admitted);
    // Seen from another namespace a peer has no pid at all, and still its identity.
    Peer foreign = peer_for(second.pid());
    foreign.pid = 0;
    CHECK(list.judge(foreign, 0) == Whitelist::Verdict::admitted);
  }
  Peer unknown;
  CHECK(list.judge(unknown, 0) == Whitelist::Verdict::not_listed);
}

TEST_CASE("a number stands for the process that had it when it was admitted (R15)") {
  if (!in_initial_pid_namespace()) DEVSHARE_SKIP("plain pids are not believed inside a container");
  ProcessDirectory directory;
  Whitelist list;
  Sleeper child;
  const Peer peer = peer_for(child.pid());
  REQUIRE(list.admit(child.pid(), directory));
  // As if the number had passed to another process since.
  Peer later = peer;
  later.identity.serial += 1;
  CHECK(list.judge(later, 0) == Whitelist::Verdict::listed_too_early);
  Peer unknown = peer;
  unknown.identity = {};
  CHECK(list.judge(unknown, 0) == Whitelist::Verdict::listed_too_early);
  child.end();
  REQUIRE(list.admit(peer.pid, directory));  // again, for nobody now
  CHECK(list.judge(peer, 0) == Whitelist::Verdict::listed_too_early);
  CHECK(list.size() == 1);
}

TEST_CASE("several numbers are listed together, or none of them is") {
  if (!in_initial_pid_namespace() && pidfd_inodes_differ()) DEVSHARE_SKIP("plain pids are not looked up in a nested namespace");
  ProcessDirectory directory;
  Whitelist list;
  REQUIRE(list.admit(first_inode_number, directory));
  const Sleeper sleeper;
  const std::vector<std::int32_t> numbers{first_inode_number + 1, sleeper.pid(), first_inode_number + 2};
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t before = std::exchange(limit.rlim_cur, 0);  // nobody can be looked up
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const bool admitted = list.admit(numbers, directory);
  limit.rlim_cur = before;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  CHECK(!admitted);
  CHECK(list.size() == 1);
  CHECK(list.admit(numbers, directory));
  CHECK(list.size() == 4);
  CHECK(list.admit(std::vector<std::int32_t>{}, directory));
  CHECK(list.size() == 4);
}

TEST_CASE("a control page shows the end of a key to whoever was given its word") {
  std::unique_ptr<ControlPage> page;
  REQUIRE(ControlPage::create(77, &page) == 0);
  const auto view = ControlPageView::map(UniqueFd(::dup(page->descriptor())), 77);
  REQUIRE(view);
  const std::uint64_t word = page->turn_on(5);
  const ExporterWatch watch = view->watch(5, word, true);
  CHECK_FALSE(watch.gone());
  CHECK(view->watch(6, 1, true).gone());  // nothing was ever exported there
  page->turn_off(5);
  CHECK(watch.gone());
  const std::uint64_t next = page->turn_on(5);
  CHECK(next != word);
  CHECK(watch.gone());  // a new key in the same slot is not the old one
  CHECK_FALSE(view->watch(5, next, true).gone());
  CHECK(view->watch(most_keys - 1, page->turn_on(most_keys - 1), false).death == nullptr);
}

TEST_CASE("nobody but the exporter can write its control page or resize it") {
  std::unique_ptr<ControlPage> page;
  REQUIRE(ControlPage::create(77, &page) == 0);
  const UniqueFd given(::dup(page->descriptor()));
  CHECK(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, given.get(), 0) == MAP_FAILED);
  CHECK(::pwrite(given.get(), "x", 1, 0) == -1);
  CHECK(::ftruncate(given.get(), 0) == -1);
  CHECK(::ftruncate(given.get(), 1 << 30) == -1);
  void* readable = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, given.get(), 0);
  REQUIRE(readable != MAP_FAILED);
  CHECK(::mprotect(readable, 4096, PROT_READ | PROT_WRITE) == -1);
  ::munmap(readable, 4096);
}

TEST_CASE("what is no sealed control page of that exporter is not taken for one") {
  std::unique_ptr<ControlPage> page;
  REQUIRE(ControlPage::create(77, &page) == 0);
  CHECK(ControlPageView::map(UniqueFd(::dup(page->descriptor())), 78) == nullptr);
  struct Fake {
    off_t length;
    int seals;
  };
  const off_t whole = ::lseek(page->descriptor(), 0, SEEK_END);
  for (const Fake fake : {Fake{0, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}, Fake{whole, 0},
                          Fake{whole, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL}}) {
    UniqueFd file(::memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(file.get(), fake.length) == 0);
    if (fake.seals != 0) REQUIRE(::fcntl(file.get(), F_ADD_SEALS, fake.seals) == 0);
    CHECK(ControlPageView::map(file, 0) == nullptr);  // right in size and seals at last, and full of zeros
  }
  CHECK(ControlPageView::map(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), 77) == nullptr);
}

TEST_CASE("the death word tells of the end of the thread that holds it, however that comes") {
  using Ending = std::function<void()>;
  const std::vector<std::pair<const char*, Ending>> endings = {
      {"SIGKILL", [] { ::kill(::getpid(), SIGKILL); }},
      {"_exit", [] { ::_exit(0); }},
      {"abort",
       [] {
         ::signal(SIGABRT, SIG_DFL);
         std::abort();
       }},
      {"exec", [] { ::execlp("sleep", "sleep", "60", static_cast<char*>(nullptr)); }},
  };
  for (const auto& [name, ending] : endings) {
    CAPTURE(name);
    std::unique_ptr<ControlPage> page;
    REQUIRE(ControlPage::create(77, &page) == 0);
    const auto view = ControlPageView::map(UniqueFd(::dup(page->descriptor())), 77);
    const ExporterWatch watch = view->watch(0, page->turn_on(0), true);
    if (watch.death == nullptr) DEVSHARE_SKIP("this C library's mutexes are not known");
    int held[2];
    REQUIRE(::pipe2(held, O_CLOEXEC) == 0);
    int go[2];
    REQUIRE(::pipe2(go, O_CLOEXEC) == 0);
    const pid_t exporter = ::fork();
    if (exporter == 0) {
      std::thread([&] {
        page->hold_death_word();
        static_cast<void>(::write(held[1], "x", 1));
        while (true) ::pause();
      }).detach();
      char byte = 0;
      static_cast<void>(::read(go[0], &byte, 1));
      ending();
      ::_exit(9);
    }
    char byte = 0;
    REQUIRE(::read(held[0], &byte, 1) == 1);
    CHECK_FALSE(owner_died(watch));
    CHECK_FALSE(watch.gone());
    REQUIRE(::write(go[1], "x", 1) == 1);
    CHECK(soon([&] { return owner_died(watch); }));
    CHECK(watch.gone());
    ::kill(exporter, SIGKILL);
    ::waitpid(exporter, nullptr, 0);
    for (const int end : {held[0], held[1], go[0], go[1]}) ::close(end);
  }
}

TEST_CASE("an orderly end leaves the death word unharmed") {
  std::unique_ptr<ControlPage> page;
  REQUIRE(ControlPage::create(77, &page) == 0);
  const auto view = ControlPageView::map(UniqueFd(::dup(page->descriptor())), 77);
  const ExporterWatch watch = view->watch(0, page->turn_on(0), true);
  if (watch.death == nullptr) DEVSHARE_SKIP("this C library's mutexes are not known");
  std::thread([&] {
    page->hold_death_word();
    page->release_death_word();
  }).join();
  CHECK_FALSE(owner_died(watch));
  CHECK_FALSE(watch.gone());
}
