// SPDX-License-Identifier: Apache-2.0
// Memory that a test imports without an exporter, and what copies between devices need.
#pragma once

#include "host/block.hpp"
#include "host_session.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace devshare::test {

struct ImportWish {
  std::uint64_t size = 4096;
  std::int32_t device = 0;
  std::int32_t local_device = 0;
  bool read_only = false;
  host::ExporterWatch watch = {};
  int descriptor = -1;  // one to share bytes with; -1: fresh ones
};

inline void* import(const ImportWish& wish) {
  host::ImportedBytes bytes;
  bytes.descriptor =
      host::UniqueFd(wish.descriptor >= 0 ? ::dup(wish.descriptor) : ::memfd_create("test", MFD_CLOEXEC));
  if (wish.descriptor < 0 && ::ftruncate(bytes.descriptor.get(), static_cast<off_t>(wish.size)) != 0) return nullptr;
  bytes.size = wish.size;
  bytes.page_size = 4096;
  bytes.device = wish.device;
  bytes.local_device = wish.local_device;
  bytes.read_only = wish.read_only;
  bytes.watch = wish.watch;
  void* address = nullptr;
  return host::adopt_import(std::move(bytes), &address) == 0 ? address : nullptr;
}

inline void enable_both_ways(const HostSession& session) {
  REQUIRE(session.acl.aclrtSetDevice(0) == 0);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(1, 0) == 0);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  REQUIRE(session.acl.aclrtDeviceEnablePeerAccess(0, 0) == 0);
  REQUIRE(session.acl.aclrtSetDevice(0) == 0);
}

}  // namespace devshare::test
