// SPDX-License-Identifier: Apache-2.0
// A session with what tests of physical memory do again and again. Everything must succeed unless it says so.
#pragma once

#include "host_session.hpp"

#include <devshare/host.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace devshare::test {

inline constexpr std::size_t MiB = std::size_t{1} << 20;
inline constexpr std::size_t GiB = std::size_t{1} << 30;
inline constexpr std::size_t piece_size = 2 * MiB;

inline acl::aclrtPhysicalMemProp on_device(std::uint32_t device = 0, int attribute = acl::mem_attr::hbm_huge) {
  return {acl::mem_handle_type::none,
          acl::mem_allocation_type::pinned,
          attribute,
          {device, acl::mem_location_type::device},
          0};
}

inline acl::aclrtPhysicalMemProp on_host(int attribute = acl::mem_attr::ddr_huge) {
  return {
      acl::mem_handle_type::none, acl::mem_allocation_type::pinned, attribute, {0, acl::mem_location_type::host}, 0};
}

class PhysicalSession : public HostSession {
 public:
  using HostSession::HostSession;

  acl::aclrtDrvMemHandle physical(std::size_t size = piece_size,
                                  const acl::aclrtPhysicalMemProp& property = on_device()) const {
    acl::aclrtDrvMemHandle handle = nullptr;
    REQUIRE(acl.aclrtMallocPhysical(&handle, size, &property, 0) == 0);
    REQUIRE(handle != nullptr);
    return handle;
  }

  std::byte* reserve(std::size_t size) const {
    void* address = nullptr;
    REQUIRE(acl.aclrtReserveMemAddress(&address, size, 0, nullptr, 0) == 0);
    REQUIRE(address != nullptr);
    return static_cast<std::byte*>(address);
  }

  // A new memory mapped at `address`, which from then on is all that keeps it.
  void fill_in(std::byte* address, std::size_t size = piece_size,
               const acl::aclrtPhysicalMemProp& property = on_device()) const {
    const acl::aclrtDrvMemHandle handle = physical(size, property);
    REQUIRE(acl.aclrtMapMem(address, size, 0, handle, 0) == 0);
    REQUIRE(acl.aclrtFreePhysical(handle) == 0);
  }

  acl::aclError write(void* to, const std::vector<unsigned char>& from) const {
    return acl.aclrtMemcpy(to, from.size(), from.data(), from.size(), acl::memcpy_kind::host_to_device);
  }

  // Empty when the copy was refused.
  std::vector<unsigned char> read(const void* from, std::size_t size) const {
    std::vector<unsigned char> bytes(size);
    const bool done = acl.aclrtMemcpy(bytes.data(), size, from, size, acl::memcpy_kind::device_to_host) == 0;
    return done ? bytes : std::vector<unsigned char>();
  }
};

// Bytes that are different in every place of any few pieces.
inline std::vector<unsigned char> pattern(std::size_t size, unsigned seed = 1) {
  std::vector<unsigned char> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i * 31 + i / 4093 + seed) % 251);
  return bytes;
}

}  // namespace devshare::test
