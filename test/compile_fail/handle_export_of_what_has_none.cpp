// SPDX-License-Identifier: Apache-2.0
// A token names physical memory that this process allocated (R26): no key memory, no import, no export of it.
// reason: a token needs physical memory that this process allocated (R26)
#include <devshare/exported.hpp>
#include <devshare/imported_handle.hpp>

using namespace devshare;

auto right(PhysicalHandle handle) { return export_handle<v2>(std::move(handle)); }

#ifdef DEVSHARE_BAD
void mistake_1(ImportedHandle handle) { export_handle<v2>(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(ImportedMapping mapping) { export_handle<v1>(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(ImportedMapping mapping) { export_handle_unrestricted<fabric>(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(DeviceMemory memory) { export_handle<v2>(std::move(memory)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(AddressReservation range) { export_handle<v2>(std::move(range)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_6(ExportToken<v2> token) { export_handle<v2>(std::move(token)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_7(Result<Mapping> result) { export_handle<v2>(std::move(result)); }
#endif
