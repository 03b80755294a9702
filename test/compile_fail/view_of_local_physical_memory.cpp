// SPDX-License-Identifier: Apache-2.0
// A view does not outlive the mapping, the registration or the token that it looks into.
// only: clang
// expect(clang): stack memory associated with .* returned \[-Werror,-Wreturn-stack-address\]
#include <devshare/exported.hpp>
#include <devshare/host_registration.hpp>

using namespace devshare;

DeviceSpan<std::byte> right(Mapping& mapping) { return mapping.bytes(); }

#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_1(Mapping mapping) { return mapping.bytes(); }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<const std::byte> mistake_2(const Mapping mapping) { return mapping.bytes(); }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_3(HostRegistration registration) { return registration.on_device(); }
#endif
#ifdef DEVSHARE_BAD
DeviceSpan<std::byte> mistake_4(ExportToken<v1> token) { return token.bytes(); }
#endif
#ifdef DEVSHARE_BAD
const Mapping& mistake_5(ExportToken<v1> token) { return token.owner(); }
#endif
