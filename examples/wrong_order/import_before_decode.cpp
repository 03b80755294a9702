// SPDX-License-Identifier: Apache-2.0
// Import bytes as they came off the wire, before anybody looked at them.
// reason: decode first: ReceivedTicket::decode(bytes)
#include <devshare/devshare.hpp>

using namespace devshare;

Result<ImportedMapping> import(std::span<const std::byte> message, const Device& device) {
  return ImportedMapping::open(message, device);
}
