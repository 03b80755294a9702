// SPDX-License-Identifier: Apache-2.0
// An actor that shares by key over the C ABI alone: what the stories of the key path have in common.
#pragma once

#include "support/soon.hpp"
#include "support/story.hpp"

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/host.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace devshare::test {

using host::Reason;
namespace code = acl::code;

constexpr std::uint64_t listed = acl::ipc_export::listed;
constexpr std::uint64_t open_to_all = acl::ipc_export::disable_pid_validation;
constexpr std::size_t size = 4096;

struct Key {
  char bytes[acl::ipc_key_size];
};

using Switches = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline const acl::Table& api() { return host::table(); }

// One process of a story: a session of the host runtime and the calls of the key path, each of which must succeed.
class Process {
 public:
  explicit Process(Actor& me, Switches switches = {}, std::int32_t device = 0) : me_(me) {
    for (const auto& [name, value] : switches) me.expect(host::set(name, value), "there is such a switch");
    me.expect_equal(api().aclInit(nullptr), 0, "aclInit");
    me.expect_equal(api().aclrtSetDevice(device), 0, "aclrtSetDevice");
  }

  std::int32_t bare_pid() const {
    std::int32_t pid = 0;
    me_.expect_equal(api().aclrtDeviceGetBareTgid(&pid), 0, "aclrtDeviceGetBareTgid");
    return pid;
  }
  void* allocate(std::size_t bytes = size) const {
    void* memory = nullptr;
    me_.expect_equal(api().aclrtMalloc(&memory, bytes, acl::malloc_policy::huge_first), 0, "aclrtMalloc");
    return memory;
  }
  Key export_key(void* memory, std::uint64_t flags, std::size_t bytes = size) const {
    Key key{};
    me_.expect_equal(api().aclrtIpcMemGetExportKey(memory, bytes, key.bytes, sizeof key.bytes, flags), 0,
                     "aclrtIpcMemGetExportKey");
    return key;
  }
  void admit(const Key& key, std::int32_t pid) const {
    me_.expect_equal(api().aclrtIpcMemSetImportPid(key.bytes, &pid, 1), 0, "aclrtIpcMemSetImportPid");
  }
  void* import_key(const Key& key, std::uint64_t flags = 1) const {
    void* imported = nullptr;
    const acl::aclError result = api().aclrtIpcMemImportByKey(&imported, key.bytes, flags);
    if (result != 0) me_.expect(false, fmt::format("the import fails: {} {}", result, text()));
    return imported;
  }
  void import_fails(const Key& key, acl::aclError expected, Reason reason) const {
    void* imported = nullptr;
    me_.expect_equal(api().aclrtIpcMemImportByKey(&imported, key.bytes, 1), expected, "the code of the refused import");
    me_.expect_equal(host::last_cause().reason, reason, "the reason of the refused import");
  }
  void close(const Key& key) const { me_.expect_equal(api().aclrtIpcMemClose(key.bytes), 0, "aclrtIpcMemClose"); }
  void free(void* memory) const { me_.expect_equal(api().aclrtFree(memory), 0, "aclrtFree"); }
  void fill(void* memory, unsigned char value, std::size_t bytes = size) const {
    me_.expect_equal(api().aclrtMemset(memory, bytes, value, bytes), 0, "aclrtMemset");
  }
  // The byte at an offset, or -1 and the reason kept when it cannot be read.
  int peek(const void* memory, std::size_t offset = 0) const {
    unsigned char byte = 0;
    const auto* at = static_cast<const char*>(memory) + offset;
    return api().aclrtMemcpy(&byte, 1, at, 1, acl::memcpy_kind::device_to_host) == 0 ? byte : -1;
  }
  void is_lost(const void* memory) const {
    me_.expect_equal(peek(memory), -1, "the memory can no longer be read");
    me_.expect_equal(host::last_cause().reason, Reason::exporter_gone, "because its exporter has gone");
  }
  std::string text() const {
    const char* recent = api().aclGetRecentErrMsg();
    return recent != nullptr ? recent : "";
  }
  void has_text(std::string_view part) const {
    const std::string recent = text();
    me_.expect(recent.find(part) != std::string::npos, fmt::format("'{}' is in the text: {}", part, recent));
  }
  // Imports a key and closes it, again and again, until another actor has come to a step. How often.
  int import_until(std::string_view who, std::string_view step, const Key& key) const {
    std::atomic<bool> over{false};
    std::thread waiting([&] {
      me_.pause_until(who, step);
      over = true;
    });
    int rounds = 0;
    for (; !over; ++rounds) {
      import_key(key);
      close(key);
    }
    waiting.join();
    return rounds;
  }
  void finalize() const { me_.expect_equal(api().aclFinalize(), 0, "aclFinalize"); }

 private:
  Actor& me_;
};

}  // namespace devshare::test
