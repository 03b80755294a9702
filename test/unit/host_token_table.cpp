// SPDX-License-Identifier: Apache-2.0
// The tokens of a process: each names one memory, ends with it, and never comes again (R27, R30).
#include "support/catch.hpp"
#include "support/host_session.hpp"

#include "host/token_table.hpp"

#include <memory>
#include <set>

using namespace devshare;
using namespace devshare::host;
using devshare::test::HostSession;

namespace {

constexpr std::uint64_t endpoint = 0x123456789a;

Physical some_memory() { return std::make_shared<PhysicalMemory>(); }

}  // namespace

TEST_CASE("a token is found by its name and by its memory, and not by anything else") {
  const HostSession session;
  TokenTable table;
  const Physical first = some_memory();
  const Physical second = some_memory();
  const KeyName by_v1 = table.add(endpoint, TokenKind::v1, *first, false).name;
  const KeyName by_fabric = table.add(endpoint, TokenKind::fabric, *second, true).name;
  CHECK(table.size() == 2);
  CHECK(by_v1.secret == KeyName{}.secret);
  CHECK(by_fabric.secret != KeyName{}.secret);
  REQUIRE(table.find(by_v1) != nullptr);
  CHECK(table.find(by_v1)->memory == first.get());
  CHECK_FALSE(table.find(by_v1)->open_to_all);
  REQUIRE(table.find(by_fabric) != nullptr);
  CHECK(table.find(by_fabric)->open_to_all);
  CHECK(table.of_memory(first->id) == table.find(by_v1));
  CHECK(table.of_memory(first->id + second->id) == nullptr);

  CHECK(table.find({endpoint + 1, by_v1.slot, {}}) == nullptr);
  CHECK(table.find({endpoint, 99, {}}) == nullptr);
  CHECK(table.find({endpoint, by_fabric.slot, {}}) == nullptr);  // a slot without its secret
  KeyName guess = by_v1;
  guess.secret[27] = 1;
  CHECK(table.find(guess) == nullptr);  // a secret that it has not
}

TEST_CASE("a token ends with its memory, and its slot is given to no other") {
  const HostSession session;
  TokenTable table;
  std::set<std::uint64_t> tokens;
  for (int i = 0; i < 1000; ++i) {
    const Physical memory = some_memory();
    const KeyName name = table.add(endpoint, TokenKind::v2, *memory, false).name;
    CHECK(tokens.insert(encode_token(name)).second);
    CHECK(table.find(name) != nullptr);
    table.end(memory->id);
    CHECK(table.find(name) == nullptr);
    CHECK(table.of_memory(memory->id) == nullptr);
  }
  CHECK(table.size() == 0);
  table.end(4711);  // memory that had no token
}

TEST_CASE("a session gives 16,777,216 tokens and then no more, also when all have ended") {
  const HostSession session;
  TokenTable table(most_tokens - 2);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(table.full());
    const Physical memory = some_memory();
    const KeyName name = table.add(endpoint, TokenKind::v1, *memory, false).name;
    CHECK(decode_token(encode_token(name)) == name);
    table.end(memory->id);
  }
  CHECK(table.full());
}
