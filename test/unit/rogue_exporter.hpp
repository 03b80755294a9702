// SPDX-License-Identifier: Apache-2.0
// An exporter by the book, except where a test bends it: what stands at a key's or a token's name may be anybody.
#pragma once

#include "support/catch.hpp"

#include "host/channel.hpp"
#include "host/control_page.hpp"
#include "host/endpoint.hpp"
#include "host/key.hpp"
#include "host/token.hpp"
#include "host/wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace devshare::test {

using namespace host;  // NOLINT: the exporter speaks in its words
using namespace std::chrono_literals;

inline constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// For the exporter's thread: Catch's assertions are for one at a time.
inline void must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

inline UniqueFd memory_file(off_t length, int seals = all_seals) {
  UniqueFd file(::memfd_create("rogue", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  must(::ftruncate(file.get(), length) == 0, "ftruncate");
  must(seals == 0 || ::fcntl(file.get(), F_ADD_SEALS, seals) == 0, "F_ADD_SEALS");
  return file;
}

class Exporter {
 public:
  struct Script {
    std::function<void(Reply&, UniqueFd&)> hello = [](Reply&, UniqueFd&) {};
    std::function<void(Reply&, UniqueFd&)> memory = [](Reply&, UniqueFd&) {};
    std::function<bool(int)> instead_of_hello = [](int) { return false; };  // true: done, hang up
    std::function<bool(int)> instead_of_memory = [](int) { return false; };
    std::function<void(int)> before_memory = [](int) {};
    std::function<void(int)> after_memory = [](int) {};
  };

  explicit Exporter(Script script) : script_(std::move(script)) {
    REQUIRE(endpoint_.open("") == 0);
    REQUIRE(ControlPage::create(endpoint_.name(), &page_) == 0);
    word_ = page_->turn_on(0);
    thread_ = std::thread([this] { serve(); });
  }
  ~Exporter() {
    stop_ = true;
    thread_.join();
  }
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  KeyBytes key() const { return encode_key(name(), KeyForm::text); }
  std::uint64_t token() const { return encode_token({endpoint_.name(), 0, {}}); }
  int greeted() const { return greeted_; }

  // What one by the book sends ahead to those it admits to a key.
  Reply ahead(const KeyName& key) const {
    Reply reply;
    reply.op = Op::import_memory;
    reply.key = key;
    describe(reply);
    reply.watch = word_;
    return reply;
  }
  KeyName name() const { return new_key_name(endpoint_.name(), 0, KeyForm::text); }

 private:
  static void describe(Reply& reply) {
    reply.device = 0;
    reply.size = 4096;
    reply.page_size = 4096;
  }

  void serve() {
    while (!stop_) {
      const UniqueFd importer(::accept4(endpoint_.socket(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (importer) {
        answer_all(importer.get());
      } else {
        std::this_thread::sleep_for(1ms);
      }
    }
  }
  void answer_all(int importer) {
    while (!stop_) {
      RequestBytes bytes;
      const Received received = receive_message(importer, bytes, false, MSG_DONTWAIT);
      if (received.outcome == Received::Outcome::nothing) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const auto request = decode_request(bytes);
      if (received.outcome != Received::Outcome::message || !request) return;
      const bool hello = request->op == Op::hello;
      if (hello) ++greeted_;
      if (hello ? script_.instead_of_hello(importer) : script_.instead_of_memory(importer)) return;
      Reply reply;
      reply.op = request->op;
      reply.sequence = request->sequence;
      UniqueFd descriptor;
      if (hello) {
        reply.watch = endpoint_.name();
        descriptor = UniqueFd(::dup(page_->descriptor()));
        script_.hello(reply, descriptor);
      } else {
        script_.before_memory(importer);
        describe(reply);
        reply.watch = word_;
        descriptor = memory_file(4096);
        script_.memory(reply, descriptor);
      }
      if (send_message(importer, encode(reply), descriptor.get(), 0) != 0) return;
      if (!hello) script_.after_memory(importer);
    }
  }

  Script script_;
  Endpoint endpoint_;
  std::unique_ptr<ControlPage> page_;
  std::uint64_t word_ = 0;
  std::atomic<bool> stop_{false};
  std::atomic<int> greeted_{0};
  std::thread thread_;
};

}  // namespace devshare::test
