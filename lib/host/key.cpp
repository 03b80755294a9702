// SPDX-License-Identifier: Apache-2.0
#include "key.hpp"

#include "random.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <span>

namespace devshare::host {
namespace {

constexpr std::size_t data_size = 8 + 4 + 28;
constexpr std::size_t text_secret = 20;
constexpr std::size_t text_length = 64;
static_assert((8 + 4 + text_secret) * 2 == text_length);

constexpr std::size_t bits_in_mark = 4;  // four flags a byte, so that the upper half keeps the byte from being zero
constexpr std::size_t mark_count = data_size / bits_in_mark;
constexpr std::size_t binary_length = data_size + mark_count;
constexpr unsigned mark_upper_half = 0xF0;
static_assert(binary_length < acl::ipc_key_size && text_length < acl::ipc_key_size);

using Data = std::array<std::uint8_t, data_size>;

Data pack(const KeyName& name) noexcept {
  Data data{};
  for (std::size_t i = 0; i < 8; ++i) data[i] = static_cast<std::uint8_t>(name.endpoint >> (56 - 8 * i));
  for (std::size_t i = 0; i < 4; ++i) data[8 + i] = static_cast<std::uint8_t>(name.slot >> (24 - 8 * i));
  std::memcpy(data.data() + 12, name.secret.data(), name.secret.size());
  return data;
}

KeyName unpack(const Data& data) noexcept {
  KeyName name;
  for (std::size_t i = 0; i < 8; ++i) name.endpoint = name.endpoint << 8 | data[i];
  for (std::size_t i = 0; i < 4; ++i) name.slot = name.slot << 8 | data[8 + i];
  std::memcpy(name.secret.data(), data.data() + 12, name.secret.size());
  return name;
}

constexpr std::array<std::int8_t, 256> make_digit_values() {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (int i = 0; i < 16; ++i) values[static_cast<std::size_t>("0123456789abcdef"[i])] = static_cast<std::int8_t>(i);
  return values;
}
constexpr std::array<std::int8_t, 256> digit_values = make_digit_values();

int digit_value(char digit) noexcept { return digit_values[static_cast<unsigned char>(digit)]; }

std::optional<KeyName> decode_text(const char* key) noexcept {
  Data data{};
  for (std::size_t i = 0; i < text_length / 2; ++i) {
    const int upper = digit_value(key[2 * i]);
    if (upper < 0) return std::nullopt;  // before the next byte is read: this one may be the last
    const int lower = digit_value(key[2 * i + 1]);
    if (lower < 0) return std::nullopt;
    data[i] = static_cast<std::uint8_t>(upper * 16 + lower);
  }
  if (key[text_length] != '\0') return std::nullopt;
  return unpack(data);
}

std::optional<KeyName> decode_binary(const char* key) noexcept {
  std::array<std::uint8_t, binary_length> bytes{};
  for (std::size_t i = 0; i < binary_length; ++i) {
    if (key[i] == '\0') return std::nullopt;
    bytes[i] = static_cast<std::uint8_t>(key[i]);
  }
  if (key[binary_length] != '\0') return std::nullopt;
  Data data{};
  for (std::size_t i = 0; i < data_size; ++i) {
    const unsigned mark = bytes[data_size + i / bits_in_mark];
    if ((mark & mark_upper_half) != mark_upper_half) return std::nullopt;
    const bool was_zero = (mark >> (i % bits_in_mark) & 1) != 0;
    if (was_zero && bytes[i] != 1) return std::nullopt;  // one spelling for each key
    data[i] = was_zero ? std::uint8_t{0} : bytes[i];
  }
  return unpack(data);
}

}  // namespace

KeyForm key_form(Product product) noexcept { return product == Product::p950 ? KeyForm::binary : KeyForm::text; }

KeyName new_key_name(std::uint64_t endpoint, std::uint32_t slot, KeyForm form) {
  KeyName name{endpoint, slot, {}};
  random_bytes(form == KeyForm::text ? std::span(name.secret).first(text_secret) : std::span(name.secret));
  return name;
}

KeyBytes encode_key(const KeyName& name, KeyForm form) noexcept {
  const Data data = pack(name);
  KeyBytes key{};
  if (form == KeyForm::text) {
    constexpr char digits[] = "0123456789abcdef";
    for (std::size_t i = 0; i < text_length / 2; ++i) {
      key[2 * i] = digits[data[i] >> 4];
      key[2 * i + 1] = digits[data[i] & 0xF];
    }
    return key;
  }
  std::array<unsigned, mark_count> marks{};
  marks.fill(mark_upper_half);
  for (std::size_t i = 0; i < data_size; ++i) {
    if (data[i] == 0) marks[i / bits_in_mark] |= 1U << (i % bits_in_mark);
    key[i] = static_cast<char>(data[i] == 0 ? 1 : data[i]);
  }
  for (std::size_t i = 0; i < mark_count; ++i) key[data_size + i] = static_cast<char>(marks[i]);
  return key;
}

std::optional<KeyName> decode_key(const char* key, KeyForm form) noexcept {
  return form == KeyForm::text ? decode_text(key) : decode_binary(key);
}

bool same_secret(const KeyName& a, const KeyName& b) noexcept {
  // In words, and all of them whatever the first ones say.
  using Words = std::array<std::uint32_t, sizeof(a.secret) / sizeof(std::uint32_t)>;
  static_assert(sizeof(Words) == sizeof(a.secret));
  const auto words_of_a = std::bit_cast<Words>(a.secret);
  const auto words_of_b = std::bit_cast<Words>(b.secret);
  std::uint32_t difference = 0;
  for (std::size_t i = 0; i < words_of_a.size(); ++i) difference |= words_of_a[i] ^ words_of_b[i];
  return difference == 0;
}

}  // namespace devshare::host
