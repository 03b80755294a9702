// SPDX-License-Identifier: Apache-2.0
// What the rules say a call returns, and the record of what it did: a line for each, of which conformance.py makes the
// table of docs/conformance.md.
#pragma once

#include "acl.hpp"
#include "support/catch.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace conformance {

class Expected {
 public:
  Expected(aclError code) : codes_{code} {}  // NOLINT: a code is what is expected most
  // Sources differ: any of these.
  static Expected either(std::initializer_list<aclError> codes) { return Expected(std::vector<aclError>(codes)); }
  // Documents forbid it and name no code: any but success.
  static Expected refused() { return Expected(std::vector<aclError>()); }

  bool allows(aclError code) const;
  std::string in_words() const;

 private:
  explicit Expected(std::vector<aclError> codes) : codes_(std::move(codes)) {}
  std::vector<aclError> codes_;  // none: any but success
};

// Records what the running case, whose name begins with its rule, saw.
void record(const std::string& what, aclError got, const Expected& expected);
void record_skipped(const std::string& why);

inline bool on(const char* product) { return profile() == product; }

// A device that the rule takes for granted and the machine may not have. Two are enough for every rule.
inline std::string why_no_second_device() { return Acl(Start{.device = false}).devices() < 2 ? "one device" : ""; }

}  // namespace conformance

// `what` was done and `got` is its code. A library that has no such call ends the case as skipped.
#define CODE(what, got, ...)                                                                   \
  do {                                                                                         \
    const ::conformance::aclError got_ = (got);                                                \
    const ::conformance::Expected expected_ = __VA_ARGS__;                                     \
    if (got_ == ::conformance::absent) CONFORMANCE_SKIP("the library does not have the call"); \
    ::conformance::record(what, got_, expected_);                                              \
    INFO(what << ": " << got_ << ", expected " << expected_.in_words());                       \
    CHECK(expected_.allows(got_));                                                             \
  } while (false)

#define CONFORMANCE_SKIP(why)           \
  do {                                  \
    ::conformance::record_skipped(why); \
    DEVSHARE_SKIP(why);                 \
  } while (false)
