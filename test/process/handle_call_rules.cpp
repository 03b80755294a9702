// SPDX-License-Identifier: Apache-2.0
// The rules of single calls, as an importer meets them on the memory of another process: by the table, since the types
// let nobody break them. What one process alone can do wrong is in the unit tests of the host runtime.
#include "support/sharing.hpp"

#include <cstring>
#include <functional>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 2 * 1024 * 1024;

// What an importer has in hand: the token as a number, and the calls.
struct Importer {
  const Party& b;
  std::uint64_t token = 0;

  acl::aclrtDrvMemHandle import() const {
    acl::aclrtDrvMemHandle handle = nullptr;
    b.call_succeeds(api().aclrtMemImportFromShareableHandle(token, 0, &handle), "the token is imported");
    return handle;
  }
  void* reserve() const {
    void* address = nullptr;
    b.call_succeeds(api().aclrtReserveMemAddress(&address, 2 * size, 0, nullptr, 0), "addresses are reserved");
    return address;
  }
  void end(void* range, acl::aclrtDrvMemHandle handle) const {
    b.call_succeeds(api().aclrtReleaseMemAddress(range), "and released");
    b.call_succeeds(api().aclrtFreePhysical(handle), "and the handle is freed");
  }
};

template <class K>
void imported(const std::function<void(const Importer&)>& part, Switches switches = {}) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, switches);
    auto token = me.must(export_handle_unrestricted<K>(a.map(pattern(size))), "A exports");
    a.send("B", me.must(token.ticket(), "a ticket"));
    me.pause_until("B", "closed");
    me.must(me.must(std::move(token).close(), "A ends the export").close(), "and the mapping");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 0, switches);
    const ReceivedTicket ticket = b.ticket_from("A");
    me.must(b.device.make_current(), "the device is current");
    Importer importer{b};
    std::memcpy(&importer.token, ticket.fields().payload.data(), sizeof importer.token);
    part(importer);
    b.leave();
    me.step("closed");
  });
  story.run();
}

}  // namespace

TEST_CASE("R32 V2 imports take no flags") {
  imported<v2>([](const Importer& its) {
    std::uint64_t token = its.token;
    acl::aclrtDrvMemHandle handle = nullptr;
    its.b.call_refused(api().aclrtMemImportFromShareableHandleV2(&token, acl::share_type::local, 1, &handle),
                       acl::code::invalid_param, Reason::bad_argument, "flags 1");
    its.b.call_succeeds(api().aclrtMemImportFromShareableHandleV2(&token, acl::share_type::local, 0, &handle), "flags 0");
    its.b.call_succeeds(api().aclrtFreePhysical(handle), "and it is freed");
  });
}

TEST_CASE("R33 V1 imports name a device that there is; V2 imports take the current one") {
  imported<v1>([](const Importer& its) {
    acl::aclrtDrvMemHandle handle = nullptr;
    for (const std::int32_t none : {-1, 2, 1000}) {
      its.b.call_refused(api().aclrtMemImportFromShareableHandle(its.token, none, &handle),
                         acl::code::rt_invalid_deviceid, Reason::no_such_device, "no such device");
    }
    its.b.call_succeeds(api().aclrtMemImportFromShareableHandle(its.token, 1, &handle), "the other device");
    its.b.call_succeeds(api().aclrtFreePhysical(handle), "and it is freed");
  });
  imported<v2>([](const Importer& its) {
    std::uint64_t token = its.token;
    acl::aclrtDrvMemHandle handle = nullptr;
    its.b.me.must(its.b.other_device(1).make_current(), "the other device is current");
    its.b.call_succeeds(api().aclrtMemImportFromShareableHandleV2(&token, acl::share_type::local, 0, &handle), "imports");
    void* const range = its.reserve();
    its.b.call_succeeds(api().aclrtMapMem(range, size, 0, handle, 0), "maps");
    // Only the memory's own device has access without a word.
    std::byte byte{};
    its.b.call_refused(api().aclrtMemcpy(&byte, 1, range, 1, acl::memcpy_kind::device_to_host),
                       acl::code::rt_drv_internal, Reason::no_access, "a copy before access was given");
    acl::aclrtMemAccessDesc access{acl::mem_access::read_write, {1, acl::mem_location_type::device}, {}};
    its.b.call_succeeds(api().aclrtMemSetAccess(range, size, &access, 1), "the device of the import is given access");
    its.b.call_succeeds(api().aclrtMemcpy(&byte, 1, range, 1, acl::memcpy_kind::device_to_host), "and copies");
    its.b.call_succeeds(api().aclrtUnmapMem(range), "unmaps");
    its.end(range, handle);
  });
}

TEST_CASE("R36 imported memory is mapped whole, from its first byte, without flags") {
  imported<v1>([](const Importer& its) {
    const acl::aclrtDrvMemHandle handle = its.import();
    auto* const range = static_cast<std::byte*>(its.reserve());
    const auto refused = [&](acl::aclError result, acl::aclError expected, Reason reason, std::string_view sentence) {
      its.b.call_refused(result, expected, reason, sentence);
    };
    using acl::code::invalid_param;
    using acl::code::rt_param_invalid;
    refused(api().aclrtMapMem(range, size / 2, 0, handle, 0), rt_param_invalid, Reason::out_of_bounds, "a half of it");
    refused(api().aclrtMapMem(range, 2 * size, 0, handle, 0), rt_param_invalid, Reason::out_of_bounds, "twice of it");
    refused(api().aclrtMapMem(range, size, 4096, handle, 0), rt_param_invalid, Reason::bad_argument, "from inside");
    refused(api().aclrtMapMem(range, size, 0, handle, 1), invalid_param, Reason::bad_argument, "with flags");
    its.end(range, handle);
  });
}

TEST_CASE("R37 access to imported memory is given for the whole of a mapping, for reading and writing") {
  imported<v1>([](const Importer& its) {
    const acl::aclrtDrvMemHandle handle = its.import();
    auto* const range = static_cast<std::byte*>(its.reserve());
    its.b.call_succeeds(api().aclrtMapMem(range, size, 0, handle, 0), "it is mapped");
    acl::aclrtMemAccessDesc access{acl::mem_access::read_write, {0, acl::mem_location_type::device}, {}};
    const auto refused = [&](void* address, std::size_t bytes, acl::aclError expected, std::string_view sentence) {
      its.b.me.expect_equal(api().aclrtMemSetAccess(address, bytes, &access, 1), expected, sentence);
    };
    refused(range, size / 2, acl::code::rt_drv_internal, "a part of the mapping");
    refused(range + 4096, size, acl::code::rt_drv_internal, "from inside it");
    access.flags = acl::mem_access::read;
    refused(range, size, acl::code::rt_feature_not_support, "reading only");
    access.flags = acl::mem_access::read_write;
    access.location.id = 7;
    refused(range, size, acl::code::rt_drv_internal, "a device that the driver does not know");
    access.location.id = 0;
    its.b.call_succeeds(api().aclrtMemSetAccess(range, size, &access, 1), "all of it");
    its.b.call_succeeds(api().aclrtUnmapMem(range), "unmaps");
    its.end(range, handle);
  });
}

TEST_CASE("R38 R40 imported memory is unmapped by its address and before its range goes; a freed handle is none") {
  imported<v1>([](const Importer& its) {
    const acl::aclrtDrvMemHandle handle = its.import();
    auto* const range = static_cast<std::byte*>(its.reserve());
    its.b.call_succeeds(api().aclrtMapMem(range, size, 0, handle, 0), "it is mapped");
    its.b.call_refused(api().aclrtUnmapMem(range + 4096), acl::code::rt_drv_internal, Reason::not_reserved,
                       "from inside");
    its.b.call_refused(api().aclrtReleaseMemAddress(range), acl::code::rt_drv_internal, Reason::in_use,
                       "the range, with memory in it");
    its.b.call_succeeds(api().aclrtFreePhysical(handle), "the handle may go before its mapping");
    its.b.call_refused(api().aclrtMapMem(range + size, size, 0, handle, 0), acl::code::rt_invalid_handle,
                       Reason::unknown_handle, "but is not mapped again");
    its.b.me.expect(its.b.read({DevicePtr<const std::byte>::from_address(range), size}) == pattern(size),
                    "the mapping keeps the memory");
    its.b.call_succeeds(api().aclrtUnmapMem(range), "it is unmapped");
    its.b.call_refused(api().aclrtUnmapMem(range), acl::code::rt_drv_internal, Reason::not_reserved, "once");
    its.b.call_succeeds(api().aclrtReleaseMemAddress(range), "and the range is released");
    its.b.call_refused(api().aclrtFreePhysical(handle), acl::code::rt_invalid_handle, Reason::unknown_handle,
                       "the handle is gone for good");
  });
}
