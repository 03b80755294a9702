// SPDX-License-Identifier: Apache-2.0
// A number says nothing of its unit: a deadline is a duration, or Deadline::in_milliseconds.
// expect(gcc): cannot convert 'int' to '.*Deadline'
// expect(clang): no viable conversion from 'int' to '.*Deadline'
#include <devshare/borrow.hpp>

#include <chrono>

using namespace devshare;

auto right(const Borrower& borrower) { return borrower.borrow("m", std::chrono::seconds(5)); }

#ifdef DEVSHARE_BAD
auto mistake_1(const Borrower& borrower) { return borrower.borrow("m", 5); }
#endif
#ifdef DEVSHARE_BAD
auto mistake_2(const Lease& lease) { return lease.wait_newer(1, 0); }
#endif
