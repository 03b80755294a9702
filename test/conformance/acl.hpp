// SPDX-License-Identifier: Apache-2.0
// A process with ACL's calls, spelled with values: what a call returns by address comes back beside its code.
#pragma once

#include "process.hpp"

#include <string_view>

namespace conformance {

inline constexpr std::size_t piece = 2 << 20;  // one huge page, and the granularity of physical memory on every product

template <class T>
struct Got {
  aclError code = absent;
  T value{};
};

using Key = std::array<char, acl::ipc_key_size>;
using Handle = acl::aclrtDrvMemHandle;
using Token = std::uint64_t;
using Fabric = acl::aclrtMemFabricHandle;
using EventKey = acl::aclrtIpcEventHandle;

class Acl : public Process {
 public:
  using Process::Process;

  // Devices
  aclError set_device(int device);
  aclError reset_device(int device);
  int bare_pid();
  std::uint32_t devices();
  aclError enable_peer(int peer, std::uint32_t flags = 0);
  int peer_status(int device, int peer);

  // Memory of aclrtMalloc
  Got<void*> allocate(std::size_t size = piece, acl::aclrtMemMallocPolicy policy = acl::malloc_policy::huge_first);
  aclError free(void* memory);

  // Its bytes: `size` times the same one, by blocking copies
  aclError put(void* memory, char value, std::size_t size = 64);
  Got<char> get(const void* memory);
  aclError copy_inside(void* to, const void* from, std::size_t size = 64);

  // By key
  Got<Key> export_key(void* memory, std::uint64_t flags, std::size_t size = piece,
                      std::size_t length = acl::ipc_key_size);
  aclError admit(const Key& key, int pid, std::size_t times = 1);
  Got<void*> import_key(const Key& key, std::uint64_t flags = acl::ipc_import::enable_peer_access);
  aclError close(const Key& key);

  // Physical memory
  Got<Handle> physical(std::size_t size = piece, int device = 0, acl::aclrtMemAttr attribute = acl::mem_attr::hbm_huge);
  aclError free_physical(Handle handle);
  Got<Handle> retain(void* address);
  Got<void*> reserve(std::size_t size = piece, std::size_t alignment = 0, std::uint64_t flags = 0);
  aclError release(void* range);
  aclError map(void* address, Handle handle, std::size_t size = piece, std::size_t offset = 0, std::uint64_t flags = 0);
  aclError unmap(void* address);
  aclError set_access(void* address, std::size_t size, std::uint32_t device,
                      acl::aclrtMemAccessFlags flags = acl::mem_access::read_write);

  // By token of the first kind, and of the second: local or fabric
  Got<Token> export_v1(Handle handle, std::uint64_t flags);
  aclError admit_v1(Token token, int pid, std::size_t times = 1);
  Got<Handle> import_v1(Token token, int device = 0);
  Got<Token> export_v2(Handle handle, std::uint64_t flags);
  Got<Fabric> export_fabric(Handle handle, std::uint64_t flags);
  Got<Handle> import_v2(Token token, std::uint64_t flags = 0);
  Got<Handle> import_fabric(const Fabric& token);

  // Streams, notifies, events
  void* stream();
  aclError synchronize(void* stream);
  Got<void*> notify();
  aclError destroy_notify(void* notify);
  aclError record(void* notify, void* stream);
  aclError wait(void* notify, void* stream, std::uint32_t seconds = 0);
  Got<Key> export_notify(void* notify, std::uint64_t flags);
  Got<void*> import_notify(const Key& key, std::uint64_t flags = acl::notify_import::plain);
  Got<void*> event(std::uint32_t flag);

 private:
  // A call that takes values alone.
  template <auto entry, class... A>
  aclError call(const A&... arguments) {
    return run([](const acl::Table& acl, const A&... each) { return (acl.*entry)(each...); }, arguments...);
  }
  // One that makes something, and puts it where its first parameter says.
  template <auto entry, class T, class... A>
  Got<T> got(const A&... arguments) {
    return run(
        [](const acl::Table& acl, const A&... each) {
          Got<T> got;
          got.code = (acl.*entry)(&got.value, each...);
          return got;
        },
        arguments...);
  }
  template <class T>
  Got<T> export_second(Handle handle, std::uint64_t flags, acl::aclrtMemSharedHandleType kind);
  template <class T>
  Got<Handle> import_second(const T& token, std::uint64_t flags, acl::aclrtMemSharedHandleType kind);
};

}  // namespace conformance
