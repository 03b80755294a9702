// SPDX-License-Identifier: Apache-2.0
// The key calls of the host runtime in one process: the order of their checks, their codes on every product, and the
// rules R10 to R25 as far as one process can break them. Two processes are in process/host_share.cpp.
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/host_session.hpp"

#include "host/key.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using host::Reason;
namespace code = acl::code;
namespace policy = acl::malloc_policy;

namespace {

constexpr std::uint64_t listed = acl::ipc_export::listed;
constexpr std::uint64_t open_to_all = acl::ipc_export::disable_pid_validation;

using Key = std::array<char, acl::ipc_key_size>;

// A session with a current device.
class Machine {
 public:
  explicit Machine(Switches switches = {}) : session_(switches) { REQUIRE(session_->aclrtSetDevice(0) == 0); }
  const acl::Table* operator->() const noexcept { return session_.operator->(); }

  void* allocate(std::size_t size = 4096, acl::aclrtMemMallocPolicy asked = policy::huge_first) const {
    void* memory = nullptr;
    REQUIRE(session_->aclrtMalloc(&memory, size, asked) == 0);
    return memory;
  }
  Key key_of(void* memory, std::size_t size = 4096, std::uint64_t flags = listed) const {
    Key key{};
    REQUIRE(session_->aclrtIpcMemGetExportKey(memory, size, key.data(), key.size(), flags) == 0);
    return key;
  }
  acl::aclError admit(const Key& key, std::vector<std::int32_t> pids) const {
    return session_->aclrtIpcMemSetImportPid(key.data(), pids.data(), pids.size());
  }

 private:
  HostSession session_;
};

Key some_key() {
  Key key{};
  std::memset(key.data(), '7', 64);
  std::memset(key.data() + 16, '0', 8);  // the first slot of whoever that may be
  return key;
}

const char* const all_products[] = {"a2", "a3", "training", "310p", "950"};

}  // namespace

TEST_CASE("aclrtDeviceGetBareTgid needs no session, and is the plain pid of a process that no container hides") {
  std::int32_t pid = 0;
  CHECK(HostSession::api().aclrtDeviceGetBareTgid(&pid) == 0);
  CHECK(pid > 0);
  CHECK(HostSession::api().aclrtDeviceGetBareTgid(nullptr) == code::invalid_param);
  std::array<char, 64> name{};
  if (::readlink("/proc/self/ns/pid", name.data(), name.size() - 1) > 0 &&
      std::string(name.data()) == "pid:[4026531836]") {
    CHECK(pid == ::getpid());
  }
  HostSession session({{"BARE_PID_OFFSET", "100000"}});
  std::int32_t shifted = 0;
  CHECK(session->aclrtDeviceGetBareTgid(&shifted) == 0);
  CHECK(shifted == pid + 100000);
}

TEST_CASE("an export checks its arguments in the documented order") {
  HostSession session;
  Key key{};
  char* const out = key.data();
  char memory = 0;
  // Everything is wrong at once; each line mends what the one before complained of.
  CHECK(session->aclrtIpcMemGetExportKey(nullptr, 0, nullptr, 0, 9) == code::invalid_param);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 0, nullptr, 0, 9) == code::invalid_param);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 0, out, 0, 9) == code::rt_param_invalid);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 1, out, 0, 9) == code::rt_param_invalid);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 1, out, 1, 9) == code::rt_param_invalid);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 1, out, 1, 0) == code::rt_context_null);  // R1
  CHECK(HostSession::reason() == Reason::no_context);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 1, out, 64, 0) == code::rt_param_invalid);  // R11
  CHECK_THAT(HostSession::recent_text(), contains("65"));
  CHECK(session->aclrtIpcMemGetExportKey(&memory, 1, out, 65, 0) == code::rt_drv_internal);  // R10
  CHECK(HostSession::reason() == Reason::not_device_memory);
}

TEST_CASE("a key on most products is 64 printable characters, on 950 binary, and ends with a NUL in both") {
  for (const std::string product : all_products) {
    CAPTURE(product);
    Machine machine({{"PROFILE", product}});
    std::array<char, 256> key{};
    key.fill('#');
    REQUIRE(machine->aclrtIpcMemGetExportKey(machine.allocate(), 4096, key.data(), key.size(), listed) == 0);
    const std::size_t length = std::strlen(key.data());
    CHECK(length == (product == "950" ? 50U : 64U));
    CHECK(std::string(key.data() + 65, 191) == std::string(191, '#'));  // len may be larger; 65 bytes are written
    const host::KeyForm form = product == "950" ? host::KeyForm::binary : host::KeyForm::text;
    CHECK(host::decode_key(key.data(), form));
    CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
  }
}

TEST_CASE("only the start of a live, writable allocation of this process can be exported (R10, R12)") {
  Machine machine;
  auto* const memory = static_cast<char*>(machine.allocate(3 << 20));
  Key key{};
  const auto try_to_export = [&](void* address, std::size_t size) {
    return machine->aclrtIpcMemGetExportKey(address, size, key.data(), key.size(), listed);
  };
  CHECK(try_to_export(memory + 1, 8) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::not_block_start);
  CHECK(try_to_export(memory + (2 << 20), 8) == code::rt_drv_internal);  // a page border is no start either
  CHECK_THAT(HostSession::recent_text(), contains("R10"));
  CHECK(try_to_export(memory, 64 << 20) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::out_of_bounds);
  CHECK(host::last_cause().needed == 64U << 20);
  CHECK(try_to_export(machine.allocate(4096, policy::user_space_read_only), 4096) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::read_only);

  REQUIRE(machine->aclrtFree(memory) == 0);
  CHECK(try_to_export(memory, 8) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::not_device_memory);
  CHECK(host::counters().keys_exported == 0);
}

TEST_CASE("the lenient reading of R10 lets page borders inside an allocation be exported") {
  Machine machine({{"INTERIOR_EXPORT", "allow"}});
  auto* const memory = static_cast<char*>(machine.allocate(1 << 20));  // pages of 4 KiB
  REQUIRE(machine->aclrtMemset(memory, 1 << 20, 1, 1 << 20) == 0);
  REQUIRE(machine->aclrtMemset(memory + 8192, 4096, 2, 4096) == 0);
  Key key{};
  CHECK(machine->aclrtIpcMemGetExportKey(memory + 100, 8, key.data(), key.size(), open_to_all) ==
        code::rt_drv_internal);
  REQUIRE(machine->aclrtIpcMemGetExportKey(memory + 8192, 4096, key.data(), key.size(), open_to_all) == 0);
  void* imported = nullptr;
  REQUIRE(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  std::array<unsigned char, 4096> bytes{};
  REQUIRE(machine->aclrtMemcpy(bytes.data(), 4096, imported, 4096, acl::memcpy_kind::device_to_host) == 0);
  CHECK(std::set<unsigned char>(bytes.begin(), bytes.end()) == std::set<unsigned char>{2});
  // And nothing beyond the range that was exported.
  CHECK(machine->aclrtMemcpy(bytes.data(), 4096, static_cast<char*>(imported) + 1, 4096,
                             acl::memcpy_kind::device_to_host) != 0);
}

TEST_CASE("the 950 looks at the allocation, older drivers at its pages") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    Machine machine({{"PROFILE", product}});
    Key key{};
    const auto exported = machine->aclrtIpcMemGetExportKey(machine.allocate(100), 4096, key.data(), key.size(), listed);
    CHECK(exported == (product == "950" ? code::rt_drv_internal : 0));
  }
}

TEST_CASE("exporting an address twice gives two keys, each with its own list and its own end") {
  Machine machine;
  void* const memory = machine.allocate();
  const Key first = machine.key_of(memory, 4096, open_to_all);
  const Key second = machine.key_of(memory, 4096, listed);
  CHECK(first != second);
  CHECK(host::counters().keys_exported == 2);
  CHECK(machine->aclrtIpcMemClose(first.data()) == 0);
  CHECK(machine.admit(second, {1}) == 0);
  CHECK(machine->aclrtIpcMemClose(second.data()) == 0);
  CHECK(host::counters().keys_exported == 0);
}

TEST_CASE("ten thousand keys of one process are all different") {
  Machine machine;
  void* const memory = machine.allocate();
  std::set<Key> seen;
  for (int i = 0; i < 10'000; ++i) {
    const Key key = machine.key_of(memory);
    CHECK(seen.insert(key).second);
    if (i % 2 == 0) REQUIRE(machine->aclrtIpcMemClose(key.data()) == 0);  // slots are used again, secrets are not
  }
}

TEST_CASE("admission checks its arguments, then whose key it is, then its kind (R13, R16, R17)") {
  HostSession session;
  Key key = some_key();
  std::array<std::int32_t, 40> pids{};
  pids.fill(1);
  CHECK(session->aclrtIpcMemSetImportPid(nullptr, nullptr, 0) == code::invalid_param);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), nullptr, 0) == code::invalid_param);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 0) == code::rt_param_invalid);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 32) == code::rt_param_invalid);
  CHECK(HostSession::reason() == Reason::too_many_pids);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 31) == code::rt_context_null);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 31) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::not_the_exporter);
  CHECK(session->aclrtIpcMemSetImportPid("short", pids.data(), 31) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::unknown_key);

  void* memory = nullptr;
  REQUIRE(session->aclrtMalloc(&memory, 4096, policy::huge_first) == 0);
  REQUIRE(session->aclrtIpcMemGetExportKey(memory, 4096, key.data(), key.size(), open_to_all) == 0);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 1) == code::rt_no_permission);  // R13
  CHECK(HostSession::reason() == Reason::validation_disabled);
  REQUIRE(session->aclrtIpcMemClose(key.data()) == 0);
  CHECK(session->aclrtIpcMemSetImportPid(key.data(), pids.data(), 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::unknown_key);
}

TEST_CASE("pid 0 and the exporter itself are passed over, and nobody is not enough") {
  Machine machine;
  const Key key = machine.key_of(machine.allocate());
  std::int32_t own = 0;
  REQUIRE(machine->aclrtDeviceGetBareTgid(&own) == 0);
  CHECK(machine.admit(key, {0}) == code::rt_drv_internal);
  CHECK(machine.admit(key, {own, 0, own}) == code::rt_drv_internal);
  CHECK(machine.admit(key, {own, 0, 1}) == 0);
  CHECK(machine.admit(key, {INT32_MAX, INT32_MIN, -1}) == 0);  // no such process, so nobody's: not an error
}

TEST_CASE("a list has an end: 32,768 pids, and on 950 65,535") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    Machine machine({{"PROFILE", product}});
    const Key key = machine.key_of(machine.allocate());
    const std::int32_t most = product == "950" ? 65'535 : 32'768;
    constexpr std::int32_t nobody = 1 << 23;  // above every pid: nothing to look up
    acl::aclError refused = 0;
    std::int32_t admitted = 0;
    while (refused == 0 && admitted < most) {
      std::vector<std::int32_t> some;
      while (some.size() < 31 && admitted < most) some.push_back(nobody + admitted++);
      refused = machine.admit(key, some);
    }
    CHECK(refused == 0);
    CHECK(machine.admit(key, {nobody}) == 0);  // on it already
    CHECK(machine.admit(key, {nobody + most}) == code::rt_drv_internal);
    CHECK(HostSession::reason() == Reason::key_limit);
  }
}

TEST_CASE("an import checks its arguments in the documented order") {
  HostSession session;
  const Key key = some_key();
  void* imported = nullptr;
  CHECK(session->aclrtIpcMemImportByKey(nullptr, nullptr, 5) == code::invalid_param);
  CHECK(session->aclrtIpcMemImportByKey(&imported, nullptr, 5) == code::invalid_param);
  CHECK(session->aclrtIpcMemImportByKey(&imported, key.data(), 2) == code::rt_param_invalid);
  CHECK(session->aclrtIpcMemImportByKey(&imported, key.data(), 1) == code::rt_context_null);
  REQUIRE(session->aclrtSetDevice(0) == 0);
  CHECK(session->aclrtIpcMemImportByKey(&imported, key.data(), 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::exporter_gone);  // well spelt, and nobody serves it
  CHECK(session->aclrtIpcMemImportByKey(&imported, "", 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::unknown_key);
  CHECK(imported == nullptr);
  CHECK(host::counters() == host::Counters{});
}

TEST_CASE("an own key is refused while pids are validated, and opens where they are not (950: always)") {
  for (const std::string product : all_products) {
    for (const std::uint64_t flags : {listed, open_to_all}) {
      CAPTURE(product, flags);
      Machine machine({{"PROFILE", product}});
      void* const memory = machine.allocate();
      const Key key = machine.key_of(memory, 4096, flags);
      void* imported = nullptr;
      const acl::aclError result = machine->aclrtIpcMemImportByKey(&imported, key.data(), 1);
      if (flags == listed && product != "950") {
        CHECK(result == code::rt_drv_internal);
        CHECK(HostSession::reason() == Reason::own_key);
        CHECK(host::counters().key_opens == 0);
        continue;
      }
      REQUIRE(result == 0);
      CHECK(host::counters().connections == 0);  // no socket between a process and itself
      REQUIRE(machine->aclrtMemset(memory, 4096, 'x', 4096) == 0);
      char byte = 0;
      CHECK(machine->aclrtMemcpy(&byte, 1, static_cast<char*>(imported) + 4095, 1, acl::memcpy_kind::device_to_host) ==
            0);
      CHECK(byte == 'x');
      // A process that did both closes twice: first its import, then its export.
      CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
      CHECK(host::counters().key_opens == 0);
      CHECK(host::counters().keys_exported == 1);
      CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
      CHECK(host::counters().keys_exported == 0);
      CHECK(machine->aclrtIpcMemClose(key.data()) == code::rt_drv_internal);  // R24
      CHECK(HostSession::reason() == Reason::unknown_key);
    }
  }
}

TEST_CASE("imports of a key are one address and a count; on 950 each is an address of its own") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    Machine machine({{"PROFILE", product}});
    const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
    std::set<void*> addresses;
    for (int i = 0; i < 3; ++i) {
      void* imported = nullptr;
      REQUIRE(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
      addresses.insert(imported);
    }
    CHECK(addresses.size() == (product == "950" ? 3U : 1U));
    CHECK(host::counters().key_opens == 3);
    CHECK(host::counters().keys_imported == 1);
    CHECK(host::counters().imports == addresses.size());
    for (int i = 0; i < 3; ++i) CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
    CHECK(host::counters().imports == 0);
    CHECK(host::counters().keys_exported == 1);
  }
}

TEST_CASE("a key open on one device cannot be opened on another (R25); on 950 it can") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    Machine machine({{"PROFILE", product}});
    const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
    void* here = nullptr;
    REQUIRE(machine->aclrtIpcMemImportByKey(&here, key.data(), 1) == 0);
    REQUIRE(machine->aclrtSetDevice(1) == 0);
    void* there = nullptr;
    const acl::aclError result = machine->aclrtIpcMemImportByKey(&there, key.data(), 1);
    if (product == "950") {
      CHECK(result == 0);
      continue;
    }
    CHECK(result == code::rt_drv_internal);
    CHECK(HostSession::reason() == Reason::on_other_device);
    CHECK(host::last_cause().device == 1);
    CHECK(host::last_cause().peer_device == 0);
    CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
    CHECK(machine->aclrtIpcMemImportByKey(&there, key.data(), 1) == 0);
  }
}

TEST_CASE("across devices an import without the flag needs peer access both ways (R19, R45)") {
  Machine machine;
  const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
  REQUIRE(machine->aclrtSetDevice(1) == 0);
  void* imported = nullptr;
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::peer_access_missing);
  CHECK(host::last_cause().device == 1);
  CHECK(host::last_cause().peer_device == 0);
  REQUIRE(machine->aclrtDeviceEnablePeerAccess(0, 0) == 0);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == code::rt_drv_internal);  // one way only
  REQUIRE(machine->aclrtSetDevice(0) == 0);
  REQUIRE(machine->aclrtDeviceEnablePeerAccess(1, 0) == 0);
  REQUIRE(machine->aclrtSetDevice(1) == 0);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  CHECK(host::counters().descriptors == 2);
}

TEST_CASE("the peer-access flag enables both ways, and they stay on after the close") {
  Machine machine;
  const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
  REQUIRE(machine->aclrtSetDevice(1) == 0);
  void* imported = nullptr;
  REQUIRE(machine->aclrtIpcMemImportByKey(&imported, key.data(), 1) == 0);
  REQUIRE(machine->aclrtIpcMemClose(key.data()) == 0);
  CHECK(host::counters().peer_grants == 2);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
}

TEST_CASE("devices without a link cannot share, whatever the flag") {
  Machine machine({{"PEERS", "00/00"}});
  const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
  REQUIRE(machine->aclrtSetDevice(1) == 0);
  void* imported = nullptr;
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::peer_impossible);
  CHECK(host::counters().imports == 0);
}

TEST_CASE("on 310P only memory of a P2P policy crosses devices (R43)") {
  Machine machine({{"PROFILE", "310p"}});
  const Key plain = machine.key_of(machine.allocate(), 4096, open_to_all);
  const Key p2p = machine.key_of(machine.allocate(4096, policy::huge_first_p2p), 4096, open_to_all);
  void* imported = nullptr;
  CHECK(machine->aclrtIpcMemImportByKey(&imported, plain.data(), 1) == 0);  // on its own device it does not matter
  REQUIRE(machine->aclrtIpcMemClose(plain.data()) == 0);
  REQUIRE(machine->aclrtSetDevice(1) == 0);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, plain.data(), 1) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::p2p_policy_missing);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, p2p.data(), 1) == 0);
}

TEST_CASE(
    "an exporter's close returns 0 with importers open; their copies fail from then on and they can close (R20)") {
  Machine machine;
  void* const memory = machine.allocate();
  const Key key = machine.key_of(memory, 4096, open_to_all);
  void* imported = nullptr;
  REQUIRE(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  REQUIRE(machine->aclrtFree(memory) == 0);  // R22: the importers lose it
  char byte = 0;
  CHECK(machine->aclrtMemcpy(&byte, 1, imported, 1, acl::memcpy_kind::device_to_host) != 0);
  CHECK(HostSession::reason() == Reason::exporter_gone);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == code::rt_drv_internal);  // R18
  CHECK(machine->aclrtIpcMemClose(key.data()) == 0);                                          // the import
  CHECK(machine->aclrtIpcMemClose(key.data()) == 0);  // the export's name, which stays until it is closed
  CHECK(machine->aclrtIpcMemClose(key.data()) == code::rt_drv_internal);
}

TEST_CASE("B041 a key of freed memory never opens what lies at that address next") {
  Machine machine;
  void* const old_memory = machine.allocate();
  const Key old_key = machine.key_of(old_memory, 4096, open_to_all);
  REQUIRE(machine->aclrtFree(old_memory) == 0);
  void* const memory = machine.allocate();
  CHECK(memory == old_memory);  // addresses are used again, lowest first
  const Key key = machine.key_of(memory, 4096, open_to_all);
  void* imported = nullptr;
  CHECK(machine->aclrtIpcMemImportByKey(&imported, old_key.data(), 0) == code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::unknown_key);
  REQUIRE(machine->aclrtIpcMemClose(old_key.data()) == 0);
  const Key newest = machine.key_of(memory, 4096, open_to_all);  // in the slot of the first
  CHECK(machine->aclrtIpcMemImportByKey(&imported, old_key.data(), 0) == code::rt_drv_internal);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, newest.data(), 0) == 0);
}

TEST_CASE("a close checks its argument and knows whose key it is") {
  for (const std::string product : {"a2", "950"}) {
    CAPTURE(product);
    HostSession session({{"PROFILE", product}});
    CHECK(session->aclrtIpcMemClose(nullptr) == code::invalid_param);
    CHECK(session->aclrtIpcMemClose("anything") == code::rt_context_null);
    REQUIRE(session->aclrtSetDevice(0) == 0);
    CHECK(session->aclrtIpcMemClose("anything") == code::rt_drv_internal);
    CHECK(HostSession::reason() == Reason::unknown_key);
    const host::KeyForm form = product == "950" ? host::KeyForm::binary : host::KeyForm::text;
    const host::KeyBytes foreign = host::encode_key(host::new_key_name(12345, 0, form), form);
    CHECK(session->aclrtIpcMemClose(foreign.data()) ==
          (product == "950" ? code::rt_no_permission : code::rt_drv_internal));
    CHECK(HostSession::reason() == Reason::not_imported);
  }
}

TEST_CASE("imported memory can be neither exported nor freed (R12, R23)") {
  Machine machine;
  const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
  void* imported = nullptr;
  REQUIRE(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  Key again{};
  CHECK(machine->aclrtIpcMemGetExportKey(imported, 4096, again.data(), again.size(), open_to_all) ==
        code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::imported_memory);
  CHECK(machine->aclrtFree(imported) != 0);
  CHECK(HostSession::reason() == Reason::imported_memory);
  CHECK(machine->aclrtIpcMemClose(key.data()) == 0);
}

TEST_CASE("links can be chosen where the product has some") {
  const auto choose = [](const std::string& product, std::uint64_t link) {
    Machine machine({{"PROFILE", product}});
    const Key key = machine.key_of(machine.allocate());
    CHECK(machine->aclrtIpcMemSetAttr(nullptr, 0, link) == code::invalid_param);
    CHECK(machine->aclrtIpcMemSetAttr(key.data(), 1, link) == code::rt_param_invalid);
    CHECK(machine->aclrtIpcMemSetAttr(key.data(), 0, 4) == code::rt_param_invalid);
    return machine->aclrtIpcMemSetAttr(key.data(), acl::ipc_attr::access_link, link);
  };
  CHECK(choose("a2", acl::ipc_attr::link_sio) == code::rt_feature_not_support);
  CHECK(choose("310p", acl::ipc_attr::link_sio) == code::rt_feature_not_support);
  CHECK(choose("a3", acl::ipc_attr::link_hccs) == 0);
  CHECK(choose("a3", acl::ipc_attr::link_ub_one_port) == code::rt_link_type_not_supported);
  CHECK(choose("950", acl::ipc_attr::link_ub_multi_port) == 0);
  CHECK(choose("950", acl::ipc_attr::link_sio) == code::rt_link_type_not_supported);
}

TEST_CASE("processes of other servers can be admitted on A3 only, one in each entry") {
  std::int32_t pid = 17;
  acl::aclrtServerPid server{3, &pid, 1};
  const auto admit = [&](const std::string& product, acl::aclrtServerPid* servers, std::size_t num) {
    Machine machine({{"PROFILE", product}});
    const Key key = machine.key_of(machine.allocate());
    return machine->aclrtIpcMemImportPidInterServer(key.data(), servers, num);
  };
  CHECK(admit("a2", &server, 1) == code::rt_feature_not_support);
  CHECK(admit("a3", &server, 1) == 0);
  CHECK(admit("a3", nullptr, 1) == code::invalid_param);
  CHECK(admit("a3", &server, 0) == code::rt_param_invalid);
  server.num = 2;
  CHECK(admit("a3", &server, 1) == code::rt_param_invalid);
}

TEST_CASE("after aclFinalize keys are gone, and the next session has others") {
  Key old_key{};
  {
    Machine machine;
    old_key = machine.key_of(machine.allocate(), 4096, open_to_all);
    void* imported = nullptr;
    REQUIRE(machine->aclrtIpcMemImportByKey(&imported, old_key.data(), 0) == 0);
  }
  CHECK(host::counters() == host::Counters{});
  Machine machine;
  const Key key = machine.key_of(machine.allocate(), 4096, open_to_all);
  void* imported = nullptr;
  CHECK(machine->aclrtIpcMemImportByKey(&imported, old_key.data(), 0) == code::rt_drv_internal);
  CHECK(machine->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
  CHECK(machine->aclrtIpcMemClose(old_key.data()) == code::rt_drv_internal);
}

TEST_CASE("sessions with keys leave no descriptor and no thread behind") {
  const auto threads = [] { return std::string(1, ' ') + std::to_string(count_descriptors()); };
  { Machine machine; }
  const std::string before = threads();
  for (int i = 0; i < 50; ++i) {
    Machine machine;
    machine.key_of(machine.allocate());
  }
  CHECK(threads() == before);
}

TEST_CASE("keys of one process are made, opened and closed by eight threads at once") {
  Machine machine;
  std::atomic<int> bad{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const acl::Table& api = HostSession::api();
      if (api.aclrtSetDevice(0) != 0) ++bad;
      for (int i = 0; i < 200; ++i) {
        void* memory = nullptr;
        void* imported = nullptr;
        Key key{};
        if (api.aclrtMalloc(&memory, 4096, policy::huge_first) != 0 ||
            api.aclrtIpcMemGetExportKey(memory, 4096, key.data(), key.size(), open_to_all) != 0 ||
            api.aclrtIpcMemImportByKey(&imported, key.data(), 0) != 0 || api.aclrtIpcMemClose(key.data()) != 0 ||
            api.aclrtIpcMemClose(key.data()) != 0 || api.aclrtFree(memory) != 0) {
          ++bad;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(bad == 0);
  CHECK(host::counters().allocations == 0);
  CHECK(host::counters().keys_exported == 0);
  CHECK(host::counters().key_opens == 0);
}
