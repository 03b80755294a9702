// SPDX-License-Identifier: Apache-2.0
// What enqueuing takes from the allocator: nothing, once a stream has been busy.
#include "support/watchdog.hpp"
#include "unit/stream_session.hpp"

#include <cstdlib>
#include <new>

using namespace devshare::test;
namespace acl = devshare::acl;

namespace {

constexpr std::size_t size = 4096;
constexpr int copies = 500;

constinit thread_local std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  std::abort();
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("copies and fills in a stream that has had as many before allocate nothing") {
  const Watchdog watchdog("many copies");
  StreamSession session;
  void* const to = session.allocate(size);
  void* const from = session.allocate(size);
  const acl::aclrtStream stream = session.stream();
  const auto enqueue_behind_a_gate = [&] {
    Gate gate;
    gate.hold_up(stream);
    gate.await_reached();
    const std::size_t before = allocations;
    bool enqueued = true;
    for (int i = 0; i < copies; ++i) {
      enqueued = enqueued && session.acl.aclrtMemsetAsync(from, size, i, size, stream) == 0 &&
                 session.acl.aclrtMemcpyAsync(to, size, from, size, acl::memcpy_kind::device_to_device, stream) == 0;
    }
    const std::size_t made = allocations - before;
    gate.open();
    CHECK(enqueued);
    CHECK(session.acl.aclrtSynchronizeStream(stream) == 0);
    return made;
  };
  CHECK(enqueue_behind_a_gate() >= 2 * copies);  // so that what is counted is what is meant
  CHECK(enqueue_behind_a_gate() == 0);
  CHECK(enqueue_behind_a_gate() == 0);
}
