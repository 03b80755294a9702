// SPDX-License-Identifier: Apache-2.0
// A lender among borrowers that are none: whatever they say, send along or leave unsaid, it goes on serving the others,
// and is left with nothing of theirs.
#include "lending.hpp"
#include "raw_peer.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <random>

#include "core/octets.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

using namespace devshare;
using namespace devshare::test;
using detail::encode;

namespace {

constexpr std::size_t size = 4096;

Message hello() { return message_of(MessageType::hello); }

RawPeer introduced(Actor& me, const Endpoint& endpoint) {
  RawPeer peer = RawPeer::connect(endpoint);
  me.expect(static_cast<bool>(peer), "the endpoint lets anybody connect");
  me.expect(peer.introduce(hello()), "hello");
  me.expect(peer.receive_type() == MessageType::welcome, "welcome");
  return peer;
}

// A lender with one offer, "m", that serves until "R" is done; then it has nothing left.
class Host {
 public:
  Host(Actor& me, const Endpoint& endpoint, Allow allow = Allow::same_user())
      : me_(me),
        party_(me),
        lender_(me.must(Lender::at(party_.runtime, endpoint, told.options(allow)), "A has an endpoint")),
        lent_(me.must(lender_.offer("m", party_.allocate(pattern(size))), "A offers")),
        serving_(me.must(serve(lender_), "a thread serves")),
        descriptors_(count_descriptors()) {}

  const Party& party() const { return party_; }
  Lender& lender() { return lender_; }
  const Lent<DeviceMemory>& lent() const { return lent_; }

  // Once every connection has ended and every lease with it, the lender is what it was.
  void is_left_as_it_was() {
    me_.expect(soon([&] { return me_.must(lent_.holders(), "A looks").empty(); }), "nobody holds anything");
    me_.expect(soon([&] { return count_descriptors() <= descriptors_ + runtime_descriptors(); }),
               fmt::format("no descriptor is left: {} and not {}", count_descriptors(), descriptors_));
  }
  void end() {
    me_.must(me_.must(std::move(lent_).close(10s), "A closes").close(), "and frees");
    me_.must(std::move(serving_).stop(), "the thread ends");
    me_.must(std::move(lender_).close(), "the endpoint is closed");
    party_.leave();
  }

  Told told;

 private:
  // What the runtime has from its first export on, and what it keeps of the processes it was told of.
  static std::size_t runtime_descriptors() { return host::counters().connections + 5 + 3; }

  Actor& me_;
  Party party_;
  Lender lender_;
  Lent<DeviceMemory> lent_;
  Serving serving_;
  std::size_t descriptors_;
};

// A borrower as they should be, which borrows again and again until the rogue is done.
void honest(Actor& me, const Endpoint& endpoint, const std::atomic<bool>* over) {
  const Party b(me);
  do {
    Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "an honest borrower borrows");
    me.expect(b.read(lease.bytes()) == pattern(size), "and reads");
    me.must(std::move(lease).close(), "and returns");
  } while (!over->load());
  b.leave();
}

struct Shared {
  std::atomic<bool> over{false};
  static Shared* make() {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return ::new (memory) Shared;
  }
};

// A, a rogue and an honest borrower, all at once.
void play(const std::function<void(Actor&, const Endpoint&)>& rogue,
          const std::function<void(Actor&, Host&)>& look = {}) {
  Shared& shared = *Shared::make();
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.step("serves");
    me.pause_until_ended("R");
    me.pause_until_ended("B");
    a.is_left_as_it_was();
    if (look) look(me, a);
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("A", "serves");
    rogue(me, endpoint);
    shared.over = true;
  });
  story.actor("B", [&](Actor& me) { honest(me, endpoint, &shared.over); });
  story.run();
  ::munmap(&shared, sizeof shared);
}

MessageBytes with_sum(MessageBytes bytes) {
  detail::Writer(bytes.storage.data() + 16).zeros(8);
  detail::Writer(bytes.storage.data() + 16).number(detail::checksum_of_words(bytes.bytes()));
  return bytes;
}

}  // namespace

TEST_CASE("what no borrower says ends its connection with bad_message or version_mismatch, and nobody else's") {
  std::size_t wrong = 0;
  play(
      [&](Actor& me, const Endpoint& endpoint) {
        std::vector<std::pair<std::vector<std::byte>, Errc>> all;
        const auto add = [&](std::span<const std::byte> bytes, Errc expected = Errc::bad_message) {
          all.emplace_back(std::vector<std::byte>(bytes.begin(), bytes.end()), expected);
        };
        const MessageBytes right = encode(hello());
        for (std::size_t length = 1; length < right.size; ++length) add(right.bytes().first(length));
        std::vector<std::byte> longer(right.bytes().begin(), right.bytes().end());
        for (const std::size_t length :
             {right.size + 1, right.size + 8, std::size_t{512}, std::size_t{513}, std::size_t{60000}}) {
          longer.resize(length);
          add(longer);
        }
        for (std::size_t at = 0; at < right.size; ++at) {  // one bit is wrong
          MessageBytes bent = right;
          bent.storage[at] ^= std::byte{4};
          add(bent.bytes(), at == 4 || at == 5 ? Errc::version_mismatch : Errc::bad_message);
        }
        MessageBytes version = right;
        version.storage[4] = std::byte{2};
        add(with_sum(version).bytes(), Errc::version_mismatch);
        for (unsigned type = 0; type < 20; ++type) {  // right but for the type: everything but hello comes too early
          if (type == 1) continue;
          MessageBytes other = right;
          other.storage[6] = static_cast<std::byte>(type);
          add(with_sum(other).bytes());
          if (type < 2 || type > 13) continue;
          Message message = type == 2 ? request_for("m", 1) : message_of(static_cast<MessageType>(type), 1, 1);
          add(encode(message).bytes());
        }
        Message nobody = hello();
        nobody.pid = -1;
        add(encode(nobody).bytes());
        for (const bool introduce : {false, true}) {
          for (const auto& [bytes, expected] : all) {
            // What is right after hello is none of it but a borrower's messages, which are another case.
            if (introduce && bytes.size() >= 24 && bytes.size() <= 512) {
              Message message;
              if (detail::decode(bytes, true, message) == detail::Decoded::yes && message.type != MessageType::hello)
                continue;
            }
            const RawPeer peer = introduce ? introduced(me, endpoint) : RawPeer::connect(endpoint);
            me.expect(peer.send(bytes), "it is sent");
            const auto last = peer.read_to_the_end();
            me.expect(last && last->type == MessageType::refused && last->request == 0 &&
                          last->error.kind == static_cast<std::uint16_t>(expected),
                      fmt::format("{} bytes are refused as {}", bytes.size(), name_of(expected)));
            ++wrong;
          }
        }
        const RawPeer twice = introduced(me, endpoint);
        me.expect(twice.introduce(hello()), "a second hello");
        const auto last = twice.read_to_the_end();
        me.expect(last && last->type == MessageType::refused, "is refused");
        const RawPeer empty = RawPeer::connect(endpoint);
        me.expect(empty.send(std::span<const std::byte>{}), "an empty record");
        me.expect(!empty.read_to_the_end(), "ends the connection");
        me.expect(wrong > 100, "there was much that was wrong");
        me.give("wrong", wrong + 1);
      },
      [&](Actor& me, Host& a) {
        me.expect(a.told.count(Kind::refused) > 100, "A was told of them");
        for (const Errc error : a.told.errors(Kind::refused)) {
          me.expect(error == Errc::bad_message || error == Errc::version_mismatch, "each by its kind");
        }
      });
}

TEST_CASE("well-formed messages at random, replayed and out of order, are answered or end their connection") {
  play([](Actor& me, const Endpoint& endpoint) {
    std::mt19937_64 random(20261129);
    constexpr std::array<std::uint64_t, 8> odd{0, 1, 4095, 4096, 4097, std::uint64_t{1} << 63, UINT64_MAX, 12345};
    std::vector<Message> said;
    for (int round = 0; round < 40; ++round) {
      RawPeer peer = introduced(me, endpoint);
      int answers = 0;
      for (int i = 0; i < 60; ++i) {
        Message message;
        if (!said.empty() && random() % 4 == 0) {
          message = said[random() % said.size()];  // what was said before, to this or another connection
        } else {
          message = message_of(static_cast<MessageType>(2 + random() % 5), static_cast<std::uint32_t>(random() % 5),
                               random() % 70);
          message.access = random() % 2 == 0 ? AccessMode::read_only : AccessMode::read_write;
          message.may_wait = random() % 2 == 0;
          message.device = static_cast<std::int32_t>(random() % INT32_MAX);
          message.slice = {odd[random() % odd.size()], odd[random() % odd.size()]};
          message.set_name(random() % 2 == 0 ? "m" : std::string(1 + random() % 96, 'x'));
          message.error.kind = static_cast<std::uint16_t>(random());
          message.error.reason = static_cast<std::uint16_t>(random());
          message.error.operation = static_cast<std::uint16_t>(random());
          message.error.entry = static_cast<std::uint16_t>(random());
          said.push_back(message);
        }
        if (!peer.send(message)) break;
        while (peer.has_word(0)) {
          if (!peer.receive()) break;
          ++answers;
        }
      }
      me.expect(peer.send(request_for("m", 99)), "the connection is there still");
      bool lent = false;
      while (!lent) {
        const auto answer = peer.receive();
        if (!answer) break;
        lent = answer->type == MessageType::lent && answer->request == 99;
      }
      me.expect(lent, "and is lent what it asks for");
    }
  });
}

TEST_CASE("descriptors that come with a message are closed, whatever the message is") {
  play([](Actor& me, const Endpoint& endpoint) {
    const MessageBytes right = encode(hello());
    const MessageBytes request = encode(request_for("m", 1));
    std::vector<std::byte> too_long(4000);
    std::vector<RawPeer> kept;
    for (const std::size_t count : {1U, 2U, 253U}) {
      for (const std::span<const std::byte> bytes :
           {right.bytes(), std::span<const std::byte>{}, std::span<const std::byte>(too_long), request.bytes()}) {
        RawPeer peer = RawPeer::connect(endpoint);
        me.expect(peer.send_with_descriptors(bytes, count), "the first message has descriptors");
        if (bytes.data() == right.bytes().data()) {
          me.expect(peer.receive_type() == MessageType::welcome, "which matter to nobody");
          kept.push_back(std::move(peer));
        } else {
          peer.read_to_the_end();
        }
      }
      RawPeer peer = introduced(me, endpoint);
      me.expect(peer.send_with_descriptors(request.bytes(), count), "a later one has");
      me.expect(peer.receive_type() == MessageType::lent, "and is answered");
      kept.push_back(std::move(peer));
    }
  });
}

TEST_CASE("who sends no credentials is known by the kernel all the same, and where it is not, is not let in") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  int pair[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint, Allow::everybody());
    me.step("serves");
    me.pause_until("R", "said");
    ::close(pair[1]);
    Lender in_pair =
        me.must(Lender::at(a.party().runtime, Endpoint::descriptor(pair[0]), a.told.options(Allow::everybody())),
                "A takes over one end");
    const Serving serving = me.must(serve(in_pair), "a thread serves");
    me.pause_until_ended("R");
  });
  story.actor("R", [&](Actor& me) {
    ::close(pair[0]);
    RawPeer inherited(pair[1]);
    me.expect(inherited.send(hello()), "said before anybody asked who says it");
    me.step("said");
    const auto answer = inherited.receive();
    me.expect(answer && answer->type == MessageType::refused &&
                  answer->error.kind == static_cast<std::uint16_t>(Errc::not_permitted),
              "is not listened to, even where everybody may");
    me.pause_until("A", "serves");
    RawPeer early = RawPeer::connect(endpoint);
    me.expect(early.send(hello()), "hello without credentials, perhaps before it is accepted");
    me.expect(early.receive_type() == MessageType::welcome, "the kernel says who");
    me.expect(early.send(request_for("m", 1)), "a request");
    me.expect(early.receive_type() == MessageType::lent, "is answered");
  });
  story.run();
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST_CASE("connections that never speak keep nobody out, and end when their time has come") {
  play([](Actor& me, const Endpoint& endpoint) {
    me.expect(allow_descriptors(1024), "R may have so many");
    std::vector<RawPeer> silent;
    for (int i = 0; i < 300; ++i) silent.push_back(RawPeer::connect(endpoint));
    me.expect(soon([&] {
                return std::count_if(silent.begin(), silent.end(),
                                     [](const RawPeer& peer) { return peer.has_word(0); }) >= 44;
              }),
              "there is room for 256 that have not introduced themselves");
    const RawPeer speaks = introduced(me, endpoint);
    for (const RawPeer& peer : silent) {
      me.expect(peer.has_word(30'000), "a silent one ends");
      me.expect(!peer.receive(), "without a word");
    }
    me.expect(!speaks.has_word(0), "who has spoken stays");
  });
}

TEST_CASE("1,000 connections at once, where a lender may have 256 descriptors, keep nobody out who speaks") {
  Shared& shared = *Shared::make();
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.expect(allow_descriptors(256), "256 descriptors");
    me.step("serves");
    me.pause_until_ended("R");
    me.pause_until_ended("B");
    a.is_left_as_it_was();
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.expect(allow_descriptors(2048), "R may have so many");
    me.pause_until("A", "serves");
    std::vector<RawPeer> silent;
    for (int i = 0; i < 1000; ++i) {
      silent.push_back(RawPeer::connect(endpoint));
      me.expect(static_cast<bool>(silent.back()), "it connects");
    }
    me.step("connected");
    me.pause_until("B", "borrowed");
    shared.over = true;
    me.pause_until_ended("B");
  });
  story.actor("B", [&](Actor& me) {
    me.pause_until("A", "serves");
    const Party b(me);
    for (int i = 0; i < 30; ++i) {
      if (i == 15) me.pause_until("R", "connected");
      Lease lease = me.must(borrow(b.device, endpoint, "m", 30s), "an honest borrower borrows");
      me.must(std::move(lease).close(), "and returns");
    }
    b.leave();
    me.step("borrowed");
  });
  story.run();
  ::munmap(&shared, sizeof shared);
}

TEST_CASE("a lender without descriptors says fd_limit, goes on serving those it has, and lets in again when it can") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.expect(allow_descriptors(128), "128 descriptors");
    me.step("serves");
    me.pause_until_ended("R");
    me.pause_until_ended("B");
    a.is_left_as_it_was();
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("B", "connected");
    std::vector<RawPeer> all;
    std::size_t let_in = 0;
    std::size_t refused = 0;
    for (int i = 0; i < 200; ++i) {
      RawPeer peer = RawPeer::connect(endpoint);
      (void)peer.introduce(hello());
      const auto answer = peer.receive();
      if (answer && answer->type == MessageType::welcome) ++let_in;
      if (answer && answer->type == MessageType::refused) {
        me.expect_equal(answer->error.kind, static_cast<std::uint16_t>(Errc::fd_limit), "why");
        ++refused;
      }
      all.push_back(std::move(peer));
    }
    me.expect(let_in > 20, fmt::format("{} were let in", let_in));
    me.expect_equal(let_in + refused, 200U, "and the others were told");
    me.step("took all");
    me.pause_until("B", "was refused");
  });
  story.actor("B", [&](Actor& me) {
    me.pause_until("A", "serves");
    const Party b(me);
    {
      Borrower borrower = me.must(Borrower::connect(b.device, endpoint, 10s), "B connects in time");
      me.must(me.must(borrower.borrow("m", 10s), "and borrows").close(), "and returns");
      me.step("connected");
      me.pause_until("R", "took all");
      refused_as(me, borrow(b.device, endpoint, "m", 1s), Errc::fd_limit, "nobody else gets in");
      me.must(me.must(borrower.borrow("m", 10s), "but who is in borrows as before").close(), "and returns");
      me.step("was refused");
      me.pause_until_ended("R");
      me.expect(soon([&] { return static_cast<bool>(borrow(b.device, endpoint, "m", 1s)); }),
                "then there is room again");
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("a borrower that asks and never reads loses its connection, and keeps no lease when it is gone") {
  Shared& shared = *Shared::make();
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.step("serves");
    me.pause_until("R", "waits");
    Lent late = me.must(a.lender().offer("late", a.party().allocate(pattern(size))), "A offers it at last");
    me.pause_until("R", "was hung up on");
    me.step("looked");
    me.pause_until_ended("R");
    me.pause_until_ended("B");
    me.must(me.must(std::move(late).close(10s), "nobody holds it").close(), "and frees");
    a.is_left_as_it_was();
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("A", "serves");
    // How many answers nobody needs to read before the lender hangs up.
    std::size_t fits = 0;
    {
      const RawPeer peer = introduced(me, endpoint);
      while (peer.send(request_for("no such", 7))) continue;
      while (peer.receive()) ++fits;
    }
    me.expect(fits > 150, fmt::format("{} answers fit", fits));
    // So many that of 64 offers, waited for and made all at once, only some can be told.
    constexpr std::size_t kept = 256;  // by the lender, beyond what fits
    const RawPeer peer = introduced(me, endpoint);
    for (std::uint32_t i = 0; i < 64; ++i) me.expect(peer.send(request_for("late", i, true)), "it waits");
    for (std::size_t i = 0; i < fits + kept - 64 - 20; ++i) me.expect(peer.send(request_for("no such", 7)), "it asks");
    const RawPeer after = introduced(me, endpoint);
    me.expect(after.send(request_for("no such", 1)) && after.receive(), "A has answered all of that");
    me.step("waits");
    me.expect(soon([&] {
                pollfd end{peer.fd(), 0, 0};
                return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
              }),
              "A hangs up");
    me.step("was hung up on");
    me.pause_until("A", "looked");
    shared.over = true;
  });
  story.actor("B", [&](Actor& me) { honest(me, endpoint, &shared.over); });
  story.run();
  ::munmap(&shared, sizeof shared);
}

TEST_CASE("one connection may wait for 64 offers at once: for more it is told that there are none") {
  play([](Actor& me, const Endpoint& endpoint) {
    const RawPeer peer = introduced(me, endpoint);
    for (std::uint32_t i = 1; i <= 64; ++i) {
      me.expect(peer.send(request_for(fmt::format("late {}", i), i, true)), "it asks for what is not there");
      me.expect(peer.receive_type() == MessageType::waiting, "and may wait");
    }
    me.expect(peer.send(request_for("one more", 65, true)), "it asks for one more");
    const auto refused = peer.receive();
    me.expect(refused && refused->type == MessageType::refused && refused->request == 65 &&
                  refused->error.kind == static_cast<std::uint16_t>(Errc::no_such_offer),
              "and may not");
    me.expect(peer.send(message_of(MessageType::cancel, 7)), "it gives one up");
    me.expect(peer.send(request_for("one more", 66, true)), "and asks again");
    me.expect(peer.receive_type() == MessageType::waiting, "for which there is room");
  });
}

TEST_CASE("connections that never stop talking keep the dispatcher from nothing: it looks at its deadline in between") {
  constexpr std::size_t talkers = 64;
  constexpr std::size_t messages = 100;
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    {
      Lender lender = me.must(Lender::at(a.runtime, endpoint), "A has an endpoint");
      me.step("serves");
      me.pause_until("R", "talked");
      std::size_t dealt_with = 0;
      int calls = 0;
      while (dealt_with < talkers * messages) {
        dealt_with += me.must(lender.dispatch(), "A dispatches");
        ++calls;
      }
      me.expect(calls > 2, "and not all of it in one call");
      me.step("dispatched");
      me.pause_until_ended("R");
      me.must(lender.dispatch(), "the ends");
    }
    a.leave();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("A", "serves");
    std::vector<RawPeer> all;
    for (std::size_t i = 0; i < talkers; ++i) {
      all.push_back(RawPeer::connect(endpoint));
      me.expect(all.back().introduce(hello()), "hello");
      for (std::size_t k = 0; k < messages; ++k)
        me.expect(all.back().send(message_of(MessageType::returned, 0, k)), "talk");
    }
    me.step("talked");
    me.pause_until("A", "dispatched");
  });
  story.run();
}

TEST_CASE("a process that has closed its connection keeps its lease until it ends: it may have the memory still") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.step("serves");
    me.pause_until("R", "hung up");
    const auto holders = me.must(a.lent().holders(), "A looks");
    me.expect(holders.size() == 1 && holders[0].pid == me.pid_of("R"), "R holds it still");
    me.expect_equal(a.told.count(Kind::died) + a.told.count(Kind::returned), 0U, "A was told of no end");
    me.step("looked");
    me.pause_until_ended("R");
    a.is_left_as_it_was();
    me.expect(soon([&] { return a.told.count(Kind::died) == 1; }), "then A is told");
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("A", "serves");
    RawPeer peer = introduced(me, endpoint);
    me.expect(peer.send(request_for("m", 1)) && peer.receive_type() == MessageType::lent, "R holds a lease");
    peer.hang_up();
    for (int i = 0; i < 3; ++i) introduced(me, endpoint);  // by then A has heard it
    me.step("hung up");
    me.pause_until("A", "looked");
  });
  story.run();
}

TEST_CASE("a process that has ended keeps no lease, though a child of it keeps the connection open") {
  Story story;
  const Endpoint endpoint = Endpoint::path(story.file("lender"));
  story.actor("A", [&](Actor& me) {
    Host a(me, endpoint);
    me.step("serves");
    me.pause_until("R", "holds");
    me.pause_until_ended("R");
    a.is_left_as_it_was();
    me.expect(soon([&] { return a.told.count(Kind::died) == 1; }), "A is told");
    const auto child = me.receive<pid_t>("R");
    me.expect(::kill(child, 0) == 0, "the child is there still");
    ::kill(child, SIGKILL);
    a.end();
  });
  story.actor("R", [&](Actor& me) {
    me.pause_until("A", "serves");
    const RawPeer peer = introduced(me, endpoint);
    me.expect(peer.send(request_for("m", 1)) && peer.receive_type() == MessageType::lent, "R holds a lease");
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (child == 0) {
      ::setpgid(0, 0);  // of a group of its own, which does not end with R
      // Nothing of the story's: only the connection is kept.
      for (int fd = 0; fd < 1024; ++fd) {
        if (fd != peer.fd()) ::close(fd);
      }
      ::alarm(120);
      for (;;) ::pause();
    }
    me.send("A", child);
    me.step("holds");
  });
  story.run();
}
