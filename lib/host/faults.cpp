// SPDX-License-Identifier: Apache-2.0
#include "faults.hpp"

#include <algorithm>

namespace devshare::host {
namespace {

// splitmix64: the same numbers from the same seed on every machine and standard library.
std::uint64_t next_random(std::uint64_t* state) noexcept {
  std::uint64_t z = *state += 0x9e3779b97f4a7c15U;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27) * 0x94d049bb133111ebU;
  return z ^ z >> 31;
}

}  // namespace

void Faults::fail_nth(acl::Entry call, std::uint32_t nth, acl::aclError code) { nth_.push_back({call, nth, code}); }

void Faults::fail_sometimes(acl::Entry call, double probability, std::uint64_t seed, acl::aclError code) {
  chances_.push_back({call, probability, seed, code});
}

void Faults::delay(acl::Entry call, std::uint32_t milliseconds) { delays_.push_back({call, milliseconds}); }

void Faults::clear() noexcept {
  nth_.clear();
  chances_.clear();
  delays_.clear();
}

Faults::Verdict Faults::next(acl::Entry call) {
  Verdict verdict;
  for (const Delay& delay : delays_) {
    if (delay.call == call) verdict.sleep_ms = std::max(verdict.sleep_ms, delay.milliseconds);
  }
  // Every fault of the call counts it, so that "the 1st" and "the 3rd", asked for together, are the 1st and the 3rd.
  for (Nth& fault : nth_) {
    if (fault.call != call) continue;
    const bool strikes = fault.left <= 1;
    if (strikes) verdict.code = fault.code;
    if (fault.left == 1) {
      fault.call = acl::Entry::none;
    } else if (fault.left > 1) {
      --fault.left;
    }
  }
  std::erase_if(nth_, [](const Nth& fault) { return fault.call == acl::Entry::none; });
  for (Chance& chance : chances_) {
    if (chance.call != call) continue;
    constexpr double range = 18446744073709551616.0;  // 2^64
    if (static_cast<double>(next_random(&chance.random)) < chance.probability * range) verdict.code = chance.code;
  }
  return verdict;
}

}  // namespace devshare::host
