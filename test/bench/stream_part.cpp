// SPDX-License-Identifier: Apache-2.0
// What it takes to enqueue a copy in a stream, against the least that a queue between two threads is made of: a lock, a
// deque of functions, and a condition that is notified. Both copy the same bytes, on a thread of their own; the time is
// that of the enqueuing thread.
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace devshare::bench {
namespace {

constexpr std::size_t copies = 4000;  // in a turn
constexpr std::size_t copied = 4096;
constexpr int turns = 480;
constexpr double most_of_a_bare_queue = 2;

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

class BareQueue {
 public:
  ~BareQueue() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    something_.notify_one();
    worker_.join();
  }

  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    something_.notify_one();
  }
  void drain() {
    std::unique_lock lock(mutex_);
    while (!tasks_.empty() || busy_) done_.wait(lock);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (tasks_.empty() && !ended_) something_.wait(lock);
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      task();
      lock.lock();
      busy_ = false;
      if (tasks_.empty()) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable something_;
  std::condition_variable done_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool ended_ = false;
  std::thread worker_{[this] { work(); }};
};

// Nanoseconds for one of so many; what they leave to do is waited for afterwards.
template <class Enqueue, class Drain>
double enqueue_time(Enqueue enqueue, Drain drain) {
  const double begin = now_ns();
  for (std::size_t i = 0; i < copies; ++i) enqueue();
  const double took = now_ns() - begin;
  drain();
  return took / static_cast<double>(copies);
}

// The figures of the bare queue, of the same again, and of a stream. Who enqueues has processor 0; who works has the
// other one, or the same. Left to the scheduler they would share one in some turns and not in others, and the ratio
// would be about whose turns those were.
std::vector<Figures> measure(const Device& device, const char* where, int processor_of_worker) {
  DeviceMemory to = must(DeviceMemory::allocate(device, copied), "memory");
  DeviceMemory from = must(DeviceMemory::allocate(device, copied), "memory");
  // Mapped before: a copy that goes through descriptors would be the worker's, but in the way on two processors.
  for (int i = 0; i < 200; ++i) must(copy_on_device(device, to.bytes(), from.bytes()), "a copy");
  pin_to(processor_of_worker);
  const Stream stream = must(Stream::create(device), "a stream");
  must(copy_on_device(stream, to.bytes(), from.bytes()), "a copy, for which the stream's worker is started");
  must(stream.synchronize(), "the stream");
  BareQueue queue;
  pin_to(0);
  std::array<std::byte, copied> host_to{};
  std::array<std::byte, copied> host_from{};

  const auto bare = [&] {
    return enqueue_time([&] { queue.add([a = host_to.data(), b = host_from.data()] { std::memcpy(a, b, copied); }); },
                        [&] { queue.drain(); });
  };
  const auto typed = [&] {
    return enqueue_time([&] { must(copy_on_device(stream, to.bytes(), from.bytes()), "a copy in the stream"); },
                        [&] { must(stream.synchronize(), "the stream"); });
  };
  return alternate({{fmt::format("bare queue, {}", where), bare},
                    {fmt::format("bare queue, {}, again", where), bare},
                    {fmt::format("a copy in a stream, {}", where), typed}},
                   turns);
}

// Of a runtime of its own: the streams of one have their workers in common, and a worker stays where it was started.
std::vector<Figures> measure_on(const char* where, int processor_of_worker) {
  const Runtime runtime = must(Runtime::open(), "the runtime");
  const Device device = must(runtime.device(DeviceId{0}), "the device");
  must(device.make_current(), "the device on this thread");
  std::vector<Figures> figures = measure(device, where, processor_of_worker);
  must(runtime.finalize(), "the end");
  return figures;
}

}  // namespace

std::vector<Row> stream_rows() {
  const std::vector<Figures> apart = measure_on("a processor each", 1);
  const std::vector<Figures> together = measure_on("one processor", 0);
  const Ratio shared = ratio(together[2], together[0]);
  const Ratio control = ratio(together[1], together[0]);
  return {judge("enqueue of a copy in a stream / of a function in a bare queue", apart[2], apart[0], Goal::at_most,
                most_of_a_bare_queue, ratio(apart[1], apart[0])),
          {"the same, both threads on one processor",
           fmt::format("{:.2f} [{:.2f}..{:.2f}]", shared.value, shared.low, shared.high), "–", Verdict::for_information,
           fmt::format("{:.2f} [{:.2f}..{:.2f}]", control.value, control.low, control.high)}};
}

}  // namespace devshare::bench
