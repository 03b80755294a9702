// SPDX-License-Identifier: Apache-2.0
// Warm copies of every size, against memcpy between two ordinary buffers: after so much was copied that the host
// runtime went over to a mapping (docs/host-runtime.md), and once more just before, since the page tables of a mapping
// that lay idle are slow on a virtual machine.
//
// Of many bytes more is asked than memcpy, where the machine has more: what streaming stores and `rep movsb` gain by
// themselves is measured with them.
#include "by_hand/streaming_copy.hpp"
#include "parts.hpp"
#include "process.hpp"
#include "rounds.hpp"
#include "way.hpp"

#include <devshare/devshare.hpp>
#include <devshare/format.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace devshare::bench {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t in_a_turn = 4 * MiB;  // bytes, and one copy at least
constexpr double never_below = 0.95;
constexpr double asked_of_many = 1.25;
constexpr double there_to_gain = 1.3;  // by the bare primitive: with less, no row can ask for asked_of_many

struct Size {
  std::size_t bytes;
  const char* name;
  bool many;
  int turns;
};
constexpr Size sizes[] = {
    {4 * KiB, "4 KiB", false, 24},  {64 * KiB, "64 KiB", false, 24}, {MiB, "1 MiB", false, 24},
    {64 * MiB, "64 MiB", true, 24}, {1024 * MiB, "1 GiB", true, 4},
};

template <class R>
auto must(R result, const char* what) {
  if (!result) give_up(fmt::format("{}: {}", what, detail::plain_error(result.error())));
  if constexpr (!std::is_void_v<typename R::value_type>) return *std::move(result);
}

// Memory of the host in pages of the usual size, all there, and at the start of one.
class Buffer {
 public:
  Buffer(std::size_t size, unsigned seed) : size_(size) {
    void* const mapped = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) give_up("mapping a buffer");
    bytes_ = static_cast<std::byte*>(mapped);
    ::madvise(bytes_, size, MADV_NOHUGEPAGE);
    for (std::size_t i = 0; i < size; ++i) bytes_[i] = static_cast<std::byte>((i * 7 >> 5) + seed);
  }
  ~Buffer() { ::munmap(bytes_, size_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return bytes_; }
  std::span<std::byte> all() const { return {bytes_, size_}; }

 private:
  std::byte* bytes_;
  std::size_t size_;
};

// Nanoseconds of one copy, of several in a row after one that does not count.
template <class Copy>
Contender contender(const char* name, const Size& size, Copy copy) {
  const std::size_t times = std::max<std::size_t>(1, in_a_turn / size.bytes);
  return {fmt::format("warm {}: {}", size.name, name), [copy, times] {
            copy();
            const double begin = now_ns();
            for (std::size_t i = 0; i < times; ++i) copy();
            return (now_ns() - begin) / static_cast<double>(times);
          }};
}

// The rows of the three directions against a goal.
struct Directions {
  const Size& size;
  const Figures& plain;
  std::vector<std::pair<const char*, const Figures*>> all;
  Ratio control;

  void judge_all(Goal goal, double limit, const std::string& note, bool possible, std::vector<Row>* rows) const {
    for (const auto& [name, figures] : all) {
      Row row = judge(fmt::format("warm copy {}, {}, memcpy / devshare", name, size.name), plain, *figures, goal, limit,
                      control, note);
      rows->push_back(possible ? std::move(row) : out_of_reach(std::move(row)));
    }
  }
};

void measure(const Device& device, const Size& size, std::vector<Row>* rows) {
  const Buffer source(size.bytes, 1);
  const Buffer target(size.bytes, 2);
  auto memory = must(DeviceMemory::allocate(device, size.bytes), "allocating");
  auto other = must(DeviceMemory::allocate(device, size.bytes), "allocating");
  const auto plain = [&] {
    std::memcpy(target.data(), source.data(), size.bytes);
    asm volatile("" : : "r"(target.data()) : "memory");  // somebody reads it
  };
  const auto in = [&] { must(copy_to_device(device, memory.bytes(), source.all()), "copying in"); };
  const auto inside = [&] { must(copy_on_device(device, other.bytes(), memory.bytes()), "copying inside"); };
  const auto out = [&] {
    auto bytes = target.all();
    must(copy_to_host(device, bytes, other.bytes()), "copying out");
  };
  // More than four times the block, and more than 64 KiB.
  const std::size_t copies_until_mapped = std::max<std::size_t>(6, 128 * KiB / size.bytes);
  for (std::size_t i = 0; i < copies_until_mapped; ++i) {
    in();
    inside();
    out();
  }
  if (std::memcmp(source.data(), target.data(), size.bytes) != 0) give_up("the bytes are not those that were written");

  std::vector<Contender> contenders{contender("memcpy", size, plain), contender("devshare, in", size, in),
                                    contender("devshare, out", size, out), contender("devshare, inside", size, inside)};
  const bool bare = size.many && stream_by_hand(target.data(), source.data(), size.bytes);
  if (bare) {
    contenders.push_back(
        contender("streaming stores", size, [&] { stream_by_hand(target.data(), source.data(), size.bytes); }));
    contenders.push_back(
        contender("rep movsb", size, [&] { move_string_by_hand(target.data(), source.data(), size.bytes); }));
  }
  contenders.push_back(contender("memcpy, again", size, plain));
  const auto figures = alternate(contenders, size.turns);
  const Figures& memcpy_alone = figures.front();
  const Directions directions{size,
                              memcpy_alone,
                              {{"in", &figures[1]}, {"out", &figures[2]}, {"inside", &figures[3]}},
                              ratio(figures.back(), memcpy_alone)};
  directions.judge_all(Goal::at_least, never_below, "", true, rows);
  if (!bare) return;
  const double stores = ratio(memcpy_alone, figures[4]).value;
  const double string = ratio(memcpy_alone, figures[5]).value;
  rows->push_back({fmt::format("{}, memcpy / bare streaming stores", size.name), fmt::format("{:.2f}", stores), "–",
                   Verdict::for_information, "as above"});
  rows->push_back({fmt::format("{}, memcpy / bare rep movsb", size.name), fmt::format("{:.2f}", string), "–",
                   Verdict::for_information, "as above"});
  const double most = std::max(stores, string);
  directions.judge_all(Goal::at_least, asked_of_many, fmt::format(", bare {:.2f}", most), most >= there_to_gain, rows);
}

void measure_fill(const Device& device, const Size& size, std::vector<Row>* rows) {
  const Buffer target(size.bytes, 2);
  auto memory = must(DeviceMemory::allocate(device, size.bytes), "allocating");
  const auto plain = [&] {
    std::memset(target.data(), 7, size.bytes);
    asm volatile("" : : "r"(target.data()) : "memory");
  };
  const auto ours = [&] { must(fill(device, memory.bytes(), std::byte{7}), "filling"); };
  for (int i = 0; i < 6; ++i) ours();
  const auto figures = alternate({contender("memset", size, plain), contender("memset, again", size, plain),
                                  contender("devshare, fill", size, ours)},
                                 size.turns);
  rows->push_back(judge(fmt::format("warm fill, {}, memset / devshare", size.name), figures[0], figures[2],
                        Goal::at_least, never_below, ratio(figures[1], figures[0])));
}

}  // namespace

std::vector<Row> warm_copy_rows() {
  pin_to(0);
  const Runtime runtime = must(Runtime::open(), "the runtime");
  const Device device = must(runtime.device(DeviceId{0}), "the device");
  must(device.make_current(), "the device on this thread");
  std::vector<Row> rows;
  for (const Size& size : sizes) {
    measure(device, size, &rows);
    if (size.many) measure_fill(device, size, &rows);
  }
  return rows;
}

}  // namespace devshare::bench
