// SPDX-License-Identifier: Apache-2.0
// Tokens of physical handles, between values and bytes.
#include "support/catch.hpp"

#include "host/endpoint.hpp"
#include "host/token.hpp"

#include <cstring>
#include <set>

using namespace devshare::host;
using devshare::acl::aclrtMemFabricHandle;

namespace {

FabricToken some_fabric_token() {
  FabricToken token{{0x00000012'3456789a, 0x00f00d00, {}}, 7};
  for (std::size_t i = 0; i < token.name.secret.size(); ++i) token.name.secret[i] = static_cast<std::uint8_t>(i * 13);
  return token;
}

bool same(const aclrtMemFabricHandle& a, const aclrtMemFabricHandle& b) {
  return std::memcmp(a.data, b.data, sizeof a.data) == 0;
}

}  // namespace

TEST_CASE("a 64-bit token is its endpoint and its slot, and every number reads back") {
  const KeyName name{0xff'ffff'fff1, 0xfffffe, {}};
  CHECK(encode_token(name) == 0xfffffffff1'fffffe);
  CHECK(decode_token(encode_token(name)) == name);
  for (const std::uint64_t token : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 24, UINT64_MAX}) {
    CHECK(encode_token(decode_token(token)) == token);
    CHECK(decode_token(token).slot < most_tokens);
    CHECK(decode_token(token).endpoint >> endpoint_bits == 0);
  }
}

TEST_CASE("endpoints have 40 random bits and are never 0, so that a token leads to them and none is 0") {
  std::set<std::uint64_t> names;
  for (int i = 0; i < 50; ++i) {
    Endpoint endpoint;
    REQUIRE(endpoint.open("") == 0);
    CHECK(endpoint.name() >> endpoint_bits == 0);
    CHECK(decode_token(encode_token({endpoint.name(), 0, {}})).endpoint == endpoint.name());
    names.insert(endpoint.name());
  }
  CHECK(names.size() == 50);
  CHECK(names.count(0) == 0);
}

TEST_CASE("a fabric token reads back as what was written, little-endian on every machine") {
  const FabricToken token = some_fabric_token();
  const aclrtMemFabricHandle bytes = encode_fabric(token);
  CHECK(decode_fabric(bytes) == token);
  CHECK(std::memcmp(bytes.data, "DVSFABR1\7\0\0\0\0\x0d\xf0\0\x9a\x78\x56\x34\x12", 21) == 0);
  const FabricToken other{new_key_name(1, 2, KeyForm::binary), 255};
  CHECK(decode_fabric(encode_fabric(other)) == other);
}

TEST_CASE("B029 a fabric token with any bit changed is none") {
  const aclrtMemFabricHandle bytes = encode_fabric(some_fabric_token());
  for (std::size_t bit = 0; bit < sizeof bytes.data * 8; ++bit) {
    aclrtMemFabricHandle changed = bytes;
    changed.data[bit / 8] = static_cast<std::uint8_t>(changed.data[bit / 8] ^ (1U << bit % 8));
    CHECK_FALSE(decode_fabric(changed));
  }
  CHECK_FALSE(decode_fabric({}));
}

TEST_CASE("a fabric token whose checksum is right and which names what no exporter names is none") {
  FabricToken token = some_fabric_token();
  token.name.slot = most_tokens;
  CHECK_FALSE(decode_fabric(encode_fabric(token)));
  token = some_fabric_token();
  token.name.endpoint = std::uint64_t{1} << endpoint_bits;
  CHECK_FALSE(decode_fabric(encode_fabric(token)));
}

TEST_CASE("two fabric tokens of one slot differ in their secrets") {
  const FabricToken first{new_key_name(1, 2, KeyForm::binary), 0};
  const FabricToken second{new_key_name(1, 2, KeyForm::binary), 0};
  CHECK_FALSE(same(encode_fabric(first), encode_fabric(second)));
  CHECK_FALSE(same_secret(first.name, second.name));
}
