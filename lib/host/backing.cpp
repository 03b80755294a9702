// SPDX-License-Identifier: Apache-2.0
#include "backing.hpp"

#include "block.hpp"
#include "failure.hpp"
#include "machine_pages.hpp"
#include "profile.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace devshare::host {
namespace {

std::string words_of(int error) { return std::generic_category().message(error); }

acl::aclError no_descriptor(int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  Cause cause{.reason = Reason::descriptor_limit, .system_errno = error};
  if (error == ENFILE) {
    return refuse(acl::code::rt_memory_allocation, cause, "the whole system is out of file descriptors (ENFILE)");
  }
  cause.needed = limit.rlim_cur;  // the kernel says so only when every number below the limit is taken
  cause.available = limit.rlim_cur;
  return refuse(acl::code::rt_memory_allocation, cause,
                fmt::format("all {} file descriptors of RLIMIT_NOFILE are in use and device memory takes one for each "
                            "allocation: raise the limit, or set DEVSHARE_HOST_RAISE_NOFILE=1",
                            limit.rlim_cur));
}

acl::aclError backend_unavailable(std::string_view what, int error) {
  return refuse(acl::code::rt_memory_allocation, {.reason = Reason::backend_unavailable, .system_errno = error},
                fmt::format("{} failed: {}; a sandbox or an old kernel forbids what device memory is made of. "
                            "DEVSHARE_HOST_FALLBACK=allow permits memory that cannot be sealed",
                            what, words_of(error)));
}

acl::aclError not_made(std::string_view where, std::uint64_t bytes, int error) {
  return refuse(acl::code::rt_memory_allocation, {.reason = Reason::no_space, .system_errno = error, .needed = bytes},
                fmt::format("{} bytes of device memory cannot be made {}: {}", bytes, where, words_of(error)));
}

// Opens by `open`, which returns a descriptor or -1. A full table gets one that an import can do without, if any.
template <class Open>
UniqueFd open_with_room(Open open) {
  for (;;) {
    const int descriptor = open();
    if (descriptor >= 0 || errno != EMFILE) return UniqueFd(descriptor);
    if (!release_cold_descriptor()) {
      errno = EMFILE;
      return {};
    }
  }
}

bool table_is_full(int error) { return error == EMFILE || error == ENFILE; }

// A file that has no name: nothing of it is left behind, however the process ends.
UniqueFd open_unlinked(const std::string& directory) {
  return open_with_room([&] {
    // O_EXCL: nobody can give it a name later, not even through /proc.
    const int unnamed = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return unnamed;
    std::string name = directory + "/devshare-XXXXXX";
    const int named = ::mkostemp(name.data(), O_CLOEXEC);
    if (named >= 0) ::unlink(name.c_str());
    return named;
  });
}

acl::aclError make_in_directory(const std::string& directory, std::uint64_t bytes, Backing* out) {
  UniqueFd file = open_unlinked(directory);
  if (!file) {
    if (table_is_full(errno)) return no_descriptor(errno);
    return backend_unavailable("making a file in " + directory, errno);
  }
  const int error = reserve_file(file.get(), bytes);
  if (error == ENOSPC || error == EDQUOT) {
    file = {};  // gives back what was reserved before the file system was full
    struct statvfs room {};
    ::statvfs(directory.c_str(), &room);
    const std::uint64_t available = std::uint64_t{room.f_bavail} * room.f_frsize;
    return refuse(acl::code::rt_memory_allocation,
                  {.reason = Reason::no_space, .system_errno = error, .needed = bytes, .available = available},
                  fmt::format("{} bytes do not fit in {}, which has {} left", bytes, directory, available));
  }
  if (error != 0) return not_made("in " + directory, bytes, error);
  *out = {.descriptor = std::move(file), .sealed = false, .page_bytes = normal_page_bytes(), .populated = true};
  return 0;
}

// The first place that can be written, for files that never have a name.
std::string fallback_directory() {
  for (const char* variable : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* const directory = std::getenv(variable);
    if (directory != nullptr && *directory == '/' && ::access(directory, W_OK | X_OK) == 0) return directory;
  }
  return ::access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
}

acl::aclError make_fallback(std::uint64_t bytes, Backing* out) {
  const int error = make_unsealed(bytes, &out->descriptor);
  out->sealed = false;
  if (error == 0) return 0;
  return table_is_full(error) ? no_descriptor(error) : not_made("without seals", bytes, error);
}

acl::aclError make_memfd(std::uint64_t bytes, Backing* out) {
  const bool fallback_allowed = profile().backing_fallback_allowed;
  UniqueFd memory = open_with_room([] { return ::memfd_create("devshare", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (!memory) {
    const int error = errno;
    if (table_is_full(error)) return no_descriptor(error);
    return fallback_allowed ? make_fallback(bytes, out) : backend_unavailable("memfd_create", error);
  }
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return not_made("as a memfd", bytes, errno);
  const bool sealed = ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
  if (!sealed && !fallback_allowed) return backend_unavailable("F_ADD_SEALS", errno);
  *out = {.descriptor = std::move(memory), .sealed = sealed};
  return 0;
}

bool is_full(int error) { return error == ENOSPC || error == ENOMEM || error == EDQUOT; }

}  // namespace

void empty_file(int descriptor, std::uint64_t bytes) noexcept {
  static_cast<void>(::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)));
}

// Every byte, also where the file system has no fallocate: else the first touch of a page that does not fit would kill
// the process (B047). Little by little: a signal takes back what a call has done, and where signals are frequent a long
// one would never end.
int reserve_file(int descriptor, std::uint64_t bytes) {
  constexpr std::uint64_t step = std::uint64_t{2} << 20;
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t part = std::min(step, bytes - done);
    const int error = ::posix_fallocate(descriptor, static_cast<off_t>(done), static_cast<off_t>(part));
    if (error == EINTR) continue;
    if (error != 0) return error;
    done += part;
  }
  return 0;
}

int make_unsealed(std::uint64_t bytes, UniqueFd* out) {
  if (UniqueFd memory = open_with_room([] { return ::memfd_create("devshare", MFD_CLOEXEC); })) {
    if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) return errno;
    *out = std::move(memory);
    return 0;
  }
  UniqueFd file = open_unlinked(fallback_directory());
  if (!file) return errno;
  if (const int error = reserve_file(file.get(), bytes)) return error;
  *out = std::move(file);
  return 0;
}

acl::aclError make_backing(std::uint64_t bytes, bool populate, Backing* out) {
  const std::string& directory = profile().backing_directory;
  if (!directory.empty()) return make_in_directory(directory, bytes, out);
  if (const acl::aclError refused = make_memfd(bytes, out)) return refused;
  out->page_bytes = normal_page_bytes();
  if (!populate) return 0;
  const int error = reserve_file(out->descriptor.get(), bytes);
  if (is_full(error)) {
    out->descriptor = {};
    return not_made("with all its pages", bytes, error);
  }
  out->populated = error == 0;
  return 0;
}

}  // namespace devshare::host
