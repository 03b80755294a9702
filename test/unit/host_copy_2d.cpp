// SPDX-License-Identifier: Apache-2.0
// aclrtMemcpy2d and aclrtMemcpy2dAsync: rows and what lies between them, sizes that do not go together, and what the
// copies of one dimension refuse as well.
#include "host/block.hpp"
#include "imported_memory.hpp"
#include "physical_session.hpp"
#include "stream_session.hpp"
#include "support/catch.hpp"
#include "support/watchdog.hpp"

#include <devshare/host.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

using namespace devshare::test;
using devshare::host::Reason;
namespace acl = devshare::acl;
namespace code = devshare::acl::code;
namespace host = devshare::host;
namespace kind = devshare::acl::memcpy_kind;

namespace {

using Bytes = std::vector<unsigned char>;

constexpr Refusal no_such_direction{code::invalid_param, Reason::unsupported};
constexpr Refusal outside{code::rt_drv_internal, Reason::out_of_bounds};
constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

struct Shape {
  std::size_t width;
  std::size_t height;
  std::size_t to_pitch;
  std::size_t from_pitch;

  std::size_t to_span() const { return (height - 1) * to_pitch + width; }
  std::size_t from_span() const { return (height - 1) * from_pitch + width; }
};

// What a copy of that shape makes of `to`.
Bytes copied(Bytes to, const Bytes& from, const Shape& shape, std::size_t to_offset = 0, std::size_t from_offset = 0) {
  for (std::size_t row = 0; row < shape.height; ++row) {
    const auto start = from.begin() + static_cast<std::ptrdiff_t>(from_offset + row * shape.from_pitch);
    std::copy(start, start + static_cast<std::ptrdiff_t>(shape.width),
              to.begin() + static_cast<std::ptrdiff_t>(to_offset + row * shape.to_pitch));
  }
  return to;
}

class Matrices : public StreamSession {
 public:
  using StreamSession::StreamSession;

  // Device memory with these bytes.
  unsigned char* on_device(const Bytes& bytes) const {
    void* const memory = allocate(bytes.size());
    REQUIRE(memory != nullptr);
    REQUIRE(acl.aclrtMemcpy(memory, bytes.size(), bytes.data(), bytes.size(), kind::host_to_device) == 0);
    return static_cast<unsigned char*>(memory);
  }
  Bytes read(const void* memory, std::size_t size) const {
    Bytes bytes(size);
    REQUIRE(acl.aclrtMemcpy(bytes.data(), size, memory, size, kind::device_to_host) == 0);
    return bytes;
  }
  int copy(void* to, const void* from, const Shape& shape, acl::aclrtMemcpyKind how = kind::automatic) const {
    return acl.aclrtMemcpy2d(to, shape.to_pitch, from, shape.from_pitch, shape.width, shape.height, how);
  }
  int copy_in(acl::aclrtStream stream, void* to, const void* from, const Shape& shape,
              acl::aclrtMemcpyKind how = kind::automatic) const {
    return acl.aclrtMemcpy2dAsync(to, shape.to_pitch, from, shape.from_pitch, shape.width, shape.height, how, stream);
  }
};

// Few rows, which leave a block cold, and many; with nothing between them on one side, on the other, and on both.
const std::vector<Shape> shapes{{1, 1, 1, 1},       {100, 7, 100, 100},     {100, 7, 128, 100},
                                {100, 7, 100, 128}, {100, 7, 128, 300},     {64, 1000, 192, 80},
                                {1, 500, 3, 2},     {5000, 20, 8192, 5000}, {4096, 40, 4096, 4096}};

}  // namespace

TEST_CASE("rows go from the host to a device and back, and what lies between them stays") {
  Matrices session;
  for (const Shape& shape : shapes) {
    INFO(shape.width << " by " << shape.height << ", " << shape.to_pitch << " from " << shape.from_pitch);
    const Bytes source = pattern(shape.from_span(), 3);
    const Bytes before = pattern(shape.to_span() + 10, 90);  // with a few bytes on both sides
    unsigned char* const memory = session.on_device(before);
    CHECK(session.copy(memory + 5, source.data(), shape, kind::host_to_device) == 0);
    CHECK(session.read(memory, before.size()) == copied(before, source, shape, 5));

    unsigned char* const from = session.on_device(source);
    Bytes to = before;
    CHECK(session.copy(to.data() + 5, from, shape, kind::device_to_host) == 0);
    CHECK(to == copied(before, source, shape, 5));
    to = before;
    CHECK(session.copy(to.data() + 5, from, shape) == 0);  // the direction is read off the addresses
    CHECK(to == copied(before, source, shape, 5));
    CHECK(session.acl.aclrtFree(memory) == 0);
    CHECK(session.acl.aclrtFree(from) == 0);
  }
}

TEST_CASE("in a stream rows go inside a device and between devices as well") {
  const Watchdog watchdog("rows in a stream");
  Matrices session;
  enable_both_ways(session);
  const acl::aclrtStream stream = session.stream();
  for (const Shape& shape : shapes) {
    INFO(shape.width << " by " << shape.height << ", " << shape.to_pitch << " from " << shape.from_pitch);
    const Bytes source = pattern(shape.from_span(), 3);
    const Bytes before = pattern(shape.to_span() + 10, 90);
    const Bytes after = copied(before, source, shape, 5);
    unsigned char* const from = session.on_device(source);
    unsigned char* const inside = session.on_device(before);
    REQUIRE(session.acl.aclrtSetDevice(1) == 0);
    unsigned char* const beyond = session.on_device(before);
    REQUIRE(session.acl.aclrtSetDevice(0) == 0);
    const LockedBytes to(before.size(), 1);
    std::copy(before.begin(), before.end(), to.data());
    CHECK(session.copy_in(stream, inside + 5, from, shape, kind::device_to_device) == 0);
    CHECK(session.copy_in(stream, beyond + 5, from, shape) == 0);
    CHECK(session.copy_in(stream, to.data() + 5, from, shape, kind::device_to_host) == 0);
    CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
    CHECK(session.read(inside, before.size()) == after);
    CHECK(session.read(beyond, before.size()) == after);
    CHECK(Bytes(to.data(), to.data() + to.size()) == after);
    for (void* const memory : {from, inside, beyond}) CHECK(session.acl.aclrtFree(memory) == 0);
  }
}

TEST_CASE("rows go across the pieces of a reservation, and a hole refuses them all") {
  PhysicalSession session;
  std::byte* const place = session.reserve(4 * piece_size);
  for (std::size_t piece = 0; piece < 3; ++piece) session.fill_in(place + piece * piece_size);
  const Shape shape{3000, 700, 8000, 3100};  // 5.6 MB: a row of each border lies in two pieces
  const Bytes source = pattern(shape.from_span(), 5);
  const auto copy = [&](std::byte* to) {
    return session.acl.aclrtMemcpy2d(to, shape.to_pitch, source.data(), shape.from_pitch, shape.width, shape.height,
                                     kind::host_to_device);
  };
  CHECK(copy(place + 700) == 0);
  CHECK(session.read(place + 700, shape.to_span()) == copied(Bytes(shape.to_span()), source, shape));
  CHECK(refused(copy(place + 3 * piece_size - MiB)) == outside);
  CHECK(session.read(place + 3 * piece_size - 2000, 1000) == Bytes(1000));

  Bytes back(shape.width * shape.height);
  CHECK(session.acl.aclrtMemcpy2d(back.data(), shape.width, place + 700, shape.to_pitch, shape.width, shape.height,
                                  kind::device_to_host) == 0);
  CHECK(back == copied(Bytes(back.size()), source, {shape.width, shape.height, shape.width, shape.from_pitch}));
}

TEST_CASE("rows are checked before kinds, and kinds before sizes that are too large") {
  Matrices session;
  Bytes bytes(64);
  unsigned char* const memory = session.on_device(bytes);
  const acl::aclrtStream stream = session.stream();
  struct Wrong {
    const char* what;
    void* to;
    const void* from;
    Shape shape;
    acl::aclrtMemcpyKind how;
    Refusal refusal;
  };
  const Wrong both[] = {
      {"dst is null", nullptr, bytes.data(), {8, 8, 8, 8}, 99, null},
      {"src is null", memory, nullptr, {0, 8, 8, 8}, 1, null},
      {"height is 0", memory, bytes.data(), {0, 0, 8, 8}, 1, null},
      {"width is 0", memory, bytes.data(), {0, 8, 8, 8}, 1, null},
      {"dpitch 7", memory, bytes.data(), {8, 8, 7, 8}, 99, null},
      {"spitch 7", memory, bytes.data(), {8, 8, 8, 7}, 1, null},
      {"0 is no kind", memory, bytes.data(), {8, huge, 8, 8}, 0, null},
      {"5 is no kind", memory, bytes.data(), {8, 8, 8, 8}, 5, null},
      {"99 is no kind", memory, bytes.data(), {8, 8, 8, 8}, 99, null},
      {"height 5242881", memory, bytes.data(), {1, (5 << 20) + 1, 1, 1}, 1, bad},
      {"width 5000001", memory, bytes.data(), {5'000'001, 1, huge, huge}, 1, bad},
      {"more than there are addresses",
       memory,
       bytes.data(),
       {8, 3, huge, 8},
       1,
       {code::rt_param_invalid, Reason::out_of_bounds}},
      {"more than there are addresses",
       memory,
       bytes.data(),
       {8, 2, 8, huge},
       1,
       {code::rt_param_invalid, Reason::out_of_bounds}},
      {"leave the block", memory, bytes.data(), {8, 8, 9, 8}, 1, outside},
      {"leave the block", bytes.data(), memory + 1, {8, 8, 8, 8}, 2, outside},
      {"leave the block", memory, bytes.data(), {8, 5'000'000, std::size_t{1} << 40, 8}, 4, outside},
  };
  for (const Wrong& wrong : both) {
    INFO(wrong.what);
    CHECK(refused(session.copy(wrong.to, wrong.from, wrong.shape, wrong.how)) == wrong.refusal);
    CHECK_THAT(session.message(), contains(wrong.what));
    CHECK(refused(session.copy_in(stream, wrong.to, wrong.from, wrong.shape, wrong.how)) == wrong.refusal);
    CHECK_THAT(session.message(), contains(wrong.what));
  }
  CHECK(session.read(memory, 64) == bytes);  // not one row of what was refused
  CHECK(session.copy(memory, bytes.data(), {8, 8, 8, 8}) == 0);
  CHECK(session.copy(memory, bytes.data(), {64, 1, huge, huge}) == 0);  // one row has no pitch

  const auto elsewhere = reinterpret_cast<acl::aclrtStream>(std::uintptr_t{12345});
  CHECK(refused(session.copy_in(elsewhere, memory, bytes.data(), {8, 8, 8, 8})).reason == Reason::unknown_stream);
  CHECK(session.acl.aclrtFree(memory) == 0);
  CHECK(refused(session.copy(memory, bytes.data(), {8, 8, 8, 8})) ==
        Refusal{code::rt_drv_internal, Reason::not_device_memory});
}

TEST_CASE("a copy of rows needs a current device, as every copy") {
  HostSession session(-1);
  unsigned char bytes[8] = {};
  CHECK(refused(session.acl.aclrtMemcpy2d(bytes, 4, bytes + 4, 4, 4, 1, kind::host_to_device)) ==
        Refusal{code::rt_context_null, Reason::no_context});
}

TEST_CASE("directions that the documents do not give are refused, and in a stream those of the product") {
  const auto product = GENERATE(as<std::string>(), "a2", "a3", "950", "training", "310p");
  REQUIRE(host::set("PROFILE", product));
  {
    Matrices session;
    const Shape shape{8, 4, 16, 16};
    Bytes bytes(64);
    unsigned char* const one = session.on_device(bytes);
    unsigned char* const two = session.on_device(bytes);
    const acl::aclrtStream stream = session.stream();
    CHECK(refused(session.copy(bytes.data(), bytes.data() + 1, shape)) == no_such_direction);
    CHECK(refused(session.copy_in(stream, bytes.data(), bytes.data() + 1, shape)) == no_such_direction);
    CHECK(refused(session.copy(one, two, shape, kind::device_to_device)) == null);
    CHECK(refused(session.copy(one, two, shape)) == no_such_direction);
    CHECK_THAT(session.message(), contains("aclrtMemcpy2dAsync"));
    const bool has = product == "a2" || product == "a3" || product == "950";
    const int got = session.copy_in(stream, one, two, shape);
    CHECK(refused(got) == (has ? Refusal{0, Reason::none} : no_such_direction));
    CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  }
  host::unset_all();
}

TEST_CASE("R42 R45: rows of memory on another device need what other copies of it need") {
  Matrices session;
  const acl::aclrtStream stream = session.stream();
  const Shape shape{8, 4, 16, 16};
  Bytes bytes(64);
  unsigned char* const own = session.on_device(bytes);
  REQUIRE(session.acl.aclrtSetDevice(1) == 0);
  unsigned char* const on_1 = session.on_device(bytes);
  REQUIRE(session.acl.aclrtSetDevice(0) == 0);
  CHECK(refused(session.copy_in(stream, own, on_1, shape)) ==
        Refusal{code::rt_drv_internal, Reason::peer_access_missing});
  enable_both_ways(session);
  CHECK(session.copy_in(stream, own, on_1, shape) == 0);

  const Refusal afar{code::rt_feature_not_support, Reason::cross_device_copy};
  void* const imported = import({.device = 1, .local_device = 0});
  CHECK(refused(session.copy(imported, bytes.data(), shape, kind::host_to_device)) == afar);
  CHECK(refused(session.copy(bytes.data(), imported, shape, kind::device_to_host)) == afar);
  CHECK(refused(session.copy_in(stream, bytes.data(), imported, shape, kind::device_to_host)) == afar);
  CHECK(refused(session.copy_in(stream, own, imported, shape, kind::automatic)) == afar);
  CHECK(session.copy_in(stream, own, imported, shape, kind::device_to_device) == 0);
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  host::release_import(imported);
}

TEST_CASE("rows are not written into memory that was imported for reading") {
  Matrices session;
  const Bytes bytes(64);
  void* const imported = import({.read_only = true});
  CHECK(refused(session.copy(imported, bytes.data(), {8, 4, 16, 16})) ==
        Refusal{code::rt_drv_internal, Reason::read_only});
  host::release_import(imported);
}

TEST_CASE("rows keep their place in a stream, and their memory is held until then") {
  const Watchdog watchdog("rows in order");
  Matrices session;
  const acl::aclrtStream stream = session.stream();
  const Shape shape{8, 100, 16, 8};
  const LockedBytes first(shape.from_span(), 'a');
  const LockedBytes second(shape.from_span(), 'b');
  const LockedBytes seen(shape.from_span());
  unsigned char* const memory = session.on_device(Bytes(shape.to_span()));
  Gate gate;
  gate.hold_up(stream);
  REQUIRE(gate.code() == 0);
  const Shape back{shape.width, shape.height, shape.from_pitch, shape.to_pitch};
  REQUIRE(session.copy_in(stream, memory, first.data(), shape) == 0);
  REQUIRE(session.copy_in(stream, seen.data(), memory, back) == 0);
  REQUIRE(session.copy_in(stream, memory, second.data(), shape) == 0);
  CHECK(seen.all(0));
  CHECK(refused(session.acl.aclrtFree(memory)) == Refusal{code::rt_drv_internal, Reason::in_use});
  gate.open();
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
  CHECK(seen.all('a'));
  CHECK(session.read(memory, 17) == Bytes{'b', 'b', 'b', 'b', 'b', 'b', 'b', 'b', 0, 0, 0, 0, 0, 0, 0, 0, 'b'});
  CHECK(session.acl.aclrtFree(memory) == 0);
}

TEST_CASE("rows of host memory that is not page-locked are done when the call returns") {
  const Watchdog watchdog("pageable rows");
  Matrices session;
  const acl::aclrtStream stream = session.stream();
  const Shape shape{8, 100, 16, 8};
  const Bytes source = pattern(shape.from_span());
  unsigned char* const memory = session.on_device(Bytes(shape.to_span()));
  host::delay_task(acl::Entry::aclrtMemcpy2dAsync, 20);
  CHECK(session.copy_in(stream, memory, source.data(), shape) == 0);
  CHECK(session.read(memory, shape.to_span()) == copied(Bytes(shape.to_span()), source, shape));

  host::fail_task(acl::Entry::aclrtMemcpy2dAsync, 1, code::rt_drv_internal);
  CHECK(refused(session.copy_in(stream, memory, source.data(), shape)) ==
        Refusal{code::rt_drv_internal, Reason::injected});
  CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);  // its error was the call's
}

TEST_CASE("copies of rows are failed, and written down, like other calls") {
  Matrices session;
  Bytes bytes(64);
  unsigned char* const memory = session.on_device(bytes);
  host::record_calls(true);
  host::fail(acl::Entry::aclrtMemcpy2d, 1, code::rt_drv_internal);
  CHECK(refused(session.copy(memory, bytes.data(), {8, 4, 16, 12}, kind::host_to_device)) ==
        Refusal{code::rt_drv_internal, Reason::injected});
  CHECK(session.copy(memory, bytes.data(), {8, 4, 16, 12}, kind::host_to_device) == 0);
  const auto calls = host::recorded_calls();
  host::record_calls(false);
  REQUIRE(calls.size() == 2);
  CHECK(calls[1].call == acl::Entry::aclrtMemcpy2d);
  CHECK_THAT(calls[1].arguments,
             contains(R"("dpitch":16)") && contains(R"("spitch":12,"width":8,"height":4,"kind":1)"));
}

TEST_CASE("many rows map their block at once, few leave it to its descriptor") {
  Matrices session;
  unsigned char* const memory = session.on_device(Bytes(64 << 10));
  const Bytes row(8);
  const auto views = [] { return host::block_counters().views; };
  const auto before = views();
  CHECK(session.copy(memory, row.data(), {1, 8, 64, 1}) == 0);
  CHECK(views() == before);
  const Bytes many(1000);
  CHECK(session.copy(memory, many.data(), {1, 1000, 64, 1}) == 0);
  CHECK(views() == before + 1);
}
