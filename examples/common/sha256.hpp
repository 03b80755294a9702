// SPDX-License-Identifier: Apache-2.0
// SHA-256 by OpenSSL, fed piece by piece, so that no example needs a whole file in memory for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace examples {

using Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256() { must(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1); }

  void update(std::span<const std::byte> bytes) {
    must(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }

  // The digest of all that was fed. Once: the object is spent.
  Digest finish() {
    Digest digest;
    must(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1);
    return digest;
  }

 private:
  static void must(bool done) {
    if (!done) throw std::runtime_error("OpenSSL makes no SHA-256 digest");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

inline std::string to_hex(const Digest& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace examples
