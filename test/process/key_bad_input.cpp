// SPDX-License-Identifier: Apache-2.0
// Every public function given what it must not be given: null, zero, huge, foreign, closed. Each answers with its
// documented error, and nothing is left behind. Moved-from objects are in key_lifetimes.cpp, forked ones in
// key_fork.cpp.
#include "support/sharing.hpp"

#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t block = 64 * 1024;
constexpr std::size_t huge = std::numeric_limits<std::size_t>::max();

// Apart from the export's own block of code: clang's -Wconsumed loses track of an object in loops before it is consumed.
void admits_nobody(const Party& a, SharedMemoryKey<>& key) {
  refused_as(a, key.admit(std::span<const BarePid>()), Errc::invalid_argument, "nobody");
  for (const std::int32_t pid : {0, -1, std::numeric_limits<std::int32_t>::min()}) {
    refused_as(a, key.admit(BarePid::from_peer_message(pid)), Errc::invalid_argument, fmt::format("pid {}", pid));
  }
  const BarePid somebody = BarePid::from_peer_message(1);
  for (const Slice slice : {Slice{0, block + 1}, Slice{block, 1}, Slice{1, block}, Slice{1, 0}, Slice{huge, 1},
                            Slice{1, huge}, Slice{huge, huge}}) {
    refused_as(a, key.admit(somebody, slice), Errc::out_of_range, fmt::format("{} from {}", slice.size, slice.offset));
  }
}

}  // namespace

TEST_CASE("devices that are none") {
  alone([](const Party& a) {
    for (const std::int32_t number : {-1, 2, 63, 64, std::numeric_limits<std::int32_t>::max(),
                                      std::numeric_limits<std::int32_t>::min()}) {
      const auto device = a.runtime.device(DeviceId{number});
      refused_as(a, device, Errc::no_such_device, fmt::format("device {}", number));
      if (!device) a.me.expect_equal(device.error().detail().device, number, "the error names the device");
    }
  });
}

TEST_CASE("sizes that are none, or more than there is") {
  alone([](const Party& a) {
    refused_as(a, DeviceMemory::allocate(a.device, 0), Errc::invalid_argument, "no bytes");
    refused_as(a, DeviceMemory::allocate(a.device, huge), Errc::out_of_memory, "all bytes there are");
    refused_as(a, DeviceMemory::allocate(a.device, std::size_t{1} << 62), Errc::out_of_memory, "4 EiB");
    const auto refused = DeviceMemory::allocate(a.device, std::size_t{65} << 30);
    refused_as(a, refused, Errc::out_of_memory, "more than the device has");
    if (!refused) a.me.expect(refused.error().detail().needed >= std::size_t{65} << 30, "the error says how much");
  });
}

TEST_CASE("copies and fills that do not fit, or are not of device memory") {
  alone([](const Party& a) {
    DeviceMemory memory = a.allocate(block);
    Bytes more(block + 1);
    Bytes bytes(block);
    refused_as(a, copy_to_device(a.device, memory.bytes(), more), Errc::out_of_range, "more than the memory holds");
    Bytes less(block - 1);
    refused_as(a, copy_to_host(a.device, less, memory.bytes()), Errc::out_of_range, "less room than bytes");
    DeviceMemory small = a.allocate(16);
    refused_as(a, copy_on_device(a.device, small.bytes(), memory.bytes()), Errc::out_of_range, "a smaller block");
    const DeviceSpan<std::byte> beyond = span_at(address_of(memory.bytes()), block * 2);
    refused_as(a, copy_to_device(a.device, beyond, Bytes(block * 2)), Errc::out_of_range, "past the end of the block");
    refused_as(a, fill(a.device, beyond, std::byte{1}), Errc::out_of_range, "a fill past the end");

    refused_as(a, fill(a.device, span_at(nullptr, 16), std::byte{1}), Errc::invalid_argument, "a fill of null");
    refused_as(a, copy_to_device(a.device, span_at(nullptr, block), bytes), Errc::invalid_argument, "into null");
    refused_as(a, copy_to_host(a.device, bytes, span_at(nullptr, block)), Errc::invalid_argument, "from null");
    refused_as(a, copy_to_host(a.device, std::span<std::byte>(static_cast<std::byte*>(nullptr), block), memory.bytes()),
               Errc::invalid_argument, "to a null host address");

    const void* const stale = address_of(memory.bytes());
    a.me.must(std::move(memory).close(), "freed");
    refused_as(a, copy_to_host(a.device, bytes, span_at(stale, block)), Errc::invalid_argument, "freed memory");
    refused_as(a, fill(a.device, span_at(stale, block), std::byte{1}), Errc::invalid_argument, "a fill of freed memory");

    // Nothing to do is done.
    a.me.must(copy_to_device(a.device, DeviceSpan<std::byte>(), Bytes()), "an empty copy");
    a.me.must(fill(a.device, DeviceSpan<std::byte>(), std::byte{1}), "an empty fill");
  });
}

TEST_CASE("exports of what is no block, and admissions of nobody") {
  alone([](const Party& a) {
    Bytes bytes(block);
    DeviceMemory memory = a.allocate(block);
    const auto promise = [&](DeviceSpan<std::byte> part) { return UnownedMemory::promise_outlives(a.device, part); };
    refused_as(a, export_key(promise(memory.bytes().subspan(4096, 4096))), Errc::not_exportable, "a part of a block");
    refused_as(a, export_key(promise(span_at(bytes.data(), block))), Errc::not_exportable, "host memory");
    refused_as(a, export_key(promise(DeviceSpan<std::byte>())), Errc::closed, "nothing");
    refused_as(a, export_key_unrestricted(promise(span_at(address_of(memory.bytes()), block * 4096))),
               Errc::out_of_range, "more than the block");

    auto key = a.me.must(export_key(std::move(memory)), "exported");
    admits_nobody(a, key);
    a.me.must(a.me.must(std::move(key).close(), "closed").close(), "freed");
  });
}

TEST_CASE("tickets that are none") {
  alone([](const Party& a) {
    refused_as(a, ReceivedTicket::decode(std::span<const std::byte>()), Errc::malformed_token, "no bytes");
    refused_as(a, ReceivedTicket::decode(std::span<const std::byte>(static_cast<const std::byte*>(nullptr), 0)),
               Errc::malformed_token, "null");
    const Bytes zeros(ticket_size);
    refused_as(a, ReceivedTicket::decode(zeros), Errc::malformed_token, "zeros");
    const Bytes large(std::size_t{1} << 20, std::byte{0x44});
    refused_as(a, ReceivedTicket::decode(large), Errc::malformed_token, "a megabyte");
  });
}

TEST_CASE("peer access of one device with itself, or of devices without a link") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"PEERS", "01/00"}});
    const Device other = a.other_device(1);
    refused_as(a, PeerAccess::both_ways(a.device, a.device), Errc::peer_access_impossible, "itself");
    refused_as(a, PeerAccess::half(a.device, a.device), Errc::peer_access_impossible, "half of itself");
    refused_as(a, can_access_peer(a.device, a.device), Errc::peer_access_impossible, "a question about itself");
    const auto back = can_access_peer(other, a.device);
    me.expect(back && !*back, "there is no link back");
    refused_as(a, PeerAccess::both_ways(a.device, other), Errc::peer_access_impossible, "only one way is possible");
    me.expect_equal(host::counters().peer_grants, 0U, "so neither way is on");
    a.leave();
  });
  story.run();
}

TEST_CASE("views of what cannot be viewed") {
  alone([](const Party& a) {
    Bytes bytes(block);
    DeviceMemory memory = a.allocate(block);
    refused_as(a, host::view(span_at(nullptr, 16)), Errc::invalid_argument, "null");
    refused_as(a, host::view(span_at(bytes.data(), 16)), Errc::invalid_argument, "host memory");
    refused_as(a, host::view(span_at(address_of(memory.bytes()), block * 2)), Errc::out_of_range, "past the end");
    const void* const stale = address_of(memory.bytes());
    a.me.must(std::move(memory).close(), "freed");
    refused_as(a, host::view(span_at(stale, 16)), Errc::invalid_argument, "freed memory");
  });
}

TEST_CASE("a runtime that is closed, and one that cannot be had") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    me.must(a.runtime.finalize(), "finalized");
    refused_as(a, a.runtime.finalize(), Errc::runtime_gone, "finalized again");
    refused_as(a, a.runtime.device(DeviceId{0}), Errc::runtime_gone, "a device");
    refused_as(a, a.runtime.device_count(), Errc::runtime_gone, "the device count");
    refused_as(a, a.device.memory_info(), Errc::runtime_gone, "memory info");
    refused_as(a, a.device.make_current(), Errc::runtime_gone, "making a device current");
    refused_as(a, DeviceMemory::allocate(a.device, block), Errc::runtime_gone, "an allocation");
    Bytes bytes(16);
    refused_as(a, copy_to_host(a.device, bytes, span_at(bytes.data(), 16)), Errc::runtime_gone, "a copy");
    refused_as(a, fill(a.device, span_at(bytes.data(), 16), std::byte{1}), Errc::runtime_gone, "a fill");
    refused_as(a, PeerAccess::both_ways(a.device, a.device), Errc::runtime_gone, "peer access");
    refused_as(a, export_key(UnownedMemory::promise_outlives(a.device, span_at(bytes.data(), 16))), Errc::runtime_gone,
               "an export");
  });
  story.run();
}

TEST_CASE("a runtime that the environment names and nobody has is runtime_not_found, every time") {
  for (const char* wish : {"/nonexistent/libascendcl.so", "ascend", "/proc/self/exe"}) {
    CAPTURE(wish);
    Story story;
    story.actor("A", [&](Actor& me) {
      ::setenv("DEVSHARE_RUNTIME", wish, 1);
      for (int i = 0; i < 2; ++i) {
        const auto runtime = Runtime::open();
        me.expect(!runtime && (runtime.error().kind() == Errc::runtime_not_found ||
                               runtime.error().kind() == Errc::runtime_incomplete),
                  "it is refused");
      }
      ::setenv("DEVSHARE_RUNTIME", "host", 1);
      me.must(Runtime::open(), "a wish that can be met is met afterwards");
    });
    story.run();
  }
}
