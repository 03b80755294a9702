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

#ifdef DEVSHARE_BAD
auto mistake_1(DeviceMemory memory) {
  static_cast<void>(std::move(memory).close());
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(SharedMemoryKey<> key, BarePid importer) {
  auto memory = std::move(key).close();
  return key.admit(importer);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(SharedMemoryKey<DeviceMemory, Unrestricted> key) {
  auto memory = std::move(key).close();
  return key.ticket();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(SharedMemoryKey<> key) {
  auto memory = std::move(key).close();
  return key.owner().size();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(ImportedMapping mapping) {
  static_cast<void>(std::move(mapping).close());
  return mapping.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_6(ImportedMapping mapping) {
  static_cast<void>(std::move(mapping).close());
  return mapping.check();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_7(PeerAccess access, const Device& a, const Device& b) {
  static_cast<void>(std::move(access).close());
  return access.joins(a, b);
}
#endif
