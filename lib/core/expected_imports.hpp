// SPDX-License-Identifier: Apache-2.0
// Several imports that a thread is about to make. The vendor's runtime is not told of it: its driver is asked one by one.
#pragma once

#include <devshare/detail/runtime_record.hpp>
#include <devshare/ticket.hpp>

#include <span>

namespace devshare::detail {

// While it lives, the imports of these tickets on this thread need not each wait for their exporter.
class ExpectedImports {
 public:
  ExpectedImports(const Session& session, std::span<const TicketFields* const> tickets) noexcept;
  ~ExpectedImports();
  ExpectedImports(const ExpectedImports&) = delete;
  ExpectedImports& operator=(const ExpectedImports&) = delete;

 private:
  bool told_ = false;
};

}  // namespace devshare::detail
