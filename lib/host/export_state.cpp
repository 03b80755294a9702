// SPDX-License-Identifier: Apache-2.0
#include "export_state.hpp"

#include "peer_identity.hpp"
#include "profile.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

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

acl::aclError check_pid_count(std::size_t count) {
  if (count == 0) return refuse(code::rt_param_invalid, Reason::bad_argument, "num is 0");
  constexpr std::size_t most = acl::max_import_pids_per_call;
  if (count <= most) return code::success;
  return refuse(code::rt_param_invalid, Cause{.reason = Reason::too_many_pids, .needed = count, .available = most},
                fmt::format("{} pids in one call: {} at most, call again for the others (R16)", count, most));
}

acl::aclError check_server_pids(std::span<const acl::aclrtServerPid> servers) {
  if (servers.empty()) return refuse(code::rt_param_invalid, Reason::bad_argument, "num is 0");
  for (const acl::aclrtServerPid& server : servers) {
    if (server.pid == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "serverPids[].pid is null");
    if (server.num != 1) {
      return refuse(code::rt_param_invalid, Reason::bad_argument,
                    fmt::format("an entry of serverPids has {} pids: each must have one", server.num));
    }
  }
  return code::success;
}

acl::aclError admit_pids(ExportSession& session, const Whitelist& list, std::span<const std::int32_t> pids,
                         Whitelist* admitted) {
  const std::size_t most = profile().product == Product::p950 ? 65'535 : 32'768;
  const std::int32_t own = bare_pid();
  std::vector<std::int32_t> numbers;
  std::size_t fresh = 0;
  for (const std::int32_t number : pids) {
    if (number == 0 || number == own) continue;  // nobody, and the exporter itself
    const bool named_before = std::find(numbers.begin(), numbers.end(), number) != numbers.end();
    if (!named_before && !list.contains(number)) ++fresh;
    numbers.push_back(number);
  }
  if (numbers.empty()) {
    return refuse(code::rt_drv_internal, Reason::bad_argument,
                  "no pid is left once 0 and the exporter's own are taken out");
  }
  if (list.size() + fresh > most) {
    return refuse(code::rt_drv_internal, Cause{.reason = Reason::key_limit, .available = most},
                  fmt::format("the key lists {} pids, and with {} more they are more than it can list: {}", list.size(),
                              fresh, most));
  }
  if (!admitted->admit(numbers, session.directory())) return refuse_export_descriptors(EMFILE);
  return code::success;
}

bool only_on_its_way(ExportState& all, const MemoryName& memory) {
  if (all.session != nullptr) return all.session->server().only_on_its_way(memory);
  const auto& left = all.left_on_their_way;
  return std::find(left.begin(), left.end(), memory) != left.end();
}

acl::aclError need_session(ExportState& all) {
  if (all.session != nullptr) return code::success;
  all.left_on_their_way.clear();
  const int error = ExportSession::start(all.mutex, &all.session);
  return error != 0 ? refuse_start(error) : code::success;
}

}  // namespace devshare::host
