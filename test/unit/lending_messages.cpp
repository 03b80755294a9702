// SPDX-License-Identifier: Apache-2.0
// The messages of lending: what is encoded is decoded, and nothing else is.
#include "support/catch.hpp"

#include "lending/message.hpp"
#include "lending/remote_error.hpp"

#include <devshare/explain.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::detail;

namespace {

// One of each type, with every field that it has set to something.
std::vector<Message> all_messages() {
  std::vector<Message> all;
  for (auto number = static_cast<std::uint16_t>(MessageType::hello);
       number <= static_cast<std::uint16_t>(MessageType::revoked); ++number) {
    Message message;
    message.type = static_cast<MessageType>(number);
    message.request = 7;
    message.lease = 0x1122334455667788;
    message.generation = 0x99;
    message.pid = 4711;
    message.device = 3;
    message.mechanisms = {Mechanism::v1, Mechanism::fabric};
    message.access = AccessMode::read_only;
    message.may_wait = true;
    message.slice = {4096, 1 << 20};
    message.error = to_message(Error(Errc::out_of_memory, Operation::export_key, acl::Entry::aclrtIpcMemGetExportKey,
                                     207001, Error::Reason::capacity, {.needed = 5, .available = 4}));
    message.set_name("a name");
    for (std::size_t i = 0; i < ticket_size; ++i) message.ticket[i] = static_cast<std::byte>(i);
    all.push_back(message);
  }
  return all;
}

// What a message says after it went over the wire; the same bytes again, if it was understood.
bool same_again(const Message& message) {
  const MessageBytes bytes = encode(message);
  Message decoded;
  if (decode(bytes.bytes(), from_borrower(message.type), decoded) != Decoded::yes) return false;
  const MessageBytes again = encode(decoded);
  return std::equal(bytes.bytes().begin(), bytes.bytes().end(), again.bytes().begin(), again.bytes().end());
}

}  // namespace

TEST_CASE("every message of lending is decoded as it was encoded, by the side that it is for and by no other") {
  for (const Message& message : all_messages()) {
    CAPTURE(static_cast<int>(message.type));
    CHECK(same_again(message));
    Message decoded;
    CHECK(decode(encode(message).bytes(), !from_borrower(message.type), decoded) == Decoded::malformed);
    CHECK(encode(message).size % 8 == 0);
  }
}

TEST_CASE("docs/lending.md has a table for every message, whose rows lie one behind the other and are all of it") {
  std::ifstream page(DEVSHARE_LENDING_PAGE);
  REQUIRE(page);
  std::map<int, std::size_t> ends;  // by the number of the type, where its last field ends
  int type = 0;
  for (std::string line; std::getline(page, line);) {
    int number = 0;
    std::size_t offset = 0;
    std::size_t size = 0;
    if (std::sscanf(line.c_str(), "**%d ", &number) == 1) {
      type = number;
      REQUIRE(ends.emplace(type, 24).second);
    } else if (type != 0 && std::sscanf(line.c_str(), "| %zu | %zu |", &offset, &size) == 2) {
      CAPTURE(type, line);
      CHECK(offset == ends[type]);
      ends[type] = offset + size;
    }
  }
  const std::vector<Message> all = all_messages();
  CHECK(ends.size() == all.size());
  for (const Message& message : all) {
    const int number = static_cast<int>(message.type);
    CAPTURE(number);
    CHECK((ends[number] + 7) / 8 * 8 == encode(message).size);
  }
}

TEST_CASE("a field of a message arrives where its type has it") {
  for (const Message& sent : all_messages()) {
    CAPTURE(static_cast<int>(sent.type));
    Message got;
    REQUIRE(decode(encode(sent).bytes(), from_borrower(sent.type), got) == Decoded::yes);
    CHECK(got.request == sent.request);
    if (sent.type == MessageType::hello) CHECK((got.pid == 4711 && got.mechanisms == sent.mechanisms));
    if (sent.type == MessageType::lent) CHECK((got.lease == sent.lease && got.generation == 0x99 && got.ticket == sent.ticket));
    if (sent.type == MessageType::borrow) {
      CHECK((got.name() == "a name" && got.slice.offset == 4096 && got.slice.size == 1 << 20));
      CHECK((got.access == AccessMode::read_only && got.may_wait && got.device == 3));
    }
    if (sent.type == MessageType::refused) {
      const Error error = from_message(got.error, Operation::borrow, 12);
      CHECK((error.kind() == Errc::out_of_memory && error.acl_code() == 207001 && error.detail().pid == 12));
      CHECK((error.entry() == acl::Entry::aclrtIpcMemGetExportKey && error.detail().needed == 5));
      CHECK(explain(error).note == "the other side could not export memory by key");
    }
  }
}

TEST_CASE("a message that was cut, prolonged or changed in one bit is no message") {
  for (const Message& message : all_messages()) {
    CAPTURE(static_cast<int>(message.type));
    const bool of_borrower = from_borrower(message.type);
    const MessageBytes bytes = encode(message);
    std::vector<std::byte> copy(bytes.bytes().begin(), bytes.bytes().end());
    Message decoded;
    for (std::size_t size = 0; size < copy.size(); ++size) {
      CHECK(decode(std::span(copy).first(size), of_borrower, decoded) != Decoded::yes);
    }
    std::vector<std::byte> longer = copy;
    longer.resize(copy.size() + 8);
    CHECK(decode(longer, of_borrower, decoded) != Decoded::yes);
    std::size_t understood = 0;
    for (std::size_t bit = 0; bit < copy.size() * 8; ++bit) {
      copy[bit / 8] ^= std::byte{1} << (bit % 8);
      understood += decode(copy, of_borrower, decoded) == Decoded::yes ? 1 : 0;
      copy[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    CHECK(understood == 0);
  }
}

TEST_CASE("a message of another version is known as that") {
  MessageBytes bytes = encode(all_messages().front());
  bytes.storage[4] = std::byte{2};
  Message decoded;
  CHECK(decode(bytes.bytes(), true, decoded) == Decoded::other_version);
}

TEST_CASE("a name that no offer can have is no name, whatever the checksum says") {
  Message message = all_messages()[1];
  REQUIRE(message.type == MessageType::borrow);
  CHECK(same_again(message));
  message.set_name(std::string(longest_offer_name, 'x'));
  CHECK(same_again(message));
  message.set_name("");
  CHECK_FALSE(same_again(message));
  message.set_name(std::string("a\0b", 3));
  CHECK_FALSE(same_again(message));
  message.set_name("a");
  message.name_size = 200;
  CHECK_FALSE(same_again(message));
  message.name_size = 1;
  message.name_storage[5] = 'z';  // behind the name
  CHECK_FALSE(same_again(message));
}

TEST_CASE("an error of the other side that has numbers which are none here is refused, for no reason") {
  const Error error = from_message({.kind = 9999, .operation = 9999, .entry = 9999, .reason = 9999, .acl_code = 5}, Operation::borrow, 1);
  CHECK(error.kind() == Errc::refused);
  CHECK(error.entry() == acl::Entry::none);
  CHECK(error.reason() == Error::Reason::none);
  CHECK(error.acl_code() == 5);
}
