// SPDX-License-Identifier: Apache-2.0
// What a session leaves is said when it is asked for, at its end and at the end of its process.
#include "support/catch.hpp"
#include "support/child.hpp"

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/host.hpp>

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
