// SPDX-License-Identifier: Apache-2.0
// A typed call on a thread that has no device, or another: it takes its own for a while and leaves the thread as it was,
// the text that aclGetRecentErrMsg would hand out included (R1).
#include "host/host_runtime.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"

#include <devshare/devshare.hpp>

#include <cstring>
#include <string>
#include <thread>

using namespace devshare;
using namespace devshare::test;

namespace {

const acl::Table& api() { return host::table(); }

std::string recent_text() {
  const char* const text = api().aclGetRecentErrMsg();
  return text != nullptr ? text : "";
}

// One of each kind of call that needs a device and finds none on this thread.
void use(const Device& device) {
  auto allocated = DeviceMemory::allocate(device, 64);
  demand(bool(allocated), "memory is allocated");
  auto memory = *std::move(allocated);
  demand(bool(fill(device, memory.bytes(), std::byte{1})), "it is filled");
  std::byte bytes[64] = {};
  demand(bool(copy_to_host(device, bytes, memory.bytes())), "it is copied");
  demand(bytes[63] == std::byte{1}, "the bytes are there");
  demand(bool(device.memory_info()), "the device is asked");
  demand(bool(std::move(memory).close()), "it is freed");
}

void on_another_thread(const Device& device, void (*run)(const Device&)) { std::thread(run, device).join(); }

Device open_device(const Runtime& runtime, std::int32_t number) {
  const auto device = runtime.device(DeviceId{number});
  demand(bool(device), "the device is there");
  return *device;
}

Runtime open_runtime() {
  const auto runtime = Runtime::open();
  demand(bool(runtime), "the runtime opens");
  return *runtime;
}

}  // namespace

TEST_CASE("aclrtGetDevice without a device is an answer and no error: 107002 and its reason, but no text") {
  CHECK_CHILD([] {
    demand(api().aclInit(nullptr) == 0, "the runtime is initialised");
    std::int32_t device = -1;
    demand(api().aclrtGetDevice(&device) == acl::code::rt_context_null, "there is no device");
    demand(host::last_cause().reason == host::Reason::no_context, "the reason is there");
    demand(recent_text().empty(), "no text is left");

    demand(api().aclrtFree(nullptr) != 0, "something is refused");
    demand(api().aclrtGetDevice(&device) == acl::code::rt_context_null, "there is still no device");
    demand(recent_text().find("aclrtFree") == 0, "the text of the refused call is still there");

    demand(api().aclrtGetDevice(nullptr) == acl::code::invalid_param, "a mistake in asking");
    demand(recent_text().find("aclrtGetDevice") == 0, "has a text");
    void* context = nullptr;
    demand(api().aclrtGetDevice(&device) == acl::code::rt_context_null, "there is no device");
    demand(api().aclrtGetCurrentContext(&context) == acl::code::rt_context_null, "and so no context");
    demand(recent_text().find("aclrtGetCurrentContext") == 0, "which has a text: it is asked by who needs one");
  });
}

TEST_CASE("a call of the library on a thread without a device leaves no error text, and no device") {
  CHECK_CHILD([] {
    const Runtime runtime = open_runtime();
    const Device device = open_device(runtime, 0);
    demand(recent_text().empty(), "opening a device leaves no text");
    on_another_thread(device, [](const Device& there) {
      use(there);
      demand(recent_text().empty(), "no text is left");
      void* context = nullptr;
      demand(api().aclrtGetCurrentContext(&context) == acl::code::rt_context_null, "the thread has no device still");
    });
  });
}

TEST_CASE("what a program has not read yet of its own refused call is not lost by a call of the library") {
  CHECK_CHILD([] {
    const Runtime runtime = open_runtime();
    on_another_thread(open_device(runtime, 0), [](const Device& there) {
      demand(api().aclrtSetDevice(99) == acl::code::rt_invalid_deviceid, "the program makes a mistake");
      use(there);
      demand(recent_text().find("aclrtSetDevice") == 0, "and reads about it afterwards");
    });
  });
}

TEST_CASE("R1 a thread that has another device, or a context of its own, gets it back") {
  CHECK_CHILD([] {
    const Runtime runtime = open_runtime();
    (void)open_device(runtime, 1);
    on_another_thread(open_device(runtime, 0), [](const Device& there) {
      demand(api().aclrtSetDevice(1) == 0, "the thread has device 1");
      use(there);
      std::int32_t device = -1;
      demand(api().aclrtGetDevice(&device) == 0 && device == 1, "and has it still");
      void* own = nullptr;
      demand(api().aclrtCreateContext(&own, 1) == 0, "it makes a context of its own");
      use(there);
      void* context = nullptr;
      demand(api().aclrtGetCurrentContext(&context) == 0 && context == own, "and has that still");
      demand(recent_text().empty(), "no text is left");
    });
  });
}
