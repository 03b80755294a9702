// SPDX-License-Identifier: Apache-2.0
// What goes between importer and exporter: the spelling of keys, the two messages, and one descriptor beside them.
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/descriptors.hpp"

#include "host/channel.hpp"
#include "host/key.hpp"
#include "host/wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace devshare::host;

namespace {

KeyName some_name() {
  KeyName name{0x0123456789abcdef, 0x00f00d00, {}};
  for (std::size_t i = 0; i < 20; ++i) name.secret[i] = static_cast<std::uint8_t>(i * 13);
  return name;
}

Request some_request() { return {Op::import_memory, 0xfffffffe, -77, some_name(), TokenKind::fabric, 200}; }

Reply some_reply() {
  Reply reply;
  reply.op = Op::import_memory;
  reply.sequence = 9;
  reply.device = 1;
  reply.read_only = true;
  reply.watch = 0x8000000000000003;
  reply.offset = 4096;
  reply.size = std::uint64_t{5} << 40;
  reply.page_size = 4096;
  return reply;
}

Reply some_handle() {
  Reply reply;
  reply.op = Op::import_handle;
  reply.sequence = 10;
  reply.device = -1;
  reply.p2p_policy = true;
  reply.size = 6 << 20;
  reply.page_size = 2 << 20;
  reply.kind = TokenKind::v2;
  reply.server = 255;
  reply.attribute = 3;
  reply.location_type = 4;
  reply.location_id = UINT32_MAX;
  return reply;
}

Reply some_refusal() {
  Reply reply;
  reply.op = Op::import_memory;
  reply.code = 507899;
  reply.reason = detail::Reason::not_admitted;
  reply.pid = INT32_MIN;
  reply.listed_pid = 4711;
  reply.listed_count = 3;
  reply.needed = UINT64_MAX;
  return reply;
}

template <class Bytes>
std::vector<std::uint8_t> copy(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

// Two connected sockets of the kind the runtime uses.
struct Pair {
  UniqueFd left, right;
  Pair() {
    int both[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) == 0);
    left = UniqueFd(both[0]);
    right = UniqueFd(both[1]);
  }
};

// Sends any number of descriptors at once, as no code of ours does.
void send_descriptors(int socket, const std::vector<int>& descriptors) {
  char byte = 'x';
  iovec part{&byte, 1};
  std::vector<char> control(CMSG_SPACE(sizeof(int) * descriptors.size()));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof(int) * descriptors.size());
  REQUIRE(::sendmsg(socket, &header, 0) == 1);
}

}  // namespace

TEST_CASE("a key reads back as what was written, in both forms") {
  KeyName name = some_name();
  CHECK(decode_key(encode_key(name, KeyForm::text).data(), KeyForm::text) == name);
  for (std::size_t i = 20; i < name.secret.size(); ++i) name.secret[i] = static_cast<std::uint8_t>(200 + i);
  CHECK(decode_key(encode_key(name, KeyForm::binary).data(), KeyForm::binary) == name);
  const KeyName zeros{0, 0, {}};
  CHECK(decode_key(encode_key(zeros, KeyForm::text).data(), KeyForm::text) == zeros);
  CHECK(decode_key(encode_key(zeros, KeyForm::binary).data(), KeyForm::binary) == zeros);
}

TEST_CASE("a text key is 64 printable characters, a binary one 50 bytes without a zero, NULs behind") {
  for (int i = 0; i < 1000; ++i) {
    const KeyBytes text = encode_key(new_key_name(0, 0, KeyForm::text), KeyForm::text);
    CHECK(std::string(text.data()).find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(std::strlen(text.data()) == 64);
    const KeyBytes binary = encode_key(new_key_name(0, 0, KeyForm::binary), KeyForm::binary);
    REQUIRE(std::strlen(binary.data()) == 50);
    for (std::size_t at = 50; at < binary.size(); ++at) CHECK(binary[at] == '\0');
  }
}

TEST_CASE("a key has one spelling, so no other bytes are taken for it") {
  for (const KeyForm form : {KeyForm::text, KeyForm::binary}) {
    KeyName name = some_name();
    name.secret[3] = 0;
    const KeyBytes key = encode_key(name, form);
    const std::size_t length = std::strlen(key.data());
    for (std::size_t at = 0; at < length; ++at) {
      for (int value = 0; value < 256; ++value) {
        KeyBytes changed = key;
        changed[at] = static_cast<char>(value);
        const auto read = decode_key(changed.data(), form);
        if (read) CHECK(encode_key(*read, form) == changed);
        CHECK((read == name) == (changed == key));
      }
    }
    CHECK_FALSE(decode_key((std::string(key.data()) + "0").c_str(), form));
  }
}

TEST_CASE("B029 of a key that is too short nothing is read past its NUL") {
  for (const KeyForm form : {KeyForm::text, KeyForm::binary}) {
    const KeyBytes key = encode_key(some_name(), form);
    for (std::size_t length = 0; length < std::strlen(key.data()); ++length) {
      std::vector<char> exact(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(length));
      exact.push_back('\0');
      exact.shrink_to_fit();  // so that AddressSanitizer sees one byte too many
      CHECK_FALSE(decode_key(exact.data(), form));
    }
  }
}

TEST_CASE("names of two keys are never the same, secrets differ in a single bit wherever it is") {
  const KeyName name = new_key_name(1, 2, KeyForm::binary);
  CHECK(same_secret(name, name));
  for (std::size_t bit = 0; bit < name.secret.size() * 8; ++bit) {
    KeyName other = name;
    other.secret[bit / 8] = static_cast<std::uint8_t>(other.secret[bit / 8] ^ (1U << bit % 8));
    CHECK_FALSE(same_secret(name, other));
  }
  CHECK_FALSE(same_secret(name, new_key_name(1, 2, KeyForm::binary)));
}

TEST_CASE("a child process draws other secrets than its parent") {
  const KeyName before = new_key_name(0, 0, KeyForm::text);  // fills the pool
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const ChildEnd end = in_child([&] {
    const KeyName drawn = new_key_name(0, 0, KeyForm::text);
    demand(::write(pipe[1], &drawn, sizeof drawn) == sizeof drawn, "the child tells its secret");
  });
  INFO(end.in_words());
  CHECK(end.good());
  KeyName in_the_child;
  CHECK(::read(pipe[0], &in_the_child, sizeof in_the_child) == sizeof in_the_child);
  const KeyName after = new_key_name(0, 0, KeyForm::text);
  CHECK_FALSE(same_secret(in_the_child, after));
  CHECK_FALSE(same_secret(before, after));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("messages read back as what was written") {
  CHECK(decode_request(encode(some_request())) == some_request());
  CHECK(decode_reply(encode(some_reply())) == some_reply());
  CHECK(decode_reply(encode(some_handle())) == some_handle());
  CHECK(decode_reply(encode(some_refusal())) == some_refusal());
  Reply hello;
  hello.watch = UINT64_MAX;
  CHECK(decode_reply(encode(hello)) == hello);
}

TEST_CASE("messages are little-endian on every machine") {
  Request request = some_request();
  request.sequence = 0x04030201;
  const RequestBytes bytes = encode(request);
  CHECK(copy(bytes).size() == 60);
  const std::vector<std::uint8_t> head = {'D', 'V', 'S', '1',  3,    0,    2,    0,    1,
                                          2,   3,   4,   0xb3, 0xff, 0xff, 0xff, 0xef, 0xcd};
  CHECK(std::vector<std::uint8_t>(bytes.begin(), bytes.begin() + 18) == head);
  CHECK(encode(some_reply()).size() == 140);
}

TEST_CASE("B029 messages of any other length are no messages") {
  const auto request = copy(encode(some_request()));
  const auto reply = copy(encode(some_reply()));
  for (std::size_t length = 0; length <= 200; ++length) {
    std::vector<std::uint8_t> bytes = request;
    bytes.resize(length);
    CHECK(decode_request(bytes).has_value() == (length == request.size()));
    bytes = reply;
    bytes.resize(length);
    CHECK(decode_reply(bytes).has_value() == (length == reply.size()));
  }
}

TEST_CASE("B029 a message with any bit changed is refused or another message, never a sloppy reading of the same") {
  const auto request = copy(encode(some_request()));
  for (std::size_t bit = 0; bit < request.size() * 8; ++bit) {
    auto changed = request;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ (1U << bit % 8));
    const auto read = decode_request(changed);
    if (read) CHECK(copy(encode(*read)) == changed);
    if (bit < 6 * 8) CHECK_FALSE(read);  // magic and version
  }
  for (const Reply& original : {some_reply(), some_handle(), some_refusal()}) {
    const auto reply = copy(encode(original));
    for (std::size_t bit = 0; bit < reply.size() * 8; ++bit) {
      auto changed = reply;
      changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ (1U << bit % 8));
      const auto read = decode_reply(changed);
      if (read) CHECK(copy(encode(*read)) == changed);
      if (bit < 6 * 8) CHECK_FALSE(read);
    }
  }
}

TEST_CASE("a reply that describes memory which cannot exist is refused") {
  const auto is_refused = [](const auto& spoil, Reply reply) {
    spoil(reply);
    return !decode_reply(encode(reply)).has_value();
  };
  CHECK(is_refused([](Reply& r) { r.size = 0; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.device = -1; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.offset = UINT64_MAX - 100; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.page_size = 0; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.page_size = 4097; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.size = 0; }, some_handle()));
  CHECK(is_refused([](Reply& r) { r.device = -2; }, some_handle()));
  CHECK(is_refused([](Reply& r) { r.offset = 4096; }, some_handle()));  // a handle is shared whole
  CHECK(is_refused([](Reply& r) { r.page_size = 3; }, some_handle()));
  CHECK(is_refused([](Reply& r) { r.page_size = 4 << 20; }, some_handle()));  // and in whole pages
  CHECK(is_refused([](Reply& r) { r.kind = static_cast<TokenKind>(3); }, some_handle()));
  CHECK(is_refused([](Reply& r) { r.op = Op::admit; }, some_handle()));  // never granted
  CHECK(is_refused([](Reply& r) { r.op = static_cast<Op>(5); }, some_handle()));
  CHECK(is_refused([](Reply& r) { r.reason = detail::Reason::unknown_key; }, some_reply()));
  CHECK(is_refused([](Reply& r) { r.reason = detail::Reason::none; }, some_refusal()));
  CHECK(is_refused([](Reply& r) { r.reason = static_cast<detail::Reason>(9999); }, some_refusal()));
}

TEST_CASE("a descriptor arrives with its message, closed on exec") {
  const Pair pair;
  const UniqueFd file(::memfd_create("test", MFD_CLOEXEC));
  const RequestBytes bytes = encode(some_request());
  REQUIRE(send_message(pair.left.get(), bytes, file.get(), 0) == 0);
  std::array<std::uint8_t, 100> buffer{};
  const Received received = receive_message(pair.right.get(), buffer, true, 0);
  REQUIRE(received.outcome == Received::Outcome::message);
  CHECK(received.size == bytes.size());
  REQUIRE(received.descriptor);
  CHECK((::fcntl(received.descriptor.get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a message that is too long, or brings descriptors nobody asked for, is an intruder's and leaves nothing") {
  const std::size_t before = count_descriptors();
  {
    const Pair pair;
    std::array<std::uint8_t, 8> buffer{};
    const std::array<std::uint8_t, 9> longer{};
    REQUIRE(send_message(pair.left.get(), longer, -1, 0) == 0);
    CHECK(receive_message(pair.right.get(), buffer, true, 0).outcome == Received::Outcome::intruder);
    send_descriptors(pair.left.get(), {0});
    CHECK(receive_message(pair.right.get(), buffer, false, 0).outcome == Received::Outcome::intruder);
    for (const std::size_t many : {2U, 3U, 100U}) {
      send_descriptors(pair.left.get(), std::vector<int>(many, 0));
      CHECK(receive_message(pair.right.get(), buffer, true, 0).outcome == Received::Outcome::intruder);
    }
    CHECK(count_descriptors() == before + 2);
    CHECK(receive_message(pair.right.get(), buffer, true, MSG_DONTWAIT).outcome == Received::Outcome::nothing);
  }
  CHECK(count_descriptors() == before);
}

TEST_CASE("an empty message and an end are both the end") {
  Pair pair;
  std::array<std::uint8_t, 8> buffer{};
  REQUIRE(::send(pair.left.get(), "", 0, 0) == 0);
  CHECK(receive_message(pair.right.get(), buffer, false, 0).outcome == Received::Outcome::closed);
  pair.left = UniqueFd();
  CHECK(receive_message(pair.right.get(), buffer, false, 0).outcome == Received::Outcome::closed);
  CHECK(send_message(pair.right.get(), buffer, -1, 0) == EPIPE);  // and no SIGPIPE
}

TEST_CASE("what a peer said before it hung up is heard, also when it left something of ours unread") {
  Pair pair;
  const std::array<std::uint8_t, 3> ours{1, 2, 3};
  const std::array<std::uint8_t, 3> theirs{4, 5, 6};
  REQUIRE(send_message(pair.right.get(), ours, -1, 0) == 0);
  REQUIRE(send_message(pair.left.get(), theirs, -1, 0) == 0);
  pair.left = UniqueFd();
  std::array<std::uint8_t, 8> buffer{};
  const Received received = receive_message(pair.right.get(), buffer, true, 0);
  CHECK(received.outcome == Received::Outcome::message);
  CHECK(buffer[0] == 4);
}

TEST_CASE("B053 a descriptor that finds no place in a full table is reported as lost") {
  const Pair pair;
  REQUIRE(send_message(pair.left.get(), encode(some_request()), 0, 0) == 0);
  const ChildEnd end = in_child([&] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit few{static_cast<rlim_t>(pair.right.get()) + 1, limit.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
    std::vector<UniqueFd> hoard;
    for (UniqueFd copy(::dup(0)); copy; copy = UniqueFd(::dup(0))) hoard.push_back(std::move(copy));
    std::array<std::uint8_t, 100> buffer{};
    const Received received = receive_message(pair.right.get(), buffer, true, 0);
    demand(received.outcome == Received::Outcome::descriptor_lost, "the loss is seen");
    demand(received.size == request_size, "the message has come all the same");
    ::setrlimit(RLIMIT_NOFILE, &limit);  // whoever looks for leaks needs descriptors, too
  });
  INFO(end.in_words());
  CHECK(end.good());
}
