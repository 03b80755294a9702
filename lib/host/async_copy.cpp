// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpyAsync and aclrtMemsetAsync: everything is looked at when they are called, the bytes move in the stream's
// turn. Memory that a task uses is pinned until then.
#include "calls.hpp"
#include "copy_ends.hpp"
#include "queued_end.hpp"
#include "stream_state.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace kind = acl::memcpy_kind;

// About as long as it takes to wake a thread.
constexpr std::uint64_t brief_bytes = 64 << 10;
constexpr Task::Kind kind_of(std::uint64_t count) { return count <= brief_bytes ? Task::Kind::brief : Task::Kind::work; }

class CopyTask final : public Task {
 public:
  CopyTask(void* destination, CopyEnd&& to, CopyEnd&& from, HostHold&& host, std::uint64_t count)
      : Task(acl::Entry::aclrtMemcpyAsync, kind_of(count)),
        destination_(destination),
        to_(std::move(to)),
        from_(std::move(from)),
        host_(std::move(host)),
        count_(count) {}

  acl::aclError run() override {
    if (const acl::aclError refused = check_still_there(to_)) return refused;
    if (const acl::aclError refused = check_still_there(from_)) return refused;
    return move_bytes(to_, destination_, from_, count_);
  }
  void give_up(EndedPins& pins) noexcept override {
    to_.end(pins);
    from_.end(pins);
  }

 private:
  void* destination_;
  CopyEnd to_;
  CopyEnd from_;
  HostHold host_;
  std::uint64_t count_;
};

class FillTask final : public Task {
 public:
  FillTask(void* destination, CopyEnd&& to, HostHold&& host, unsigned char byte, std::uint64_t count)
      : Task(acl::Entry::aclrtMemsetAsync, kind_of(count)),
        destination_(destination),
        to_(std::move(to)),
        host_(std::move(host)),
        byte_(byte),
        count_(count) {}

  acl::aclError run() override {
    if (const acl::aclError refused = check_still_there(to_)) return refused;
    return fill_bytes(to_, destination_, byte_, count_);
  }
  void give_up(EndedPins& pins) noexcept override { to_.end(pins); }

 private:
  void* destination_;
  CopyEnd to_;
  HostHold host_;
  unsigned char byte_;
  std::uint64_t count_;
};

[[gnu::cold]] acl::aclError refuse_kind(acl::aclrtMemcpyKind kind) {
  return refuse(code::invalid_param, Reason::bad_argument,
                fmt::format("{} is no kind of aclrtMemcpyAsync: 0 to 7 are", kind));
}

[[gnu::cold]] acl::aclError refuse_count(std::size_t count, const char* most_is, std::size_t most) {
  return refuse(code::rt_param_invalid, {.reason = Reason::out_of_bounds, .needed = count, .available = most},
                fmt::format("count {} is more than {} {}", count, most_is, most));
}

[[gnu::cold]] acl::aclError refuse_host_to_host() {
  return refuse(code::rt_feature_not_support, Reason::unsupported,
                "no asynchronous copy from host memory to host memory: use memcpy, or aclrtMemcpy");
}

template <class T, class... Arguments>
acl::aclError put(const StreamPlace& place, bool waits, Arguments&&... arguments) {
  if (waits) return enqueue_and_wait(place, std::make_unique<T>(std::forward<Arguments>(arguments)...));
  return enqueue<T>(place, std::forward<Arguments>(arguments)...);
}

}  // namespace

acl::aclError calls::aclrtMemcpyAsync(void* dst, std::size_t destMax, const void* src, std::size_t count,
                                      aclrtMemcpyKind kind, aclrtStream stream) {
  if (count == 0) return code::success;
  if (dst == nullptr || src == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument, dst == nullptr ? "dst is null" : "src is null");
  }
  if (kind < kind::host_to_host || kind > kind::inter_device_to_device) return refuse_kind(kind);
  if (count > destMax) return refuse_count(count, "destMax", destMax);
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  CopyEnd to;
  CopyEnd from;
  if (const aclError refused = resolve_end(dst, count, CopyWay::in_stream, &to)) return refused;
  if (const aclError refused = resolve_end(src, count, CopyWay::in_stream, &from)) return refused;
  if (!to.on_device() && !from.on_device()) return refuse_host_to_host();
  if (const aclError refused = check_writable(to)) return refused;
  if (const aclError refused = check_devices(to, from, kind, CopyWay::in_stream)) return refused;
  HostHold host;
  const bool waits = !hold_end(to, count, &host) || !hold_end(from, count, &host);
  return put<CopyTask>(place, waits, dst, std::move(to), std::move(from), std::move(host), count);
}

acl::aclError calls::aclrtMemsetAsync(void* devPtr, std::size_t maxCount, std::int32_t value, std::size_t count,
                                      aclrtStream stream) {
  if (devPtr == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "devPtr is null");
  if (count > maxCount) return refuse_count(count, "maxCount", maxCount);
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  if (count == 0) return code::success;
  CopyEnd to;
  if (const aclError refused = resolve_end(devPtr, count, CopyWay::in_stream, &to)) return refused;
  if (const aclError refused = check_fill(to)) return refused;
  HostHold host;
  const bool waits = !hold_end(to, count, &host);
  return put<FillTask>(place, waits, devPtr, std::move(to), std::move(host), static_cast<unsigned char>(value), count);
}

}  // namespace devshare::host
