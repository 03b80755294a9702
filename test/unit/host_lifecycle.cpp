// SPDX-License-Identifier: Apache-2.0
// aclInit and aclFinalize and their counts (R2), sessions, the gate that finalizing closes, and error texts.
#include "host/block.hpp"
#include "host/call_arguments.hpp"
#include "host/codes.hpp"
#include "host_session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/sanitizers.hpp"
#include "support/temp_directory.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using devshare::acl::Entry;
using devshare::host::initialised;
using devshare::host::last_cause;
using devshare::host::Reason;
using devshare::host::session_word;
using devshare::host::table;
using devshare::test::ChildEnd;
using devshare::test::contains;
using devshare::test::demand;
using devshare::test::HostSession;
using devshare::test::in_child;
using devshare::test::last_reason;
using devshare::test::TempDirectory;
namespace code = devshare::acl::code;

namespace {

std::uint64_t session_now() { return __atomic_load_n(session_word(), __ATOMIC_ACQUIRE); }

std::string take_message() {
  const char* const text = table().aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

}  // namespace

TEST_CASE("R2: aclInit counts, aclFinalize ends all at once, and both say when it was in vain") {
  const auto& acl = table();
  CHECK(acl.aclFinalize() == code::repeat_finalize);
  CHECK(acl.aclInit(nullptr) == 0);
  CHECK(acl.aclInit(nullptr) == code::repeat_initialize);
  CHECK(acl.aclInit(nullptr) == code::repeat_initialize);
  CHECK(initialised());
  CHECK(acl.aclFinalize() == 0);
  CHECK_FALSE(initialised());
  CHECK(acl.aclFinalize() == code::repeat_finalize);
  CHECK(acl.aclInit(nullptr) == 0);
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("R2: aclFinalizeReference takes one reference and ends the session with the last") {
  const auto& acl = table();
  std::uint64_t left = 99;
  CHECK(acl.aclFinalizeReference(&left) == code::repeat_finalize);
  CHECK(left == 0);
  CHECK(acl.aclInit(nullptr) == 0);
  CHECK(acl.aclInit(nullptr) == code::repeat_initialize);
  CHECK(acl.aclFinalizeReference(&left) == 0);
  CHECK(left == 1);
  CHECK(initialised());
  CHECK(acl.aclFinalizeReference(nullptr) == 0);
  CHECK_FALSE(initialised());
  CHECK(acl.aclFinalizeReference(&left) == code::repeat_finalize);
}

TEST_CASE("every call that needs a session says 100001 without one, and the others answer") {
  const auto& acl = table();
  void* pointer = &pointer;
  char bytes[128] = {};
  std::int32_t number = 0;
  std::size_t size = 0;
  const auto refused = [](int got) { return got == code::uninitialize && last_reason() == Reason::not_initialised; };
  CHECK(refused(acl.aclrtSetDevice(0)));
  CHECK(refused(acl.aclrtResetDevice(0)));
  CHECK(refused(acl.aclrtResetDeviceForce(0)));
  CHECK(refused(acl.aclrtGetDevice(&number)));
  CHECK(refused(acl.aclrtCreateContext(&pointer, 0)));
  CHECK(refused(acl.aclrtDestroyContext(pointer)));
  CHECK(refused(acl.aclrtSetCurrentContext(pointer)));
  CHECK(refused(acl.aclrtGetCurrentContext(&pointer)));
  CHECK(refused(acl.aclrtGetLogicDevIdByUserDevId(0, &number)));
  CHECK(refused(acl.aclrtDeviceCanAccessPeer(&number, 0, 1)));
  CHECK(refused(acl.aclrtDeviceEnablePeerAccess(1, 0)));
  CHECK(refused(acl.aclrtDeviceDisablePeerAccess(1)));
  CHECK(refused(acl.aclrtDevicePeerAccessStatus(0, 1, &number)));
  CHECK(refused(acl.aclrtMalloc(&pointer, 1, 0)));
  CHECK(refused(acl.aclrtFree(pointer)));
  CHECK(refused(acl.aclrtFreeWithDevSync(pointer)));
  CHECK(refused(acl.aclrtMallocHost(&pointer, 1)));
  CHECK(refused(acl.aclrtFreeHost(pointer)));
  CHECK(refused(acl.aclrtGetMemInfo(1, &size, &size)));
  CHECK(refused(acl.aclrtMemcpy(bytes, 1, bytes + 1, 1, 0)));
  CHECK(refused(acl.aclrtMemset(bytes, 1, 0, 1)));
  CHECK(refused(acl.aclrtIpcMemGetExportKey(pointer, 1, bytes, 65, 0)));
  CHECK(refused(acl.aclrtIpcMemSetImportPid(bytes, &number, 1)));
  CHECK(refused(acl.aclrtIpcMemImportByKey(&pointer, bytes, 0)));
  CHECK(refused(acl.aclrtIpcMemClose(bytes)));
  CHECK(refused(acl.aclrtIpcMemSetAttr(bytes, 0, 0)));
  CHECK(refused(acl.aclrtIpcMemImportPidInterServer(bytes, nullptr, 0)));
  CHECK_THAT(take_message(), contains("aclrtIpcMemImportPidInterServer: UNINITIALIZE: aclInit"));

  std::uint32_t count = 0;
  std::int32_t parts[3] = {};
  CHECK(acl.aclrtGetDeviceCount(&count) == 0);
  CHECK(count == 2);
  CHECK(acl.aclrtGetVersion(&parts[0], &parts[1], &parts[2]) == 0);
  CHECK(parts[0] == 1);
  CHECK(acl.aclrtGetVersion(nullptr, &parts[1], &parts[2]) == code::invalid_param);
  CHECK(std::string(acl.aclrtGetSocName()).rfind("Ascend", 0) == 0);
}

namespace {

// A call with nothing in its arguments, which it does not look at without a session.
template <class... Arguments>
int with_nothing(int (*call)(Arguments...)) {
  return call(std::remove_cvref_t<Arguments>{}...);
}
template <class... Arguments>
int with_nothing(const char* (*)(Arguments...)) {
  return 0;  // the two that return a text are told by nobody
}

}  // namespace

TEST_CASE("after aclFinalize every entry of the list but those that need no session says 100001") {
  const std::set<std::string> need_none{
      "aclInit",         "aclFinalize",     "aclFinalizeReference", "aclGetRecentErrMsg",
      "aclrtGetVersion", "aclrtGetSocName", "aclrtGetDeviceCount",  "aclrtDeviceGetBareTgid"};
  REQUIRE(table().aclInit(nullptr) == 0);
  REQUIRE(table().aclrtSetDevice(0) == 0);
  REQUIRE(table().aclFinalize() == 0);
  const auto check = [](const char* name, int got) {
    INFO(name);
    CHECK(got == code::uninitialize);
    CHECK(last_reason() == Reason::not_initialised);
  };
#define DEVSHARE_TEST_ENTRY(name, result, parameters, need, since) \
  if (need_none.count(#name) == 0) check(#name, with_nothing(table().name));
  DEVSHARE_ACL_ENTRIES(DEVSHARE_TEST_ENTRY)
#undef DEVSHARE_TEST_ENTRY
}

TEST_CASE("every entry of the list is there") {
#define DEVSHARE_TEST_ENTRY(name, result, parameters, need, since) CHECK(table().name != nullptr);
  DEVSHARE_ACL_ENTRIES(DEVSHARE_TEST_ENTRY)
#undef DEVSHARE_TEST_ENTRY
}

TEST_CASE("a session has an odd number of its own") {
  const auto& acl = table();
  const std::uint64_t before = session_now();
  CHECK(before % 2 == 0);
  REQUIRE(acl.aclInit(nullptr) == 0);
  const std::uint64_t first = session_now();
  CHECK(first % 2 == 1);
  CHECK(acl.aclInit(nullptr) == code::repeat_initialize);
  CHECK(session_now() == first);
  CHECK(acl.aclFinalize() == 0);
  CHECK(session_now() % 2 == 0);
  CHECK(session_now() != before);
  REQUIRE(acl.aclInit(nullptr) == 0);
  CHECK(session_now() % 2 == 1);
  CHECK(session_now() != first);
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("a configuration is read, and a second one must be the same") {
  const auto& acl = table();
  const TempDirectory directory("config");
  const auto write = [&](const char* name, const char* text) {
    std::ofstream(directory.file(name)) << text;
    return directory.file(name);
  };
  const std::string one = write("one.json", "{}");
  const std::string same = write("same.json", "{}");
  const std::string other = write("other.json", "{\"err_msg_mode\": \"1\"}");
  CHECK(acl.aclInit(directory.file("none.json").c_str()) == code::invalid_file);
  CHECK_THAT(take_message(), contains("none.json"));
  CHECK(acl.aclInit(directory.path().c_str()) == code::invalid_file);
  CHECK_FALSE(initialised());
  CHECK(acl.aclInit(one.c_str()) == 0);
  CHECK(acl.aclInit(same.c_str()) == code::repeat_initialize);
  CHECK(acl.aclInit("") == code::repeat_initialize);
  CHECK(acl.aclInit(other.c_str()) == code::invalid_param);
  std::uint64_t left = 0;
  CHECK(acl.aclFinalizeReference(&left) == 0);
  CHECK(left == 2);  // the refused one did not count
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("a configuration that is no JSON object is refused, and what it says of others is passed over") {
  const auto& acl = table();
  const TempDirectory directory("config");
  const auto start = [&](const std::string& text) {
    const std::string path = directory.file("acl.json");
    std::ofstream(path) << text;
    const int result = acl.aclInit(path.c_str());
    if (result == 0) CHECK(acl.aclFinalize() == 0);
    CHECK_FALSE(initialised());
    return result;
  };
  for (const char* text : {"",
                           " ",
                           "x",
                           "[]",
                           "\"err_msg_mode\"",
                           "{",
                           "{}}",
                           "{} {}",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\":01}",
                           "{\"a\":1.}",
                           "{\"a\":-}",
                           "{\"a\":1e}",
                           "{\"a\":tru}",
                           "{\"a\":\"\\x\"}",
                           "{\"a\":\"\\u12g4\"}",
                           "{\"a\":\"\n\"}",
                           "{\"a\":[1,]}",
                           "{\"a\":[1 2]}",
                           "{\"a\":\"b}"}) {
    INFO(text);
    CHECK(start(text) == code::invalid_file);
    CHECK_THAT(take_message(), contains("acl.json holds no JSON object"));
  }
  CHECK(start("{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}") == code::invalid_file);
  for (const char* text :
       {"{}", "\r\n\t {  } ", "{\"dump\":{\"dump_list\":[{\"model\":\"\\u00e9\\n\"}],\"dump_step\":\"\"}}",
        "{\"a\":[],\"b\":-0.5e+3,\"c\":null,\"d\":[true,false,{}],\"err_msg_mode\":\"0\"}",
        "{\"a\":{\"err_msg_mode\":\"7\"}}"}) {
    INFO(text);
    CHECK(start(text) == 0);
  }
  for (const char* text : {"{\"err_msg_mode\":1}", "{\"err_msg_mode\":\"2\"}", "{\"err_msg_mode\":\"\"}",
                           "{\"err_msg_mode\":null}", "{\"err_msg_mode\":{}}"}) {
    INFO(text);
    CHECK(start(text) == code::invalid_param);
    CHECK_THAT(take_message(), contains("err_msg_mode"));
  }
}

TEST_CASE("err_msg_mode 1 hands out the texts of all threads, once, and belongs to its session") {
  const auto& acl = table();
  const TempDirectory directory("config");
  std::ofstream(directory.file("acl.json")) << "{\"err_msg_mode\": \"1\"}";
  const auto refused_elsewhere = [&] {
    std::thread([&] {
      void* address = nullptr;
      CHECK(acl.aclrtMalloc(&address, 0, 0) == code::invalid_param);
    }).join();
  };
  REQUIRE(acl.aclInit(directory.file("acl.json").c_str()) == 0);
  take_message();
  refused_elsewhere();
  CHECK(take_message() == "aclrtMalloc: INVALID_PARAM: size is 0: ask for one byte at least");
  CHECK(acl.aclGetRecentErrMsg() == nullptr);
  CHECK(acl.aclrtFree(nullptr) == code::invalid_param);
  refused_elsewhere();
  CHECK_THAT(take_message(), contains("aclrtMalloc"));  // the last one, whoever made it
  CHECK(acl.aclrtFree(nullptr) == code::invalid_param);
  std::thread([&] { CHECK_THAT(take_message(), contains("aclrtFree")); }).join();
  CHECK(acl.aclGetRecentErrMsg() == nullptr);
  const char* const handed_out = [&] {
    refused_elsewhere();
    return acl.aclGetRecentErrMsg();
  }();
  refused_elsewhere();
  CHECK_THAT(std::string(handed_out), contains("aclrtMalloc"));  // valid until this thread asks again
  CHECK(acl.aclFinalize() == 0);

  REQUIRE(acl.aclInit(nullptr) == 0);
  take_message();
  refused_elsewhere();
  CHECK(acl.aclGetRecentErrMsg() == nullptr);
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("err_msg_mode 1 is read and written by many threads at once, across fork") {
  // It leaves its locks as they are: one child in a hundred waits for ever, whatever the program is.
  if (devshare::test::sees_leaks()) DEVSHARE_SKIP("AddressSanitizer's allocator is not to be forked under threads that use it");
  if (devshare::test::sees_races()) DEVSHARE_SKIP("ThreadSanitizer starts no thread in a child of a process that has several");
  const auto& acl = table();
  const TempDirectory directory("config");
  std::ofstream(directory.file("acl.json")) << "{\"err_msg_mode\": \"1\"}";
  REQUIRE(acl.aclInit(directory.file("acl.json").c_str()) == 0);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&] {
      while (!stop) {
        void* address = nullptr;
        if (acl.aclrtMalloc(&address, 0, 0) != code::invalid_param) ++wrong;
        const std::string text = take_message();
        if (!text.empty() && text.find("aclrtMalloc: INVALID_PARAM") != 0) ++wrong;
      }
    });
  }
  for (int round = 0; round < 10; ++round) {
    const ChildEnd end = in_child([&] {
      void* address = nullptr;
      demand(take_message().empty(), "the child has nothing of its parent's");
      demand(acl.aclrtMalloc(&address, 0, 0) == code::rt_context_null, "its parent's runtime is not the child's");
      std::thread([] { demand(take_message().empty(), "nor its mode"); }).join();
      demand(take_message().find("aclrtMalloc") == 0, "but it is told why");
    }, {.set = {}, .leaks = false});
    INFO(end.in_words());
    CHECK(end.good());
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("a variable that cannot be understood is a refusal of aclInit that names it") {
  const auto& acl = table();
  ::setenv("DEVSHARE_HOST_DEVICES", "many", 1);
  CHECK(acl.aclInit(nullptr) == code::invalid_param);
  const std::string text = take_message();
  CHECK_THAT(text, contains("aclInit: INVALID_PARAM"));
  CHECK_THAT(text, contains("DEVSHARE_HOST_DEVICES"));
  CHECK_THAT(text, contains("many"));
  CHECK_FALSE(initialised());
  ::unsetenv("DEVSHARE_HOST_DEVICES");
  CHECK(acl.aclInit(nullptr) == 0);
  CHECK(acl.aclFinalize() == 0);
}

TEST_CASE("the text of the last error is the thread's own, names call and code, and is given once") {
  HostSession session;
  take_message();
  CHECK(session.acl.aclGetRecentErrMsg() == nullptr);
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(&address, 0, 0) == code::invalid_param);
  std::thread([&] { CHECK(session.acl.aclGetRecentErrMsg() == nullptr); }).join();
  CHECK(session.acl.aclrtMalloc(&address, 1, 0) == 0);  // a success in between takes nothing away
  CHECK(take_message() == "aclrtMalloc: INVALID_PARAM: size is 0: ask for one byte at least");
  CHECK(session.acl.aclGetRecentErrMsg() == nullptr);
  CHECK(session.acl.aclrtFree(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtFree(&address) == code::rt_param_invalid);
  CHECK_THAT(take_message(), contains("RT_PARAM_INVALID"));  // the last one
}

TEST_CASE("the cause belongs to the last call and goes with a success") {
  HostSession session;
  void* address = nullptr;
  CHECK(session.acl.aclrtMalloc(&address, 0, 0) == code::invalid_param);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(session.acl.aclGetRecentErrMsg() != nullptr);
  CHECK(last_reason() == Reason::bad_argument);  // asking for the text is no call
  CHECK(session.acl.aclrtMalloc(&address, 1, 0) == 0);
  CHECK(last_reason() == Reason::none);
}

TEST_CASE("codes have their names and errnos their codes") {
  using devshare::host::code_name;
  using devshare::host::code_of_errno;
  CHECK(code_name(0) == "SUCCESS");
  CHECK(code_name(507899) == "RT_DRV_INTERNAL_ERROR");
  CHECK(code_name(-5) == "UNKNOWN");
  CHECK(code_of_errno(0) == 0);
  CHECK(code_of_errno(EINVAL) == 507899);
  CHECK(code_of_errno(EACCES) == 507899);
  CHECK(code_of_errno(ESRCH) == 507899);
  CHECK(code_of_errno(EPERM) == 207006);
  CHECK(code_of_errno(EFAULT) == 107017);
  CHECK(code_of_errno(ENOMEM) == 207001);
  CHECK(code_of_errno(ENODEV) == 207004);
  CHECK(code_of_errno(EOPNOTSUPP) == 207000);
  CHECK(code_of_errno(ENOSPC) == 207005);
}

TEST_CASE("arguments are told by name, outputs only of a success, keys by a hash") {
  using devshare::host::arguments_as_json;
  auto* const address = reinterpret_cast<void*>(0x1100'0000'0000);
  void* output = address;
  CHECK(arguments_as_json(Entry::aclrtMalloc, 0, &output, std::size_t{4096}, 2) ==
        "{\"devPtr\":\"0x110000000000\",\"size\":4096,\"policy\":2}");
  CHECK(arguments_as_json(Entry::aclrtMalloc, 207001, &output, std::size_t{4096}, 2) ==
        "{\"devPtr\":null,\"size\":4096,\"policy\":2}");
  CHECK(arguments_as_json(Entry::aclFinalize, 0) == "{}");
  CHECK(arguments_as_json(Entry::aclInit, 0, static_cast<const char*>(nullptr)) == "{\"configPath\":null}");
  CHECK(arguments_as_json(Entry::aclInit, 0, static_cast<const char*>("a\"b\\c\n")) ==
        "{\"configPath\":\"a\\\"b\\\\c\\u000a\"}");
  std::int32_t device = 1;
  CHECK(arguments_as_json(Entry::aclrtGetDevice, 0, &device) == "{\"deviceId\":1}");
  CHECK(arguments_as_json(Entry::aclrtGetDevice, 107002, &device) == "{\"deviceId\":null}");

  char key[65] = "the secret";
  const std::string exported = arguments_as_json(Entry::aclrtIpcMemGetExportKey, 0, address, std::size_t{1},
                                                 static_cast<char*>(key), std::size_t{65}, std::uint64_t{0});
  CHECK_THAT(exported, !contains("secret"));
  const std::string closed = arguments_as_json(Entry::aclrtIpcMemClose, 0, static_cast<const char*>(key));
  CHECK_THAT(exported, contains(closed.substr(1, closed.size() - 2)));  // the same hash
  char garbage[65];
  std::memset(garbage, 'x', sizeof garbage);  // no NUL within the key
  CHECK(arguments_as_json(Entry::aclrtIpcMemClose, 0, static_cast<const char*>(garbage)).size() < 40);
}

TEST_CASE("calls after aclFinalize, and during it, end in a code and never in a crash") {
  const auto& acl = table();
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<std::uint64_t> copies{0};
  std::atomic<std::uint64_t> refusals{0};
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&] {
      std::vector<char> bytes(100'000, 1);
      while (!stop) {
        void* memory = nullptr;
        int got = acl.aclrtSetDevice(0);
        if (got == 0) got = acl.aclrtMalloc(&memory, bytes.size(), 0);
        for (int i = 0; i < 6 && got == 0; ++i) {
          got = acl.aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), 1);
        }
        if (got == 0) {
          ++copies;
          got = acl.aclrtFree(memory);
        }
        // A session that ended and another that began: the block, the context or the address is gone.
        const bool expected = got == 0 || got == code::uninitialize || got == code::rt_context_null ||
                              got == code::rt_drv_internal || got == code::rt_param_invalid;
        if (!expected) ++wrong;
        if (got != 0) ++refusals;
      }
    });
  }
  for (int round = 0; round < 40; ++round) {
    if (acl.aclInit(nullptr) != 0) ++wrong;
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (acl.aclFinalize() != 0) ++wrong;
    if (devshare::host::block_counters().allocations != 0) ++wrong;
    if (devshare::host::block_counters().descriptors != 0) ++wrong;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(copies > 0);
  CHECK(refusals > 0);
}
