// SPDX-License-Identifier: Apache-2.0
// A handle has no address, so its export has no bytes.
// reason: a handle has no address: export a Mapping of it, or map it
#include <devshare/exported.hpp>

using namespace devshare;

auto right(ExportToken<v2, Mapping>& token) { return token.bytes(); }

#ifdef DEVSHARE_BAD
auto mistake_1(ExportToken<v2, PhysicalHandle>& token) { return token.bytes(); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(ExportToken<v1, PhysicalHandle, Unrestricted>& token) { return token.bytes(); }
#endif
