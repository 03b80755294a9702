// SPDX-License-Identifier: Apache-2.0
// The system calls of whole shares, on both sides together, and of what importers do beside an open import.
#pragma once

#include "bench/way.hpp"
#include "traced.hpp"

#include <devshare/devshare.hpp>

#include <functional>
#include <memory>

namespace devshare::test {

struct CallsOfShares {
  int shares = 0;
  CountedCalls calls;  // of all of them
};

// Allocate, export, admit, import, first and last byte on each side, close, free; the connection is there already.
// `by` is one of bench/way.hpp.
using MakeWay = std::unique_ptr<bench::Way> (*)(bench::Touch);
CallsOfShares calls_of_shares(MakeWay by, bench::Touch touch);

// The importer opens the first of two keys of one process; `part` runs while that is open, and marks what is counted.
using BesideAnImport =
    std::function<void(const Device&, const ReceivedTicket& first, const ReceivedTicket& second)>;
CountedCalls calls_beside_an_import(const BesideAnImport& part);

}  // namespace devshare::test
