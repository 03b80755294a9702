// SPDX-License-Identifier: Apache-2.0
// aclrtHostRegister, its second form, aclrtHostGetDevicePointer and aclrtHostUnregister.
#include "host/block.hpp"
#include "physical_session.hpp"
#include "support/catch.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

using devshare::host::Counters;
using devshare::host::counters;
using devshare::host::Reason;
using devshare::host::view_of;
using devshare::host::ViewAccess;
using devshare::test::last_reason;
using devshare::test::PhysicalSession;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace flags = devshare::acl::host_register_flag;
namespace types = devshare::acl::host_register_type;

namespace {

// Pages of the host, with one behind them that cannot be touched.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : bytes_(count * page()),
        begin_(static_cast<std::byte*>(
            ::mmap(nullptr, bytes_ + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    ::munmap(begin_ + bytes_, page());
  }
  ~Pages() { ::munmap(begin_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  std::byte* begin() const { return begin_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* begin_;
};

acl::aclError enter(const PhysicalSession& session, void* address, std::size_t size,
                    acl::aclrtHostRegisterType type = types::mapped) {
  void* device = nullptr;
  return session.acl.aclrtHostRegister(address, size, type, &device);
}

}  // namespace

TEST_CASE("registered host memory has an address for kernels, which copies do not take") {
  const Pages pages(3);
  PhysicalSession session;
  const Counters before = counters();
  void* device = nullptr;
  REQUIRE(session.acl.aclrtHostRegister(pages.begin(), pages.size() - 100, types::mapped, &device) == 0);
  CHECK(counters().registrations == before.registrations + 1);
  CHECK(device != pages.begin());
  auto* const seen = static_cast<std::byte*>(view_of(device, pages.size() - 100, ViewAccess::read_write));
  REQUIRE(seen == pages.begin());  // the same memory, as a kernel would see it
  CHECK(view_of(device, pages.size() - 99, ViewAccess::read) == nullptr);
  CHECK(session.acl.aclrtMemcpy(device, 16, pages.begin(), 16, 1) == code::rt_drv_internal);
  CHECK(last_reason() == Reason::not_device_memory);
  CHECK(session.acl.aclrtMemset(device, 16, 0, 16) == code::rt_drv_internal);
  CHECK(session.acl.aclrtFree(device) == code::rt_param_invalid);
  char key[acl::ipc_key_size];
  CHECK(session.acl.aclrtIpcMemGetExportKey(device, 16, key, sizeof key, 0) == code::rt_drv_internal);
  void* inside = nullptr;
  REQUIRE(session.acl.aclrtHostGetDevicePointer(pages.begin() + 77, &inside, 0) == 0);
  CHECK(inside == static_cast<std::byte*>(device) + 77);
  CHECK(session.acl.aclrtHostUnregister(pages.begin()) == 0);
  CHECK(view_of(device, 1, ViewAccess::read) == nullptr);
  CHECK(counters() == before);
}

TEST_CASE("host memory whose address for the device is in use stays registered") {
  const Pages pages(1);
  PhysicalSession session;
  void* device = nullptr;
  REQUIRE(session.acl.aclrtHostRegister(pages.begin(), 64, types::mapped, &device) == 0);
  {
    const devshare::host::PinnedBlock in_use(device);
    CHECK(session.acl.aclrtHostUnregister(pages.begin()) == code::rt_drv_internal);
    CHECK(last_reason() == Reason::in_use);
  }
  CHECK(session.acl.aclrtHostUnregister(pages.begin()) == 0);
}

TEST_CASE("host memory is registered once and unregistered once") {
  const Pages pages(4);
  PhysicalSession session;
  std::byte* const second = pages.begin() + Pages::page();
  CHECK(session.acl.aclrtHostUnregister(second) == code::host_memory_not_registered);
  void* device = nullptr;
  CHECK(session.acl.aclrtHostGetDevicePointer(second, &device, 0) == code::host_memory_not_registered);
  CHECK(last_reason() == Reason::not_reserved);
  REQUIRE(enter(session, second, 2 * Pages::page()) == 0);
  for (std::byte* const overlapping : {pages.begin(), second, second + Pages::page()}) {
    CHECK(enter(session, overlapping, 2 * Pages::page()) == code::host_memory_already_registered);
    CHECK(last_reason() == Reason::already_mapped);
  }
  CHECK(session.acl.aclrtHostRegisterV2(second, 8, flags::mapped) == code::host_memory_already_registered);
  CHECK(enter(session, pages.begin(), Pages::page()) == 0);  // beside it
  CHECK(session.acl.aclrtHostUnregister(second + Pages::page()) == code::host_memory_not_registered);
  CHECK(session.acl.aclrtHostUnregister(second) == 0);
  CHECK(session.acl.aclrtHostUnregister(second) == code::host_memory_not_registered);
  CHECK(enter(session, second, 2 * Pages::page()) == 0);
}

TEST_CASE("what cannot be registered is refused") {
  const Pages pages(2);
  PhysicalSession session;
  const Counters before = counters();
  void* device = nullptr;
  CHECK(enter(session, nullptr, 8) == code::invalid_param);
  CHECK(enter(session, pages.begin(), 0) == code::invalid_param);
  CHECK(session.acl.aclrtHostRegister(pages.begin(), 8, types::mapped, nullptr) == code::invalid_param);
  CHECK(enter(session, pages.begin(), 8, 1) == code::rt_param_invalid);
  CHECK(enter(session, pages.begin() + 64, 8) == code::rt_param_invalid);
  CHECK(last_reason() == Reason::bad_argument);
  CHECK(enter(session, pages.begin(), pages.size() + 1) == code::rt_param_invalid);  // not all of it is there
  CHECK(devshare::host::last_cause().system_errno == EFAULT);
  CHECK(enter(session, pages.begin(), SIZE_MAX - 5) == code::rt_param_invalid);
  std::byte* const reserved = session.reserve(1);
  CHECK(enter(session, reserved, 8) == code::rt_param_invalid);
  REQUIRE(session.acl.aclrtReleaseMemAddress(reserved) == 0);
  CHECK(session.acl.aclrtHostRegisterV2(pages.begin(), 8, 0) == code::rt_param_invalid);
  CHECK(session.acl.aclrtHostRegisterV2(pages.begin(), 8, 1) == code::rt_param_invalid);
  CHECK(session.acl.aclrtHostRegisterV2(nullptr, 8, flags::mapped) == code::invalid_param);
  CHECK(session.acl.aclrtHostUnregister(nullptr) == code::invalid_param);
  CHECK(session.acl.aclrtHostGetDevicePointer(nullptr, &device, 0) == code::invalid_param);
  CHECK(session.acl.aclrtHostGetDevicePointer(pages.begin(), nullptr, 0) == code::invalid_param);
  CHECK(session.acl.aclrtHostGetDevicePointer(pages.begin(), &device, 1) == code::rt_param_invalid);
  CHECK(counters() == before);
}

TEST_CASE("read-only registrations are read only, pinned ones have no address for the device") {
  const Pages pages(2);
  PhysicalSession session;
  void* device = nullptr;
  REQUIRE(session.acl.aclrtHostRegister(pages.begin(), 8, types::read_only, &device) == 0);
  CHECK(view_of(device, 8, ViewAccess::read) != nullptr);
  CHECK(view_of(device, 8, ViewAccess::read_write) == nullptr);
  std::byte* const second = pages.begin() + Pages::page();
  REQUIRE(session.acl.aclrtHostRegisterV2(second, 8, flags::pinned) == 0);
  CHECK(session.acl.aclrtHostGetDevicePointer(second, &device, 0) == code::rt_param_invalid);
  REQUIRE(session.acl.aclrtHostUnregister(second) == 0);
  REQUIRE(session.acl.aclrtHostRegisterV2(second, 8, flags::pinned | flags::mapped) == 0);
  REQUIRE(session.acl.aclrtHostGetDevicePointer(second, &device, 0) == 0);
  CHECK(view_of(device, 8, ViewAccess::read_write) == second);
}

TEST_CASE("A2, A3 and 950 register host memory, the others do not") {
  const Pages pages(1);
  for (const char* const product : {"a2", "a3", "950", "training", "310p"}) {
    INFO(product);
    ::setenv("DEVSHARE_HOST_PROFILE", product, 1);
    PhysicalSession session;
    const bool has = std::strlen(product) == 2 || std::strcmp(product, "950") == 0;
    const acl::aclError code = has ? 0 : code::rt_feature_not_support;
    CHECK(enter(session, pages.begin(), 8) == code);
    if (has) REQUIRE(session.acl.aclrtHostUnregister(pages.begin()) == 0);
    CHECK(session.acl.aclrtHostRegisterV2(pages.begin(), 8, flags::mapped) == code);
  }
  CHECK(counters() == Counters{});  // aclFinalize has ended what was left
}

TEST_CASE("registered memory is memory of the host to whoever asks") {
  const Pages pages(1);
  PhysicalSession session;
  acl::aclrtPtrAttributes found{};
  REQUIRE(session.acl.aclrtPointerGetAttributes(pages.begin(), &found) == 0);
  CHECK(found.location.type == acl::mem_location_type::unregistered);
  void* device = nullptr;
  REQUIRE(session.acl.aclrtHostRegister(pages.begin(), 64, types::mapped, &device) == 0);
  for (const void* const address : {static_cast<const void*>(pages.begin()), static_cast<const void*>(device)}) {
    REQUIRE(session.acl.aclrtPointerGetAttributes(address, &found) == 0);
    CHECK(found.location.type == acl::mem_location_type::host);
  }
}
