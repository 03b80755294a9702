// SPDX-License-Identifier: Apache-2.0
// A key needs memory of aclrtMalloc: physical memory has tokens (R12).
// reason: a key needs memory of aclrtMalloc that this process owns (R10, R12)
#include <devshare/exported.hpp>
#include <devshare/imported_handle.hpp>

using namespace devshare;

auto right(DeviceMemory memory) { return export_key(std::move(memory)); }

#ifdef DEVSHARE_BAD
void mistake_1(PhysicalHandle handle) { export_key(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Mapping mapping) { export_key(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Mapping mapping) { export_key_unrestricted(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(ImportedHandle handle) { export_key(std::move(handle)); }
#endif
