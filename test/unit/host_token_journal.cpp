// SPDX-License-Identifier: Apache-2.0
// The journal shows a token by a hash: enough to follow it from call to call, and not enough to import its memory.
#include "support/catch.hpp"
#include "support/host_session.hpp"

#include <devshare/host.hpp>

#include <fmt/format.h>

#include <string>

using namespace devshare;
using namespace devshare::test;

namespace {

// What stands behind a name in the arguments of the last call; "" when it is not there.
std::string last_argument(acl::Entry call, const std::string& name) {
  const auto calls = host::recorded_calls();
  REQUIRE_FALSE(calls.empty());
  REQUIRE(calls.back().call == call);
  const std::string& text = calls.back().arguments;
  const std::size_t at = text.find("\"" + name + "\":");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 3;
  return text.substr(begin, text.find_first_of(",}", begin) - begin);
}

}  // namespace

TEST_CASE("the journal shows a token by the same hash in every call, and never the token") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  acl::aclrtPhysicalMemProp property{};
  property.memAttr = 4;  // HBM in huge pages
  property.location = {0, acl::mem_location_type::device};
  acl::aclrtDrvMemHandle handle = nullptr;
  REQUIRE(session->aclrtMallocPhysical(&handle, 2 << 20, &property, 0) == 0);
  host::record_calls(true);
  std::uint64_t token = 0;
  REQUIRE(session->aclrtMemExportToShareableHandle(handle, 0, 0, &token) == 0);
  const std::string shown = last_argument(acl::Entry::aclrtMemExportToShareableHandle, "shareableHandle");
  CHECK(shown.starts_with("\"#"));
  CHECK(shown.size() == 19);
  CHECK(shown.find(fmt::format("{:x}", token)) == std::string::npos);

  std::int32_t pids[] = {4711, 4712};
  REQUIRE(session->aclrtMemSetPidToShareableHandle(token, pids, 2) == 0);
  CHECK(last_argument(acl::Entry::aclrtMemSetPidToShareableHandle, "shareableHandle") == shown);
  CHECK(last_argument(acl::Entry::aclrtMemSetPidToShareableHandle, "pidNum") == "2");
  CHECK(last_argument(acl::Entry::aclrtMemSetPidToShareableHandle, "pid").starts_with("\"0x"));

  acl::aclrtDrvMemHandle own = nullptr;
  REQUIRE(session->aclrtMemImportFromShareableHandle(token, 0, &own) != 0);
  CHECK(last_argument(acl::Entry::aclrtMemImportFromShareableHandle, "shareableHandle") == shown);
  REQUIRE(session->aclrtMemExportToShareableHandle(handle, 0, 0, &token) != 0);
  CHECK(last_argument(acl::Entry::aclrtMemExportToShareableHandle, "shareableHandle") == "null");
  host::record_calls(false);
}
