// SPDX-License-Identifier: Apache-2.0
// Physical handles: a whole share by token, many pieces mapped into one range, and a pool that wakes.
#include "by_hand/by_hand.hpp"
#include "by_hand/sealed_memfd.hpp"
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "share_driver.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

// --- a whole share ---

void measure_shares(std::vector<Row>* rows) {
  enum : std::uint32_t { hand_copies, handle_copies, hand_views, handle_views };
  const ShareDriver driver([] {
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(by_hand(Touch::copies));
    ways.push_back(by_devshare_handles(Touch::copies));
    ways.push_back(by_hand(Touch::views));
    ways.push_back(by_devshare_handles(Touch::views));
    return ways;
  }());
  for (const auto& [size, bytes] : {std::pair{"2 MiB", 2 * MiB}, {"64 MiB", 64 * MiB}, {"1 GiB", 1024 * MiB}}) {
    const auto measure = [&, size = size, bytes = bytes](const char* touch, std::uint32_t hand, std::uint32_t handle,
                                                         int turns) {
      const auto name = [&](const char* who) { return fmt::format("{}, {}, {}", who, touch, size); };
      const std::vector<Figures> figures = alternate(
          {
              driver.contender(name("by hand"), hand, bytes),
              driver.contender(name("by hand, again"), hand, bytes),
              driver.contender(name("handle"), handle, bytes),
          },
          turns);
      rows->push_back(judge(fmt::format("share by handle of {}, {} / by hand", size, touch), figures[2], figures[0],
                            Goal::at_most, 1.10, ratio(figures[1], figures[0])));
    };
    measure("copies", hand_copies, handle_copies, turns_with_copies);
    measure("views", hand_views, handle_views, turns_with_views);
  }
}

// --- pieces ---

constexpr std::size_t pieces = 1024;
constexpr std::size_t piece_size = 2 * MiB;

void raise_descriptor_limit() {
  rlimit descriptors{};
  ::getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &descriptors);
}

// The time to map so many memfds, made for it, one behind the other at a place of their own.
double map_pieces_by_hand() {
  std::vector<int> memory;
  memory.reserve(pieces);
  for (std::size_t i = 0; i < pieces; ++i) memory.push_back(make_sealed_memfd(piece_size));
  void* const range = ::mmap(nullptr, pieces * piece_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) give_up("mmap");
  const double begin = now_ns();
  for (std::size_t i = 0; i < pieces; ++i) {
    void* const place = static_cast<std::byte*>(range) + i * piece_size;
    if (::mmap(place, piece_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory[i], 0) == MAP_FAILED) {
      give_up("mmap");
    }
  }
  const double taken = now_ns() - begin;
  ::munmap(range, pieces * piece_size);
  for (const int descriptor : memory) ::close(descriptor);
  return taken;
}

// The same of handles into a range whose first piece a kernel looks at already.
double map_pieces_by_devshare(const Device& device, bool viewed) {
  std::vector<PhysicalHandle> handles;
  handles.reserve(pieces);
  for (std::size_t i = 0; i < pieces; ++i) handles.push_back(must(PhysicalHandle::allocate(device, piece_size), "memory"));
  auto range = must(AddressReservation::reserve(device, pieces * piece_size), "a range");
  auto mapped = std::move(range).map(std::move(handles.front()));
  if (!mapped) give_up("the first piece");
  Mapping mapping = *std::move(mapped);
  if (viewed) must(host::view(mapping.bytes()), "a view");
  const double begin = now_ns();
  for (std::size_t i = 1; i < pieces; ++i) {
    if (!mapping.extend(std::move(handles[i]))) give_up("a piece");
  }
  if (viewed) must(host::view(mapping.bytes()), "a view of all");
  const double taken = now_ns() - begin;
  must(std::move(mapping).close(), "closing");
  return taken;
}

void measure_pieces(std::vector<Row>* rows) {
  raise_descriptor_limit();
  const auto runtime = must(Runtime::open(), "the runtime");
  const auto device = must(runtime.device(DeviceId{0}), "the device");
  must(device.make_current(), "the device is current");
  const auto figures = alternate({
      {"1,024 pieces by mmap", [] { return map_pieces_by_hand(); }},
      {"1,024 pieces by mmap, again", [] { return map_pieces_by_hand(); }},
      {"1,024 pieces by devshare, viewed", [&] { return map_pieces_by_devshare(device, true); }},
      {"1,024 pieces by devshare", [&] { return map_pieces_by_devshare(device, false); }},
  });
  const Ratio control = ratio(figures[1], figures[0]);
  rows->push_back(judge("1,024 pieces of 2 MiB mapped, a view in use / bare mmap", figures[2], figures[0], Goal::at_most,
                        1.15, control));
  const Ratio unviewed = ratio(figures[3], figures[0]);
  rows->push_back({"1,024 pieces of 2 MiB mapped, no view / bare mmap", fmt::format("{:.2f}", unviewed.value), "–",
                   Verdict::for_information, "as above"});
}

// --- wake ---

void populate(void* bytes, std::size_t size) {
  if (::madvise(bytes, size, MADV_POPULATE_WRITE) != 0) give_up("madvise");
}

double wake_by_hand(std::size_t size) {
  const double begin = now_ns();
  const int descriptor = make_sealed_memfd(size);
  std::byte* const bytes = map_whole(descriptor, size);
  populate(bytes, size);
  const double taken = now_ns() - begin;
  unmap_whole(bytes, size);
  ::close(descriptor);
  return taken;
}

double wake_by_devshare(Mapping& pool) {
  const double begin = now_ns();
  must(pool.restore(), "waking");
  const auto bytes = must(host::view(pool.bytes()), "a view");
  populate(bytes.data(), bytes.size());
  const double taken = now_ns() - begin;
  must(pool.release_backing(), "sleeping");
  return taken;
}

void measure_wake(std::vector<Row>* rows) {
  constexpr std::size_t size = 1024 * MiB;
  const auto runtime = must(Runtime::open(), "the runtime");
  const auto device = must(runtime.device(DeviceId{0}), "the device");
  must(device.make_current(), "the device is current");
  Mapping pool = must(allocate_for<v2>(device, size), "a pool");
  must(pool.release_backing(), "sleeping");
  const auto figures = alternate({
      {"1 GiB mapped and populated", [&] { return wake_by_hand(size); }},
      {"1 GiB mapped and populated, again", [&] { return wake_by_hand(size); }},
      {"1 GiB woken and populated", [&] { return wake_by_devshare(pool); }},
  });
  rows->push_back(judge("wake of 1 GiB, populated / bare mmap and populate", figures[2], figures[0], Goal::at_most, 1.10,
                        ratio(figures[1], figures[0])));
  must(std::move(pool).close(), "closing");
}

}  // namespace

std::vector<Row> handle_rows() {
  std::vector<Row> rows;
  measure_shares(&rows);
  measure_pieces(&rows);
  measure_wake(&rows);
  return rows;
}

}  // namespace devshare::bench
