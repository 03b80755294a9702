// SPDX-License-Identifier: Apache-2.0
// The switches of the host runtime: what they mean, and that a value nobody can understand stops aclInit with a text.
#include "support/catch.hpp"
#include "support/host_session.hpp"

#include "host/profile.hpp"
#include "host/switches.hpp"

#include <stdlib.h>  // NOLINT: setenv

#include <string>

using namespace devshare;
using namespace devshare::test;
using host::profile;
namespace code = acl::code;

namespace {

// Starts a session with these and hands the profile to `look` while it is in force.
template <class Look>
void with(Switches switches, Look look) {
  HostSession session(switches);
  look(profile());
}

void refused(const std::string& name, const std::string& value) {
  INFO(name << "=" << value);
  ::setenv(name.c_str(), value.c_str(), 1);
  const acl::Table& api = HostSession::api();
  const acl::aclError result = api.aclInit(nullptr);
  CHECK(result == code::invalid_param);
  CHECK(HostSession::reason() == host::Reason::bad_switch);
  if (result == 0) api.aclFinalize();
  const std::string text = HostSession::recent_text();
  CHECK_THAT(text, contains(name) && contains(value));
  ::unsetenv(name.c_str());
}

}  // namespace

TEST_CASE("nothing set is an A2 with two devices of 64 GiB that reach each other") {
  with({}, [](const host::Profile& machine) {
    CHECK(machine.product == host::Product::a2);
    CHECK(machine.device_count == 2);
    CHECK(machine.capacity == std::uint64_t{64} << 30);
    CHECK(machine.visible == std::vector<std::int32_t>{0, 1});
    CHECK(machine.can_reach(0, 1));
    CHECK(machine.can_reach(1, 0));
    CHECK(machine.peers_per_device == 8);
    CHECK(machine.processes_per_direction == 32);
    CHECK(machine.normal_page == 4096);
    CHECK(machine.huge_page == 2 << 20);
    CHECK(machine.exporter_death_invalidates);
    CHECK_FALSE(machine.cross_device_copy_allowed);
    CHECK_FALSE(machine.interior_export_allowed);
    CHECK_FALSE(machine.cross_device_needs_p2p_memory);
  });
}

TEST_CASE("a product brings its own limits and calls") {
  using acl::Entry;
  with({{"PROFILE", "a3"}}, [](const host::Profile& a3) {
    CHECK(a3.supports(Entry::aclrtIpcMemSetAttr));
    CHECK(a3.supports(Entry::aclrtIpcMemImportPidInterServer));
  });
  with({{"PROFILE", "training"}}, [](const host::Profile& training) {
    CHECK(training.product == host::Product::training);
    CHECK_FALSE(training.supports(Entry::aclrtIpcMemSetAttr));
  });
  with({{"PROFILE", "310p"}}, [](const host::Profile& p310) { CHECK(p310.cross_device_needs_p2p_memory); });
  with({{"PROFILE", "950"}}, [](const host::Profile& p950) {
    CHECK(p950.peers_per_device == 16);
    CHECK(p950.supports(Entry::aclrtIpcMemSetAttr));
    CHECK_FALSE(p950.supports(Entry::aclrtIpcMemImportPidInterServer));
    CHECK(p950.supports(Entry::aclrtMalloc));
  });
}

TEST_CASE("a product is known by the name of its chip") {
  const auto [product, begins] =
      GENERATE(std::pair("a2", "Ascend910B"), std::pair("a3", "Ascend910_93"), std::pair("training", "Ascend910A"),
               std::pair("310p", "Ascend310P"), std::pair("950", "Ascend950"));
  HostSession session({{"PROFILE", product}});
  CHECK_THAT(std::string(session->aclrtGetSocName()), contains(begins));
}

TEST_CASE("every switch is understood by its name, with or without the prefix") {
  with({{"DEVSHARE_HOST_DEVICES", "3"},
        {"INTERFACE", "8.5.0"},
        {"CAPACITY", "3M"},
        {"PEERS", "011/101/110"},
        {"NORMAL_PAGE", "64K"},
        {"ADDRESS_SPACE", "8G"},
        {"BACKING_PAGES", "huge_if_free"},
        {"BACKING_POPULATE", "now"},
        {"HUGE_PAGE", "1G"},
        {"BARE_PID_OFFSET", "100000"},
        {"BARE_PID", "inode"},
        {"IDENTITY", "start_time"},
        {"EXPORTER_DEATH", "keep"},
        {"CROSS_DEVICE_COPY", "allow"},
        {"INTERIOR_EXPORT", "allow"},
        {"HANDLE_REIMPORT", "count"},
        {"SERVER", "255"},
        {"DEADLINE_MS", "250"},
        {"SOCKET_DIR", "/tmp/a"},
        {"BACKING", "/tmp/b"},
        {"FALLBACK", "allow"},
        {"RAISE_NOFILE", "0"},
        {"LEAKS", "report"},
        {"FAULT", "aclrtFree:3:507899,aclrtMalloc:0:207001,aclrtMemcpy:0.025@7:507013"},
        {"DELAY", "aclrtFree:0"}},
       [](const host::Profile& machine) {
         CHECK(machine.device_count == 3);
         CHECK(machine.interface == host::release_by_name("8.5.0"));
         CHECK(machine.leaks_reported);
         CHECK(machine.capacity == 3 << 20);
         CHECK_FALSE(machine.can_reach(1, 1));
         CHECK(machine.can_reach(2, 1));
         CHECK(machine.normal_page == 65536);
         CHECK(machine.huge_page == 1 << 30);
         CHECK(machine.bare_pid_offset == 100000);
         CHECK(machine.bare_pid_by_inode);
         CHECK(machine.identity_by_start_time);
         CHECK_FALSE(machine.exporter_death_invalidates);
         CHECK(machine.cross_device_copy_allowed);
         CHECK(machine.interior_export_allowed);
         CHECK(machine.handle_reimport_counts);
         CHECK(machine.server == 255);
         CHECK(machine.exporter_deadline_ms == 250);
         CHECK(machine.socket_directory == "/tmp/a");
         CHECK(machine.backing_directory == "/tmp/b");
         CHECK(machine.backing_fallback_allowed);
         CHECK(machine.backing_huge);
         CHECK(machine.backing_populated);
         CHECK(machine.address_space == std::uint64_t{8} << 30);
         REQUIRE(machine.faults.size() == 3);
         CHECK(machine.faults[0].call == acl::Entry::aclrtFree);
         CHECK(machine.faults[0].nth == 3);
         CHECK(machine.faults[1].code == 207001);
         CHECK(machine.faults[2].probability == 0.025);
         CHECK(machine.faults[2].seed == 7);
         REQUIRE(machine.delays.size() == 1);
       });
  CHECK_FALSE(host::set("DEVICE", "1"));
  CHECK_FALSE(host::set("", ""));
}

TEST_CASE("a value that cannot be understood stops aclInit, which names the variable and the value") {
  refused("DEVSHARE_HOST_PROFILE", "A2");
  for (const char* release : {"", "8", "8.1", "8.2.rc1", "after 9.1.0"}) refused("DEVSHARE_HOST_INTERFACE", release);
  for (const char* devices : {"0", "17", "two", "1.5", " 2", "2 ", "+2", "0x2", "99999999999999999999"}) {
    refused("DEVSHARE_HOST_DEVICES", devices);
  }
  for (const char* bytes : {"0", "M", "-1", "64MB", "64m", "1T", "18446744073709551615G", "1048577G"}) {
    refused("DEVSHARE_HOST_CAPACITY", bytes);
  }
  for (const char* matrix : {"01", "01/1", "01/1x", "01-10", "011/100", "01/10/"})
    refused("DEVSHARE_HOST_PEERS", matrix);
  for (const char* page : {"0", "3000", "2048", "2G"}) refused("DEVSHARE_HOST_NORMAL_PAGE", page);
  refused("DEVSHARE_HOST_NORMAL_PAGE", "4194304");  // above the huge page
  refused("DEVSHARE_HOST_HUGE_PAGE", "3M");
  refused("DEVSHARE_HOST_ADDRESS_SPACE", "0");
  refused("DEVSHARE_HOST_BARE_PID_OFFSET", "1e5");
  refused("DEVSHARE_HOST_BARE_PID", "yes");
  refused("DEVSHARE_HOST_IDENTITY", "pid");
  refused("DEVSHARE_HOST_EXPORTER_DEATH", "no");
  refused("DEVSHARE_HOST_CROSS_DEVICE_COPY", "1");
  refused("DEVSHARE_HOST_INTERIOR_EXPORT", "true");
  refused("DEVSHARE_HOST_DEADLINE_MS", "0");
  refused("DEVSHARE_HOST_STATE", "relative/path");
  refused("DEVSHARE_HOST_SOCKET_DIR", ".");
  refused("DEVSHARE_HOST_BACKING", "x");
  refused("DEVSHARE_HOST_BACKING_PAGES", "huge");
  refused("DEVSHARE_HOST_BACKING_POPULATE", "1");
  refused("DEVSHARE_HOST_FALLBACK", "maybe");
  refused("DEVSHARE_HOST_RAISE_NOFILE", "yes");
  refused("DEVSHARE_HOST_LEAKS", "1");
  refused("DEVSHARE_HOST_JOURNAL", "/nowhere/at/all");
  for (const char* fault :
       {"aclrtMalloc", "aclrtMalloc:1", "aclrtMalloc:1:0", "aclrtMallok:1:5", "aclrtMalloc:x:5", "aclrtMalloc:1:5:6",
        "aclrtMalloc:-1:5", "aclrtMalloc:0.5:5", "aclrtMalloc:0.5@:5", "aclrtMalloc:@7:5", "aclrtMalloc:0.@7:5",
        "aclrtMalloc:0.0@7:5", "aclrtMalloc:1.5@7:5", "aclrtMalloc:.5@7:5", "aclrtMalloc:0.-5@7:5",
        "aclrtMalloc:0.0123456789@7:5", "aclrtMalloc:0.5@-7:5"}) {
    refused("DEVSHARE_HOST_FAULT", fault);
  }
  for (const char* delay : {"aclrtMalloc", "aclrtMalloc:", "nobody:5", "aclrtMalloc:5ms"}) {
    refused("DEVSHARE_HOST_DELAY", delay);
  }
  // and once it is right, the runtime starts
  HostSession session;
  CHECK(profile().device_count == 2);
}

TEST_CASE("a misspelt switch stops aclInit and the text lists the right ones") {
  refused("DEVSHARE_HOST_DEVICE", "4");
  ::setenv("DEVSHARE_HOST_CAPCITY", "1M", 1);
  CHECK(HostSession::api().aclInit(nullptr) == code::invalid_param);
  CHECK_THAT(HostSession::recent_text(), contains("DEVSHARE_HOST_CAPACITY"));
  std::uint32_t count = 0;
  CHECK(HostSession::api().aclrtGetDeviceCount(&count) == code::invalid_param);
  CHECK(HostSession::reason() == host::Reason::bad_switch);
  ::unsetenv("DEVSHARE_HOST_CAPCITY");
  HostSession session;
  CHECK(HostSession::api().aclrtGetDeviceCount(&count) == 0);
}

TEST_CASE("a refused value leaves the profile in force and the next session is as if it had never been") {
  with({{"DEVICES", "5"}}, [](const host::Profile& machine) { CHECK(machine.device_count == 5); });
  refused("DEVSHARE_HOST_DEVICES", "many");
  with({{"DEVICES", "4"}}, [](const host::Profile& machine) { CHECK(machine.device_count == 4); });
}

TEST_CASE("the environment is read by each session, and what the program sets comes before it") {
  ::setenv("DEVSHARE_HOST_DEVICES", "7", 1);
  with({}, [](const host::Profile& machine) { CHECK(machine.device_count == 7); });
  with({{"DEVICES", "6"}}, [](const host::Profile& machine) { CHECK(machine.device_count == 6); });
  with({}, [](const host::Profile& machine) { CHECK(machine.device_count == 7); });
  ::unsetenv("DEVSHARE_HOST_DEVICES");
}

TEST_CASE("nothing changes while the runtime is initialised") {
  HostSession session;
  CHECK(host::set("DEVICES", "9"));
  CHECK(session->aclInit(nullptr) == code::repeat_initialize);
  std::uint32_t count = 0;
  CHECK(session->aclrtGetDeviceCount(&count) == 0);
  CHECK(count == 2);
}

TEST_CASE("a profile that was handed out stays readable when another comes into force") {
  const host::Profile* kept = nullptr;
  with({{"DEVICES", "3"}}, [&](const host::Profile& machine) { kept = &machine; });
  with({{"DEVICES", "4"}}, [&](const host::Profile& machine) { CHECK(&machine != kept); });
  CHECK(kept->device_count == 3);
}

TEST_CASE("every entry has a name and every name an entry") {
  for (std::size_t number = 0; number < acl::entry_count; ++number) {
    const auto entry = static_cast<acl::Entry>(number);
    CHECK(host::entry_by_name(host::entry_name(entry)) == entry);
  }
  CHECK(host::entry_name(acl::Entry::aclrtMalloc) == "aclrtMalloc");
  CHECK(host::entry_by_name("aclrtmalloc") == acl::Entry::none);
  CHECK(host::entry_by_name("") == acl::Entry::none);
  CHECK(host::entry_name(acl::Entry::none) == "none");
}
