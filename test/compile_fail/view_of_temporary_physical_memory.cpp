// SPDX-License-Identifier: Apache-2.0
// A view is good for as long as the object it came from, and this one ends at once.
// reason: ends with the temporary: keep it in a named object
#include <devshare/exported.hpp>
#include <devshare/host_registration.hpp>

using namespace devshare;

DeviceSpan<std::byte> right(Mapping& mapping) { return mapping.bytes(); }
Mapping mapping();
HostRegistration registration();
ExportToken<v2> token();

#ifdef DEVSHARE_BAD
auto mistake_1() { return mapping().bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2() { return registration().on_device(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_3() { return token().bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(Mapping& named) { return std::move(named).bytes(); }
#endif
