// SPDX-License-Identifier: Apache-2.0
// Sharing by key under attack: tickets that somebody has written himself, descriptors that run out at every step, and
// an exporter that becomes another program. Nobody gets more than a key gives, and what is refused leaves nothing
// behind.
#include "support/descriptors.hpp"
#include "support/few_descriptors.hpp"
#include "support/sharing.hpp"
#include "support/soon.hpp"

#include <sharing/ticket_codec.hpp>

#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t KiB = 1024;

// A ticket of somebody who knows the form and makes the sum right.
ReceivedTicket forged(const Party& b, const ReceivedTicket& honest,
                      const std::function<void(detail::TicketFields&)>& lie) {
  detail::TicketFields fields = honest.fields();
  lie(fields);
  const TicketBytes bytes = detail::encode_ticket(fields);
  return b.me.must(ReceivedTicket::decode({bytes.data(), bytes.size()}), "it is well-formed");
}

// With none, one, two... descriptors left: `attempt` says whether it succeeded, and takes back what it made. A refusal
// is for want of descriptors and keeps none; with enough of them it works.
void with_ever_more_descriptors(const Party& party, std::string_view what,
                                const std::function<Result<void>()>& attempt) {
  constexpr std::size_t enough = 12;
  std::size_t refusals = 0;
  bool done = false;
  for (std::size_t left = 0; left <= enough; ++left) {
    const std::size_t before = count_descriptors();
    Result<void> result = [&] {
      const FewDescriptors few(left);
      return attempt();
    }();
    done = static_cast<bool>(result);
    if (done) continue;  // may keep some for its process: a connection, a thread
    ++refusals;
    party.me.expect_equal(name_of(result.error().kind()), name_of(Errc::fd_limit),
                          fmt::format("{} with {} descriptors left: {}", what, left, in_words(result.error())));
    party.me.expect_equal(count_descriptors(), before, fmt::format("{}: a refusal keeps no descriptor", what));
  }
  party.me.expect(refusals > 0, fmt::format("{} needs a descriptor", what));
  party.me.expect(done, fmt::format("{} works with {}", what, enough));
}

}  // namespace

TEST_CASE("R13 R20 a forged ticket gives no more than the key that is in it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto neighbour = a.allocate(pattern(4 * KiB, 9));
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key, Slice{0, 16});
    me.pause_until("B", "done");
    me.expect(a.read(neighbour.bytes()) == pattern(4 * KiB, 9), "what was not exported is as it was");
    me.must(std::move(neighbour).close(), "A frees");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket honest = b.ticket_from("A");
    const auto longer = forged(b, honest, [](auto& fields) { fields.slice_size = fields.block_size = 1 << 20; });
    {
      const ImportedMapping mapping = b.import(longer);
      Bytes bytes(1 << 20);
      b.refused(copy_to_host(b.device, bytes, mapping.bytes()),
                {Errc::out_of_range, code::rt_drv_internal, Reason::out_of_bounds}, "a read past the block");
      b.refused(copy_to_device(b.device, mapping.bytes(), bytes),
                {Errc::out_of_range, code::rt_drv_internal, Reason::out_of_bounds}, "a write past the block");
      b.refused(fill(b.device, mapping.bytes().last(16), std::byte{1}),
                {Errc::invalid_argument, code::rt_drv_internal, Reason::not_device_memory}, "a fill far behind it");
      me.expect(!host::view(mapping.bytes()), "a view past the block");
      me.expect(b.read(mapping.bytes().first(4 * KiB)) == pattern(4 * KiB), "the block itself is the key's to read");
    }
    const auto renamed = forged(b, honest, [](auto& fields) { fields.nonce[0] ^= std::byte{1}; });
    ImportedMapping mapping = b.import(honest);
    b.refused(ImportedMapping::open(renamed, b.device), {Errc::stale_token}, "one key, said to be of another export");
    me.must(std::move(mapping).close(), "B closes");
    const auto of_nobody = forged(b, honest, [](auto& fields) { fields.payload[20] ^= std::byte{1}; });
    b.refused(ImportedMapping::open(of_nobody, b.device),
              {Errc::stale_token, code::rt_drv_internal, Reason::unknown_key}, "a key with another secret");
    const auto from_elsewhere = forged(b, honest, [](auto& fields) { fields.exporter.boot_id[0] ^= std::byte{1}; });
    b.refused(ImportedMapping::open(from_elsewhere, b.device), {Errc::different_host}, "a ticket of another machine");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("R42 a ticket that lies about its device gets no copy that the rule forbids") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports from device 0");
    a.share_with("B", key);
    me.pause_until("B", "done");
    me.expect(a.read(key.bytes()) == pattern(4 * KiB), "A's bytes are as they were");
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    b.introduce_myself_to("A");
    const ReceivedTicket honest = b.ticket_from("A");
    ImportedMapping mapping = b.import(forged(b, honest, [](auto& fields) { fields.owner_device = 1; }));
    const Refusal forbidden{Errc::cross_device_copy, code::rt_feature_not_support, Reason::cross_device_copy};
    Bytes bytes(4 * KiB);
    b.refused(copy_to_host(b.device, bytes, mapping.bytes()), forbidden, "the runtime knows better, to the host");
    b.refused(copy_to_device(b.device, mapping.bytes(), bytes), forbidden, "and from it");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("B053 whichever step finds no descriptor is refused, keeps none, and works when there are some") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    with_ever_more_descriptors(a, "an allocation", [&]() -> Result<void> {
      DEVSHARE_TRY(memory, DeviceMemory::allocate(a.device, 4 * KiB));
      return std::move(memory).close();
    });
    DeviceMemory memory = a.allocate(pattern(4 * KiB));
    with_ever_more_descriptors(a, "the first export", [&]() -> Result<void> {
      auto key = export_key(std::move(memory));
      if (!key) {
        const Error why = key.error().error();
        memory = std::move(key).error().take_back();
        return why;
      }
      auto back = (*std::move(key)).close();
      if (!back) return back.error().error();
      memory = *std::move(back);
      return {};
    });
    a.me.expect(a.read(memory.bytes()) == pattern(4 * KiB), "the memory came through all of it");
    auto key = me.must(export_key(std::move(memory)), "A exports");
    const BarePid b = a.pid_of("B");
    with_ever_more_descriptors(a, "an admission", [&]() -> Result<void> {
      DEVSHARE_TRY(ticket, key.admit(b));
      (void)ticket;
      return {};
    });
    a.send("B", me.must(key.admit(b), "B is admitted"));
    me.pause_until("B", "done");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    with_ever_more_descriptors(b, "an import", [&]() -> Result<void> {
      DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, b.device));
      return std::move(mapping).close();
    });
    ImportedMapping mapping = b.import(ticket);
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("R18 R20 an exporter that becomes another program is gone, for who has imported and for who comes") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto key = me.must(export_key(a.allocate(pattern(4 * KiB))), "A exports");
    a.share_with("B", key);
    a.share_with("C", key);
    me.pause_until("B", "imported");
    me.step("becomes another");
    me.exec({"sleep", "60"});
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect(b.read(mapping.bytes()) == pattern(4 * KiB), "B reads");
    me.step("imported");
    me.pause_until("A", "becomes another");
    me.expect(soon([&] { return !mapping.check(); }), "B is told");
    b.refused(mapping.check(), {Errc::exporter_gone}, "that the exporter is gone, although its process is not");
    Bytes bytes(4 * KiB);
    b.refused(copy_to_host(b.device, bytes, mapping.bytes()),
              {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "nothing is read any more");
    me.must(std::move(mapping).close(), "B closes");
    b.leave();
    me.step("told");
  });
  story.actor("C", [](Actor& me) {
    const Party c(me);
    c.introduce_myself_to("A");
    const ReceivedTicket ticket = c.ticket_from("A");
    me.pause_until("B", "told");
    c.refused(ImportedMapping::open(ticket, c.device),
              {Errc::exporter_gone, code::rt_drv_internal, Reason::exporter_gone}, "C comes too late");
    c.leave();
    me.step("done");
  });
  story.kill("A", at("C", "done"));
  story.run();
}
