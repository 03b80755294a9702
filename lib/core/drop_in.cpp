// SPDX-License-Identifier: Apache-2.0
#include "drop_in.hpp"

#include "../host/failure.hpp"
#include "../host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>

#include <atomic>
#include <string>

#include <dlfcn.h>

namespace devshare::detail {
namespace {

std::atomic<const void*> init_of_drop_in{nullptr};

}  // namespace

const acl::Table& join_as_drop_in(const void* its_init) noexcept {
  init_of_drop_in = its_init;
  host::note_chosen();
  return host::table();
}

acl::aclError not_implemented(const char* call) noexcept {
  host::call_begins();
  const acl::aclError code = host::refuse(acl::code::rt_feature_not_support, Reason::unsupported,
                                          std::string(call) + " is not implemented by the host runtime");
  host::call_ends(acl::Entry::none, code);
  return code;
}

bool is_drop_in(void* library) noexcept {
  const void* const init = init_of_drop_in;
  return init != nullptr && ::dlsym(library, "aclInit") == init;
}

}  // namespace devshare::detail
