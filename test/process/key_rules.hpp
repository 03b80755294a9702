// SPDX-License-Identifier: Apache-2.0
// What the stories of the rules of sharing by key have in common: two parties on one product, an exporter that shares
// and waits.
#pragma once

#include "support/sharing.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

namespace devshare::test {

inline constexpr std::size_t KiB = 1024;
inline constexpr std::size_t MiB = 1024 * KiB;

inline constexpr std::array products{"a2", "310p", "950"};

// On 310P memory crosses devices only when it was allocated so (R43); elsewhere it makes no difference.
inline constexpr Placement for_peers{.peer_to_peer = true};

using Part = std::function<void(const Party&)>;

// A story of A and B on one product, B on a device of its own or on A's.
inline void tell(std::string_view product, std::int32_t device_of_b, const Part& part_of_a, const Part& part_of_b) {
  INFO("on " << product);
  Story story;
  story.actor("A", [&](Actor& me) { part_of_a(Party(me, 0, {{"PROFILE", product}})); });
  story.actor("B", [&](Actor& me) { part_of_b(Party(me, device_of_b, {{"PROFILE", product}})); });
  story.run();
}

inline void tell_of_one(std::string_view product, const Part& part) {
  INFO("on " << product);
  Story story;
  story.actor("A", [&](Actor& me) { part(Party(me, 0, {{"PROFILE", product}})); });
  story.run();
}

// A exports, shares with B and waits until B is done.
inline Part exporter(std::size_t size = 4 * KiB) {
  return [size](const Party& a) {
    auto key = a.me.must(export_key(a.allocate(size, for_peers)), "A exports");
    a.share_with("B", key);
    a.me.pause_until("B", "done");
    a.me.must(a.me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.leave();
  };
}

inline ReceivedTicket shared_by_a(const Party& b) {
  b.introduce_myself_to("A");
  return b.ticket_from("A");
}

inline acl::aclError import_by_table(const Party& b, const Key& key, std::uint64_t flags, void** address) {
  b.me.must(b.device.make_current(), "the device is current");
  return api().aclrtIpcMemImportByKey(address, key.text(), flags);
}

}  // namespace devshare::test
