// SPDX-License-Identifier: Apache-2.0
// An export owns what it exports: the handle goes in by std::move.
// reason: write export_handle
#include <devshare/exported.hpp>

using namespace devshare;

auto right(Mapping mapping) { return export_handle<v2>(std::move(mapping)); }

#ifdef DEVSHARE_BAD
void mistake_1(Mapping& mapping) { export_handle<v2>(mapping); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(PhysicalHandle& handle) { export_handle<v1>(handle); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(const Mapping& mapping) { export_handle<fabric>(mapping); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Mapping& mapping) { export_handle_unrestricted<v2>(mapping); }
#endif
