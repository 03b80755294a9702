// SPDX-License-Identifier: Apache-2.0
#include "notes.hpp"

#include "locks.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>

namespace devshare::detail {
namespace {

constexpr std::size_t most_notes = 64;
constexpr std::size_t longest_note = 2048;

// Guarded by Lock::notes. Never freed: errors outlive everything.
constinit std::array<std::string_view, most_notes> notes{};
constinit std::size_t count = 0;

}  // namespace

std::uint32_t keep_note(std::string_view text) noexcept {
  if (text.empty()) return 0;
  text = text.substr(0, longest_note);
  const std::lock_guard lock(mutex_of(Lock::notes));
  const auto end = notes.begin() + static_cast<std::ptrdiff_t>(count);
  auto found = std::find(notes.begin(), end, text);
  if (found == end) {
    if (count == most_notes) return 0;
    char* const copy = new (std::nothrow) char[text.size()];
    if (copy == nullptr) return 0;
    text.copy(copy, text.size());
    *found = {copy, text.size()};
    ++count;
  }
  return static_cast<std::uint32_t>(found - notes.begin()) + 1;
}

std::string_view note(std::uint32_t number) noexcept {
  if (number == 0) return {};
  const std::lock_guard lock(mutex_of(Lock::notes));
  return number > count ? std::string_view() : notes[number - 1];
}

}  // namespace devshare::detail
