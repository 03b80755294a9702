// SPDX-License-Identifier: Apache-2.0
// A session of the host runtime for the length of a test: aclInit, a current device, aclFinalize.
#pragma once

#include "host/host_runtime.hpp"
#include "support/catch.hpp"

#include <devshare/acl/codes.hpp>

#include <cstdint>
#include <string>

namespace devshare::test {

class HostSession {
 public:
  // Device -1: none is made current.
  explicit HostSession(std::int32_t device = 0) {
    start_code = acl.aclInit(nullptr);
    if (start_code == 0 && device >= 0) start_code = acl.aclrtSetDevice(device);
  }
  ~HostSession() { acl.aclFinalize(); }
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  // An allocation that must succeed; null else.
  void* allocate(std::size_t size, acl::aclrtMemMallocPolicy policy = acl::malloc_policy::huge_first) const {
    void* address = nullptr;
    return acl.aclrtMalloc(&address, size, policy) == 0 ? address : nullptr;
  }

  // Forgets the message.
  std::string message() const {
    const char* const text = acl.aclGetRecentErrMsg();
    return text != nullptr ? text : "";
  }

  const acl::Table& acl = host::table();
  acl::aclError start_code = 0;
};

inline host::Reason last_reason() { return host::last_cause().reason; }

}  // namespace devshare::test
