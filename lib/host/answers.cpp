// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include "machine_pages.hpp"
#include "peer_identity.hpp"
#include "profile.hpp"

#include <devshare/acl/codes.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <string>
#include <string_view>

namespace devshare::host {
namespace {

// Which calls go with the tokens of a kind (R31).
std::string_view import_call(TokenKind kind) noexcept {
  return kind == TokenKind::v1 ? "aclrtMemImportFromShareableHandle" : "aclrtMemImportFromShareableHandleV2";
}
std::string_view kind_in_words(TokenKind kind) noexcept {
  switch (kind) {
    case TokenKind::v1:
      return "by aclrtMemExportToShareableHandle";
    case TokenKind::v2:
      return "by aclrtMemExportToShareableHandleV2 as ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT";
    case TokenKind::fabric:
      break;
  }
  return "by aclrtMemExportToShareableHandleV2 as ACL_MEM_SHARE_HANDLE_TYPE_FABRIC";
}

std::string explain(const Reply& reply, Asked asked) {
  const std::string_view what = asked == Asked::token ? "token" : "key";
  switch (reply.reason) {
    case Reason::unknown_key:
      if (asked == Asked::event) return "its creator has no such event: it was destroyed, or the handle was damaged";
      if (asked == Asked::notify) return "its creator has no such notify: it was destroyed, or this is another's key";
      return asked == Asked::key
                 ? "the exporter has no such key: it was closed, or its memory was freed (R18)"
                 : "the exporter has no such token: its handle was freed, or the token was damaged on its way (R30)";
    case Reason::exporter_gone:
      return fmt::format("nobody serves this {0}: its exporter has ended, or the {0} was damaged on its way", what);
    case Reason::timed_out:
      return fmt::format("the exporter did not answer within {} ms", profile().exporter_deadline_ms);
    case Reason::user_refused:
      return "exporter and importer belong to different users";
    case Reason::protocol:
      return "what answered does not speak as the host runtime of this release does";
    case Reason::not_admitted:
      return fmt::format("this process goes by {} and was not admitted: the {} lists {} pid{}{} ({}, R14)", bare_pid(),
                         what, reply.listed_count, reply.listed_count == 1 ? "" : "s",
                         reply.listed_count == 0 ? "" : fmt::format(", {} among them", reply.listed_pid),
                         asked == Asked::token ? "R41" : "R13");
    case Reason::admitted_too_early:
      return fmt::format("pid {} was admitted before this process, which has it now, was started: admit it again (R15)",
                         bare_pid());
    case Reason::foreign_pid_namespace:
      return fmt::format(
          "pid {} was admitted, but the exporter lives in a pid namespace where it cannot check plain "
          "pids: set DEVSHARE_HOST_BARE_PID=inode on both sides",
          bare_pid());
    case Reason::descriptor_limit:
      return reply.code == acl::code::rt_memory_allocation
                 ? fmt::format("no descriptor is left of the {} that this process may have: raise RLIMIT_NOFILE",
                               reply.available)
             : reply.available == 0
                 ? "as many descriptors are on their way between this user's processes as may be: raise RLIMIT_NOFILE"
                 : fmt::format("the exporter serves {} importers at once and has no descriptor for another",
                               reply.available);
    case Reason::other_server:
      return fmt::format(
          "the {} was exported on server {} and this process is on server {}: only a fabric token is known on another "
          "server",
          what, reply.server, profile().server);
    case Reason::wrong_token_kind:
      return fmt::format("the token was exported {}: it goes with {} of the same kind (R31)", kind_in_words(reply.kind),
                         import_call(reply.kind));
    case Reason::not_the_exporter:
      return "the token was exported by another process: only its exporter admits importers (R41)";
    default:
      return "the exporter refused";
  }
}

bool keeps_its_size(const Reply& reply, const UniqueFd& file, const struct stat& status) noexcept {
  if (status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) < reply.offset + reply.size) return false;
  if (reply.unsealed) {
    // Files that cannot be sealed come from runtimes that were told to use them; trusted only by one that was, too.
    return profile().backing_fallback_allowed || !profile().backing_directory.empty();
  }
  constexpr int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & wanted) == wanted;
}

}  // namespace

acl::aclError refuse_answer(const Reply& reply, Asked what) {
  Cause cause;
  cause.reason = reply.reason;
  cause.needed = reply.needed;
  cause.available = reply.reason == Reason::other_server ? reply.server : reply.available;
  if (reply.pid != 0) cause.pid = bare_pid();
  return refuse(reply.code, cause, explain(reply, what));
}

std::uint64_t checked_pages(const Reply& reply, const UniqueFd& file, std::uint64_t* inode) noexcept {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !keeps_its_size(reply, file, status)) return 0;
  if (inode != nullptr) *inode = status.st_ino;
  // Only a file that speaks of large pieces is asked whether it has nothing else.
  if (static_cast<std::uint64_t>(status.st_blksize) <= normal_page_bytes()) return normal_page_bytes();
  const std::uint64_t bytes = page_bytes_of(file.get());
  if (bytes == normal_page_bytes()) return bytes;
  if (bytes > huge_page_bytes) return 0;
  // A handle's memory is mapped at multiples of its own pages, beside others'.
  return reply.op == Op::import_handle && reply.page_size % bytes != 0 ? 0 : bytes;
}

}  // namespace devshare::host
