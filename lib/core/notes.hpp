// SPDX-License-Identifier: Apache-2.0
// Texts that belong to one failure and not to its kind: the value of a variable, the words of the dynamic loader. An
// Error carries the number of its text, so that it stays small and two errors never mix up theirs.
#pragma once

#include <cstdint>
#include <string_view>

namespace devshare::detail {

// Keeps a text for the life of the process and returns its number; the same text has the same number. 0, which is no
// text, for an empty one, without memory, and once there are as many as are kept: a program that fails in ever new
// words must not grow by it. Any thread, under any lock of locks.hpp.
std::uint32_t keep_note(std::string_view text) noexcept;

// The text with this number; empty for 0. Valid for ever.
std::string_view note(std::uint32_t number) noexcept;

}  // namespace devshare::detail
