// SPDX-License-Identifier: Apache-2.0
// What an error means: its causes in order of likelihood, the rule behind it and what to do. 507899 is the runtime's
// code for nearly every refusal, so the operation decides. The same tables make docs/errors.md.
#pragma once

#include <devshare/error.hpp>
#include <devshare/mechanism.hpp>

#include <span>
#include <string_view>

namespace devshare {

struct Explanation {
  std::string_view summary;                  // one sentence: what went wrong
  std::string_view rule;                     // the rule of docs/rules.md, e.g. "R13"; empty where there is none
  std::span<const std::string_view> causes;  // the likeliest first; never empty
  std::string_view remedy;                   // what to do about it; never empty
  std::string_view note = {};                // what is known of this very failure, such as a variable's value and
                                             // the loader's words; empty for nearly all
};

// Static storage: valid for ever, no allocation.
DEVSHARE_API Explanation explain(const Error& error) noexcept;

DEVSHARE_API std::string_view name_of(Errc kind) noexcept;             // "stale_token"
DEVSHARE_API std::string_view name_of(Operation operation) noexcept;   // "import a key"
DEVSHARE_API std::string_view name_of(acl::Entry entry) noexcept;      // "aclrtIpcMemImportByKey"
DEVSHARE_API std::string_view name_of(Error::Reason reason) noexcept;  // "not_admitted"
DEVSHARE_API std::string_view name_of(Mechanism mechanism) noexcept;      // "by_key"
// "ACL_ERROR_RT_DRV_INTERNAL_ERROR"; empty for a code that is not in the list.
DEVSHARE_API std::string_view name_of_acl_code(std::int32_t code) noexcept;

}  // namespace devshare
