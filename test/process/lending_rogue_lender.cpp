// SPDX-License-Identifier: Apache-2.0
// A borrower whose lender is none: whatever it says, when it hangs up, and if it says nothing at all, borrowing ends
// within its deadline with a typed error, and nothing is left behind.
#include "lending.hpp"
#include "raw_peer.hpp"

#include "core/octets.hpp"
#include "sharing/ticket_codec.hpp"

#include <csignal>
#include <functional>
#include <random>
#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using detail::encode;

namespace {

constexpr std::size_t size = 4096;
constexpr std::uint32_t never_asked_for = 4711;

// A lender that does with each connection what its script says, one after the other, until the script of the last has
// been played.
struct Script {
  std::string name;
  std::function<void(const RawPeer&)> play;
  Errc expected;
};

RawPeer listen_at(Actor& me, const Endpoint& endpoint) {
  RawPeer socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const detail::Address address = detail::address_of(endpoint);
  me.expect(::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0,
            "it has the name");
  me.expect(::listen(socket.fd(), 64) == 0, "and listens");
  return socket;
}

Message lent(std::uint32_t request, std::uint64_t lease, const detail::TicketFields& fields) {
  Message message = message_of(MessageType::lent, request, lease);
  message.generation = 1;
  message.ticket = detail::encode_ticket(fields).storage;
  return message;
}

// A ticket as it should be, of a key that never was.
detail::TicketFields forged() {
  detail::TicketFields fields;
  fields.mechanism = Mechanism::by_key;
  fields.access = AccessMode::read_write;
  fields.payload_size = acl::ipc_key_size;
  fields.owner_device = 0;
  fields.block_size = fields.slice_size = size;
  fields.exporter = {.boot_id = {std::byte{1}}, .pid_namespace = 1, .pid = 1, .start_time = 1};
  for (std::size_t i = 0; i < acl::ipc_key_size - 1; ++i) fields.payload[i] = std::byte{'7'};
  return fields;
}

void welcome(const RawPeer& peer) {
  (void)peer.receive(true);
  (void)peer.introduce(message_of(MessageType::welcome));
}
// The number of the request that the borrower makes.
std::uint32_t request_of(const RawPeer& peer) {
  const auto message = peer.receive(true);
  return message ? message->request : 0;
}
// Until the borrower hangs up.
void listen_on(const RawPeer& peer) {
  while (peer.receive(true)) continue;
}

std::vector<Script> scripts() {
  const auto says = [](MessageBytes bytes, std::size_t length) {
    return [bytes, length](const RawPeer& peer) {
      (void)peer.receive(true);
      std::vector<std::byte> said(bytes.bytes().begin(), bytes.bytes().end());
      said.resize(length);
      (void)peer.send(said);
      listen_on(peer);
    };
  };
  const MessageBytes right = encode(message_of(MessageType::welcome));
  MessageBytes version = right;
  version.storage[4] = std::byte{9};
  MessageBytes bent = right;
  bent.storage[16] ^= std::byte{1};
  const auto answers = [](std::function<void(const RawPeer&, std::uint32_t)> answer) {
    return [answer](const RawPeer& peer) {
      welcome(peer);
      answer(peer, request_of(peer));
      listen_on(peer);
    };
  };
  return {
      {"hangs up at once", [](const RawPeer&) {}, Errc::exporter_gone},
      {"hangs up after hello", [](const RawPeer& peer) { (void)peer.receive(true); }, Errc::exporter_gone},
      {"says nothing", listen_on, Errc::timed_out},
      {"says something short", says(right, 7), Errc::bad_message},
      {"says something cut off", says(right, right.size - 8), Errc::bad_message},
      {"says something too long", says(right, right.size + 8), Errc::bad_message},
      {"says something huge", says(right, 60'000), Errc::bad_message},
      {"says nothing at length", says(MessageBytes{}, 64), Errc::bad_message},
      {"has another version", says(version, version.size), Errc::version_mismatch},
      {"has a wrong sum", says(bent, bent.size), Errc::bad_message},
      {"says hello itself", says(encode(message_of(MessageType::hello)), right.size), Errc::bad_message},
      {"lends before it is asked",
       [](const RawPeer& peer) {
         (void)peer.receive(true);
         (void)peer.introduce(lent(never_asked_for, 1, forged()));
         listen_on(peer);
       },
       Errc::bad_message},
      {"refuses for a reason that nobody knows",
       [](const RawPeer& peer) {
         (void)peer.receive(true);
         Message refused = message_of(MessageType::refused);
         refused.error = {.kind = 9999, .operation = 9999, .entry = 9999, .reason = 9999};
         (void)peer.introduce(refused);
         listen_on(peer);
       },
       Errc::refused},
      {"hangs up after welcome", welcome, Errc::exporter_gone},
      {"never answers", answers([](const RawPeer&, std::uint32_t) {}), Errc::timed_out},
      {"says that there may be something later", answers([](const RawPeer& peer, std::uint32_t request) {
         (void)peer.send(message_of(MessageType::waiting, request));
       }),
       Errc::no_such_offer},
      {"answers another", answers([](const RawPeer& peer, std::uint32_t request) {
         (void)peer.send(message_of(MessageType::refused, request + 1));
         (void)peer.send(message_of(MessageType::waiting, request + 2));
       }),
       Errc::timed_out},
      {"lends what nobody asked for",
       answers([](const RawPeer& peer, std::uint32_t) { (void)peer.send(lent(never_asked_for, 1, forged())); }),
       Errc::bad_message},
      {"lends no ticket", answers([](const RawPeer& peer, std::uint32_t request) {
         (void)peer.send(message_of(MessageType::lent, request, 1));
       }),
       Errc::malformed_token},
      {"lends a ticket of before a reboot (B021)",
       answers([](const RawPeer& peer, std::uint32_t request) { (void)peer.send(lent(request, 1, forged())); }),
       Errc::different_host},
      {"tells of leases that are none", answers([](const RawPeer& peer, std::uint32_t) {
         for (const auto type : {MessageType::newer, MessageType::wanted_back, MessageType::revoked}) {
           (void)peer.send(message_of(type, 3, UINT64_MAX));
         }
       }),
       Errc::timed_out},
  };
}

}  // namespace

TEST_CASE("a lender that is none costs a borrower its deadline at most, and is told apart by the error (B021)") {
  Story story;
  const auto endpoint = [&](std::size_t i) { return Endpoint::path(story.file(std::to_string(i))); };
  const std::vector<Script> all = scripts();
  story.actor("A", [&](Actor& me) {
    std::vector<RawPeer> sockets;
    std::vector<pollfd> waiting;
    for (std::size_t i = 0; i < all.size(); ++i) sockets.push_back(listen_at(me, endpoint(i)));
    for (const RawPeer& socket : sockets) waiting.push_back({socket.fd(), POLLIN, 0});
    me.step("listens");
    for (bool last = false; !last;) {
      me.expect(::poll(waiting.data(), waiting.size(), 60'000) > 0, "somebody comes");
      for (std::size_t i = 0; i < all.size(); ++i) {
        if ((waiting[i].revents & POLLIN) == 0) continue;
        const RawPeer peer(::accept4(waiting[i].fd, nullptr, nullptr, SOCK_CLOEXEC));
        all[i].play(peer);
        last = last || i + 1 == all.size();
      }
    }
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "listens");
    host::record_calls(true);
    const std::size_t before = count_descriptors();
    for (std::size_t i = 0; i < all.size(); ++i) {
      Result<Lease> refused = borrow(b.device, endpoint(i), "m", 200ms);
      // Its last try may have begun too late to hear that the lender hangs up.
      for (int again = 0; again < 50 && all[i].expected == Errc::exporter_gone; ++again) {
        if (!refused && refused.error().kind() != Errc::timed_out) break;
        refused = borrow(b.device, endpoint(i), "m", 200ms);
      }
      refused_as(me, refused, all[i].expected, fmt::format("a lender that {}", all[i].name));
      me.expect_equal(count_descriptors(), before, fmt::format("no descriptor is left: a lender that {}", all[i].name));
    }
    me.expect_equal(calls_of(acl::Entry::aclrtIpcMemImportByKey), 0U, "the runtime was asked to import none of it");
    b.leave();
  });
  story.run();
}

// A lender with real memory, which says more of it than it should.
namespace {

template <class Say>
void real_lender(Actor& me, const Endpoint& endpoint, Say say) {
  const Party a(me);
  {
    DeviceMemory memory = a.allocate(pattern(size));
    auto key = me.must(export_key(std::move(memory)), "A exports");
    const RawPeer socket = listen_at(me, endpoint);
    me.step("listens");
    const RawPeer peer(::accept4(socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto hello = peer.receive(true);
    me.expect(hello && hello->type == MessageType::hello, "B says hello");
    auto ticket = me.must(key.admit(BarePid::from_peer_message(hello->pid)), "B is admitted");
    (void)peer.introduce(message_of(MessageType::welcome));
    Message right = message_of(MessageType::lent);
    right.generation = 1;
    right.ticket = ticket.bytes().storage;
    say(peer, right);
    me.pause_until("B", "done");
    me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
  }
  a.leave();
}

}  // namespace

TEST_CASE("memory that is lent twice, under one lease or two, is the borrower's once, and ends the connection") {
  for (const bool same_lease : {true, false}) {
    for (const bool same_request : {true, false}) {
      if (!same_lease && !same_request) continue;  // as it should be
      CAPTURE(same_lease, same_request);
      Story story;
      const Endpoint endpoint = Endpoint::path(story.file("lender"));
      story.actor("A", [&](Actor& me) {
        real_lender(me, endpoint, [&](const RawPeer& peer, Message right) {
          const std::uint32_t first = request_of(peer);
          const std::uint32_t second = request_of(peer);
          me.expect(first != 0 && second != 0, "B asks for two");
          right.lease = 5;
          right.request = first;
          me.expect(peer.send(right), "A lends");
          right.lease = same_lease ? 5 : 6;
          right.request = same_request ? first : second;
          me.expect(peer.send(right), "and again");
          listen_on(peer);
        });
      });
      story.actor("B", [&](Actor& me) {
        const Party b(me);
        me.pause_until("A", "listens");
        {
          Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
          const std::vector<std::string_view> names{"one", "two"};
          refused_as(me, borrower.borrow_all(names, 10s), Errc::bad_message, "B borrows two");
          refused_as(me, borrower.borrow("one", 10s), Errc::bad_message, "and nothing any more by this connection");
        }
        b.leave();
        me.step("done");
      });
      story.run();
    }
  }
}

TEST_CASE("what is taken back before it has arrived is a lease that says so; news out of order make nothing younger") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    real_lender(me, endpoint, [&](const RawPeer& peer, Message right) {
      right.request = request_of(peer);
      right.lease = 5;
      right.generation = 7;
      me.expect(peer.send(right), "A lends");
      Message newer = message_of(MessageType::newer, 0, 5);
      for (const std::uint64_t generation : {9UL, 3UL, 0UL, 8UL}) {
        newer.generation = generation;
        me.expect(peer.send(newer), "news");
      }
      me.pause_until("B", "holds");
      me.expect(peer.send(message_of(MessageType::revoked, 0, 5)), "and takes it back");
      me.step("took it back");
      me.pause_until("B", "heard");
      // More than a socket holds: whoever asks in between has an answer all the same.
      for (std::uint64_t i = 0; i < 20'000 && peer.send(newer); ++i) newer.generation = 10 + i;
    });
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "listens");
    {
      Lease lease = me.must(borrow(b.device, endpoint, "m", 10s), "B borrows");
      me.expect(soon([&] { return lease.generation() == 9; }), "the newest counts");
      me.must(lease.check(), "it is there");
      me.step("holds");
      me.pause_until("A", "took it back");
      refused_as(me, lease.check(), Errc::revoked, "it is taken back");
      me.expect(lease.wanted_back(), "which is more than wanted");
      me.step("heard");
      for (int i = 0; i < 1000; ++i) refused_as(me, lease.check(), Errc::revoked, "and stays so");
      me.must(std::move(lease).close(), "B returns it all the same");
    }
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE(
    "well-formed messages of a lender at random are a lease of the right bytes, an error in time, or news of what is "
    "lent") {
  constexpr int connections = 60;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
      const RawPeer socket = listen_at(me, endpoint);
      me.step("listens");
      std::mt19937_64 random(20261130);
      for (int i = 0; i < connections; ++i) {
        const RawPeer peer(::accept4(socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
        const auto hello = peer.receive(true);
        me.expect(hello && hello->type == MessageType::hello, "B says hello");
        const auto ticket = me.must(key.admit(BarePid::from_peer_message(hello->pid)), "B is admitted");
        (void)peer.introduce(message_of(MessageType::welcome));
        std::vector<std::uint32_t> asked;
        std::uint64_t lease = 0;
        const auto seldom = [&] { return random() % 40 == 0; };
        const auto listen = [&](int milliseconds) {
          while (peer.has_word(milliseconds)) {
            const auto heard = peer.receive(true);
            if (!heard) return;
            if (heard->type == MessageType::borrow) asked.push_back(heard->request);
            milliseconds = 0;
          }
        };
        for (int said = 0; said < 200; ++said) {
          listen(asked.empty() ? 5 : 0);
          Message message = message_of(static_cast<MessageType>(7 + random() % 7), 0, 1 + random() % (lease + 2));
          message.generation = seldom() ? random() : random() % 5;
          message.error.kind = static_cast<std::uint16_t>(random() % 64);
          message.error.reason = static_cast<std::uint16_t>(random());
          message.error.operation = static_cast<std::uint16_t>(random());
          message.error.entry = static_cast<std::uint16_t>(random());
          if (message.type == MessageType::lent || message.type == MessageType::refused) {
            if (asked.empty() && !seldom()) continue;  // it would end the connection
            message.request = asked.empty() || seldom() ? static_cast<std::uint32_t>(random() % 8) : asked.back();
            if (!asked.empty()) asked.pop_back();
            if (message.type == MessageType::lent && !seldom()) message.lease = ++lease;
            if (!seldom()) message.ticket = ticket.bytes().storage;
          } else {
            message.request = asked.empty() ? 0 : asked.back();
          }
          if (!peer.send(message)) break;
        }
      }
      me.pause_until("B", "done");
      me.must(me.must(std::move(key).close(), "A closes").close(), "and frees");
    }
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "listens");
    int borrowed = 0;
    int refused = 0;
    std::size_t descriptors = 0;
    for (int i = 0; i < connections; ++i) {
      {
        const auto connected = Borrower::connect(b.device, endpoint, 10s);
        if (!connected) {
          ++refused;
          continue;
        }
        std::vector<Lease> held;
        for (int k = 0; k < 6; ++k) {
          const std::int64_t begin = detail::monotonic_now();
          auto lease = connected->borrow("m", 20ms);
          me.expect(detail::monotonic_now() - begin < 5'000'000'000, "within its deadline, and the import's");
          if (!lease) {
            ++refused;
            continue;
          }
          ++borrowed;
          me.expect(b.read(lease->bytes()) == pattern(size), "what is lent is there");
          (void)lease->wanted_back();
          if (const auto newer = lease->wait_newer(2, 1ms); newer) {
            me.expect(lease->generation() >= *newer, "it goes forward");
          }
          if (const auto checked = lease->check(); !checked) {
            me.expect(checked.error().kind() == Errc::revoked || checked.error().kind() == Errc::exporter_gone,
                      fmt::format("it is over: {}", checked.error()));
          }
          held.push_back(*std::move(lease));
        }
      }
      if (descriptors == 0) descriptors = count_descriptors();
      me.expect(count_descriptors() <= descriptors + 1, "no descriptor is left");
    }
    me.expect(borrowed > 10 && refused > 10, fmt::format("{} were borrowed, {} refused", borrowed, refused));
    b.leave();
    me.step("done");
  });
  story.run();
}

TEST_CASE("a lender's process that has ended is gone, though a child of it keeps the connection open") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const RawPeer socket = listen_at(me, endpoint);
    me.step("listens");
    const RawPeer peer(::accept4(socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    welcome(peer);
    me.expect(request_of(peer) != 0, "B asks");
    const pid_t child = ::fork();
    if (child == 0) {
      ::setpgid(0, 0);  // of a group of its own, which does not end with A
      for (int fd = 0; fd < 1024; ++fd) {
        if (fd != peer.fd()) ::close(fd);
      }
      ::alarm(120);
      for (;;) ::pause();
    }
    me.send("B", child);
    me.step("has a child");
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    me.pause_until("A", "listens");
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects");
      refused_as(me, borrower.borrow("m", 40s), Errc::exporter_gone, "nobody will answer");
    }
    const auto child = me.receive<pid_t>("A");
    me.expect(::kill(child, 0) == 0, "the child is there still");
    ::kill(child, SIGKILL);
    b.leave();
  });
  story.run();
}

TEST_CASE("a socket that keeps no records apart is no lender, and no place for one") {
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    CAPTURE(type);
    Story story;
    const Endpoint endpoint = Endpoint::path(story.file("lender"));
    story.actor("A", [&](Actor& me) {
      const Party a(me);
      detail::UniqueFd other(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
      const detail::Address address = detail::address_of(endpoint);
      me.expect(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address.name), address.size) == 0,
                "it is bound");
      if (type == SOCK_STREAM) me.expect(::listen(other.get(), 4) == 0, "and listens");
      refused_as(me, borrow(a.device, endpoint, "m", 10s), Errc::bad_message, "what is there is no lender");
      refused_as(me, Lender::at(a.runtime, endpoint), Errc::endpoint_in_use, "and in its place there can be none");
      int pair[2];
      me.expect(::socketpair(AF_UNIX, type, 0, pair) == 0, "nor is a pair of these");
      refused_as(me, Lender::at(a.runtime, Endpoint::descriptor(pair[0])), Errc::invalid_argument, "for a lender");
      refused_as(me, borrow(a.device, Endpoint::descriptor(pair[1]), "m", 10s), Errc::invalid_argument,
                 "or a borrower");
      ::close(pair[0]);
      ::close(pair[1]);
      other = {};
      a.leave();
    });
    story.run();
  }
}
