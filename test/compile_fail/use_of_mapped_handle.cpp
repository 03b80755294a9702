// SPDX-License-Identifier: Apache-2.0
// What went into a mapping, or was closed, is not used again.
// only: clang
// expect(clang): invalid invocation of method '.*' on .* while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/host_registration.hpp>
#include <devshare/imported_handle.hpp>
#include <devshare/mapping.hpp>

using namespace devshare;

auto right(PhysicalHandle handle) { return handle.size(); }

#ifdef DEVSHARE_BAD
void mistake_1(PhysicalHandle handle) {
  auto mapping = Mapping::of(std::move(handle));
  static_cast<void>(handle.size());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(AddressReservation range, PhysicalHandle handle) {
  auto mapping = std::move(range).map(std::move(handle));
  static_cast<void>(range.address());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_3(PhysicalHandle handle) {
  static_cast<void>(std::move(handle).close());
  static_cast<void>(std::move(handle).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Mapping mapping) {
  static_cast<void>(std::move(mapping).close());
  static_cast<void>(mapping.restore());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_5(ImportedHandle handle) {
  static_cast<void>(std::move(handle).close());
  static_cast<void>(handle.size());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_6(HostRegistration registration) {
  static_cast<void>(std::move(registration).close());
  static_cast<void>(registration.host());
}
#endif
