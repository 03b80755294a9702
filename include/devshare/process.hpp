// SPDX-License-Identifier: Apache-2.0
// BarePid: a process as the device driver numbers it.
#pragma once

#include <devshare/detail/attributes.hpp>

#include <cstdint>
#include <type_traits>

namespace devshare {

// The id by which the runtime knows a process: its pid outside every container, not what getpid() says inside one
// (R14). A process learns its own from Runtime::bare_pid() and sends it to the exporter; the exporter makes it from
// that message by a name that says so. No integer converts to it.
class BarePid {
 public:
  static constexpr BarePid from_peer_message(std::int32_t number) noexcept { return BarePid(number); }

  constexpr std::int32_t to_message() const noexcept { return number_; }

  friend constexpr bool operator==(BarePid, BarePid) noexcept = default;

 private:
  explicit constexpr BarePid(std::int32_t number) noexcept : number_(number) {}

  std::int32_t number_;
};

static_assert(std::is_trivially_copyable_v<BarePid>);

}  // namespace devshare
