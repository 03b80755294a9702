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

#ifdef DEVSHARE_BAD
void mistake_1(ImportedMapping mapping) { export_key(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(ImportedConstMapping mapping) { export_key_unrestricted(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(DeviceMemory& memory) { export_key(memory.bytes()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(DeviceMemory& memory) { export_key(memory.bytes().data()); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(SharedMemoryKey<> key) { export_key(std::move(key)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(Result<DeviceMemory> result) { export_key(std::move(result)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_7(const DeviceMemory memory) { export_key(std::move(memory)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_8(Other other) { export_key(std::move(other)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_9(std::vector<int> numbers) { export_key(std::move(numbers)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_10() { export_key(7); }
#endif
