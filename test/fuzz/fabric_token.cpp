// SPDX-License-Identifier: Apache-2.0
// Whatever a program hands in as a fabric token: it is refused, or it is spelt exactly so and names what can exist.
#include "host/endpoint.hpp"
#include "host/token.hpp"

#include <cstdlib>
#include <cstring>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devshare::host;
  devshare::acl::aclrtMemFabricHandle bytes{};
  if (size > sizeof bytes.data) return 0;
  if (size != 0) std::memcpy(bytes.data, data, size);
  if (const auto token = decode_fabric(bytes)) {
    const auto again = encode_fabric(*token);
    if (std::memcmp(again.data, bytes.data, sizeof bytes.data) != 0) std::abort();
    if (token->name.slot >= most_tokens || token->name.endpoint >> endpoint_bits != 0) std::abort();
  }
  return 0;
}
