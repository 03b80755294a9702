// SPDX-License-Identifier: Apache-2.0
// Random bytes for names and secrets, from the kernel, fetched a page at a time so that a key costs no system call.
// A child process never repeats what its parent drew or will draw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace devshare::host {

// Fills `out`. Any thread. Ends the process when the kernel has no random source: a guessable key would be worse.
void random_bytes(std::span<std::uint8_t> out);

std::uint64_t random_number();

}  // namespace devshare::host
