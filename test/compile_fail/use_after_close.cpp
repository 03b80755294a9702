// SPDX-License-Identifier: Apache-2.0
// What was closed is not used.
// only: clang
// expect(clang): invalid invocation of method '.*' on object '.*' while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

auto right(DeviceMemory memory) {
  static_cast<void>(memory.bytes());
  return std::move(memory).close();
}

#if DEVSHARE_BAD == 1
auto wrong(DeviceMemory memory) {
  static_cast<void>(std::move(memory).close());
  return memory.bytes();
}
#endif
#if DEVSHARE_BAD == 2
auto wrong(SharedMemoryKey<> key, BarePid importer) {
  auto memory = std::move(key).close();
  return key.admit(importer);
}
#endif
#if DEVSHARE_BAD == 3
auto wrong(SharedMemoryKey<DeviceMemory, Unrestricted> key) {
  auto memory = std::move(key).close();
  return key.ticket();
}
#endif
#if DEVSHARE_BAD == 4
auto wrong(SharedMemoryKey<> key) {
  auto memory = std::move(key).close();
  return key.owner().size();
}
#endif
#if DEVSHARE_BAD == 5
auto wrong(ImportedMapping mapping) {
  static_cast<void>(std::move(mapping).close());
  return mapping.bytes();
}
#endif
#if DEVSHARE_BAD == 6
auto wrong(ImportedMapping mapping) {
  static_cast<void>(std::move(mapping).close());
  return mapping.check();
}
#endif
#if DEVSHARE_BAD == 7
auto wrong(PeerAccess access, const Device& a, const Device& b) {
  static_cast<void>(std::move(access).close());
  return access.joins(a, b);
}
#endif
