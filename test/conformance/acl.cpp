// SPDX-License-Identifier: Apache-2.0
#include "acl.hpp"

#include <algorithm>

namespace conformance {

using acl::Table;

// --- devices

aclError Acl::set_device(int device) {
  return run([](const Table& acl, int id) { return acl.aclrtSetDevice(id); }, device);
}
aclError Acl::reset_device(int device) {
  return run([](const Table& acl, int id) { return acl.aclrtResetDevice(id); }, device);
}
int Acl::bare_pid() {
  return run([](const Table& acl) {
    std::int32_t pid = 0;
    return acl.aclrtDeviceGetBareTgid(&pid) == 0 ? pid : -1;
  });
}
std::uint32_t Acl::devices() {
  return run([](const Table& acl) {
    std::uint32_t count = 0;
    return acl.aclrtGetDeviceCount(&count) == 0 ? count : 0;
  });
}
aclError Acl::enable_peer(int peer, std::uint32_t flags) {
  return run(
      [](const Table& acl, int other, std::uint32_t with) { return acl.aclrtDeviceEnablePeerAccess(other, with); },
      peer, flags);
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
  return run(
      [](const Table& acl, std::size_t bytes, acl::aclrtMemMallocPolicy how) {
        Got<void*> got;
        got.code = acl.aclrtMalloc(&got.value, bytes, how);
        return got;
      },
      size, policy);
}
aclError Acl::free(void* memory) {
  return run([](const Table& acl, void* block) { return acl.aclrtFree(block); }, memory);
}

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
  return run(
      [](const Table& acl, void* into, const void* out_of, std::size_t count) {
        return acl.aclrtMemcpy(into, count, out_of, count, acl::memcpy_kind::device_to_device);
      },
      to, from, size);
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
        std::vector<std::int32_t> pids(count, who);
        pids.reserve(1);
        return acl.aclrtIpcMemSetImportPid(to.data(), pids.data(), count);
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
aclError Acl::free_physical(Handle handle) {
  return run([](const Table& acl, Handle what) { return acl.aclrtFreePhysical(what); }, handle);
}
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
  return run(
      [](const Table& acl, std::size_t bytes, std::size_t aligned, std::uint64_t with) {
        Got<void*> got;
        got.code = acl.aclrtReserveMemAddress(&got.value, bytes, aligned, nullptr, with);
        return got;
      },
      size, alignment, flags);
}
aclError Acl::release(void* range) {
  return run([](const Table& acl, void* what) { return acl.aclrtReleaseMemAddress(what); }, range);
}
aclError Acl::map(void* address, Handle handle, std::size_t size, std::size_t offset, std::uint64_t flags) {
  return run([](const Table& acl, void* at, Handle what, std::size_t bytes, std::size_t from,
                std::uint64_t with) { return acl.aclrtMapMem(at, bytes, from, what, with); },
             address, handle, size, offset, flags);
}
aclError Acl::unmap(void* address) {
  return run([](const Table& acl, void* at) { return acl.aclrtUnmapMem(at); }, address);
}
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
        std::vector<std::int32_t> pids(count, who);
        pids.reserve(1);
        return acl.aclrtMemSetPidToShareableHandle(to, pids.data(), count);
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
  return run(
      [](const Table& acl, Handle what, std::uint64_t with) {
        Got<Token> got;
        got.code = acl.aclrtMemExportToShareableHandleV2(what, with, acl::share_type::local, &got.value);
        return got;
      },
      handle, flags);
}
Got<Fabric> Acl::export_fabric(Handle handle, std::uint64_t flags) {
  return run(
      [](const Table& acl, Handle what, std::uint64_t with) {
        Got<Fabric> got;
        got.code = acl.aclrtMemExportToShareableHandleV2(what, with, acl::share_type::fabric, &got.value);
        return got;
      },
      handle, flags);
}
Got<Handle> Acl::import_v2(Token token, std::uint64_t flags) {
  return run(
      [](const Table& acl, Token from, std::uint64_t with) {
        Got<Handle> got;
        got.code = acl.aclrtMemImportFromShareableHandleV2(&from, acl::share_type::local, with, &got.value);
        return got;
      },
      token, flags);
}
Got<Handle> Acl::import_fabric(const Fabric& token) {
  return run(
      [](const Table& acl, Fabric from) {
        Got<Handle> got;
        got.code = acl.aclrtMemImportFromShareableHandleV2(&from, acl::share_type::fabric, 0, &got.value);
        return got;
      },
      token);
}

// --- streams, notifies, events

void* Acl::stream() {
  return run([](const Table& acl) {
    acl::aclrtStream made = nullptr;
    return acl.aclrtCreateStream(&made) == 0 ? made : nullptr;
  });
}
aclError Acl::synchronize(void* stream) {
  return run([](const Table& acl, void* what) { return acl.aclrtSynchronizeStream(what); }, stream);
}
Got<void*> Acl::notify() {
  return run([](const Table& acl) {
    Got<void*> got;
    got.code = acl.aclrtCreateNotify(&got.value, acl::notify_flag::plain);
    return got;
  });
}
aclError Acl::destroy_notify(void* notify) {
  return run([](const Table& acl, void* what) { return acl.aclrtDestroyNotify(what); }, notify);
}
aclError Acl::record(void* notify, void* stream) {
  return run([](const Table& acl, void* what, void* in) { return acl.aclrtRecordNotify(what, in); }, notify, stream);
}
aclError Acl::wait(void* notify, void* stream, std::uint32_t seconds) {
  return run([](const Table& acl, void* what, void* in,
                std::uint32_t limit) { return acl.aclrtWaitAndResetNotify(what, in, limit); },
             notify, stream, seconds);
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
Got<void*> Acl::event(std::uint32_t flag) {
  return run(
      [](const Table& acl, std::uint32_t with) {
        Got<void*> got;
        got.code = acl.aclrtCreateEventExWithFlag(&got.value, with);
        return got;
      },
      flag);
}

}  // namespace conformance
