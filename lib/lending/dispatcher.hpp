// SPDX-License-Identifier: Apache-2.0
// The dispatcher's own: what accepting, connections and the loop over events have in common. Nobody else calls this.
#pragma once

#include "lender_core.hpp"

#include <cstddef>
#include <cstdint>

namespace devshare::detail {

// What an event of epoll is about: a connection by its number, its process by the same with the highest bit, and three
// that are no connection.
inline constexpr std::uint64_t about_process = std::uint64_t{1} << 63;
inline constexpr std::uint64_t about_endpoint = about_process - 1;
inline constexpr std::uint64_t about_wake = about_process - 2;
inline constexpr std::uint64_t about_timer = about_process - 3;

inline constexpr std::size_t events_at_once = 32;

bool add_watch(LenderCore& core, int fd, std::uint64_t about) noexcept;
void drain(int fd) noexcept;

// --- accepting.cpp: who comes, and has not said yet who it is ---

// A connection says who it is at once; whoever does not is given this long.
inline constexpr std::int64_t introduction_time = 5'000'000'000;

// Armed while there is something that time alone may end: a lender that nobody asks is not to wake.
void set_timer(LenderCore& core, std::int64_t time = introduction_time) noexcept;
// Descriptors are taken from those who are silent: whoever speaks needs some more, for its process and for what the
// runtime does for it. Whether there were any.
bool make_room(LenderCore& core, const Connection* but = nullptr) noexcept;
void no_stranger_any_more(LenderCore& core, Connection& connection) noexcept;
void accept_all(LenderCore& core) noexcept;
void time_has_come(LenderCore& core) noexcept;
void close_if_asked(LenderCore& core) noexcept;

// --- connections.cpp: who has come ---

// One message of a connection, if there is one. What no borrower sends ends it: nothing that follows could be believed.
bool receive(LenderCore& core, Connection& connection) noexcept;
void process_ended(LenderCore& core, Connection& connection) noexcept;
// Forgets those that are over.
void sweep(LenderCore& core) noexcept;

}  // namespace devshare::detail
