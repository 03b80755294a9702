// SPDX-License-Identifier: Apache-2.0
// A handle is shared by the kinds that handles have.
// reason: a handle is shared as v1, v2 or fabric
#include <devshare/exported.hpp>

using namespace devshare;

auto right(Mapping mapping) { return export_handle<v1>(std::move(mapping)); }

#ifdef DEVSHARE_BAD
void mistake_1(Mapping mapping) { export_handle<by_key>(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(PhysicalHandle handle) { export_handle<DeviceMemory>(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Mapping mapping) { export_handle_unrestricted<Listed>(std::move(mapping)); }
#endif
