// SPDX-License-Identifier: Apache-2.0
// The importer's side of the wire: one connection to each exporting process, kept, so that a second key from it costs
// one request and one reply. Every request has a deadline (B003); a stopped exporter delays it and nobody else's.
#pragma once

#include "control_page.hpp"
#include "key.hpp"
#include "unique_fd.hpp"
#include "wire.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace devshare::host {

struct Fetched {
  Reply reply;          // code 0, or the exporter's refusal
  UniqueFd descriptor;  // the memory, with code 0; its seals and size are the caller's to check
  std::shared_ptr<const ControlPageView> page;
};

// What is asked of whom: the request's key names the exporter. Sequence, pid and server are filled in.
//
// When the answer could not be had at all, `reply` carries the refusal that
// this side gives: exporter_gone, timed_out, user_refused, protocol, descriptor_limit. Any thread; no lock is held
// while waiting.
Fetched ask_exporter(const Request& what);

// The same for several things of one exporter at once, without waiting for each: answers that carry memory are put beside
// their requests, whatever else comes of one is left for ask_exporter() to find out again. How many were answered so.
std::size_t ask_exporter_of_several(std::span<const Request> what, std::span<std::optional<Fetched>> answers);

std::size_t client_connections();
void client_shut_down();  // closes all connections

}  // namespace devshare::host
