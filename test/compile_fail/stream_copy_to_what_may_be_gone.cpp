// SPDX-License-Identifier: Apache-2.0
// A stream writes host memory later: a temporary is gone by then.
// reason: `to` is no writable host range of T, or a temporary
#include <devshare/stream_copy.hpp>

#include <vector>

using namespace devshare;

auto right(const StreamRef& stream, std::vector<float>& to, DeviceSpan<const float> from) {
  return copy_to_host(stream, to, from);
}

#ifdef DEVSHARE_BAD
auto mistake_1(const StreamRef& stream, DeviceSpan<const float> from) {
  return copy_to_host(stream, std::vector<float>(4), from);
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const StreamRef& stream, const std::vector<float>& to, DeviceSpan<const float> from) {
  return copy_to_host(stream, to, from);
}
#endif
