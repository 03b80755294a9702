// SPDX-License-Identifier: Apache-2.0
// The wire form of a ticket, as bytes.
#include "support/catch.hpp"
#include "sharing/ticket_codec.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace devshare;
using detail::decode_ticket;
using detail::encode_ticket;
using detail::TicketFields;

// Every field different from every other, and the numbers with their high bits set where they may be.
TicketFields sample() {
  TicketFields fields;
  fields.mechanism = Mechanism::by_key;
  fields.access = AccessMode::read_write;
  fields.unrestricted = true;
  fields.payload_size = acl::ipc_key_size;
  fields.owner_device = 3;
  fields.block_size = 0xf123456789abcdef;
  fields.slice_offset = 0x8000000000000001;
  fields.slice_size = 0x7000000000000002;
  for (std::size_t i = 0; i < fields.nonce.size(); ++i) fields.nonce[i] = static_cast<std::byte>(0xa0 + i);
  for (std::size_t i = 0; i < 16; ++i) fields.exporter.boot_id[i] = static_cast<std::byte>(0xb0 + i);
  fields.exporter.pid_namespace = 0xfedcba9876543210;
  fields.exporter.pid = 0x7fffffff;
  fields.exporter.start_time = 0x8765432112345678;
  for (std::size_t i = 0; i < acl::ipc_key_size; ++i) fields.payload[i] = static_cast<std::byte>(0xff - i);
  return fields;
}

std::string hex(const TicketBytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes.storage) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

Result<ReceivedTicket> decode(const std::vector<std::byte>& bytes) {
  return ReceivedTicket::decode(std::span<const std::byte>(bytes));
}

std::vector<std::byte> to_vector(const TicketBytes& bytes) { return {bytes.storage.begin(), bytes.storage.end()}; }

bool same(const TicketFields& a, const TicketFields& b) {
  return a.mechanism == b.mechanism && a.access == b.access && a.unrestricted == b.unrestricted &&
         a.payload_size == b.payload_size && a.owner_device == b.owner_device && a.block_size == b.block_size &&
         a.slice_offset == b.slice_offset && a.slice_size == b.slice_size && a.nonce == b.nonce &&
         a.exporter == b.exporter && a.payload == b.payload;
}

// What a ticket of sample() was when the format was fixed. A change here is a change of the version.
constexpr std::string_view golden =
    "447673540201010000010000010201410300000000000000efcdab89674523f101000000000000800200000000000070"
    "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf1032547698badcfeffffff7f00000000"
    "7856341221436587fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0dfdedddcdbdad9d8"
    "d7d6d5d4d3d2d1d0cfcecdcccbcac9c8c7c6c5c4c3c2c1c0bf0000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000002b45ed2ec6392017";

TEST_CASE("B103 a ticket is the same bytes on every compiler and machine") {
  CHECK(hex(encode_ticket(sample())) == golden);
}

TEST_CASE("a ticket decodes to what was encoded") {
  const auto fields = decode_ticket(to_vector(encode_ticket(sample())));
  REQUIRE(fields);
  CHECK(same(*fields, sample()));
}

TEST_CASE("a ticket has the payload of its mechanism, and no other's") {
  using Length = std::pair<Mechanism, std::uint8_t>;
  const auto [mechanism, length] =
      GENERATE(Length(Mechanism::by_key, 65), Length(Mechanism::v1, 8), Length(Mechanism::v2, 8), Length(Mechanism::fabric, 128));
  TicketFields fields = sample();
  fields.mechanism = mechanism;
  fields.payload.fill(std::byte{0x5a});
  for (const int size : {0, 8, 64, 65, 66, 127, 128, 129, 255}) {
    fields.payload_size = static_cast<std::uint8_t>(size);
    const auto decoded = decode_ticket(to_vector(encode_ticket(fields)));
    CHECK(static_cast<bool>(decoded) == (size == length));
    if (decoded) CHECK(same(*decoded, fields));
  }
}

TEST_CASE("B027 sizes and offsets of any width survive the wire") {
  const std::uint64_t size = GENERATE(as<std::uint64_t>(), 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu, 0x100000000u, 0x10000000000u);
  TicketFields fields = sample();
  fields.block_size = size;
  fields.slice_offset = size - 1;
  fields.slice_size = 1;
  const auto decoded = decode(to_vector(encode_ticket(fields)));
  REQUIRE(decoded);
  CHECK(decoded->block_size() == size);
  CHECK(decoded->offset() == size - 1);
  CHECK(decoded->size() == 1);
}

TEST_CASE("B029 every prefix and every padded ticket is malformed") {
  const auto good = to_vector(encode_ticket(sample()));
  for (std::size_t length = 0; length < good.size(); ++length) {
    // Copied to its own allocation, so that a read past the end is seen by the sanitizer.
    const std::vector<std::byte> prefix(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
    const auto decoded = decode(prefix);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().kind() == Errc::malformed_token);
    CHECK(decoded.error().detail().available == length);
  }
  auto padded = good;
  padded.push_back(std::byte{0});
  CHECK(decode(padded).error().kind() == Errc::malformed_token);
}

TEST_CASE("B029 no flipped bit goes unseen") {
  const auto good = to_vector(encode_ticket(sample()));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const auto decoded = decode(bad);
    REQUIRE_FALSE(decoded);
    const Errc kind = decoded.error().kind();
    CHECK((kind == Errc::malformed_token || kind == Errc::version_mismatch));
  }
}

TEST_CASE("B029 random damage is never taken for another ticket") {
  const auto good = to_vector(encode_ticket(sample()));
  std::mt19937 random(20261129);
  for (int round = 0; round < 10000; ++round) {
    auto bad = good;
    for (int changes = 1 + static_cast<int>(random() % 8); changes > 0; --changes) {
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    }
    if (bad == good) continue;
    CHECK_FALSE(decode(bad));
  }
}

TEST_CASE("B103 a ticket whose integers were swapped on the way is another version, not damage") {
  auto bytes = to_vector(encode_ticket(sample()));
  std::reverse(bytes.begin(), bytes.begin() + 4);
  std::reverse(bytes.begin() + 4, bytes.begin() + 6);
  std::reverse(bytes.begin() + 6, bytes.begin() + 8);
  CHECK(decode(bytes).error().kind() == Errc::version_mismatch);
}

TEST_CASE("a ticket of a later version says so") {
  auto bytes = to_vector(encode_ticket(sample()));
  bytes[6] = std::byte{2};
  const auto decoded = decode(bytes);
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().kind() == Errc::version_mismatch);
  CHECK(decoded.error().detail().needed == 1);
  CHECK(decoded.error().detail().available == 2);
}

TEST_CASE("numbers that contradict each other are malformed even with a right checksum") {
  TicketFields fields = sample();
  SECTION("a slice that leaves its block") { fields.slice_size = fields.block_size - fields.slice_offset + 1; }
  SECTION("a slice whose end overflows") { fields.slice_offset = ~std::uint64_t{0}; }
  SECTION("an empty slice") { fields.slice_size = 0; }
  SECTION("an empty block") { fields.block_size = fields.slice_offset = fields.slice_size = 0; }
  SECTION("a mechanism that does not exist") { fields.mechanism = static_cast<Mechanism>(200); }
  SECTION("an access mode that does not exist") { fields.access = static_cast<AccessMode>(0); }
  SECTION("a key of the wrong length") { fields.payload_size = 64; }
  SECTION("a device that is none") { fields.owner_device = -1; }
  SECTION("an exporter that is no process") { fields.exporter.pid = 0; }
  const auto decoded = decode(to_vector(encode_ticket(fields)));
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().kind() == Errc::malformed_token);
  CHECK(decoded.error().operation() == Operation::decode_ticket);
}

}  // namespace
