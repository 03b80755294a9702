// SPDX-License-Identifier: Apache-2.0
// What a session leaves is said when it is asked for, at its end and at the end of its process.
#include "support/catch.hpp"
#include "support/child.hpp"

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/acl/vmm_types.hpp>
#include <devshare/host.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace devshare;
using namespace devshare::test;

namespace {

const acl::Table& api() { return host::table(); }

// A process that allocates, exports, and gives some of it back.
void leave(bool everything_back, bool finalize) {
  void* memory = nullptr;
  char key[acl::ipc_key_size];
  demand(api().aclInit(nullptr) == 0 && api().aclrtSetDevice(0) == 0, "the runtime begins");
  demand(api().aclrtMalloc(&memory, 4096, 0) == 0, "memory");
  demand(api().aclrtIpcMemGetExportKey(memory, 4096, key, sizeof key, 0) == 0, "a key");
  if (everything_back) demand(api().aclrtIpcMemClose(key) == 0 && api().aclrtFree(memory) == 0, "all is given back");
  if (finalize) demand(api().aclFinalize() == 0, "the end");
}

std::string said(bool everything_back, bool finalize, const char* leaks) {
  const ChildEnd end = in_child([=] { leave(everything_back, finalize); }, {.set = {{"DEVSHARE_HOST_LEAKS", leaks}}});
  INFO(end.in_words());
  CHECK(end.good());
  return end.output;
}

}  // namespace

TEST_CASE("what a session still has when it ends is reported once, in words, if that is asked for") {
  const std::string report = said(false, true, "report");
  const std::size_t first = report.find("ends with 1 allocations, ");
  CHECK(first != std::string::npos);
  CHECK(report.find("1 keys exported\n") != std::string::npos);
  CHECK(report.find("ends with", first + 1) == std::string::npos);
  CHECK(said(false, true, "ignore").find("ends with") == std::string::npos);
  CHECK(said(true, true, "report").find("ends with") == std::string::npos);
}

TEST_CASE("a report names everything that can be given back") {
  const ChildEnd end = in_child(
      [] {
        void* made = nullptr;
        acl::aclrtDrvMemHandle handle = nullptr;
        acl::aclrtPhysicalMemProp property{};
        property.memAttr = acl::mem_attr::hbm_huge;
        property.location = {0, acl::mem_location_type::device};
        constexpr std::size_t size = 2 << 20;
        alignas(4096) static unsigned char registered[4096];
        std::uint64_t token = 0;
        demand(api().aclInit(nullptr) == 0 && api().aclrtSetDevice(0) == 0, "the runtime begins");
        demand(api().aclrtCreateStream(&made) == 0, "a stream");
        demand(api().aclrtCreateEvent(&made) == 0, "an event");
        demand(api().aclrtCreateNotify(&made, 0) == 0, "a notify");
        demand(api().aclrtMallocPhysical(&handle, size, &property, 0) == 0, "a handle");
        demand(api().aclrtMemExportToShareableHandle(handle, acl::mem_handle_type::none, 0, &token) == 0, "its token");
        demand(api().aclrtReserveMemAddress(&made, size, 0, nullptr, 0) == 0, "a reservation");
        demand(api().aclrtMapMem(made, size, 0, handle, 0) == 0, "a mapping");
        demand(api().aclrtHostRegister(registered, sizeof registered, acl::host_register_type::mapped, &made) == 0,
               "a registration");
        demand(api().aclFinalize() == 0, "the end");
      },
      {.set = {{"DEVSHARE_HOST_LEAKS", "report"}}});
  INFO(end.in_words());
  CHECK(end.good());
  for (const char* left : {" 1 streams", " 1 events", " 1 notifies", " 1 handles", " 1 tokens exported",
                           " 1 reservations", " 1 mappings", " 1 registrations"}) {
    INFO(left);
    CHECK(end.output.find(left) != std::string::npos);
  }
}

TEST_CASE("a process that ends without finalizing is reported at its exit") {
  const ChildEnd end = in_child(
      [] {
        leave(false, false);
        std::exit(0);  // as main does at its end; a child ends without that
      },
      {.set = {{"DEVSHARE_HOST_LEAKS", "report"}}});
  INFO(end.in_words());
  CHECK(end.good());
  CHECK(end.output.find("ends with 1 allocations") != std::string::npos);
}
