// SPDX-License-Identifier: Apache-2.0
// Memory that is to have all its pages at once, on a machine that has not as many: an error that says so, at every
// place where memory is made, and nothing left of the attempt.
#include "support/huge_pages.hpp"
#include "support/isolation.hpp"
#include "support/sharing.hpp"

#include <sys/syscall.h>

#include <cerrno>
#include <functional>
#include <string>
#include <utility>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 4 * 1024 * 1024;
constexpr Placement all_now{.populate = Populate::now};
constexpr Refusal no_space{Errc::no_space, code::rt_memory_allocation, Reason::no_space};

// It is not asked what it leaves: what it has been forbidden it needs to end in order.
void in_one_process(const std::function<void(const Party&)>& part) {
  Story story;
  story.actor("A", [&](Actor& me) { part(Party(me)); });
  story.run();
}

void the_machine_is_full(Actor& me) { me.expect_equal(refuse_system_call(SYS_fallocate, ENOSPC), 0, "a filter"); }

}  // namespace

TEST_CASE("memory whose pages the machine has not is refused as no_space, and nothing is left") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  in_one_process([](const Party& a) {
    the_machine_is_full(a.me);
    a.refused(DeviceMemory::allocate(a.device, size, all_now), no_space, "memory");
    const auto refused = DeviceMemory::allocate(a.device, size, all_now);
    a.me.expect(!refused && refused.error().detail().system_errno == ENOSPC && refused.error().detail().needed >= size,
                "the error says what was needed, and the errno");
    a.refused(PhysicalHandle::allocate(a.device, size, all_now), no_space, "a handle");
    a.refused(PhysicalHandle::allocate_on_host(a.device, size, {.populate = Populate::now}), no_space,
              "memory of the host");
    a.has_given_everything_back();
    a.me.expect_equal(host::bytes_in_use(0), 0U, "the device is empty");
    a.leave();
  });
}

TEST_CASE("a mapping whose pages cannot be had when it is to wake goes on sleeping, whole") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  in_one_process([](const Party& a) {
    auto range = a.me.must(AddressReservation::reserve(a.device, 2 * size), "addresses");
    auto mapped = std::move(range).map(a.me.must(PhysicalHandle::allocate(a.device, size), "memory as it comes"));
    if (!mapped) a.me.fail("mapped");
    Mapping mapping = *std::move(mapped);
    a.me.expect(bool(mapping.extend(a.me.must(PhysicalHandle::allocate(a.device, size, all_now), "and at once"))),
                "one behind the other");
    a.me.must(mapping.release_backing(), "it sleeps");
    the_machine_is_full(a.me);
    for (int attempt = 0; attempt < 2; ++attempt) {
      a.refused(mapping.restore(), no_space, "it cannot wake");
      a.me.expect(mapping.asleep(), "and sleeps on");
      a.me.expect_equal(host::bytes_in_use(0), 0U, "also the part that could have been had");
    }
    a.me.must(std::move(mapping).close(), "it ends");
    a.leave();
  });
}

TEST_CASE("where huge pages fail after they were promised, memory is in normal ones and has all of those") {
  if (const std::string why = why_no_refused_system_calls(); !why.empty()) DEVSHARE_SKIP(why);
  const HugePages pool(2);
  if (!pool.why_not().empty()) DEVSHARE_SKIP(pool.why_not());
  in_one_process([](const Party& a) {
    a.me.expect_equal(refuse_system_call(SYS_fallocate, EPERM), 0, "a filter");
    const DeviceMemory memory = a.allocate(size, {.host_pages = HostPages::huge_if_free, .populate = Populate::now});
    a.me.expect(memory.backing().pages == HostBacking::Pages::normal, "in normal pages");
    a.me.expect(memory.backing().populated, "which are mapped all the same");
    a.me.expect_equal(HugePages::free_pages(), 2U, "and the pool is whole");
  });
}
