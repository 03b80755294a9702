// SPDX-License-Identifier: Apache-2.0
// Who may import a key: numbers, and the process that each stood for when it was admitted (R13 to R15).
#pragma once

#include "peer_identity.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace devshare::host {

class Whitelist {
 public:
  enum class Verdict : std::uint8_t {
    admitted,
    not_listed,
    listed_too_early,   // its number was listed while another process or none had it: the start-time guard (R15)
    foreign_namespace,  // listed by a plain pid, which an exporter in a nested pid namespace cannot check
  };

  // Lists a number for the process it stands for now; `directory` looks plain pids up. A number without a live process
  // is listed for nobody. Listing a number again is how it comes to stand for a newer process.
  // False when no descriptor was left for looking it up: then nothing changed.
  [[nodiscard]] bool admit(std::int32_t number, ProcessDirectory& directory);
  // The same of several: all of them, or none.
  [[nodiscard]] bool admit(std::span<const std::int32_t> numbers, ProcessDirectory& directory);
  // Lists what another list has.
  void take_over(Whitelist&& other);

  // `claimed` is the number that the peer says it goes by. It lets nobody in; it only tells why not.
  Verdict judge(const Peer& peer, std::int32_t claimed) const noexcept;

  bool contains(std::int32_t number) const noexcept;
  std::size_t size() const noexcept { return listed_.size(); }
  std::int32_t any() const noexcept;  // one of the numbers, 0 when there is none

 private:
  // By number without the offset of this machine. An empty identity is nobody's.
  std::unordered_map<std::int64_t, ProcessIdentity> listed_;
};

}  // namespace devshare::host
