// SPDX-License-Identifier: Apache-2.0
// What the calls that take a token have in common: the type of share of the second version, a token in a caller's
// memory, and how an answer becomes their refusal.
#pragma once

#include "token.hpp"
#include "wire.hpp"

#include <devshare/acl/types.hpp>

namespace devshare::host {

[[nodiscard]] acl::aclError refuse_null(const char* what);

// The kind of token that goes with a type of share. 107000 for other types, 107002 on a thread without a device (R1),
// 207000 for a fabric token on a product that has none: in this order.
acl::aclError kind_of_share(acl::aclrtMemSharedHandleType type, TokenKind* kind);

// The name in a token as a caller hands it in; 107000 for 128 bytes that are no fabric token.
acl::aclError read_token(const void* bytes, TokenKind kind, KeyName* name);

// The refusal by this process, with the code that the handle calls have for it.
Reply refused_token(detail::Reason reason, TokenKind kind = TokenKind::v1);

// The exporter's answer, or the lack of one, with the code that the handle calls have for it: what nobody knows, for
// whatever reason, is 107017 (R30, R31).
Reply as_token_refusal(Reply reply) noexcept;

}  // namespace devshare::host
