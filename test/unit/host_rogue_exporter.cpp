// SPDX-License-Identifier: Apache-2.0
// An importer and exporters that lie: whatever answers at a key's name, the import is refused in words and in time, and
// nothing of it is mapped or kept (B003, B029, B080).
#include "rogue_exporter.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/host_session.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

using namespace devshare;
using namespace devshare::host;
using namespace devshare::test;
using namespace std::chrono_literals;

namespace {

// Imports from such an exporter and looks at what is left afterwards.
struct Outcome {
  acl::aclError code;
  Reason reason;
};

Outcome import_from(Exporter::Script script, const char* deadline = "5000") {
  HostSession session({{"DEADLINE_MS", deadline}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  const Exporter exporter(std::move(script));
  void* imported = nullptr;
  const std::size_t before = count_descriptors();
  const acl::aclError code = session->aclrtIpcMemImportByKey(&imported, exporter.key().data(), 0);
  const Outcome outcome{code, HostSession::reason()};
  if (code != 0) {
    CHECK(imported == nullptr);
    CHECK(host::counters().imports == 0);
    CHECK(host::counters().key_opens == 0);
    // The exporter of this same process holds its end of the connection, and for a moment what it has just sent.
    for (int i = 0; i < 5000 && count_descriptors() > before + 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(count_descriptors() <= before + 2);
  }
  return outcome;
}

Exporter::Script with_memory(std::function<void(Reply&, UniqueFd&)> bend) {
  Exporter::Script script;
  script.memory = std::move(bend);
  return script;
}

Exporter::Script with_hello(std::function<void(Reply&, UniqueFd&)> bend) {
  Exporter::Script script;
  script.hello = std::move(bend);
  return script;
}

bool is_refused_as(const Outcome& outcome, Reason reason) {
  CHECK(outcome.code == acl::code::rt_drv_internal);
  CHECK(outcome.reason == reason);
  return outcome.code == acl::code::rt_drv_internal && outcome.reason == reason;
}

}  // namespace

TEST_CASE("an exporter by the book is served from, so that the others fail for what they do") {
  CHECK(import_from({}).code == 0);
}

TEST_CASE("B080 memory that is shorter than said, or may become so, is not taken") {
  CHECK(is_refused_as(import_from(with_memory([](Reply&, UniqueFd& file) { file = memory_file(4095); })),
                      Reason::protocol));
  CHECK(
      is_refused_as(import_from(with_memory([](Reply&, UniqueFd& file) { file = memory_file(0); })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { reply.offset = 1; })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply&, UniqueFd& file) { file = memory_file(4096, 0); })),
                      Reason::protocol));
  CHECK(is_refused_as(
      import_from(with_memory([](Reply&, UniqueFd& file) { file = memory_file(4096, F_SEAL_SHRINK | F_SEAL_GROW); })),
      Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory(
                          [](Reply&, UniqueFd& file) { file = UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)); })),
                      Reason::protocol));
}

TEST_CASE("a file that calls itself unsealed is taken only by who was told to live with such files") {
  const auto unsealed = [](Reply& reply, UniqueFd& file) {
    reply.unsealed = true;
    file = memory_file(4096, 0);
  };
  CHECK(is_refused_as(import_from(with_memory(unsealed)), Reason::protocol));
  HostSession session({{"FALLBACK", "allow"}});
  REQUIRE(session->aclrtSetDevice(0) == 0);
  const Exporter exporter(with_memory(unsealed));
  void* imported = nullptr;
  CHECK(session->aclrtIpcMemImportByKey(&imported, exporter.key().data(), 0) == 0);
}

TEST_CASE("an answer that does not fit its question is not taken") {
  CHECK(is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { ++reply.sequence; })), Reason::protocol));
  CHECK(
      is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { reply.op = Op::hello; })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { reply.sequence = 0; })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply&, UniqueFd& file) { file = UniqueFd(); })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) {  // a refusal that brings a descriptor
                        reply.code = acl::code::rt_drv_internal;
                        reply.reason = Reason::unknown_key;
                      })),
                      Reason::protocol));
  CHECK(is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { reply.device = 2; })), Reason::protocol));
  CHECK(
      is_refused_as(import_from(with_memory([](Reply& reply, UniqueFd&) { reply.page_size = 3; })), Reason::protocol));
}

TEST_CASE("a control page that is none, or another exporter's, is not taken") {
  CHECK(is_refused_as(import_from(with_hello([](Reply& reply, UniqueFd&) { ++reply.watch; })), Reason::protocol));
  CHECK(is_refused_as(import_from(with_hello([](Reply&, UniqueFd& file) { file = memory_file(4 << 20); })),
                      Reason::protocol));
  CHECK(is_refused_as(import_from(with_hello([](Reply&, UniqueFd& file) { file = UniqueFd(); })), Reason::protocol));
}

TEST_CASE("rubbish, too much and too many descriptors are not taken") {
  const auto send_and_stay = [](const void* data, std::size_t size) {
    return [data, size](int importer) {
      ::send(importer, data, size, MSG_NOSIGNAL);
      std::this_thread::sleep_for(50ms);
      return true;
    };
  };
  static const std::array<char, 5000> rubbish{};
  Exporter::Script script;
  for (const std::size_t size : {std::size_t{1}, reply_size - 1, reply_size, reply_size + 1, rubbish.size()}) {
    script.instead_of_hello = send_and_stay(rubbish.data(), size);
    CHECK(is_refused_as(import_from(script), Reason::protocol));
  }
}

TEST_CASE("B003 an exporter that accepts and says nothing costs the deadline, one that hangs up costs nothing") {
  Exporter::Script silent;
  silent.instead_of_hello = [](int) {
    std::this_thread::sleep_for(400ms);
    return true;
  };
  const auto started = std::chrono::steady_clock::now();
  CHECK(is_refused_as(import_from(silent, "200"), Reason::timed_out));
  CHECK(std::chrono::steady_clock::now() - started >= 190ms);

  Exporter::Script gone;
  gone.instead_of_hello = [](int) { return true; };
  CHECK(is_refused_as(import_from(gone, "60000"), Reason::exporter_gone));
  Exporter::Script half_gone;
  half_gone.instead_of_memory = [](int) { return true; };
  CHECK(is_refused_as(import_from(half_gone, "60000"), Reason::exporter_gone));
}

TEST_CASE("a kept connection that its exporter dropped is made anew, once") {
  HostSession session;
  REQUIRE(session->aclrtSetDevice(0) == 0);
  std::atomic<int> dropped{0};
  Exporter::Script script;
  script.instead_of_memory = [&, served = 0](int) mutable { return ++served % 2 == 0 && ++dropped > 0; };
  const Exporter exporter(script);
  for (int i = 1; i <= 4; ++i) {
    void* imported = nullptr;
    const KeyBytes key = exporter.key();
    CHECK(session->aclrtIpcMemImportByKey(&imported, key.data(), 0) == 0);
    CHECK(session->aclrtIpcMemClose(key.data()) == 0);
  }
  CHECK(dropped == 3);
  CHECK(exporter.greeted() == 4);
  CHECK(host::counters().connections == 1);
}
