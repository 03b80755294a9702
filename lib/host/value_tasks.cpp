// SPDX-License-Identifier: Apache-2.0
// aclrtValueWrite and aclrtValueWait: a word of device memory as a signal, also between processes that share it.
//
// The word is written and read as one. Nobody tells of a write to memory, so a stream that waits looks again every
// millisecond; it holds up no thread meanwhile.
#include "block_record.hpp"
#include "calls.hpp"
#include "copy_ends.hpp"
#include "failure.hpp"
#include "queued_end.hpp"
#include "stream_alarms.hpp"
#include "stream_state.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace compare = acl::value_wait;

constexpr std::chrono::milliseconds look_again{1};

// The word in the view of its memory, which stays where it is while a task has the end.
struct Word {
  CopyEnd end;
  std::uint64_t* at = nullptr;
};

acl::aclError find_word(void* address, Word* out) {
  if (address == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "devAddr is null");
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof(std::uint64_t) != 0) {
    return refuse(code::rt_addr_unaligned, Reason::bad_argument,
                  fmt::format("{} is no address of a word of 64 bits: a multiple of 8 is", address));
  }
  if (const acl::aclError refused = resolve_end(address, sizeof(std::uint64_t), CopyWay::in_stream, &out->end))
    return refused;
  if (!out->end.in_block()) {
    return refuse(code::rt_param_invalid, Reason::not_device_memory, fmt::format("{} is host memory", address));
  }
  std::byte* const view = out->end.block.view();
  if (view == nullptr) return code::rt_drv_internal;  // and the refusal is recorded
  out->at = reinterpret_cast<std::uint64_t*>(view + out->end.offset);
  return code::success;
}

bool holds(std::uint64_t memory, std::uint64_t value, std::uint32_t flag) {
  switch (flag) {
    case compare::at_least:
      return static_cast<std::int64_t>(memory - value) >= 0;
    case compare::equal:
      return memory == value;
    case compare::common_bits:
      return (memory & value) != 0;
    default:
      return ~(memory | value) != 0;
  }
}

class WriteTask final : public Task {
 public:
  WriteTask(std::uint64_t* at, CopyEnd&& end, std::uint64_t value)
      : Task(acl::Entry::aclrtValueWrite, Kind::work), at_(at), end_(std::move(end)), value_(value) {}

  acl::aclError run() override {
    if (const acl::aclError refused = check_still_there(end_)) return refused;
    std::atomic_ref(*at_).store(value_, std::memory_order_release);
    return code::success;
  }

 private:
  std::uint64_t* at_;
  CopyEnd end_;
  std::uint64_t value_;
};

class WaitTask final : public Task {
 public:
  WaitTask(std::uint64_t* at, CopyEnd&& end, std::uint64_t value, std::uint32_t flag)
      : Task(acl::Entry::aclrtValueWait, Kind::control),
        at_(at),
        end_(std::move(end)),
        value_(value),
        flag_(flag) {}

  bool pass(StreamState& all, Queue& queue, TaskFailure* failure) override {
    alarm_.clear(all);
    if (holds(std::atomic_ref(*at_).load(std::memory_order_acquire), value_, flag_)) return true;
    if (const acl::aclError refused = check_still_there(end_)) {
      *failure = {.call = call(), .code = refused, .cause = last_cause(), .text = last_text()};
      return true;
    }
    alarm_.set(all, queue, std::chrono::steady_clock::now() + look_again);
    return false;
  }
  void dropped(StreamState& all, Queue&) override { alarm_.clear(all); }

 private:
  std::uint64_t* at_;
  CopyEnd end_;
  std::uint64_t value_;
  std::uint32_t flag_;
  Alarm alarm_;
};

}  // namespace

namespace calls {

aclError aclrtValueWrite(void* devAddr, std::uint64_t value, std::uint32_t flag, aclrtStream stream) {
  if (flag != 0)
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flag is {}, must be 0", flag));
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  Word word;
  if (const aclError refused = find_word(devAddr, &word)) return refused;
  if (const aclError refused = check_fill(word.end)) return refused;
  return enqueue(place, std::make_unique<WriteTask>(word.at, std::move(word.end), value));
}

aclError aclrtValueWait(void* devAddr, std::uint64_t value, std::uint32_t flag, aclrtStream stream) {
  if (flag > compare::nor) {
    return refuse(code::rt_param_invalid, Reason::bad_argument, fmt::format("flag is {}: 0 to 3 exist", flag));
  }
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  Word word;
  if (const aclError refused = find_word(devAddr, &word)) return refused;
  return enqueue(place, std::make_unique<WaitTask>(word.at, std::move(word.end), value, flag));
}

}  // namespace calls
}  // namespace devshare::host
