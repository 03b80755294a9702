// SPDX-License-Identifier: Apache-2.0
// A word of device memory as a signal: written by one stream, waited for by another, of this process or of one that
// shares the memory.
#pragma once

#include <devshare/address.hpp>
#include <devshare/stream.hpp>

#include <cstdint>

namespace devshare {

// When a waiting stream goes on.
enum class ValueIs : std::uint32_t {
  at_least = acl::value_wait::at_least,        // the memory minus the value is not negative, as signed numbers
  equal = acl::value_wait::equal,
  common_bits = acl::value_wait::common_bits,  // a bit of the value is set in the memory
  nor = acl::value_wait::nor,                  // a bit is set in neither
};

// In the stream's turn. `word` is a multiple of 8. Errors: invalid_argument, out_of_range, exporter_gone,
// peer_access_missing, unsupported_by_runtime, runtime_gone. ACL: aclrtValueWrite.
DEVSHARE_API Result<void> write_value(const StreamRef& stream, DevicePtr<std::uint64_t> word,
                                      std::uint64_t value) noexcept;

// What the stream gets from now on waits until the word is as it is to be. Where its exporter takes the memory away
// meanwhile, the stream goes on and its synchronize() returns exporter_gone. Errors: as above. ACL: aclrtValueWait.
DEVSHARE_API Result<void> wait_for_value(const StreamRef& stream, DevicePtr<const std::uint64_t> word, ValueIs condition,
                                         std::uint64_t value) noexcept;

}  // namespace devshare
