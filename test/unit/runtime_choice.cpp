// SPDX-License-Identifier: Apache-2.0
// Which runtime a process gets: the rule of Runtime::open(), and the loader under it, against libraries of the vendor's
// shape. The choice is made once in the life of a process, so each case makes it in a child.
#include "host/host_runtime.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_directory.hpp"
#include "vendor/loader.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

const std::string complete = DEVSHARE_FAKE_COMPLETE;
const std::string only_required = DEVSHARE_FAKE_ONLY_REQUIRED;
const std::string without_memcpy = DEVSHARE_FAKE_WITHOUT_MEMCPY;

// A folder in which an installed CANN would have the library.
class Installed {
 public:
  explicit Installed(const std::string& library) : directory_("cann") {
    const std::string folder = directory_.file("lib64");
    demand(::mkdir(folder.c_str(), 0700) == 0, "the folder is made");
    demand(::symlink(library.c_str(), (folder + "/libascendcl.so").c_str()) == 0, "the library is linked");
  }
  const std::string& home() const { return directory_.path(); }

 private:
  TempDirectory directory_;
};

void chose(const char* name, const std::string& origin) {
  const auto runtime = Runtime::open();
  if (!runtime) fmt::print(stderr, "{}\n", runtime.error());
  demand(bool(runtime), "a runtime is opened");
  if (runtime->name() != name) fmt::print(stderr, "{} from {}\n", runtime->name(), runtime->origin());
  demand(runtime->name() == name, "it is the runtime that is expected");
  if (!origin.empty() && runtime->origin() != origin) fmt::print(stderr, "it is from {}\n", runtime->origin());
  demand(origin.empty() || runtime->origin() == origin, "it says where it comes from");
}

void refused(Errc kind, acl::Entry entry = acl::Entry::none) {
  const auto runtime = Runtime::open();
  demand(!runtime, "no runtime is opened");
  demand(runtime.error().kind() == kind, "the error is of the expected kind");
  demand(entry == acl::Entry::none || runtime.error().entry() == entry, "it names the missing entry");
}

// Both texts of an error have each of these parts.
void says(const Error& error, std::initializer_list<std::string> parts) {
  for (const std::string& text : {fmt::format("{}", error), fmt::format("{:l}", error)}) {
    for (const std::string& part : parts) {
      const bool there = text.find(part) != std::string::npos;
      if (!there) fmt::print(stderr, "`{}` is not in: {}\n", part, text);
      demand(there, "the text has what it must say");
    }
  }
}

Error error_of_open(Errc kind) {
  const auto runtime = Runtime::open();
  demand(!runtime, "no runtime is opened");
  if (runtime.error().kind() != kind) fmt::print(stderr, "{}\n", runtime.error());
  demand(runtime.error().kind() == kind, "the error is of the expected kind");
  return runtime.error();
}

unsigned calls(const char* entry) {
  void* const library = ::dlopen(complete.c_str(), RTLD_NOW | RTLD_NOLOAD);
  demand(library != nullptr, "the fake library is loaded");
  return reinterpret_cast<unsigned (*)(const char*)>(::dlsym(library, "fake_ascendcl_calls"))(entry);
}

const char* acl_text() { return host::table().aclGetRecentErrMsg(); }

}  // namespace

TEST_CASE("without any library of the vendor's a process gets the host runtime") {
  CHECK_CHILD([] { chose("host", "linked in"); });
}

TEST_CASE("DEVSHARE_RUNTIME=host is the host runtime, whatever else is there") {
  const Installed cann(complete);
  CHECK_CHILD([] { chose("host", "linked in"); }, {.set = {{"DEVSHARE_RUNTIME", "host"}, {"ASCEND_HOME_PATH", cann.home()}}});
  CHECK_CHILD(
      [] {
        demand(::dlopen(complete.c_str(), RTLD_NOW) != nullptr, "it is loaded");
        chose("host", "linked in");
      },
      {.set = {{"DEVSHARE_RUNTIME", "host"}}});
}

TEST_CASE("DEVSHARE_RUNTIME=PATH is that library and no other") {
  CHECK_CHILD([] { chose("ascend", complete); }, {.set = {{"DEVSHARE_RUNTIME", complete}}});
  CHECK_CHILD([] { refused(Errc::runtime_not_found); }, {.set = {{"DEVSHARE_RUNTIME", "/no/such/library.so"}}});
}

TEST_CASE("DEVSHARE_RUNTIME=ascend is an installed library, or an error, but never the host runtime") {
  const Installed cann(complete);
  CHECK_CHILD([] { chose("ascend", ""); }, {.set = {{"DEVSHARE_RUNTIME", "ascend"}, {"ASCEND_HOME_PATH", cann.home()}}});
  CHECK_CHILD([] { refused(Errc::runtime_not_found); }, {.set = {{"DEVSHARE_RUNTIME", "ascend"}}});
}

TEST_CASE("a library that the process has already loaded is taken: an engine and devshare meet in one runtime") {
  CHECK_CHILD([] {
    demand(::dlopen(complete.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr, "the engine loads its runtime");
    chose("ascend", "libascendcl.so");
    demand(calls("aclInit") == 1, "devshare initialises that one");
  });
}

TEST_CASE("an installed library with a device is taken, one without a device is not and is left as it was found") {
  const Installed cann(complete);
  CHECK_CHILD([&] { chose("ascend", cann.home() + "/lib64/libascendcl.so"); }, {.set = {{"ASCEND_HOME_PATH", cann.home()}}});
  CHECK_CHILD(
      [] {
        chose("host", "linked in");
        demand(calls("aclInit") == 1 && calls("aclFinalize") == 1, "what was begun to ask for devices is ended");
      },
      {.set = {{"ASCEND_TOOLKIT_HOME", cann.home()}, {"DEVSHARE_TEST_FAKE_DEVICES", "0"}}});
}

TEST_CASE("the choice is made once, whatever the environment says later") {
  CHECK_CHILD(
      [] {
        chose("ascend", complete);
        ::setenv("DEVSHARE_RUNTIME", "host", 1);
        chose("ascend", complete);
      },
      {.set = {{"DEVSHARE_RUNTIME", complete}}});
}

TEST_CASE("devshare does not finalize a runtime that somebody else initialised") {
  CHECK_CHILD(
      [] {
        void* const library = ::dlopen(complete.c_str(), RTLD_NOW);
        demand(library != nullptr, "it is loaded");
        demand(reinterpret_cast<int (*)(const char*)>(::dlsym(library, "aclInit"))(nullptr) == 0, "the engine initialises");
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        demand(bool(runtime->finalize()), "devshare ends its part");
        demand(calls("aclFinalize") == 0, "the engine's runtime goes on");
      },
      {.set = {{"DEVSHARE_RUNTIME", complete}}});
}

TEST_CASE("devshare finalizes a runtime that it initialised, also to see whether there is a device") {
  const Installed cann(complete);
  CHECK_CHILD(
      [] {
        const auto runtime = Runtime::open();
        demand(runtime && runtime->name() == "ascend", "the installed library is taken");
        demand(calls("aclFinalize") == 0, "it is not finalized before its time");
        demand(bool(runtime->finalize()), "the runtime is finalized");
        demand(calls("aclFinalize") == 1, "and so is the library");
      },
      {.set = {{"ASCEND_HOME_PATH", cann.home()}}});
}

TEST_CASE("a library without a required entry is refused, and the entry is named") {
  CHECK_CHILD([] { refused(Errc::runtime_incomplete, acl::Entry::aclrtMemcpy); },
              {.set = {{"DEVSHARE_RUNTIME", without_memcpy}}});
}

TEST_CASE("a library that is not an ACL runtime is refused") {
  CHECK_CHILD([] { refused(Errc::runtime_incomplete, acl::Entry::aclInit); }, {.set = {{"DEVSHARE_RUNTIME", "libm.so.6"}}});
}

TEST_CASE("B095 a missing optional entry is an error of the call that needs it, and gives the memory back") {
  CHECK_CHILD(
      [] {
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        demand(!runtime->has(acl::Entry::aclrtIpcMemGetExportKey), "it cannot export");
        demand(runtime->version() == Version{}, "it knows no version");
        const auto pid = runtime->bare_pid();
        demand(!pid && pid.error().kind() == Errc::unsupported_by_runtime, "it knows no bare pid");
        demand(pid.error().entry() == acl::Entry::aclrtDeviceGetBareTgid, "the error names the entry");
        auto device = runtime->device(DeviceId{0});
        demand(bool(device), "there is a device");
        auto allocated = DeviceMemory::allocate(*device, 100);
        demand(bool(allocated), "there is memory");
        auto memory = *std::move(allocated);
        auto key = export_key(std::move(memory));
        demand(!key, "it does not export");
        demand(key.error().kind() == Errc::unsupported_by_runtime, "the error is of the expected kind");
        auto back = std::move(key).error().take_back();
        demand(back.size() == 100, "the memory comes back");
        demand(bool(std::move(back).close()), "it is freed");
      },
      {.set = {{"DEVSHARE_RUNTIME", only_required}}});
}

TEST_CASE("the vendor's runtime is asked for no pages of the machine, and those it has are unknown") {
  CHECK_CHILD(
      [] {
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        auto device = runtime->device(DeviceId{0});
        demand(bool(device), "there is a device");
        auto allocated = DeviceMemory::allocate(
            *device, 100, {.host_pages = HostPages::huge_if_free, .populate = Populate::now});
        demand(bool(allocated), "a wish is no obstacle");
        demand(allocated->backing() == HostBacking{}, "nobody knows what became of it");
        demand(calls("aclrtMalloc") == 1, "it was one call, as without");
        auto memory = *std::move(allocated);
        demand(bool(std::move(memory).close()), "it is freed");
      },
      {.set = {{"DEVSHARE_RUNTIME", complete}}});
}

TEST_CASE("B095 a runtime without handles says so at each of their calls, and what it can do is known beforehand") {
  CHECK_CHILD(
      [] {
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        auto opened = runtime->device(DeviceId{0});
        demand(bool(opened), "there is a device");
        const Device device = *opened;
        const auto lacks = [](const Error& error, acl::Entry entry) {
          return error.kind() == Errc::unsupported_by_runtime && error.entry() == entry;
        };
        auto handle = PhysicalHandle::allocate(device, 100);
        demand(!handle && lacks(handle.error(), acl::Entry::aclrtMallocPhysical), "no physical memory");
        auto range = AddressReservation::reserve(device, 100);
        demand(!range && lacks(range.error(), acl::Entry::aclrtReserveMemAddress), "no addresses");
        alignas(4096) static std::byte host[4096];
        auto registration = HostRegistration::of(device, host);
        demand(!registration && lacks(registration.error(), acl::Entry::aclrtHostRegister), "no registrations");
        auto memory = DeviceMemory::allocate(device, 100);
        demand(bool(memory), "there is memory");
        auto moved = rehouse(*std::move(memory));
        demand(!moved && lacks(moved.error().error(), acl::Entry::aclrtMallocPhysical), "which cannot be rehoused");
        demand(bool(std::move(moved).error().take_back().close()), "and comes back");
        demand(importable(device).empty(), "nothing can be imported");
        const auto found = probe(device, device);
        demand(bool(found) && found->working().empty(), "and nothing shared");
      },
      {.set = {{"DEVSHARE_RUNTIME", only_required}}});
}

TEST_CASE("the typed layer works on a library of the vendor's shape as it does on the host runtime") {
  CHECK_CHILD(
      [] {
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        demand(runtime->version() == Version{1, 17, 0}, "its version is shown");
        demand(runtime->device_state_scope() == "driver", "its devices' state is the driver's");
        auto device = runtime->device(DeviceId{0});
        demand(bool(device), "there is a device");
        auto allocated = DeviceMemory::allocate(*device, 100);
        demand(bool(allocated), "there is memory");
        auto memory = *std::move(allocated);
        auto exported = export_key(std::move(memory));
        demand(bool(exported), "it is exported");
        auto key = *std::move(exported);
        demand(bool(key.admit(BarePid::from_peer_message(1))), "a process is admitted");
        auto closed = std::move(key).close();
        demand(bool(closed), "the key is closed");
        auto back = *std::move(closed);
        demand(bool(std::move(back).close()), "the memory is freed");
        for (const char* entry : {"aclrtMalloc", "aclrtIpcMemGetExportKey", "aclrtIpcMemSetImportPid", "aclrtIpcMemClose", "aclrtFree"}) {
          if (calls(entry) != 1) fmt::print(stderr, "{} calls of {}\n", calls(entry), entry);
          demand(calls(entry) == 1, "each call is made once");
        }
      },
      {.set = {{"DEVSHARE_RUNTIME", complete}}});
}

TEST_CASE("what could not be loaded is said with the value of DEVSHARE_RUNTIME and the loader's own words") {
  CHECK_CHILD(
      [] {
        says(error_of_open(Errc::runtime_not_found), {"DEVSHARE_RUNTIME=/no/such.so", "No such file"});
      },
      {.set = {{"DEVSHARE_RUNTIME", "/no/such.so"}}});
  CHECK_CHILD(
      [] {
        const Error error = error_of_open(Errc::runtime_not_found);
        says(error, {"DEVSHARE_RUNTIME=Host", "Host: cannot open shared object file"});
        const auto causes = explain(error).causes;
        demand(std::any_of(causes.begin(), causes.end(),
                           [](std::string_view cause) { return cause.find("taken for the path") != cause.npos; }),
               "a word that is no path is among the causes");
      },
      {.set = {{"DEVSHARE_RUNTIME", "Host"}}});
}

TEST_CASE("DEVSHARE_RUNTIME=ascend without a library says each place that was looked at") {
  CHECK_CHILD(
      [] {
        says(error_of_open(Errc::runtime_not_found),
             {"DEVSHARE_RUNTIME=ascend", "libascendcl.so: cannot open", "/nowhere/at/all/lib64/libascendcl.so"});
      },
      {.set = {{"DEVSHARE_RUNTIME", "ascend"}, {"ASCEND_HOME_PATH", "/nowhere/at/all"}}});
}

TEST_CASE("a library that lacks an entry is said with the entry and the library") {
  CHECK_CHILD(
      [] {
        says(error_of_open(Errc::runtime_incomplete), {"aclrtMemcpy is missing", without_memcpy});
      },
      {.set = {{"DEVSHARE_RUNTIME", without_memcpy}}});
}

TEST_CASE("a switch that cannot be understood is an error of its own kind: variable, value, and what is allowed") {
  CHECK_CHILD(
      [] {
        const Error error = error_of_open(Errc::bad_switch);
        demand(error.acl_code() == acl::code::invalid_param, "the runtime's code is kept");
        demand(error.reason() == Error::Reason::bad_switch, "so is its reason");
        says(error, {"DEVSHARE_HOST_DEVICES=two", "a number from 1 to 16"});
        demand(explain(error).note.find("DEVSHARE_HOST_DEVICES=two") != std::string_view::npos,
               "the note is explained");
        const char* const text = acl_text();
        demand(text != nullptr && std::strstr(text, "DEVSHARE_HOST_DEVICES=two") != nullptr,
               "and aclGetRecentErrMsg still has it");
      },
      {.set = {{"DEVSHARE_RUNTIME", "host"}, {"DEVSHARE_HOST_DEVICES", "two"}}});
  CHECK_CHILD(
      [] {
        says(error_of_open(Errc::bad_switch), {"DEVSHARE_HOST_DEVICE=2", "DEVSHARE_HOST_DEVICES"});
      },
      {.set = {{"DEVSHARE_RUNTIME", "host"}, {"DEVSHARE_HOST_DEVICE", "2"}}});
}

TEST_CASE("each error of a failed open keeps its own words, also after another failed, and a good open has none") {
  CHECK_CHILD(
      [] {
        const Error first = error_of_open(Errc::runtime_not_found);
        ::setenv("DEVSHARE_RUNTIME", "/also/missing.so", 1);
        const Error second = error_of_open(Errc::runtime_not_found);
        ::setenv("DEVSHARE_RUNTIME", "host", 1);
        ::setenv("DEVSHARE_HOST_DEVICES", "many", 1);
        const Error third = error_of_open(Errc::bad_switch);
        ::unsetenv("DEVSHARE_HOST_DEVICES");
        chose("host", "linked in");
        says(first, {"/missing.so"});
        says(second, {"/also/missing.so"});
        says(third, {"DEVSHARE_HOST_DEVICES=many"});
        const auto runtime = Runtime::open();
        demand(bool(runtime), "a runtime is opened");
        const auto none = runtime->device(DeviceId{99});
        demand(!none && explain(none.error()).note.empty(), "other errors have no note");
      },
      {.set = {{"DEVSHARE_RUNTIME", "/missing.so"}}});
}

TEST_CASE("a program that fails to open in ever new words does not grow by them for ever, nor lose the kind") {
  CHECK_CHILD(
      [] {
        for (int number = 0; number < 300; ++number) {
          ::setenv("DEVSHARE_RUNTIME", fmt::format("/missing/{}.so", number).c_str(), 1);
          const Error error = error_of_open(Errc::runtime_not_found);
          if (number == 0) says(error, {"/missing/0.so"});
          demand(error.note() <= 64, "no more texts are kept than that");
        }
      },
      {.set = {{"DEVSHARE_RUNTIME", "/missing/x.so"}}});
}

TEST_CASE("errors of failed opens are made and read by many threads at once") {
  CHECK_CHILD(
      [] {
        std::vector<std::thread> threads;
        for (int number = 0; number < 4; ++number) {
          threads.emplace_back([] {
            for (int round = 0; round < 20; ++round) {
              says(error_of_open(Errc::runtime_not_found), {"DEVSHARE_RUNTIME=/no/such.so"});
            }
          });
        }
        for (std::thread& thread : threads) thread.join();
      },
      {.set = {{"DEVSHARE_RUNTIME", "/no/such.so"}}});
}
