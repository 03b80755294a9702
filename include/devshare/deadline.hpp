// SPDX-License-Identifier: Apache-2.0
// Deadline: a moment up to which a call may wait.
#pragma once

#include <devshare/detail/attributes.hpp>

#include <cstdint>

namespace devshare {

namespace detail {
// CLOCK_MONOTONIC, in nanoseconds.
DEVSHARE_API std::int64_t monotonic_now() noexcept;

// std::chrono's durations, without its header.
template <class D>
concept DurationLike = requires(const D& duration) {
  duration.count();
  D::period::num;
  D::period::den;
};
}  // namespace detail

// A value. A duration converts to the moment that far from now, so that a call reads `borrow(..., 5s)`.
class Deadline {
 public:
  // Does not wait at all: what is not there now is not there.
  static constexpr Deadline now() noexcept { return Deadline(0); }
  static constexpr Deadline never() noexcept { return Deadline(endless); }
  static Deadline in_milliseconds(std::int64_t milliseconds) noexcept {
    return from_now(milliseconds, 1, 1000);
  }

  template <detail::DurationLike D>
  Deadline(const D& duration) noexcept
      : Deadline(from_now(static_cast<std::int64_t>(duration.count()), D::period::num, D::period::den)) {}

  constexpr bool is_never() const noexcept { return at_ == endless; }
  constexpr bool is_now() const noexcept { return at_ == 0; }

  // Nanoseconds until then: 0 once it has passed, the largest number for never().
  std::int64_t nanoseconds_left() const noexcept {
    if (is_never() || is_now()) return at_;
    const std::int64_t left = at_ - detail::monotonic_now();
    return left > 0 ? left : 0;
  }
  bool passed() const noexcept { return nanoseconds_left() == 0; }

 private:
  static constexpr std::int64_t endless = INT64_MAX;

  explicit constexpr Deadline(std::int64_t at) noexcept : at_(at) {}

  // count * numerator / denominator seconds from now; what is too far to count is never.
  static Deadline from_now(std::int64_t count, std::int64_t numerator, std::int64_t denominator) noexcept {
    constexpr std::int64_t second = 1'000'000'000;
    if (count <= 0) return now();
    std::int64_t nanoseconds = 0;
    std::int64_t at = 0;
    const bool fine = denominator > second;  // parts of a nanosecond
    if (fine ? __builtin_mul_overflow(count / (denominator / second), numerator, &nanoseconds)
             : __builtin_mul_overflow(count, numerator * (second / denominator), &nanoseconds)) {
      return never();
    }
    if (__builtin_add_overflow(nanoseconds, detail::monotonic_now(), &at)) return never();
    return Deadline(at);
  }

  std::int64_t at_;
};

}  // namespace devshare
