// SPDX-License-Identifier: Apache-2.0
#include "acl.hpp"

#include <algorithm>

namespace conformance {
namespace {

using acl::Table;

constexpr void* anywhere = nullptr;

std::vector<std::int32_t> pids_of(int pid, std::size_t times) {
  std::vector<std::int32_t> pids(times, pid);
  pids.reserve(1);  // an address, also of none
  return pids;
}

}  // namespace

// --- devices

aclError Acl::set_device(int device) { return call<&Table::aclrtSetDevice>(device); }
aclError Acl::reset_device(int device) { return call<&Table::aclrtResetDevice>(device); }
int Acl::bare_pid() {
  const auto pid = got<&Table::aclrtDeviceGetBareTgid, std::int32_t>();
  return pid.code == 0 ? pid.value : -1;
}
std::uint32_t Acl::devices() {
  const auto count = got<&Table::aclrtGetDeviceCount, std::uint32_t>();
  return count.code == 0 ? count.value : 0;
}
aclError Acl::enable_peer(int peer, std::uint32_t flags) {
  return call<&Table::aclrtDeviceEnablePeerAccess>(peer, flags);
}
int Acl::peer_status(int device, int peer) {
  return run(
      [](const Table& acl, int from, int to) {
        std::int32_t status = -1;
        return acl.aclrtDevicePeerAccessStatus(from, to, &status) == 0 ? status : -1;
      },
      device, peer);
}

// --- memory

Got<void*> Acl::allocate(std::size_t size, acl::aclrtMemMallocPolicy policy) {
  return got<&Table::aclrtMalloc, void*>(size, policy);
}
aclError Acl::free(void* memory) { return call<&Table::aclrtFree>(memory); }

aclError Acl::put(void* memory, char value, std::size_t size) {
  return run(
      [](const Table& acl, void* to, char byte, std::size_t count) {
        const std::vector<char> bytes(count, byte);
        return acl.aclrtMemcpy(to, count, bytes.data(), count, acl::memcpy_kind::host_to_device);
      },
      memory, value, size);
}
Got<char> Acl::get(const void* memory) {
  return run(
      [](const Table& acl, const void* from) {
        Got<char> got;
        got.code = acl.aclrtMemcpy(&got.value, 1, from, 1, acl::memcpy_kind::device_to_host);
        return got;
      },
      memory);
}
aclError Acl::copy_inside(void* to, const void* from, std::size_t size) {
  return call<&Table::aclrtMemcpy>(to, size, from, size, acl::memcpy_kind::device_to_device);
}

// --- by key

Got<Key> Acl::export_key(void* memory, std::uint64_t flags, std::size_t size, std::size_t length) {
  return run(
      [](const Table& acl, void* block, std::uint64_t with, std::size_t bytes, std::size_t room) {
        char key[256] = {};
        Got<Key> got;
        got.code = acl.aclrtIpcMemGetExportKey(block, bytes, key, room, with);
        std::copy_n(key, got.value.size(), got.value.begin());
        return got;
      },
      memory, flags, size, length);
}
aclError Acl::admit(const Key& key, int pid, std::size_t times) {
  return run(
      [](const Table& acl, const Key& to, int who, std::size_t count) {
        return acl.aclrtIpcMemSetImportPid(to.data(), pids_of(who, count).data(), count);
      },
      key, pid, times);
}
Got<void*> Acl::import_key(const Key& key, std::uint64_t flags) {
  return run(
      [](const Table& acl, const Key& from, std::uint64_t with) {
        Got<void*> got;
        got.code = acl.aclrtIpcMemImportByKey(&got.value, from.data(), with);
        return got;
      },
      key, flags);
}
aclError Acl::close(const Key& key) {
  return run([](const Table& acl, const Key& what) { return acl.aclrtIpcMemClose(what.data()); }, key);
}

// --- physical memory

Got<Handle> Acl::physical(std::size_t size, int device, acl::aclrtMemAttr attribute) {
  return run(
      [](const Table& acl, std::size_t bytes, int on, acl::aclrtMemAttr kind) {
        acl::aclrtPhysicalMemProp prop{};
        prop.handleType = acl::mem_handle_type::none;
        prop.allocationType = acl::mem_allocation_type::pinned;
        prop.memAttr = kind;
        prop.location = {static_cast<std::uint32_t>(on), acl::mem_location_type::device};
        Got<Handle> got;
        got.code = acl.aclrtMallocPhysical(&got.value, bytes, &prop, 0);
        return got;
      },
      size, device, attribute);
}
aclError Acl::free_physical(Handle handle) { return call<&Table::aclrtFreePhysical>(handle); }
Got<Handle> Acl::retain(void* address) {
  return run(
      [](const Table& acl, void* at) {
        Got<Handle> got;
        got.code = acl.aclrtMemRetainAllocationHandle(at, &got.value);
        return got;
      },
      address);
}
Got<void*> Acl::reserve(std::size_t size, std::size_t alignment, std::uint64_t flags) {
  return got<&Table::aclrtReserveMemAddress, void*>(size, alignment, anywhere, flags);
}
aclError Acl::release(void* range) { return call<&Table::aclrtReleaseMemAddress>(range); }
aclError Acl::map(void* address, Handle handle, std::size_t size, std::size_t offset, std::uint64_t flags) {
  return call<&Table::aclrtMapMem>(address, size, offset, handle, flags);
}
aclError Acl::unmap(void* address) { return call<&Table::aclrtUnmapMem>(address); }
aclError Acl::set_access(void* address, std::size_t size, std::uint32_t device, acl::aclrtMemAccessFlags flags) {
  return run(
      [](const Table& acl, void* at, std::size_t bytes, std::uint32_t on, acl::aclrtMemAccessFlags how) {
        acl::aclrtMemAccessDesc access{};
        access.flags = how;
        access.location = {on, acl::mem_location_type::device};
        return acl.aclrtMemSetAccess(at, bytes, &access, 1);
      },
      address, size, device, flags);
}

// --- by token

template <class T>
Got<T> Acl::export_second(Handle handle, std::uint64_t flags, acl::aclrtMemSharedHandleType kind) {
  return run(
      [](const Table& acl, Handle what, std::uint64_t with, acl::aclrtMemSharedHandleType as) {
        Got<T> got;
        got.code = acl.aclrtMemExportToShareableHandleV2(what, with, as, &got.value);
        return got;
      },
      handle, flags, kind);
}
template <class T>
Got<Handle> Acl::import_second(const T& token, std::uint64_t flags, acl::aclrtMemSharedHandleType kind) {
  return run(
      [](const Table& acl, T from, std::uint64_t with, acl::aclrtMemSharedHandleType as) {
        Got<Handle> got;
        got.code = acl.aclrtMemImportFromShareableHandleV2(&from, as, with, &got.value);
        return got;
      },
      token, flags, kind);
}

Got<Token> Acl::export_v1(Handle handle, std::uint64_t flags) {
  return run(
      [](const Table& acl, Handle what, std::uint64_t with) {
        Got<Token> got;
        got.code = acl.aclrtMemExportToShareableHandle(what, acl::mem_handle_type::none, with, &got.value);
        return got;
      },
      handle, flags);
}
aclError Acl::admit_v1(Token token, int pid, std::size_t times) {
  return run(
      [](const Table& acl, Token to, int who, std::size_t count) {
        return acl.aclrtMemSetPidToShareableHandle(to, pids_of(who, count).data(), count);
      },
      token, pid, times);
}
Got<Handle> Acl::import_v1(Token token, int device) {
  return run(
      [](const Table& acl, Token from, int on) {
        Got<Handle> got;
        got.code = acl.aclrtMemImportFromShareableHandle(from, on, &got.value);
        return got;
      },
      token, device);
}
Got<Token> Acl::export_v2(Handle handle, std::uint64_t flags) {
  return export_second<Token>(handle, flags, acl::share_type::local);
}
Got<Fabric> Acl::export_fabric(Handle handle, std::uint64_t flags) {
  return export_second<Fabric>(handle, flags, acl::share_type::fabric);
}
Got<Handle> Acl::import_v2(Token token, std::uint64_t flags) {
  return import_second(token, flags, acl::share_type::local);
}
Got<Handle> Acl::import_fabric(const Fabric& token) { return import_second(token, 0, acl::share_type::fabric); }

// --- streams, notifies, events

void* Acl::stream() { return got<&Table::aclrtCreateStream, void*>().value; }
aclError Acl::synchronize(void* stream) { return call<&Table::aclrtSynchronizeStream>(stream); }
Got<void*> Acl::notify() { return got<&Table::aclrtCreateNotify, void*>(acl::notify_flag::plain); }
aclError Acl::destroy_notify(void* notify) { return call<&Table::aclrtDestroyNotify>(notify); }
aclError Acl::record(void* notify, void* stream) { return call<&Table::aclrtRecordNotify>(notify, stream); }
aclError Acl::wait(void* notify, void* stream, std::uint32_t seconds) {
  return call<&Table::aclrtWaitAndResetNotify>(notify, stream, seconds);
}
Got<Key> Acl::export_notify(void* notify, std::uint64_t flags) {
  return run(
      [](const Table& acl, void* what, std::uint64_t with) {
        Got<Key> got;
        got.code = acl.aclrtNotifyGetExportKey(what, got.value.data(), got.value.size(), with);
        return got;
      },
      notify, flags);
}
Got<void*> Acl::import_notify(const Key& key, std::uint64_t flags) {
  return run(
      [](const Table& acl, const Key& from, std::uint64_t with) {
        Got<void*> got;
        got.code = acl.aclrtNotifyImportByKey(&got.value, from.data(), with);
        return got;
      },
      key, flags);
}
Got<void*> Acl::event(std::uint32_t flag) { return got<&Table::aclrtCreateEventExWithFlag, void*>(flag); }

}  // namespace conformance
