// SPDX-License-Identifier: Apache-2.0
// One session of the host runtime in this process: aclInit with the switches a case asks for, aclFinalize at the end.
#pragma once

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/host.hpp>

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace devshare::test {

using Switches = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class HostSession {
 public:
  explicit HostSession(Switches switches = {}) {
    for (const auto& [name, value] : switches) {
      if (!host::set(name, value)) give_up("no such switch", name);
    }
    if (api().aclInit(nullptr) != 0) give_up("aclInit", recent_text());
  }
  ~HostSession() {
    api().aclFinalize();
    host::clear();
    host::unset_all();
  }
  HostSession(const HostSession&) = delete;
  HostSession& operator=(const HostSession&) = delete;

  const acl::Table* operator->() const noexcept { return &api(); }

  static const acl::Table& api() noexcept { return host::table(); }
  static host::Reason reason() noexcept { return host::last_cause().reason; }
  static std::string recent_text() {
    const char* text = api().aclGetRecentErrMsg();
    return text != nullptr ? text : "";
  }

 private:
  [[noreturn]] static void give_up(const char* what, std::string_view detail) {
    std::fprintf(stderr, "HostSession: %s: %.*s\n", what, static_cast<int>(detail.size()), detail.data());
    std::abort();
  }
};

}  // namespace devshare::test
