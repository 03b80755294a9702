// SPDX-License-Identifier: Apache-2.0
// A lender of one offer and its borrower, for stories about where they meet.
#pragma once

#include "lending.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

namespace devshare::test {

inline constexpr std::size_t lent_size = 4096;

// An abstract name of this story's own.
inline Endpoint abstract(const Story& story, std::string_view name) {
  return Endpoint::abstract("devshare-test" + story.file(name).substr(4));
}

// Lends "m" with a pattern of its own until somebody has taken the step "done".
inline void lend(Actor& me, const Endpoint& endpoint, std::string_view until, std::size_t seed = 0,
                 Told* told = nullptr, Allow allow = Allow::same_user(), Switches switches = {}) {
  const Party a(me, 0, switches);
  {
    Told none;
    Lender lender = me.must(Lender::at(a.runtime, endpoint, (told != nullptr ? *told : none).options(allow)),
                            "there is an endpoint");
    Lent lent = me.must(lender.offer("m", a.allocate(pattern(lent_size, seed))), "an offer");
    Serving serving = me.must(serve(lender), "and a thread that serves");
    me.step("serves");
    me.pause_until(until, "done");
    me.must(me.must(std::move(lent).close(30s), "it is returned").close(), "and freed");
  }
  a.leave();
}

inline void borrows(const Party& b, const Endpoint& endpoint, std::size_t seed = 0) {
  Lease lease = b.me.must(borrow(b.device, endpoint, "m", 30s), "it borrows");
  b.me.expect(b.read(lease.bytes()) == pattern(lent_size, seed), "what was lent");
  b.me.must(std::move(lease).close(), "and returns it");
}

}  // namespace devshare::test
