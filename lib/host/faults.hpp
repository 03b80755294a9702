// SPDX-License-Identifier: Apache-2.0
// Faults and delays that a test has asked for. Not synchronised: instrument.cpp holds its lock.
#pragma once

#include <devshare/acl/table.hpp>

#include <cstdint>
#include <vector>

namespace devshare::host {

class Faults {
 public:
  void fail_nth(acl::Entry call, std::uint32_t nth, acl::aclError code);  // 1 the next call, 0 every call
  void fail_sometimes(acl::Entry call, double probability, std::uint64_t seed, acl::aclError code);
  void delay(acl::Entry call, std::uint32_t milliseconds);  // every call; the longest one counts
  void clear() noexcept;
  bool any() const noexcept { return !nth_.empty() || !chances_.empty() || !delays_.empty(); }

  // What is to happen to the call that is made now. Counts it, and forgets a fault that has struck.
  struct Verdict {
    std::uint32_t sleep_ms = 0;
    acl::aclError code = 0;
  };
  Verdict next(acl::Entry call);

 private:
  struct Nth {
    acl::Entry call;
    std::uint32_t left;  // calls until it strikes, this one included; 0: always
    acl::aclError code;
  };
  struct Chance {
    acl::Entry call;
    double probability;
    std::uint64_t random;  // state of the generator
    acl::aclError code;
  };
  struct Delay {
    acl::Entry call;
    std::uint32_t milliseconds;
  };
  std::vector<Nth> nth_;
  std::vector<Chance> chances_;
  std::vector<Delay> delays_;
};

}  // namespace devshare::host
