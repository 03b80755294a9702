// SPDX-License-Identifier: Apache-2.0
// What may be read may not be written by way of a conversion.
// expect(gcc): cannot convert|could not convert|no matching function|conversion from
// expect(clang): no viable conversion|no matching
#include <devshare/copy.hpp>
#include <devshare/imported.hpp>

using namespace devshare;

DeviceSpan<const std::byte> right(const ImportedMapping& mapping) { return mapping.bytes(); }

#if DEVSHARE_BAD == 1
DeviceSpan<std::byte> wrong(const ImportedConstMapping& mapping) { return mapping.bytes(); }
#endif
#if DEVSHARE_BAD == 2
DevicePtr<std::byte> wrong(DevicePtr<const std::byte> pointer) { return pointer; }
#endif
#if DEVSHARE_BAD == 3
DeviceSpan<std::byte> wrong(const DeviceMemory& memory) { return memory.bytes(); }
#endif
#if DEVSHARE_BAD == 4
auto wrong(DeviceSpan<const std::byte> span) { return span.as<int>(); }
#endif
#if DEVSHARE_BAD == 5
auto wrong(const Device& device, const ImportedConstMapping& mapping) {
  return fill(device, mapping.bytes(), std::byte{0});
}
#endif
#if DEVSHARE_BAD == 6
ImportedMapping wrong(ImportedConstMapping mapping) { return mapping; }
#endif
