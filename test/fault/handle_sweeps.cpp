// SPDX-License-Identifier: Apache-2.0
// Every call that the library makes in every act of sharing, failed in turn: the act fails with what was asked for, or
// does without, nothing is left of it, and it succeeds when tried again. The same with the table of descriptors full,
// but for so many, and with every bit of tickets and tokens flipped.
#include "support/few_descriptors.hpp"
#include "support/sanitizers.hpp"
#include "support/sharing.hpp"

#include "sharing/ticket_codec.hpp"

#include <devshare/acl/codes.hpp>

#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

using acl::Entry;

constexpr std::size_t block = 2 * 1024 * 1024;
constexpr acl::aclError injected = acl::code::rt_drv_internal;
const Switches a3{{"PROFILE", "a3"}};

using Outcome = std::optional<Error>;

// Ends what can be ended again when the first attempt is refused, and says what that was refused with.
template <class Owner>
Outcome close(Owner owner) {
  auto closed = std::move(owner).close();
  if (closed) return std::nullopt;
  const Error error = detail::plain_error(closed.error());
  if constexpr (requires { std::move(closed).error().take_back(); }) {
    auto back = std::move(closed).error().take_back();
    if (auto again = std::move(back).close(); !again && detail::plain_error(again.error()).kind() != Errc::closed) {
      return detail::plain_error(again.error());
    }
  }
  return error;
}

template <class R>
Error error_in(const R& result) {
  return detail::plain_error(result.error());
}

struct Act {
  std::string name;
  std::function<Outcome()> attempt;  // with everything it makes ended again
};

host::Counters now() {
  host::Counters counters = host::counters();
  counters.connections = 0;  // kept
  counters.peer_grants = 0;  // until the process ends
  return counters;
}

// How often each call is made in an act that succeeds.
std::map<Entry, std::uint32_t> calls_of(const Party& me, const Act& act) {
  host::record_calls(true);
  const Outcome undisturbed = act.attempt();
  me.me.expect(!undisturbed, act.name + " succeeds when nothing fails");
  std::map<Entry, std::uint32_t> calls;
  for (const host::CallRecord& call : host::recorded_calls()) ++calls[call.call];
  host::record_calls(false);
  return calls;
}

// Ends whose refusal leaves nothing to hold: of memory of aclrtMalloc and of imports, which the runtime keeps or
// devshare parks, and of a handle whose mapping has ended already, which is parked.
bool has_nobody_to_come_back_to(const Error& refused) {
  switch (refused.operation()) {
    case Operation::free_memory:
    case Operation::close_import:
    case Operation::free_handle:
      return true;
    default:
      return refused.entry() == Entry::aclrtFreePhysical;
  }
}

void fail_each_call(const Party& me, const Act& act) {
  (void)act.attempt();  // the first one starts what is kept for good
  const auto calls = calls_of(me, act);
  me.me.expect(!calls.empty(), act.name + " makes calls");
  for (const auto& [call, times] : calls) {
    for (std::uint32_t nth = 1; nth <= times; ++nth) {
      const std::string words = fmt::format("{} without call {} of {}", act.name, nth, name_of(call));
      host::Counters expected = now();
      const Parked parked = me.runtime.parked();
      host::fail(call, nth, injected);
      const Outcome outcome = act.attempt();
      host::clear();
      if (outcome) me.me.expect_equal(outcome->acl_code(), injected, words + ": the code is told");
      const std::size_t parked_now = me.runtime.parked().objects - parked.objects;
      me.me.expect(parked_now == 0 || (parked_now == 1 && outcome && has_nobody_to_come_back_to(*outcome)),
                   words + ": nothing else is parked");
      host::Counters left = now();
      left.tokens_exported = expected.tokens_exported = 0;
      left.handles_imported = expected.handles_imported = 0;
      if (outcome && has_nobody_to_come_back_to(*outcome)) expected = left;
      me.me.expect(left == expected, words + ": nothing is left: " + host::in_words(left));
      const Outcome again = act.attempt();
      me.me.expect(!again, words + ": tried again it succeeds");
    }
  }
}

// The acts of a process alone.
template <class K>
Act export_act(const Party& a) {
  return {fmt::format("export as {}", name_of(K::mechanism)), [&a]() -> Outcome {
            auto memory = allocate_for<K>(a.device, block);
            if (!memory) return error_in(memory);
            auto exported = export_for<K>(*std::move(memory));
            if (!exported) {
              const Error error = error_in(exported);
              (void)close(std::move(exported).error().take_back());
              return error;
            }
            auto token = *std::move(exported);
            Outcome outcome;
            const auto ticket = token.admit(BarePid::from_peer_message(1));
            if (!ticket) outcome = error_in(ticket);
            auto ended = std::move(token).close();
            if (!ended) {
              outcome = error_in(ended);
              ended = std::move(ended).error().take_back().close();
              if (!ended) return error_in(ended);
            }
            const Outcome freed = close(*std::move(ended));
            return outcome ? outcome : freed;
          }};
}

std::vector<Act> acts_alone(const Party& a) {
  const auto handle = [&a] { return PhysicalHandle::allocate(a.device, block); };
  return {
      {"allocate and free",
       [=]() -> Outcome {
         auto memory = handle();
         return memory ? close(*std::move(memory)) : error_in(memory);
       }},
      {"reserve and release",
       [&a]() -> Outcome {
         auto range = AddressReservation::reserve(a.device, block);
         return range ? close(*std::move(range)) : error_in(range);
       }},
      {"map two handles",
       [&a, handle]() -> Outcome {
         auto reserved = AddressReservation::reserve(a.device, 2 * block);
         if (!reserved) return error_in(reserved);
         AddressReservation range = *std::move(reserved);
         auto first = handle();
         if (!first) {
           (void)close(std::move(range));
           return error_in(first);
         }
         auto mapped = std::move(range).map(*std::move(first));
         if (!mapped) {
           const Error error = error_in(mapped);
           auto back = std::move(mapped).error().take_back();
           (void)close(std::move(back.range));
           (void)close(std::move(back.handle));
           return error;
         }
         Mapping mapping = *std::move(mapped);
         auto second = handle();
         if (!second) {
           (void)close(std::move(mapping));
           return error_in(second);
         }
         Outcome outcome;
         if (auto extended = mapping.extend(*std::move(second)); !extended) {
           outcome = error_in(extended);
           (void)close(std::move(extended).error().take_back());
         }
         const Outcome closed = close(std::move(mapping));
         return outcome ? outcome : closed;
       }},
      {"sleep and wake",
       [handle]() -> Outcome {
         auto memory = handle();
         if (!memory) return error_in(memory);
         auto mapped = Mapping::of(*std::move(memory));
         if (!mapped) {
           const Error error = error_in(mapped);
           (void)close(std::move(mapped).error().take_back());
           return error;
         }
         Mapping mapping = *std::move(mapped);
         Outcome outcome;
         const auto slept = mapping.release_backing();
         if (!slept) outcome = error_in(slept);
         if (slept) {
           if (auto woken = mapping.restore(); !woken) outcome = error_in(woken);
         }
         const Outcome closed = close(std::move(mapping));
         return outcome ? outcome : closed;
       }},
      {"register host memory",
       [&a]() -> Outcome {
         alignas(4096) static std::byte memory[8192];
         auto registered = HostRegistration::of(a.device, memory);
         if (!registered) return error_in(registered);
         auto closed = (*std::move(registered)).close();
         if (closed) return std::nullopt;
         return error_in(closed);
       }},
      export_act<v1>(a),
      export_act<v2>(a),
      export_act<fabric>(a),
  };
}

std::vector<Act> acts_of_importer(const Party& b, const ReceivedTicket& ticket) {
  return {
      {"import and close",
       [&b, ticket]() -> Outcome {
         auto mapping = ImportedMapping::open(ticket, b.device);
         return mapping ? close(*std::move(mapping)) : error_in(mapping);
       }},
      {"import a handle and map it",
       [&b, ticket]() -> Outcome {
         auto opened = ImportedHandle::open(ticket, b.device);
         if (!opened) return error_in(opened);
         ImportedHandle handle = *std::move(opened);
         auto range = AddressReservation::reserve(b.device, 2 * block);
         if (!range) {
           (void)close(std::move(handle));
           return error_in(range);
         }
         auto mapped = (*std::move(range)).map(std::move(handle));
         if (!mapped) {
           const Error error = error_in(mapped);
           auto back = std::move(mapped).error().take_back();
           (void)close(std::move(back.range));
           (void)close(std::move(back.handle));
           return error;
         }
         return close(*std::move(mapped));
       }},
  };
}

// An exporter of one block by K that nobody needs to be admitted to, and an importer.
template <class K>
void with_importer(const std::function<void(const Party&, const ReceivedTicket&)>& part) {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, a3);
    auto token = me.must(export_for_unrestricted<K>(me.must(allocate_for<K>(a.device, block), "memory")), "exported");
    a.write(token.bytes(), pattern(block));
    a.send("B", me.must(token.ticket(), "for everybody"));
    me.pause_until("B", "done");
    me.must(me.must(std::move(token).close(), "it ends").close(), "and is freed");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 1, a3);
    part(b, b.ticket_from("A"));
    me.step("done");
  });
  story.run();
}

// --- descriptors ---

constexpr std::size_t most_free = 11;

// Without descriptors an act succeeds or says fd_limit, and leaves nothing.
void starve(const Party& me, const Act& act, std::size_t free) {
  const std::string words = fmt::format("{} with {} descriptors", act.name, free);
  const host::Counters before = now();
  {
    const FewDescriptors few(free);
    const Outcome outcome = act.attempt();
    if (outcome) {
      me.me.expect(outcome->kind() == Errc::fd_limit, words + ": it says why: " + to_string(*outcome));
    }
  }
  host::Counters left = now();
  left.tokens_exported = before.tokens_exported;
  me.me.expect(left == before, words + ": nothing is left: " + host::in_words(left));
  const Outcome again = act.attempt();
  me.me.expect(!again, words + ": tried again it succeeds");
}

// --- bits ---

ReceivedTicket with_payload_bit(const Party& me, const ReceivedTicket& ticket, std::size_t bit) {
  auto fields = ticket.fields();
  fields.payload[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  const TicketBytes bytes = detail::encode_ticket(fields);  // with the checksum of an honest one
  return me.me.must(ReceivedTicket::decode({bytes.data(), bytes.size()}), "it is well formed");
}

}  // namespace

TEST_CASE("B007 every call of every act of one process fails in turn, and nothing is left") {
  Story story(120s);
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, a3);
    for (const Act& act : acts_alone(a)) fail_each_call(a, act);
    fail_each_call(a, export_act<by_key>(a));
  });
  story.run();
}

TEMPLATE_TEST_CASE("B007 every call of an import fails in turn, and nothing is left", "", by_key, v1, v2, fabric) {
  with_importer<TestType>([](const Party& b, const ReceivedTicket& ticket) {
    for (const Act& act : acts_of_importer(b, ticket)) {
      if (std::is_same_v<TestType, by_key> && act.name != "import and close") continue;
      fail_each_call(b, act);
    }
  });
}

// UndefinedBehaviorSanitizer finds out through a pipe whether an object is of its type.
constexpr const char* needs_a_pipe = "a sanitizer needs descriptors of its own, and takes what it lacks for a fault";

TEST_CASE("B053 with hardly a descriptor left every act of one process says so or succeeds, and leaves nothing") {
  if (sees_leaks()) DEVSHARE_SKIP(needs_a_pipe);
  for (std::size_t free = 0; free <= most_free; ++free) {
    Story story;
    story.actor("A", [free](Actor& me) {
      const Party a(me, 0, a3);
      for (const Act& act : acts_alone(a)) starve(a, act, free);
    });
    story.run();
  }
}

TEMPLATE_TEST_CASE("B053 with hardly a descriptor left an import says so or succeeds, and leaves nothing", "", by_key,
                   v1, v2, fabric) {
  if (sees_leaks()) DEVSHARE_SKIP(needs_a_pipe);
  for (std::size_t free = 0; free <= most_free; ++free) {
    with_importer<TestType>([free](const Party& b, const ReceivedTicket& ticket) {
      for (const Act& act : acts_of_importer(b, ticket)) {
        if (std::is_same_v<TestType, by_key> && act.name != "import and close") continue;
        starve(b, act, free);
      }
    });
  }
}

TEST_CASE("B053 a runtime that is opened without a descriptor exports under its whole name, or not at all") {
  Story story;
  story.actor("A", [](Actor& me) {
    std::optional<Runtime> runtime;
    {
      const FewDescriptors none(0);
      auto opened = Runtime::open();
      if (opened) runtime = *opened;
      if (!opened) me.expect(opened.error().kind() == Errc::fd_limit, "it says why: " + to_string(opened.error()));
    }
    if (!runtime) runtime = me.must(Runtime::open(), "with descriptors it opens");
    const Device device = me.must(runtime->device(DeviceId{0}), "a device");
    Mapping mapping = me.must(allocate_for<v2>(device, block), "memory");
    for (std::size_t free = 0; free <= most_free; ++free) {
      const FewDescriptors few(free);
      auto exported = export_handle_unrestricted<v2>(std::move(mapping));
      if (!exported) {
        me.expect(exported.error().kind() == Errc::fd_limit, "it says why: " + to_string(exported.error().error()));
        mapping = std::move(exported).error().take_back();
        continue;
      }
      auto token = *std::move(exported);
      const auto ticket = me.must(token.ticket(), "a ticket");
      const auto decoded = me.must(ReceivedTicket::decode({ticket.bytes().data(), ticket_size}), "it can be read");
      const ExporterIdentity& exporter = decoded.exporter();
      me.expect(
          exporter.pid == ::getpid() && exporter.start_time != 0 && exporter.boot_id != ExporterIdentity{}.boot_id,
          "it names its exporter whole");
      mapping = me.must(std::move(token).close(), "it ends");
    }
    me.must(std::move(mapping).close(), "the mapping ends");
  });
  story.run();
}

TEMPLATE_TEST_CASE("B029 a ticket with any of its bits flipped is none", "", by_key, v2, fabric) {
  with_importer<TestType>([](const Party& b, const ReceivedTicket& ticket) {
    const TicketBytes bytes = detail::encode_ticket(ticket.fields());
    for (std::size_t bit = 0; bit < 8 * ticket_size; ++bit) {
      TicketBytes flipped = bytes;
      flipped.storage[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const auto decoded = ReceivedTicket::decode({flipped.data(), flipped.size()});
      if (decoded) b.me.expect(false, fmt::format("bit {} is flipped, and it is a ticket still", bit));
    }
  });
}

TEMPLATE_TEST_CASE("R30 a token with any of its bits flipped opens nothing", "", v1, v2, fabric) {
  with_importer<TestType>([](const Party& b, const ReceivedTicket& ticket) {
    const host::Counters before = now();
    for (std::size_t bit = 0; bit < 8 * ticket.fields().payload_size; ++bit) {
      const auto opened = ImportedMapping::open(with_payload_bit(b, ticket, bit), b.device);
      if (opened) {
        b.me.expect(false, fmt::format("with bit {} flipped something opens", bit));
        continue;
      }
      const Errc kind = opened.error().kind();
      if (kind != Errc::stale_token && kind != Errc::exporter_gone && kind != Errc::invalid_argument) {
        b.me.expect(false, fmt::format("bit {}: {}", bit, to_string(opened.error())));
      }
    }
    b.me.expect(now() == before, "nothing is left of all the attempts: " + host::in_words(now()));
    b.me.must(b.import(ticket).close(), "and the honest ticket opens");
  });
}
