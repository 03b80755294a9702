// SPDX-License-Identifier: Apache-2.0
// A kind of share is a type, so that no device id and no flag of ACL can stand in its place.
// reason: the kind of share is a type, v1, v2 or fabric
#include <devshare/exported.hpp>

using namespace devshare;

auto right(Mapping mapping) { return export_handle<v2>(std::move(mapping)); }

#ifdef DEVSHARE_BAD
void mistake_1(Mapping mapping) { export_handle<0>(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(PhysicalHandle handle) { export_handle<DeviceId{0}>(std::move(handle)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Mapping mapping) { export_handle<Mechanism::v2>(std::move(mapping)); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Mapping mapping) { export_handle_unrestricted<2>(std::move(mapping)); }
#endif
