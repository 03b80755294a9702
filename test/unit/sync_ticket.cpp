// SPDX-License-Identifier: Apache-2.0
// The wire form of the tickets of notifies and events, as bytes.
#include "sharing/sync_ticket.hpp"
#include "support/catch.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace devshare;
using detail::decode_sync_ticket;
using detail::encode_sync_ticket;
using detail::SyncKind;
using detail::SyncTicketFields;

using Bytes = std::vector<std::byte>;

SyncTicketFields sample(SyncKind kind) {
  SyncTicketFields fields;
  fields.owner_device = 3;
  for (std::size_t i = 0; i < 16; ++i) fields.exporter.boot_id[i] = static_cast<std::byte>(0xb0 + i);
  fields.exporter.pid_namespace = 0xfedcba9876543210;
  fields.exporter.pid = 0x7fffffff;
  fields.exporter.start_time = 0x8765432112345678;
  const bool key = kind == SyncKind::notify;
  for (std::size_t i = 0; i < (key ? 65 : 64); ++i) fields.name[i] = static_cast<std::byte>(key ? 0xff - i : 0x40 + i);
  return fields;
}

Bytes encoded(SyncKind kind, const SyncTicketFields& fields) {
  const auto bytes = encode_sync_ticket(kind, fields);
  return {bytes.begin(), bytes.end()};
}
Bytes good(SyncKind kind) { return encoded(kind, sample(kind)); }

std::string hex(const Bytes& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// What the tickets of sample() were when the format was fixed. A change here is a change of the version.
constexpr std::string_view golden_notify =
    "4476734e02010100c000000003000000b0b1b2b3b4b5b6b7b8b9babbbcbdbebf1032547698badcfe7856341221436587"
    "ffffff7f00000000fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0dfdedddcdbdad9d8"
    "d7d6d5d4d3d2d1d0cfcecdcccbcac9c8c7c6c5c4c3c2c1c0bf0000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000e4ec17a53b4ce4bf";
constexpr std::string_view golden_event =
    "4476734502010100c000000003000000b0b1b2b3b4b5b6b7b8b9babbbcbdbebf1032547698badcfe7856341221436587"
    "ffffff7f00000000404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f6061626364656667"
    "68696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000050579d080c9cdbc5";

TEST_CASE("B103 tickets of notifies and events are the same bytes on every compiler and machine") {
  CHECK(hex(good(SyncKind::notify)) == golden_notify);
  CHECK(hex(good(SyncKind::event)) == golden_event);
}

TEST_CASE("a ticket of a notify or an event decodes to what was encoded, and is not one of the other kind") {
  const auto [kind, other] = GENERATE(std::pair(SyncKind::notify, SyncKind::event), std::pair(SyncKind::event, SyncKind::notify));
  const auto fields = decode_sync_ticket(kind, good(kind));
  REQUIRE(fields);
  const SyncTicketFields expected = sample(kind);
  CHECK(fields->owner_device == expected.owner_device);
  CHECK(fields->exporter == expected.exporter);
  CHECK(fields->name == expected.name);
  const auto mistaken = decode_sync_ticket(other, good(kind));
  REQUIRE_FALSE(mistaken);
  CHECK(mistaken.error().kind() == Errc::malformed_token);
}

TEST_CASE("B029 every prefix and every padded ticket of a notify or an event is malformed, and no flipped bit goes unseen") {
  const SyncKind kind = GENERATE(SyncKind::notify, SyncKind::event);
  const Bytes bytes = good(kind);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // Copied to its own allocation, so that a read past the end is seen by the sanitizer.
    const Bytes prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const auto decoded = decode_sync_ticket(kind, prefix);
    REQUIRE_FALSE(decoded);
    CHECK(decoded.error().kind() == Errc::malformed_token);
  }
  Bytes padded = bytes;
  padded.push_back(std::byte{0});
  CHECK_FALSE(decode_sync_ticket(kind, padded));
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes bad = bytes;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    CHECK_FALSE(decode_sync_ticket(kind, bad));
  }
}

TEST_CASE("a ticket of a notify or an event whose integers were swapped, or of a later version, says so") {
  const SyncKind kind = GENERATE(SyncKind::notify, SyncKind::event);
  Bytes swapped = good(kind);
  std::swap(swapped[4], swapped[5]);
  CHECK(decode_sync_ticket(kind, swapped).error().kind() == Errc::version_mismatch);
  Bytes later = good(kind);
  later[6] = std::byte{2};
  CHECK(decode_sync_ticket(kind, later).error().kind() == Errc::version_mismatch);
}

TEST_CASE("numbers that cannot be are malformed in tickets of notifies and events, even with a right checksum") {
  SyncTicketFields fields = sample(SyncKind::notify);
  SECTION("a device that is none") { fields.owner_device = -1; }
  SECTION("an exporter that is no process") { fields.exporter.pid = 0; }
  const auto decoded = decode_sync_ticket(SyncKind::notify, encoded(SyncKind::notify, fields));
  REQUIRE_FALSE(decoded);
  CHECK(decoded.error().kind() == Errc::malformed_token);
}

}  // namespace
