// SPDX-License-Identifier: Apache-2.0
// A lender of one offer and its borrower, for stories about where they meet.
#pragma once

#include "lending.hpp"

#include <cstddef>
#include <cstdint>
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

// What a story of one offer is told with.
struct OneOffer {
  Switches switches{};
  Offering offering{};
  std::int32_t borrowers_device = 0;
};

// A lends as "m" what `make` makes until B is done, and has it back. What A does besides is `meanwhile`, what B does is
// `use`.
template <class Make, class Meanwhile, class Use>
void lend_and_use(const OneOffer& one, Make make, Meanwhile meanwhile, Use use) {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, one.switches);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      Serving serving = me.must(serve(lender), "a thread serves");
      Lent lent = me.must(lender.offer("m", make(a), one.offering), "A offers");
      meanwhile(a, lender, lent);
      me.pause_until("B", "done");
      auto back = me.must(std::move(lent).close(30s), "A has its memory back");
      if constexpr (requires { std::move(back).close(); }) me.must(std::move(back).close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, one.borrowers_device, one.switches);
    use(b, endpoint);
    b.has_given_everything_back();
    me.step("done");
  });
  story.run();
}

}  // namespace devshare::test
