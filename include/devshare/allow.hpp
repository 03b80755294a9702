// SPDX-License-Identifier: Apache-2.0
// PeerProcess: the process at the other end of a connection, as the kernel names it. Allow: who of them may.
#pragma once

#include <cstdint>

namespace devshare {

// What the kernel vouches for. The pid is what this process sees: 0 for a process of a pid namespace that is not seen
// from here.
struct PeerProcess {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// A policy; a value. Asked once a connection, before anything of the other side is believed. Whoever the policy is,
// who holds no right to the socket itself does not come as far.
class Allow {
 public:
  using Question = bool (*)(const PeerProcess& peer, void* user);

  // Processes of the user of this process. The default.
  static constexpr Allow same_user() noexcept { return Allow(nullptr, nullptr, Rule::same_user); }
  // Every process that can reach the socket; a path then is for all users.
  static constexpr Allow everybody() noexcept { return Allow(nullptr, nullptr, Rule::everybody); }
  // Whoever the program says yes to, on the thread that dispatches (or borrows), with no lock of devshare held; to throw
  // is to say no. A path then is for all users.
  static constexpr Allow ask(Question question, void* user) noexcept { return Allow(question, user, Rule::ask); }
  // The users of a list, which must live as long as the policy is used.
  template <class Users>
  static constexpr Allow users(const Users& list) noexcept {
    return ask(
        [](const PeerProcess& peer, void* user) {
          for (const auto uid : *static_cast<const Users*>(user)) {
            if (static_cast<std::uint32_t>(uid) == peer.uid) return true;
          }
          return false;
        },
        const_cast<Users*>(&list));
  }
  template <class Users>
  static void users(const Users&&) = delete;  // the list would end before it is asked: keep it in a named object

  constexpr bool other_users() const noexcept { return rule_ != Rule::same_user; }
  bool allows(const PeerProcess& peer, std::uint32_t own_user) const {
    if (rule_ == Rule::ask) return question_ != nullptr && question_(peer, user_);
    return rule_ == Rule::everybody || peer.uid == own_user;
  }

 private:
  enum class Rule : std::uint8_t { same_user, everybody, ask };

  constexpr Allow(Question question, void* user, Rule rule) noexcept : question_(question), user_(user), rule_(rule) {}

  Question question_;
  void* user_;
  Rule rule_;
};

}  // namespace devshare
