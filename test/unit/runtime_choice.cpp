// SPDX-License-Identifier: Apache-2.0
// Which runtime a process gets: the rule of Runtime::open(), and the loader under it, against libraries of the vendor's
// shape. The choice is made once in the life of a process, so each case makes it in a child.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_directory.hpp"
#include "vendor/loader.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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

unsigned calls(const char* entry) {
  void* const library = ::dlopen(complete.c_str(), RTLD_NOW | RTLD_NOLOAD);
  demand(library != nullptr, "the fake library is loaded");
  return reinterpret_cast<unsigned (*)(const char*)>(::dlsym(library, "fake_ascendcl_calls"))(entry);
}

}  // namespace

#define CHECK_CHILD(...)                        \
  do {                                          \
    const ChildEnd child_end = in_child(__VA_ARGS__); \
    INFO(child_end.in_words());                 \
    CHECK(child_end.good());                    \
  } while (false)

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
