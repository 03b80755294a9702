// SPDX-License-Identifier: Apache-2.0
#include "keep_exports.hpp"

namespace {
std::vector<devshare::SharedMemoryKey<>> keys;
}

std::size_t export_from_b(std::size_t count) { return keep_exports(keys, count); }
