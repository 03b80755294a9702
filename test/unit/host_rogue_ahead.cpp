// SPDX-License-Identifier: Apache-2.0
// An importer and exporters that lie in what they send ahead: it is looked at as closely as an answer, and never keeps
// anybody from asking.
#include "rogue_exporter.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/host_session.hpp"

#include "host/asked_ahead.hpp"

#include <cerrno>
#include <functional>
#include <utility>

using namespace devshare;
using namespace devshare::host;
using namespace devshare::test;

namespace {

struct Second {
  acl::aclError code = 0;
  Reason reason = Reason::none;
  int asked = 0;  // for memory, both times
  int greeted = 0;
};

// Imports one key, after which `send` sends to this process whatever it likes, and then another.
using Send = std::function<void(int importer, const Reply& by_the_book)>;
Second import_after(const Send& send) {
  HostSession session({{"DEADLINE_MS", "400"}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  Second second;
  std::atomic<int> asked{0};
  KeyName name;
  std::atomic<const Exporter*> self{nullptr};  // once there is a name
  std::atomic<bool> sent{false};
  std::atomic<bool> done{false};
  Exporter::Script script;
  script.before_memory = [&](int) { ++asked; };
  script.after_memory = [&](int importer) {
    if (!sent.exchange(true)) send(importer, self.load()->ahead(name));
    done = true;
  };
  const Exporter exporter(std::move(script));
  name = exporter.name();
  self = &exporter;
  const auto import = [&](const KeyBytes& key) {
    void* imported = nullptr;
    second.code = session->aclrtIpcMemImportByKey(&imported, key.data(), 0);
    second.reason = HostSession::reason();
    if (second.code == 0) second.code = session->aclrtIpcMemClose(key.data());
  };
  import(exporter.key());
  // One may go on for ever.
  for (int i = 0; !done && i < 50; ++i) std::this_thread::sleep_for(1ms);
  REQUIRE(second.code == 0);
  const std::size_t before = count_descriptors();
  import(encode_key(name, KeyForm::text));
  CHECK(host::counters().imports == 0);
  CHECK(count_descriptors() <= before + 2);  // a new connection has two ends here
  second.asked = asked;
  second.greeted = exporter.greeted();
  return second;
}

void send_memory(int importer, const Reply& reply, const UniqueFd& file) {
  must(send_message(importer, encode(reply), file.get(), 0) == 0, "sendmsg");
}

}  // namespace

TEST_CASE("what is sent ahead by the book is taken without a question, and only where it is what is asked for") {
  const Second taken = import_after([](int importer, const Reply& reply) { send_memory(importer, reply, memory_file(4096)); });
  CHECK(taken.code == 0);
  CHECK(taken.asked == 1);
  CHECK(taken.greeted == 1);
  const auto another = [](const std::function<void(Reply&)>& change) {
    const Second second = import_after([&](int importer, const Reply& reply) {
      Reply other = reply;
      change(other);
      send_memory(importer, other, memory_file(4096));
    });
    return second.code == 0 && second.asked == 2 && second.greeted == 1;
  };
  CHECK(another([](Reply& reply) { reply.key.secret[3] ^= 1; }));
  CHECK(another([](Reply& reply) { reply.key.slot += 1; }));
  CHECK(another([](Reply& reply) { reply.op = Op::import_handle; }));
  CHECK(another([](Reply& reply) { reply.kind = TokenKind::v2; }));
  CHECK(another([](Reply& reply) { reply.watch += 2; }));  // of a key that has ended
}

TEST_CASE("B080 memory that is sent ahead is checked as any other") {
  const auto refused = [](off_t length, int seals) {
    const Second second = import_after(
        [&](int importer, const Reply& reply) { send_memory(importer, reply, memory_file(length, seals)); });
    return second.code == acl::code::rt_drv_internal && second.reason == Reason::protocol && second.asked == 1;
  };
  CHECK(refused(4095, all_seals));
  CHECK(refused(4096, 0));
}

TEST_CASE("who sends anything else unasked is left, and asked over a new connection") {
  const auto left = [](const Send& send) {
    const Second second = import_after(send);
    return second.code == 0 && second.asked == 2 && second.greeted == 2;
  };
  CHECK(left([](int importer, const Reply&) { ::send(importer, "rubbish", 7, MSG_NOSIGNAL); }));
  CHECK(left([](int importer, const Reply& reply) { send_memory(importer, reply, UniqueFd()); }));
  CHECK(left([](int importer, const Reply& reply) {
    Reply other = reply;
    other.sequence = 77;  // answers nothing
    send_memory(importer, other, memory_file(4096));
  }));
  CHECK(left([](int importer, const Reply& reply) {
    Reply other = reply;
    other.key.endpoint ^= 1;
    send_memory(importer, other, memory_file(4096));
  }));
}

TEST_CASE("more sent ahead than anybody sends does not keep an importer from asking, nor beyond its deadline") {
  const UniqueFd file = memory_file(4096);
  const auto another = [](const Reply& reply) {
    Reply other = reply;
    other.key.slot += 1;
    return encode(other);
  };
  const Second asked = import_after([&](int importer, const Reply& reply) {
    for (int i = 0; i < 100; ++i) must(send_message(importer, another(reply), file.get(), 0) == 0, "sendmsg");
  });
  CHECK(asked.code == 0);
  CHECK(asked.asked == 2);

  const Second flooded = import_after([&](int importer, const Reply& reply) {
    for (int error = 0; error == 0 || error == EAGAIN;) {  // until it hangs up
      error = send_message(importer, another(reply), file.get(), 0);
    }
  });
  CHECK(flooded.code == acl::code::rt_drv_internal);
  CHECK(flooded.reason == Reason::timed_out);
}

TEST_CASE("what is sent ahead of a key whose slot no control page has is not looked up there") {
  HostSession session({{"DEADLINE_MS", "400"}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  KeyName far;
  std::atomic<bool> sent{false};
  std::atomic<const Exporter*> self{nullptr};
  Exporter::Script script;
  script.after_memory = [&](int importer) {
    const UniqueFd file = memory_file(4096);
    if (!sent) static_cast<void>(send_message(importer, encode(self.load()->ahead(far)), file.get(), 0));
    sent = true;
  };
  const Exporter exporter(std::move(script));
  far = exporter.name();
  far.slot = UINT32_MAX;
  self = &exporter;
  void* imported = nullptr;
  const acl::aclError first = session->aclrtIpcMemImportByKey(&imported, exporter.key().data(), 0);
  while (!sent) std::this_thread::sleep_for(1ms);
  REQUIRE(first == 0);
  const KeyBytes key = encode_key(far, KeyForm::text);
  const ExpectedImport expected{ExpectedImport::By::key, key.data()};
  ask_ahead({&expected, 1});
  CHECK(session->aclrtIpcMemImportByKey(&imported, key.data(), 0) == acl::code::rt_drv_internal);
  CHECK(HostSession::reason() == Reason::unknown_key);
  forget_asked_ahead();
}
