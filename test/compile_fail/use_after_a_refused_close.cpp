// SPDX-License-Identifier: Apache-2.0
// A refused step gives the object back in its error. What it was called on holds nothing.
// only: clang
// expect(clang): invalid invocation of method '(close|admit)' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

Result<DeviceMemory, Refused<SharedMemoryKey<>>> right(SharedMemoryKey<> key) {
  auto closed = std::move(key).close();
  if (closed) return closed;
  key = std::move(closed).error().take_back();  // and it is a key again
  return std::move(key).close();
}

#ifdef DEVSHARE_BAD
void mistake_1(SharedMemoryKey<> key) {
  auto closed = std::move(key).close();
  if (!closed) closed = std::move(key).close();
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(SharedMemoryKey<> key, BarePid importer) {
  auto closed = std::move(key).close();
  if (!closed) static_cast<void>(key.admit(importer));
}
#endif
