// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpy2d and aclrtMemcpy2dAsync: what they refuse, the sizes first, and then the rows.
//
// The documents give the blocking call the two directions between host and device, and the asynchronous one those
// inside a device and between devices too, on some products; of the others it returns 100000. Both take at most so many
// rows, and so much of each, and name no code for more.
#include "calls.hpp"
#include "copy_rows.hpp"
#include "device.hpp"
#include "failure.hpp"
#include "profile.hpp"
#include "queued_end.hpp"
#include "stream_state.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace devshare::host {
namespace {

namespace code = acl::code;
namespace kind = acl::memcpy_kind;

constexpr std::uint64_t most_rows = std::uint64_t{5} << 20;
constexpr std::uint64_t widest_row = 5'000'000;

// What a call was asked to copy, and the ends that it turned out to have.
struct Request {
  void* destination;
  const void* source;
  Rows rows;
  acl::aclrtMemcpyKind kind;
  CopyWay way;
  std::uint64_t to_span = 0;
  std::uint64_t from_span = 0;
  CopyEnd to = {};
  CopyEnd from = {};
};

acl::aclError refuse_argument(std::string text) {
  return refuse(code::invalid_param, Reason::bad_argument, std::move(text));
}

acl::aclError refuse_too_large(const char* what, std::uint64_t asked, std::uint64_t most) {
  return refuse(code::rt_param_invalid, {.reason = Reason::bad_argument, .needed = asked, .available = most},
                fmt::format("{} {} is more than the {} that there may be", what, asked, most));
}

acl::aclError check_kind(acl::aclrtMemcpyKind asked, CopyWay way) {
  const bool inside = asked == kind::device_to_device && way == CopyWay::in_stream;
  if (asked == kind::host_to_device || asked == kind::device_to_host || asked == kind::automatic || inside) return 0;
  return refuse_argument(way == CopyWay::in_stream
                             ? fmt::format("{} is no kind of aclrtMemcpy2dAsync: 1 to 4 are", asked)
                             : fmt::format("{} is no kind of aclrtMemcpy2d: 1, 2 and 4 are", asked));
}

acl::aclError check_arguments(Request* request) {
  const Rows& rows = request->rows;
  if (request->destination == nullptr) return refuse_argument("dst is null");
  if (request->source == nullptr) return refuse_argument("src is null");
  if (rows.height == 0) return refuse_argument("height is 0");
  if (rows.width == 0) return refuse_argument("width is 0");
  if (rows.width > rows.from_pitch || rows.width > rows.to_pitch) {
    return refuse_argument(fmt::format("width {} is more than dpitch {} or spitch {}: rows would run into each other",
                                       rows.width, rows.to_pitch, rows.from_pitch));
  }
  if (const acl::aclError refused = check_kind(request->kind, request->way)) return refused;
  if (rows.height > most_rows) return refuse_too_large("height", rows.height, most_rows);
  if (rows.width > widest_row) return refuse_too_large("width", rows.width, widest_row);
  if (rows.span(rows.to_pitch, &request->to_span) && rows.span(rows.from_pitch, &request->from_span)) return 0;
  return refuse(code::rt_param_invalid, Reason::out_of_bounds,
                fmt::format("{} rows at dpitch {} or spitch {} are more than there are addresses", rows.height,
                            rows.to_pitch, rows.from_pitch));
}

acl::aclError refuse_direction(const char* text) { return refuse(code::invalid_param, Reason::unsupported, text); }

// Read off the addresses, as by the calls of one dimension.
acl::aclError check_direction(const Request& request) {
  if (request.to.on_device() != request.from.on_device()) return 0;
  if (!request.to.on_device()) return refuse_direction("no copy of rows from host memory to host memory: use memcpy");
  if (request.way == CopyWay::blocking) {
    return refuse_direction(
        "aclrtMemcpy2d copies between the host and a device only: between memory of devices aclrtMemcpy2dAsync does");
  }
  if (profile().product != Product::p310 && profile().product != Product::training) return 0;
  return refuse_direction("this product copies rows between the host and a device only");
}

acl::aclError resolve(Request* request) {
  const CopyWay way = request->way;
  if (const acl::aclError refused = resolve_end(request->destination, request->to_span, way, &request->to))
    return refused;
  if (const acl::aclError refused = resolve_end(request->source, request->from_span, way, &request->from))
    return refused;
  if (const acl::aclError refused = check_direction(*request)) return refused;
  if (const acl::aclError refused = check_writable(request->to)) return refused;
  return check_devices(request->to, request->from, request->kind, way);
}

class Copy2dTask final : public Task {
 public:
  Copy2dTask(Request&& request, HostHold&& host)
      : Task(acl::Entry::aclrtMemcpy2dAsync, Kind::work),
        destination_(request.destination),
        rows_(request.rows),
        to_(std::move(request.to)),
        from_(std::move(request.from)),
        host_(std::move(host)) {}

  acl::aclError run() override {
    if (const acl::aclError refused = check_still_there(to_)) return refused;
    if (const acl::aclError refused = check_still_there(from_)) return refused;
    return move_rows(to_, destination_, from_, rows_);
  }

 private:
  void* destination_;
  Rows rows_;
  CopyEnd to_;
  CopyEnd from_;
  HostHold host_;
};

}  // namespace

acl::aclError calls::aclrtMemcpy2d(void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                                   std::size_t width, std::size_t height, aclrtMemcpyKind kind) {
  Request request{.destination = dst,
                  .source = src,
                  .rows = {.width = width, .height = height, .to_pitch = dpitch, .from_pitch = spitch},
                  .kind = kind,
                  .way = CopyWay::blocking};
  if (const aclError refused = check_arguments(&request)) return refused;
  DeviceNumber device;
  if (const aclError refused = current_device(&device)) return refused;
  if (const aclError refused = resolve(&request)) return refused;
  return move_rows(request.to, dst, request.from, request.rows);
}

acl::aclError calls::aclrtMemcpy2dAsync(void* dst, std::size_t dpitch, const void* src, std::size_t spitch,
                                        std::size_t width, std::size_t height, aclrtMemcpyKind kind,
                                        aclrtStream stream) {
  Request request{.destination = dst,
                  .source = src,
                  .rows = {.width = width, .height = height, .to_pitch = dpitch, .from_pitch = spitch},
                  .kind = kind,
                  .way = CopyWay::in_stream};
  if (const aclError refused = check_arguments(&request)) return refused;
  StreamPlace place;
  if (const aclError refused = place_of(stream, &place)) return refused;
  if (const aclError refused = resolve(&request)) return refused;
  HostHold host;
  const bool waits = !hold_end(request.to, request.to_span, &host) || !hold_end(request.from, request.from_span, &host);
  auto task = std::make_unique<Copy2dTask>(std::move(request), std::move(host));
  return waits ? enqueue_and_wait(place, std::move(task)) : enqueue(place, std::move(task));
}

}  // namespace devshare::host
