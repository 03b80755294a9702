// SPDX-License-Identifier: Apache-2.0
#include "export_state.hpp"

#include "profile.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace devshare::host {

namespace code = acl::code;

PerProcess<ExportState> export_state;

acl::aclError refuse_export_descriptors(int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return refuse(
      code::rt_memory_allocation,
      Cause{.reason = Reason::descriptor_limit,
            .system_errno = error,
            .needed = limit.rlim_cur,
            .available = limit.rlim_cur},
      fmt::format("no descriptor is left of the {} that this process may have: raise RLIMIT_NOFILE", limit.rlim_cur));
}

namespace {

acl::aclError refuse_start(int error) {
  if (error == EMFILE || error == ENFILE) return refuse_export_descriptors(error);
  const std::string& directory = profile().socket_directory;
  const std::string where = directory.empty() ? "" : fmt::format(" in DEVSHARE_HOST_SOCKET_DIR={}", directory);
  const char* what = error == EACCES && !directory.empty()
                         ? "the directory must belong to this user and be closed to all others (0700)"
                         : std::strerror(error);
  return refuse(code::rt_drv_internal, Cause{.reason = Reason::backend_unavailable, .system_errno = error},
                fmt::format("this process cannot serve what it exports{}: {}", where, what));
}

}  // namespace

acl::aclError need_session(ExportState& all) {
  if (all.session != nullptr) return code::success;
  const int error = ExportSession::start(all.mutex, &all.session);
  return error != 0 ? refuse_start(error) : code::success;
}

}  // namespace devshare::host
