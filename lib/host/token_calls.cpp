// SPDX-License-Identifier: Apache-2.0
#include "token_calls.hpp"

#include "device.hpp"
#include "failure.hpp"
#include "profile.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstring>
#include <optional>

namespace devshare::host {

namespace code = acl::code;

acl::aclError refuse_null(const char* what) {
  return refuse(code::invalid_param, Reason::bad_argument, fmt::format("{} is a null pointer", what));
}

acl::aclError kind_of_share(acl::aclrtMemSharedHandleType type, TokenKind* kind) {
  if (type != acl::share_type::local && type != acl::share_type::fabric) {
    return refuse(code::rt_param_invalid, Reason::bad_argument,
                  fmt::format("shareType is {}: only 1 (default) and 2 (fabric) exist", type));
  }
  DeviceNumber device;
  if (const acl::aclError refused = current_device(&device)) return refused;
  const Product product = profile().product;
  if (type == acl::share_type::fabric && product != Product::a3) {
    return refuse(code::rt_feature_not_support, Reason::unsupported,
                  fmt::format("{} is no part of a super-pod: only a3 has fabric tokens", product_name(product)));
  }
  *kind = type == acl::share_type::fabric ? TokenKind::fabric : TokenKind::v2;
  return code::success;
}

acl::aclError read_token(const void* bytes, TokenKind kind, KeyName* name) {
  if (kind != TokenKind::fabric) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes, sizeof number);
    *name = decode_token(number);
    return code::success;
  }
  acl::aclrtMemFabricHandle fabric;
  std::memcpy(fabric.data, bytes, sizeof fabric.data);
  const std::optional<FabricToken> token = decode_fabric(fabric);
  if (!token) {
    return refuse(code::rt_param_invalid, Reason::unknown_key,
                  "these 128 bytes are no fabric token: send all of them, unchanged");
  }
  *name = token->name;
  return code::success;
}

Reply refused_token(Reason reason, TokenKind kind) {
  Reply reply;
  reply.code = code::rt_drv_internal;
  reply.reason = reason;
  reply.kind = kind;
  if (reason == Reason::descriptor_limit) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    reply.code = code::rt_memory_allocation;
    reply.needed = reply.available = limit.rlim_cur;
  }
  return as_token_refusal(reply);
}

Reply as_token_refusal(Reply reply) noexcept {
  switch (reply.reason) {
    case Reason::unknown_key:
    case Reason::exporter_gone:
    case Reason::wrong_token_kind:
    case Reason::other_server:
      reply.code = code::rt_invalid_handle;
      break;
    default:
      break;
  }
  return reply;
}

}  // namespace devshare::host
