// SPDX-License-Identifier: Apache-2.0
#include "whitelist.hpp"

#include "profile.hpp"

#include <utility>

namespace devshare::host {
namespace {

std::int64_t without_offset(std::int32_t number) { return std::int64_t{number} - profile().bare_pid_offset; }

bool is_plain_pid(std::int64_t bare) noexcept { return bare > 0 && bare < first_inode_number; }

// In a nested pid namespace a plain pid comes from somebody outside: here it names another process, or none.
bool plain_pids_mean_something() noexcept { return in_initial_pid_namespace() || !pidfd_inodes_differ(); }

}  // namespace

bool Whitelist::admit(std::int32_t number, ProcessDirectory& directory) {
  const std::int64_t bare = without_offset(number);
  ProcessIdentity identity;
  // A number made from an inode names its process for ever: nothing to look up.
  if (is_plain_pid(bare) && plain_pids_mean_something()) {
    const auto outcome = directory.resolve(static_cast<pid_t>(bare), &identity);
    if (outcome == ProcessDirectory::Outcome::no_descriptor) return false;
  }
  listed_[bare] = identity;
  return true;
}

bool Whitelist::admit(std::span<const std::int32_t> numbers, ProcessDirectory& directory) {
  Whitelist more;
  for (const std::int32_t number : numbers) {
    if (!more.admit(number, directory)) return false;
  }
  take_over(std::move(more));
  return true;
}

void Whitelist::take_over(Whitelist&& other) {
  listed_.merge(other.listed_);
  for (const auto& [number, identity] : other.listed_) listed_[number] = identity;  // those that were here already
}

Whitelist::Verdict Whitelist::judge(const Peer& peer, std::int32_t claimed) const noexcept {
  if (peer.identity && pidfd_inodes_differ() && listed_.contains(inode_number(peer.identity))) {
    return Verdict::admitted;
  }
  if (peer.pid > 0 && plain_pids_mean_something()) {
    if (const auto found = listed_.find(peer.pid); found != listed_.end()) {
      return peer.identity && found->second == peer.identity ? Verdict::admitted : Verdict::listed_too_early;
    }
  }
  const std::int64_t bare = without_offset(claimed);
  if (!plain_pids_mean_something() && is_plain_pid(bare) && listed_.contains(bare)) return Verdict::foreign_namespace;
  return Verdict::not_listed;
}

bool Whitelist::contains(std::int32_t number) const noexcept { return listed_.contains(without_offset(number)); }

std::int32_t Whitelist::any() const noexcept {
  return listed_.empty() ? 0 : static_cast<std::int32_t>(listed_.begin()->first + profile().bare_pid_offset);
}

}  // namespace devshare::host
