// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpy and aclrtMemset: what they refuse, in the order of the facts, and then the bytes.
#include "calls.hpp"
#include "copy_at_hand.hpp"
#include "copy_ends.hpp"
#include "device.hpp"
#include "failure.hpp"

#include <fmt/format.h>

namespace devshare::host {

namespace kind = acl::memcpy_kind;
namespace code = acl::code;

namespace {

[[gnu::noinline]] acl::aclError copy_after_a_look(void* dst, const void* src, std::size_t count,
                                                  acl::aclrtMemcpyKind kind) {
  DeviceNumber device;
  if (const acl::aclError refused = current_device(&device)) return refused;
  if (dst == src) return 0;
  CopyEnd to;
  CopyEnd from;
  if (const acl::aclError refused = resolve_end(dst, count, CopyWay::blocking, &to)) return refused;
  if (const acl::aclError refused = resolve_end(src, count, CopyWay::blocking, &from)) return refused;
  if (const acl::aclError refused = check_writable(to)) return refused;
  if (const acl::aclError refused = check_devices(to, from, kind, CopyWay::blocking)) return refused;
  return move_bytes(to, dst, from, count);
}

}  // namespace

acl::aclError calls::aclrtMemcpy(void* dst, std::size_t destMax, const void* src, std::size_t count,
                                 aclrtMemcpyKind kind) {
  if (count == 0) return 0;  // without a look at anything else
  if (dst == nullptr || src == nullptr) {
    return refuse(code::invalid_param, Reason::bad_argument, dst == nullptr ? "dst is null" : "src is null");
  }
  if (kind < kind::host_to_host || kind > kind::host_to_buffer_to_device) {
    return refuse(
        code::invalid_param, Reason::bad_argument,
        fmt::format("{} is no kind of aclrtMemcpy: 0 to 5 are (6 and 7 belong to the asynchronous call)", kind));
  }
  if (count > destMax) {
    return refuse(code::rt_param_invalid, {.reason = Reason::out_of_bounds, .needed = count, .available = destMax},
                  fmt::format("count {} is more than destMax {}", count, destMax));
  }
  if (dst != src && copied_in_call(dst, src, count)) return 0;
  return copy_after_a_look(dst, src, count, kind);
}

acl::aclError calls::aclrtMemset(void* devPtr, std::size_t maxCount, std::int32_t value, std::size_t count) {
  if (devPtr == nullptr) return refuse(code::invalid_param, Reason::bad_argument, "devPtr is null");
  if (count > maxCount) {
    return refuse(code::rt_param_invalid, {.reason = Reason::out_of_bounds, .needed = count, .available = maxCount},
                  fmt::format("count {} is more than maxCount {}", count, maxCount));
  }
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (count == 0) return 0;
  CopyEnd to;
  if (const aclError refused = resolve_end(devPtr, count, CopyWay::blocking, &to)) return refused;
  if (const aclError refused = check_fill(to)) return refused;
  return fill_bytes(to, devPtr, static_cast<unsigned char>(value), count);
}

}  // namespace devshare::host
