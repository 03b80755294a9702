// SPDX-License-Identifier: Apache-2.0
// Sharing by key and fork: a child holds, serves and closes nothing of its parent (R4, B064).
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

TEST_CASE("B064 a forked child neither holds its parent's endpoint open nor closes anything of it") {
  Story story;
  story.kill("A", at("forked"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, open_to_all);
    const Key other = a.export_key(memory, open_to_all);
    me.send("B", key);
    me.send("B", other);
    // The child outlives A and has copies of everything A had.
    const pid_t child = ::fork();
    if (child == 0) {
      void* mine = nullptr;
      const bool refused = api().aclrtIpcMemClose(key.bytes) == code::rt_context_null &&
                           api().aclrtIpcMemImportByKey(&mine, key.bytes, 0) == code::rt_context_null;
      if (!refused) ::_exit(1);
      while (::getppid() != 1 && ::getppid() != 0) std::this_thread::sleep_for(10ms);
      std::this_thread::sleep_for(500ms);
      ::_exit(0);
    }
    me.send("B", child);
    me.pause_until("B", "imported");
    me.expect_equal(a.peek(memory), 'a', "A's memory is untouched by its child");
    me.step("forked");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    const Key other = me.receive<Key>("A");
    const auto child = me.receive<pid_t>("A");
    void* memory = b.import_key(key);
    me.step("imported");
    me.pause_until_ended("A");
    me.expect_equal(::kill(child, 0), 0, "the child lives on");
    const auto started = std::chrono::steady_clock::now();
    b.is_lost(memory);
    b.import_fails(other, code::rt_drv_internal, Reason::exporter_gone);
    me.expect(std::chrono::steady_clock::now() - started < 4s, "B did not wait for the deadline of 5 s");
    ::kill(child, SIGKILL);
  });
  story.run();
}

TEST_CASE("B064 a forked child that initialises anew shares under its own name") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer lets the child of a threaded process start no thread");
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, open_to_all);
    me.send("B", key);
    me.pause_until("B", "ready");
    const pid_t child = ::fork();
    if (child == 0) {
      void* mine = nullptr;
      Key own{};
      const bool works = api().aclInit(nullptr) == 0 && api().aclrtSetDevice(0) == 0 &&
                         api().aclrtMalloc(&mine, size, acl::malloc_policy::huge_first) == 0 &&
                         api().aclrtMemset(mine, size, 'c', size) == 0 &&
                         api().aclrtIpcMemGetExportKey(mine, size, own.bytes, sizeof own.bytes, open_to_all) == 0 &&
                         std::memcmp(own.bytes, key.bytes, 16) != 0;
      void* parents = nullptr;  // the child imports from its parent like anybody else
      unsigned char byte = 0;
      const bool imports = api().aclrtIpcMemImportByKey(&parents, key.bytes, 0) == 0 &&
                           api().aclrtMemcpy(&byte, 1, parents, 1, acl::memcpy_kind::device_to_host) == 0 &&
                           byte == 'a' && api().aclrtIpcMemClose(key.bytes) == 0;
      ::_exit(!works ? 1 : !imports ? 2 : api().aclFinalize() == 0 ? 0 : 3);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    me.expect_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "the child exports, imports and finalises");
    me.expect_equal(a.peek(memory), 'a', "A's memory is untouched by its child");
    me.step("child done");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    me.step("ready");
    me.pause_until("A", "child done");
    me.expect_equal(b.peek(b.import_key(key)), 'a', "A still serves");
    me.step("done");
  });
  story.run();
}

TEST_CASE("B064 forking under eight threads that export and import neither hangs nor disturbs") {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const Key key = a.export_key(a.allocate(), open_to_all);
    me.send("B", key);
    const Key others = me.receive<Key>("B");
    std::atomic<bool> stop{false};
    std::atomic<int> bad{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (api().aclrtSetDevice(0) != 0) ++bad;
        while (!stop) {
          void* memory = nullptr;
          Key own{};
          if (api().aclrtMalloc(&memory, size, acl::malloc_policy::huge_first) != 0 ||
              api().aclrtIpcMemGetExportKey(memory, size, own.bytes, sizeof own.bytes, open_to_all) != 0 ||
              api().aclrtIpcMemClose(own.bytes) != 0 || api().aclrtFree(memory) != 0) {
            ++bad;
          }
        }
      });
      threads.emplace_back([&] {
        if (api().aclrtSetDevice(0) != 0) ++bad;
        while (!stop) {
          void* imported = nullptr;
          if (api().aclrtIpcMemImportByKey(&imported, others.bytes, 1) != 0 ||
              api().aclrtIpcMemClose(others.bytes) != 0) {
            ++bad;
          }
        }
      });
    }
    constexpr int forks = under_sanitizer() ? 20 : 100;
    for (int i = 0; i < forks; ++i) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(api().aclrtIpcMemClose(key.bytes) == code::rt_context_null ? 0 : 1);
      int status = 0;
      ::waitpid(child, &status, 0);
      me.expect_equal(status, 0, "the child is told R4 and ends");
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    me.expect_equal(bad.load(), 0, "no thread was disturbed");
    me.step("forked");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    me.send("A", b.export_key(b.allocate(), open_to_all));
    me.expect(b.import_until("A", "forked", key) > 0, "B imported all the while");
    me.step("done");
  });
  story.run();
}

TEST_CASE("a child of a raw clone, which runs no handlers, is told R4 and can begin its own runtime") {
  if (sees_races()) DEVSHARE_SKIP("ThreadSanitizer follows no raw clone");
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    void* memory = a.allocate();
    a.fill(memory, 'a');
    const Key key = a.export_key(memory, open_to_all);
    me.send("B", key);
    me.pause_until("B", "imported");
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) {
      if (api().aclrtIpcMemClose(key.bytes) != code::rt_context_null) ::_exit(1);
      if (api().aclInit(nullptr) != 0 || api().aclrtSetDevice(0) != 0) ::_exit(2);
      void* mine = nullptr;
      Key own{};
      if (api().aclrtMalloc(&mine, size, acl::malloc_policy::huge_first) != 0 ||
          api().aclrtIpcMemGetExportKey(mine, size, own.bytes, sizeof own.bytes, open_to_all) != 0) {
        ::_exit(3);
      }
      ::_exit(std::memcmp(own.bytes, key.bytes, 16) != 0 ? 0 : 4);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    me.expect_equal(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "the child's way");
    me.step("cloned");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    const Key key = me.receive<Key>("A");
    void* memory = b.import_key(key);
    me.step("imported");
    me.pause_until("A", "cloned");
    me.expect_equal(b.peek(memory), 'a', "A still has its memory");
    b.close(key);
    b.import_key(key);
    me.expect_equal(host::counters().connections, std::uint64_t{1}, "and its connection to B");
    me.step("done");
  });
  story.run();
}
