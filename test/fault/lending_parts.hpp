// SPDX-License-Identifier: Apache-2.0
// What the deaths and stops of lending have in common: the processes that are led from step to step, and what those who
// outlive them share.
#pragma once

#include "process/lending.hpp"
#include "support/child.hpp"
#include "support/led.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace devshare::test {

constexpr std::size_t lent_size = 64 * 1024;

// The value in a result, or the end of a led process, which has no Actor.
template <class R>
auto got(R result, std::string_view sentence, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (!result) {
    demand(false, fmt::format("{}: {}", sentence, detail::plain_error(result.error())).c_str(), file, line);
  }
  if constexpr (requires { requires !std::is_void_v<decltype(*std::move(result))>; }) return *std::move(result);
}

// What all processes of a story see at once.
struct Sight {
  std::atomic<bool> ended = false;    // whoever is led has ended
  std::atomic<bool> patience = true;  // somebody has not yet waited in vain for whoever is stopped
  std::atomic<bool> done = false;     // there is nothing to wait for any more
};

class SharedSight {
 public:
  SharedSight()
      : sight_(new (::mmap(nullptr, sizeof(Sight), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Sight) {}
  ~SharedSight() { ::munmap(sight_, sizeof(Sight)); }
  SharedSight(const SharedSight&) = delete;
  SharedSight& operator=(const SharedSight&) = delete;
  Sight* operator->() const noexcept { return sight_; }

 private:
  Sight* sight_;
};

// Memory of the kind that is lent by key, or by a handle.
template <class Play>
void with_memory(bool by_key, const Party& party, Play play) {
  if (by_key) {
    play([&] { return party.allocate(pattern(lent_size)); });
  } else {
    play([&] { return party.map(pattern(lent_size)); });
  }
}
inline const char* way_in_words(bool by_key) { return by_key ? "by key" : "by handle"; }

// What a process has, compared with the least that it had before: the end of another comes to it when it comes.
class Inventory {
 public:
  static Inventory now() { return Inventory(); }
  bool no_more_than(const Inventory& before) const {
    return descriptors_.size() <= before.least_descriptors_ + 1 && connections_ <= before.least_connections_ + 1 &&
           processes_ <= before.least_processes_ + most_remembered && counters_ == before.counters_;
  }
  void learn_from(const Inventory& later) {
    least_descriptors_ = std::min(least_descriptors_, later.descriptors_.size());
    least_connections_ = std::min(least_connections_, later.connections_);
    least_processes_ = std::min(least_processes_, later.processes_);
  }
  std::string in_words() const {
    return fmt::format("{}; {} connections; at least {} descriptors, {} connections; descriptors: {}",
                       host::in_words(counters_), connections_, least_descriptors_, least_connections_,
                       fmt::join(descriptors_, ", "));
  }

 private:
  // The host runtime remembers whom it admitted, by descriptors of processes: with few descriptors not many. And it
  // finds one connection to a dead exporter when it makes the next.
  static constexpr std::size_t few_descriptors = 128;
  static constexpr std::size_t most_remembered = few_descriptors / 8;

  Inventory() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = few_descriptors;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    least_processes_ = processes_ =
        std::erase_if(descriptors_, [](const auto& each) { return each.find("[pidfd]") != each.npos; });
    least_descriptors_ = descriptors_.size();
  }

  std::vector<std::string> descriptors_ = open_descriptors();
  std::size_t processes_ = 0;
  host::Counters counters_ = host::counters();
  std::uint64_t connections_ = std::exchange(counters_.connections, 0);
  std::size_t least_descriptors_ = 0;
  std::size_t least_processes_ = 0;
  std::uint64_t least_connections_ = connections_;
};

// What does not come ends the actor: it would not come in the next round either.
template <class Condition>
void comes(Actor& me, Condition condition, std::string_view sentence, std::chrono::milliseconds never = 10s) {
  if (!soon(condition, never)) me.fail(fmt::format("in vain: {}", sentence));
  me.expect(true, sentence);
}
inline void is_as_before(Actor& me, Inventory& before, std::string_view sentence) {
  Inventory now = Inventory::now();
  if (!soon([&] { return (now = Inventory::now()).no_more_than(before); })) {
    me.fail(fmt::format("not {}: {}; now {}", sentence, before.in_words(), now.in_words()));
  }
  me.expect(true, sentence);
  before.learn_from(now);
}

inline void borrow_and_use(const Device& device, const Endpoint& endpoint) {
  Lease lease = got(borrow(device, endpoint, "m", 60s), "it borrows");
  Bytes bytes(lent_size);
  got(copy_to_host(device, bytes, lease.bytes()), "it reads");
  demand(bytes == pattern(lent_size), "what was written");
  got(lease.check(), "it is lent still");
  got(std::move(lease).close(), "it returns it");
}

// A borrower from its connection to its end, which is led.
inline void borrow_use_return(const Endpoint& endpoint) {
  const Runtime runtime = got(Runtime::open(), "the runtime opens");
  {
    const Device device = got(runtime.device(DeviceId{0}), "the device is there");
    begin_steps();
    borrow_and_use(device, endpoint);
    end_steps();
  }
  got(runtime.finalize(), "the runtime is finalized");
}

// A lender from its place to its end, which is led: one memory that comes back by itself, one that it waits for, one
// that it takes.
inline void lend_three_ways(const Endpoint& endpoint, bool by_key) {
  const Runtime runtime = got(Runtime::open(), "the runtime opens");
  {
    const Device device = got(runtime.device(DeviceId{0}), "the device is there");
    const auto play = [&](auto make) {
      Told told;
      begin_steps();
      Lender lender = got(Lender::at(runtime, endpoint, told.options()), "it has an endpoint");
      const auto dispatch_until = [&](Kind event, std::size_t count) {
        while (told.count(event) < count) got(lender.dispatch(60s), "it dispatches");
      };
      Lent returned = got(lender.offer("m", make()), "it offers");
      dispatch_until(Kind::imported, 1);
      dispatch_until(Kind::returned, 1);
      got(got(std::move(returned).close(60s), "it closes").close(), "and frees");
      Lent wanted = got(lender.offer("wanted", make()), "it offers");
      dispatch_until(Kind::imported, 2);
      got(got(std::move(wanted).close(60s), "it waits for its borrower").close(), "and frees");
      Lent revoked = got(lender.offer("revoked", make()), "it offers");
      dispatch_until(Kind::imported, 3);
      got(got(std::move(revoked).revoke(20ms), "it takes it").close(), "and frees");
      got(std::move(lender).close(), "it has no endpoint any more");
      end_steps();
    };
    if (by_key) {
      play([&] {
        DeviceMemory memory = got(DeviceMemory::allocate(device, lent_size), "memory is allocated");
        got(copy_to_device(device, memory.bytes(), pattern(lent_size)), "the bytes are written");
        return memory;
      });
    } else {
      play([&] {
        Mapping memory =
            got(Mapping::of(got(PhysicalHandle::allocate(device, lent_size), "memory is allocated")), "and mapped");
        got(copy_to_device(device, memory.bytes(), pattern(lent_size)), "the bytes are written");
        return memory;
      });
    }
  }
  got(runtime.finalize(), "the runtime is finalized");
  demand(host::counters() == host::Counters{}, "and nothing is left");
}

}  // namespace devshare::test
