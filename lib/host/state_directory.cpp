// SPDX-License-Identifier: Apache-2.0
#include "state_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace devshare::host {
namespace {

std::string own_directory() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') return std::string(runtime) + "/devshare";
  return fmt::format("/dev/shm/devshare-{}", ::geteuid());
}

std::string in_words(int error) { return std::generic_category().message(error); }

// Why the open directory cannot be trusted, or "".
std::string distrust(int directory) {
  struct stat info {};
  if (::fstat(directory, &info) != 0) return in_words(errno);
  if (info.st_uid != ::geteuid())
    return fmt::format("it belongs to user {} and not to user {}", info.st_uid, ::geteuid());
  if ((info.st_mode & 077) != 0) return fmt::format("its mode is {:03o}, and must be 700", info.st_mode & 0777);
  return {};
}

}  // namespace

StateDirectory open_state_directory(const std::string& asked) {
  StateDirectory result;
  if (asked == "none") {
    result.refused = "DEVSHARE_HOST_STATE=none";
    return result;
  }
  result.path = asked.empty() ? own_directory() : asked;
  if (::mkdir(result.path.c_str(), 0700) != 0 && errno != EEXIST) {
    result.refused = fmt::format("{} cannot be made: {}", result.path, in_words(errno));
    return result;
  }
  UniqueFd opened(::open(result.path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!opened) {
    const char* const hint = errno == ENOTDIR || errno == ELOOP ? " (a link is not followed)" : "";
    result.refused = fmt::format("{} cannot be opened as a directory: {}{}", result.path, in_words(errno), hint);
    return result;
  }
  if (const std::string why = distrust(opened.get()); !why.empty()) {
    result.refused = fmt::format("{} is not trusted: {}", result.path, why);
    return result;
  }
  result.descriptor = std::move(opened);
  return result;
}

}  // namespace devshare::host
