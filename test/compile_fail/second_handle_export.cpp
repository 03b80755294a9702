// SPDX-License-Identifier: Apache-2.0
// One handle, one export (R27).
// only: clang
// expect(clang): argument not in expected state; expected 'unconsumed', observed 'consumed'
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/exported.hpp>

using namespace devshare;

auto right(Mapping mapping) { return export_handle<v2>(std::move(mapping)); }

#ifdef DEVSHARE_BAD
void mistake_1(PhysicalHandle handle) {
  auto token = export_handle<v1>(std::move(handle));
  auto other = export_handle<v2>(std::move(handle));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(Mapping mapping) {
  auto token = export_handle<v2>(std::move(mapping));
  auto other = export_handle<v2>(std::move(mapping));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_3(PhysicalHandle handle) {
  auto mapping = Mapping::of(std::move(handle));
  auto token = export_handle<v2>(std::move(handle));
}
#endif
#ifdef DEVSHARE_BAD
void mistake_4(AddressReservation range, PhysicalHandle handle) {
  auto mapping = std::move(range).map(std::move(handle));
  auto other = Mapping::of(std::move(handle));
}
#endif
