// SPDX-License-Identifier: Apache-2.0
// What returns a lease says so where it is called: by std::move.
// reason: write std::move(lease).close(): it ends the lease
#include <devshare/borrow.hpp>

using namespace devshare;

auto right(Lease lease) { return std::move(lease).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(Lease lease) { lease.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(ConstLease& lease) { lease.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<Lease>& result) { result->close(); }
#endif
