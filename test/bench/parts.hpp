// SPDX-License-Identifier: Apache-2.0
// The parts of the table. Each is run in a process of its own, so that none inherits another's runtime, threads or
// processor.
#pragma once

#include "table.hpp"

#include <vector>

namespace devshare::bench {

std::vector<Row> call_rows();    // instructions of a wrapped call
std::vector<Row> share_rows();   // a whole share, against the program by hand and against Boost
std::vector<Row> handle_rows();  // a whole share by handle, pieces of a range, a wake
std::vector<Row> page_rows();    // 64 MiB touched by both sides, in pages of every kind
std::vector<Row> copy_rows();    // cold copies, against the bare calls
std::vector<Row> warm_copy_rows();      // warm ones of every size, against memcpy
std::vector<Row> lending_rows();        // a borrow, and 32 at once, against the same by hand
std::vector<Row> lending_wake_rows();   // a borrower that waits for newer data
std::vector<Row> lending_crowd_rows();  // 8 borrowers at once

std::vector<Row> stream_rows();  // enqueue of a copy

std::vector<Row> header_rows();  // lines and memory of an include

std::vector<Row> many_exports_rows();     // import from a process with 10,000 exports
std::vector<Row> many_importers_rows();   // 8 importers at once
std::vector<Row> repeated_import_rows();  // of a key that is open

}  // namespace devshare::bench
