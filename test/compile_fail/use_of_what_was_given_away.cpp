// SPDX-License-Identifier: Apache-2.0
// Given to a lambda, a container, a thread of one's own or a function, it is not here any more.
// only: clang
// expect(clang): invalid invocation of method '(bytes|close)' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/memory.hpp>

#include <optional>
#include <vector>

using namespace devshare;

void take(DeviceMemory memory);
void take_reference(DeviceMemory&& memory);
auto right(DeviceMemory memory) {
  return [kept = std::move(memory)]() mutable { return kept.bytes().size(); };
}

#ifdef DEVSHARE_BAD
auto mistake_1(DeviceMemory memory) {
  auto size = [kept = std::move(memory)]() mutable { return kept.bytes().size(); };
  static_cast<void>(size);
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(DeviceMemory memory, std::vector<DeviceMemory>& all) {
  all.push_back(std::move(memory));
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(DeviceMemory memory, std::vector<DeviceMemory>& all) {
  all.emplace_back(std::move(memory));
  return std::move(memory).close();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(DeviceMemory memory) {
  take(std::move(memory));
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(DeviceMemory memory) {
  take_reference(std::move(memory));
  return memory.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_6(DeviceMemory memory) {
  std::optional<DeviceMemory> kept(std::move(memory));
  return memory.bytes();
}
#endif
