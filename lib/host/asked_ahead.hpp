// SPDX-License-Identifier: Apache-2.0
// Imports that a thread is about to make, asked for together: ACL imports one at a time, and each waits for its exporter.
// What comes back is kept for the calls that follow on the thread, as if each had asked for itself a moment before.
#pragma once

#include "client.hpp"

#include <optional>
#include <span>

namespace devshare::host {

struct ExpectedImport {
  enum class By : std::uint8_t { key, v1, v2, fabric };
  By by = By::key;
  const void* name = nullptr;  // the key of 65 bytes, the number of 8, or the 128 bytes, as the call will have them
};

// Asks the exporter of each; those of one exporter that follow each other are asked together. What cannot be had this way
// is left to the call. Replaces what was kept.
void ask_ahead(std::span<const ExpectedImport> imports) noexcept;

// Gives back what no call has taken.
void forget_asked_ahead() noexcept;

// For ask_exporter(): the answer to this request, if this thread has it.
std::optional<Fetched> take_answer(const Request& what) noexcept;

}  // namespace devshare::host
