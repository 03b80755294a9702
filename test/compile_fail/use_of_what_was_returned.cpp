// SPDX-License-Identifier: Apache-2.0
// What was returned, taken back or ended is not used.
// only: clang
// expect(clang): invalid invocation of method '.*' on object '.*' while it is in the 'consumed' state
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/borrow.hpp>
#include <devshare/lend.hpp>

using namespace devshare;

auto right(Lease lease) {
  static_cast<void>(lease.bytes());
  return std::move(lease).close();
}

#ifdef DEVSHARE_BAD
auto mistake_1(Lease lease) {
  static_cast<void>(std::move(lease).close());
  return lease.bytes();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(Lease lease) {
  static_cast<void>(std::move(lease).close());
  return lease.check();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_3(Lent<DeviceMemory> lent) {
  auto memory = std::move(lent).close(Deadline::now());
  return lent.publish();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_4(Lent<DeviceMemory> lent) {
  auto memory = std::move(lent).revoke(Deadline::now());
  return lent.owner().size();
}
#endif
#ifdef DEVSHARE_BAD
auto mistake_5(Borrower borrower) {
  static_cast<void>(std::move(borrower).close());
  return borrower.borrow("m", Deadline::now());
}
#endif
