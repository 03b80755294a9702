// SPDX-License-Identifier: Apache-2.0
// The host runtime as an older release of CANN: which calls there are, and what becomes of those that are not.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_session.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

using namespace devshare;
using namespace devshare::test;
using acl::Entry;
namespace code = acl::code;

namespace {

struct Call {
  Entry entry;
  std::string_view since;
};
constexpr Call calls[] = {
#define DEVSHARE_TEST_CALL(name, result, parameters, need, since) {Entry::name, since},
    DEVSHARE_ACL_ENTRIES(DEVSHARE_TEST_CALL)
#undef DEVSHARE_TEST_CALL
};

constexpr std::array<std::string_view, 6> releases{"8.0", "8.2.RC1", "8.5.0", "9.0.0", "9.1.0", "all"};

bool has(std::string_view release, const Call& call) {
  const auto place = [](std::string_view name) { return std::find(releases.begin(), releases.end() - 1, name); };
  return place(call.since) <= place(release);  // "after 9.1.0" is where `all` is
}

ChildOptions playing(std::string_view release, std::string_view product = "a3") {
  return {.set = {{"DEVSHARE_RUNTIME", "host"},
                  {"DEVSHARE_HOST_INTERFACE", std::string(release)},
                  {"DEVSHARE_HOST_PROFILE", std::string(product)}}};
}

Runtime opened() {
  auto runtime = Runtime::open();
  if (!runtime) fmt::print(stderr, "{}\n", runtime.error());
  demand(bool(runtime), "a runtime is opened");
  return *runtime;
}

Device first_device() {
  auto device = opened().device(DeviceId{0});
  demand(bool(device), "there is a device");
  return *device;
}

void lacks(const Error& error, Entry entry) {
  if (error.entry() != entry) fmt::print(stderr, "{}\n", error);
  demand(error.kind() == Errc::unsupported_by_runtime, "the call is not there");
  demand(error.entry() == entry, "the error names it");
  demand(error.acl_code() == 0, "and nobody was asked");
}

}  // namespace

TEST_CASE("a release has the calls that the list gives it, and no other") {
  for (const std::string_view release : releases) {
    INFO(release);
    CHECK_CHILD(
        [&] {
          const Runtime runtime = opened();
          for (const Call& call : calls) {
            if (runtime.has(call.entry) != has(release, call)) {
              fmt::print(stderr, "{} of {} in {}\n", host::entry_name(call.entry), call.since, release);
              demand(false, "it is there, or it is not");
            }
          }
        },
        playing(release));
  }
}

TEST_CASE("without the switch every call is there") {
  CHECK_CHILD(
      [] {
        const Runtime runtime = opened();
        for (const Call& call : calls) demand(runtime.has(call.entry), "it is there");
      },
      {.set = {{"DEVSHARE_RUNTIME", "host"}}});
}

TEST_CASE("a call of a later release that is made nonetheless returns 207000, and says which call and which release") {
  HostSession session({{"INTERFACE", "8.2.RC1"}});
  host::record_calls(true);
  std::uint64_t token = 0;
  CHECK(session->aclrtMemSetPidToShareableHandleV2(&token, 0, nullptr, 0) == code::rt_feature_not_support);
  CHECK(HostSession::reason() == host::Reason::unsupported);
  CHECK_THAT(HostSession::recent_text(), contains("aclrtMemSetPidToShareableHandleV2") && contains("CANN 8.2.RC1") &&
                                             contains("with 8.5.0") && contains("DEVSHARE_HOST_INTERFACE"));
  CHECK(session->aclrtMemMapNoAccess(nullptr, 0, 0, nullptr, 0) == code::rt_feature_not_support);
  CHECK_THAT(HostSession::recent_text(), contains("aclrtMemMapNoAccess") && contains("it came after 9.1.0"));
  const auto made = host::recorded_calls();
  REQUIRE_FALSE(made.empty());
  CHECK(made.front().call == Entry::aclrtMemSetPidToShareableHandleV2);
  CHECK(made.front().result == code::rt_feature_not_support);

  std::int32_t pid = 0;
  CHECK(session->aclrtDeviceGetBareTgid(&pid) == 0);  // it has those that came with it
  host::record_calls(false);
}

TEST_CASE("a call that is not there has nothing that could be failed or delayed") {
  HostSession session({{"INTERFACE", "8.0"}});
  std::int32_t pid = 0;
  host::fail(Entry::aclrtDeviceGetBareTgid, 1, code::rt_drv_internal);
  CHECK(session->aclrtDeviceGetBareTgid(&pid) == code::rt_feature_not_support);
  CHECK(HostSession::reason() == host::Reason::unsupported);
}

TEST_CASE("a call that is not there is none before aclInit either, where it needs no session") {
  ::setenv("DEVSHARE_HOST_INTERFACE", "8.0", 1);
  { HostSession session; }
  std::int32_t pid = 0;
  CHECK(HostSession::api().aclrtDeviceGetBareTgid(&pid) == code::rt_feature_not_support);
  CHECK(HostSession::api().aclrtIpcMemClose("key") == code::uninitialize);
  ::unsetenv("DEVSHARE_HOST_INTERFACE");
  { HostSession session; }
  CHECK(HostSession::api().aclrtDeviceGetBareTgid(&pid) == 0);
}

TEST_CASE("B095 with 8.0 handles are exported by V1, and every other call says what it lacks") {
  CHECK_CHILD(
      [] {
        const Device device = first_device();
        lacks(opened().bare_pid().error(), Entry::aclrtDeviceGetBareTgid);
        auto memory = DeviceMemory::allocate(device, 100);
        demand(bool(memory), "there is memory");
        auto key = export_key(*std::move(memory));
        demand(!key, "there are no keys");
        lacks(key.error().error(), Entry::aclrtIpcMemGetExportKey);
        demand(bool(std::move(key).error().take_back().close()), "the memory comes back");

        auto mapping = allocate_for<v1>(device, 100);
        demand(bool(mapping), "there is physical memory");
        auto newer = export_handle<v2>(*std::move(mapping));
        demand(!newer, "there is no V2");
        lacks(newer.error().error(), Entry::aclrtMemExportToShareableHandleV2);
        auto older = export_handle<v1>(std::move(newer).error().take_back());
        demand(bool(older), "there is V1");
        auto back = (*std::move(older)).close();
        demand(bool(back) && bool((*std::move(back)).close()), "and it ends");
      },
      playing("8.0"));
}

TEST_CASE("B095 what can be shared is known beforehand in every release") {
  const auto works = [](std::string_view release, Mechanisms exported, Mechanisms imported) {
    INFO(release);
    CHECK_CHILD(
        [&] {
          const Device device = first_device();
          const auto found = probe(device, device);
          demand(bool(found), "it is probed");
          demand(found->working() == exported, "these can be exported");
          demand(importable(device) == imported, "and these imported");
          if (exported.contains(Mechanism::v2)) return;
          lacks(*found->why_not(Mechanism::v2), Entry::aclrtMemExportToShareableHandleV2);
        },
        playing(release));
  };
  const Mechanisms all{Mechanism::by_key, Mechanism::v1, Mechanism::v2, Mechanism::fabric};
  works("8.0", {Mechanism::v1}, {});  // an importer needs aclrtMemSetAccess
  works("8.2.RC1", {Mechanism::v1, Mechanism::by_key}, {Mechanism::by_key});
  works("8.5.0", all, all);
  works("all", all, all);
}

TEST_CASE("the version is that of the release") {
  for (const auto& [release, minor] :
       {std::pair{"8.0", 15}, {"8.2.RC1", 15}, {"8.5.0", 16}, {"9.0.0", 17}, {"9.1.0", 17}, {"all", 17}}) {
    HostSession session({{"INTERFACE", release}});
    std::int32_t got[3] = {};
    INFO(release);
    CHECK(session->aclrtGetVersion(&got[0], &got[1], &got[2]) == 0);
    CHECK(got[0] == 1);
    CHECK(got[1] == minor);
    CHECK(got[2] == 0);
  }
}

TEST_CASE("devshare sees the release of the first session of a process, and each session refuses by its own") {
  CHECK_CHILD(
      [] {
        Runtime runtime = opened();
        demand(!runtime.has(Entry::aclrtIpcMemImportByKey), "8.0 has no keys");
        demand(bool(runtime.finalize()), "it ends");
        demand(host::set("INTERFACE", "8.2.RC1"), "there is the switch");
        runtime = opened();
        demand(!runtime.has(Entry::aclrtIpcMemImportByKey), "so it stays: other threads may be looking");
        std::int32_t pid = 0;
        demand(host::table().aclrtDeviceGetBareTgid(&pid) == 0, "the session has what 8.2.RC1 has");
        demand(bool(runtime.finalize()), "it ends");
      },
      playing("8.0"));
  CHECK_CHILD(
      [] {
        Runtime runtime = opened();
        demand(bool(runtime.bare_pid()), "all calls are there");
        demand(bool(runtime.finalize()), "it ends");
        demand(host::set("INTERFACE", "8.0"), "there is the switch");
        runtime = opened();
        const auto pid = runtime.bare_pid();
        demand(!pid && pid.error().kind() == Errc::unsupported_by_runtime, "a call that came later is refused");
        demand(pid.error().entry() == Entry::aclrtDeviceGetBareTgid, "by its name");
      },
      playing("all"));
}
