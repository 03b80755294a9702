// SPDX-License-Identifier: Apache-2.0
// Whatever lender and borrower send each other: it is refused, or it is a message that is spelt exactly so. Magic, version,
// length and checksum are made right first, for by chance they never are.
#include "core/octets.hpp"
#include "lending/message.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace devshare::detail;
  MessageBytes bytes;
  bytes.size = std::min(size, longest_message);
  std::transform(data, data + bytes.size, bytes.storage.begin(), [](std::uint8_t byte) { return std::byte{byte}; });
  if (bytes.size >= 24) {
    Writer out(bytes.storage.data());
    out.number(std::uint32_t{0x4c737644});
    out.number(std::uint16_t{1});
    out = Writer(bytes.storage.data() + 8);
    out.number(static_cast<std::uint32_t>(bytes.size));
    Writer(bytes.storage.data() + 16).zeros(8);
    Writer(bytes.storage.data() + 16).number(checksum_of_words(bytes.bytes()));
  }
  for (const bool of_borrower : {false, true}) {
    Message message;
    if (decode(bytes.bytes(), of_borrower, message) != Decoded::yes) continue;
    const MessageBytes again = encode(message);
    if (message.type == MessageType::hello) continue;  // mechanisms that are not known here are dropped
    if (!std::equal(bytes.bytes().begin(), bytes.bytes().end(), again.bytes().begin(), again.bytes().end())) std::abort();
  }
  return 0;
}
