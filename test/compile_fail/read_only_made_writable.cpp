// SPDX-License-Identifier: Apache-2.0
// What may be read may not be written by way of a conversion.
// expect(gcc): cannot convert|could not convert|no matching function|conversion from
// expect(clang): no viable conversion|no matching
#include <devshare/copy.hpp>
#include <devshare/imported.hpp>
#include <devshare/memory.hpp>

using namespace devshare;

DeviceSpan<const std::byte> right(const ImportedMapping& mapping) { return mapping.bytes(); }

#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_1(const ImportedConstMapping& mapping) { return mapping.bytes(); }
#endif
#ifdef DEVSHARE_BAD
DevicePtr<std::byte> mistake_2(DevicePtr<const std::byte> pointer) { return pointer; }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_3(const DeviceMemory& memory) { return memory.bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(DeviceSpan<const std::byte> span) { return span.as<int>(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(const Device& device, const ImportedConstMapping& mapping) {
  return fill(device, mapping.bytes(), std::byte{0});
}
#endif
#ifdef DEVSHARE_BAD
ImportedMapping mistake_6(ImportedConstMapping mapping) { return mapping; }
#endif
