// SPDX-License-Identifier: Apache-2.0
// A key needs a whole block of aclrtMalloc of this process (R10, R12): an import, a part, or anything else is none.
// reason: a key needs memory of aclrtMalloc that this process owns (R10, R12)
#include <devshare/exported.hpp>
#include <devshare/imported.hpp>

#include <vector>

using namespace devshare;

// An engine's own block becomes exportable by saying so.
struct Block {
  DeviceMemory memory;
  DeviceSpan<std::byte> bytes() { return memory.bytes(); }
  Device device() const { return memory.device(); }
};
template <>
inline constexpr bool devshare::is_key_exportable<Block> = true;
auto right(Block block) { return export_key(std::move(block)); }
struct Other {
  DeviceMemory memory;
};

#if DEVSHARE_BAD == 1
void wrong(ImportedMapping mapping) { export_key(std::move(mapping)); }
#endif
#if DEVSHARE_BAD == 2
void wrong(ImportedConstMapping mapping) { export_key_unrestricted(std::move(mapping)); }
#endif
#if DEVSHARE_BAD == 3
void wrong(DeviceMemory& memory) { export_key(memory.bytes()); }
#endif
#if DEVSHARE_BAD == 4
void wrong(DeviceMemory& memory) { export_key(memory.bytes().data()); }
#endif
#if DEVSHARE_BAD == 5
void wrong(SharedMemoryKey<> key) { export_key(std::move(key)); }
#endif
#if DEVSHARE_BAD == 6
void wrong(Result<DeviceMemory> result) { export_key(std::move(result)); }
#endif
#if DEVSHARE_BAD == 7
void wrong(const DeviceMemory memory) { export_key(std::move(memory)); }
#endif
#if DEVSHARE_BAD == 8
void wrong(Other other) { export_key(std::move(other)); }
#endif
#if DEVSHARE_BAD == 9
void wrong(std::vector<int> numbers) { export_key(std::move(numbers)); }
#endif
#if DEVSHARE_BAD == 10
void wrong() { export_key(7); }
#endif
