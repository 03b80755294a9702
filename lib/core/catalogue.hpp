// SPDX-License-Identifier: Apache-2.0
// The table behind explain() and docs/errors.md: a text for each kind of failure, and for `refused` one for each
// operation, since 507899 says nothing by itself.
#pragma once

#include <devshare/explain.hpp>

namespace devshare::detail {

struct CatalogueEntry {
  Errc kind;
  Operation operation;  // none: every operation that has no entry of its own
  Explanation text;
};

std::span<const CatalogueEntry> catalogue() noexcept;

}  // namespace devshare::detail
