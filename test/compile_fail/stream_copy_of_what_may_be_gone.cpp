// SPDX-License-Identifier: Apache-2.0
// A stream reads host memory later: a temporary is gone by then, and so may be what is of another type.
// reason: `from` is no host range of T, or a temporary
#include <devshare/stream_copy.hpp>

#include <vector>

using namespace devshare;

auto right(const StreamRef& stream, DeviceSpan<float> to, const std::vector<float>& from) {
  return copy_to_device(stream, to, from);
}

#ifdef DEVSHARE_BAD
auto mistake_1(const StreamRef& stream, DeviceSpan<float> to) {
  return copy_to_device(stream, to, std::vector<float>(4));
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const StreamRef& stream, DeviceSpan<float> to, const std::vector<int>& from) {
  return copy_to_device(stream, to, from);
}
#endif
