// SPDX-License-Identifier: Apache-2.0
// Objects of the handle path that outlive something: their runtime, their process, the reference they were made from,
// each other.
#include "support/child.hpp"
#include "support/reports.hpp"
#include "support/sharing.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <utility>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t MiB = 1024 * 1024;
constexpr std::size_t size = 2 * MiB;

template <class Held>
void end(Actor& me, Held held) {
  me.must(std::move(held).close(), "it ends");
}

// A shares two blocks by K with B; the part is B's.
template <class K, class Part>
void imported(Part part) {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto one = me.must(export_for<K>(me.must(allocate_for<K>(a.device, size), "memory")), "A exports");
    a.write(one.bytes(), pattern(size));
    a.send("B", me.must(one.admit(a.pid_of("B")), "B is admitted"));
    me.pause_until_ended("B");
    end(me, me.must(std::move(one).close(), "A ends"));
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    part(b, b.ticket_from("A"));
  });
  story.run();
}

// What an engine's allocator does by itself, without devshare.
struct Engine {
  const Party& a;
  acl::aclrtDrvMemHandle handle = nullptr;
  void* address = nullptr;

  explicit Engine(const Party& party) : a(party) {
    a.me.must(a.device.make_current(), "the device is current");
    const acl::aclrtPhysicalMemProp property{acl::mem_handle_type::none,
                                             acl::mem_allocation_type::pinned,
                                             acl::mem_attr::hbm_huge,
                                             {0, acl::mem_location_type::device},
                                             0};
    a.call_succeeds(api().aclrtMallocPhysical(&handle, size, &property, 0), "the engine allocates");
    a.call_succeeds(api().aclrtReserveMemAddress(&address, size, 0, nullptr, 0), "reserves");
    a.call_succeeds(api().aclrtMapMem(address, size, 0, handle, 0), "and maps");
  }
  DeviceSpan<std::byte> bytes() const { return {DevicePtr<std::byte>::from_address(address), size}; }
  void end() const {
    a.call_succeeds(api().aclrtUnmapMem(address), "the engine unmaps");
    a.call_succeeds(api().aclrtReleaseMemAddress(address), "releases");
    a.call_succeeds(api().aclrtFreePhysical(handle), "and frees");
  }
};

}  // namespace

TEMPLATE_TEST_CASE("imports that outlive their runtime are inert: they end, close and are asked without a wait", "",
                   by_key, v1, v2) {
  imported<TestType>([](const Party& b, const ReceivedTicket& ticket) {
    std::optional<ImportedMapping> one = b.import(ticket);
    ImportedMapping other = b.import(ticket);
    b.me.must(b.runtime.finalize(), "the runtime is finalized");
    b.refused(other.check(), {Errc::runtime_gone}, "what outlived it says so");
    b.refused(std::move(other).close(), {Errc::runtime_gone}, "also when it is closed");
    one.reset();
  });
}

TEST_CASE("a pool of imported handles outlives its runtime", "[any library]") {
  imported<v2>([](const Party& b, const ReceivedTicket& ticket) {
    AddressReservation range = b.me.must(AddressReservation::reserve(b.device, 2 * size), "a range");
    ImportedHandle handle = b.me.must(ImportedHandle::open(ticket, b.device), "a handle");
    ImportedHandle again = b.me.must(ImportedHandle::open(ticket, b.device), "and again");
    const ImportedMapping pool = b.me.must(std::move(range).map(std::move(handle)), "is mapped");
    b.me.must(b.runtime.finalize(), "the runtime is finalized");
    b.refused(pool.check(), {Errc::runtime_gone}, "it says so");
    b.refused(std::move(again).close(), {Errc::runtime_gone}, "so does the handle");
  });
}

TEMPLATE_TEST_CASE("a forked child may drop its parent's imports", "", by_key, v1, v2) {
  imported<TestType>([](const Party& b, const ReceivedTicket& ticket) {
    std::optional<ImportedMapping> mapping = b.import(ticket);
    const pid_t child = ::fork();
    if (child == 0) {
      const bool inert = !mapping->check() && mapping->check().error() == Errc::forked;
      mapping.reset();
      ::_exit(inert ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    b.me.expect_equal(status, 0, "they are inert there");
    b.me.expect(b.read(mapping->bytes()) == pattern(size), "and whole in the parent");
    end(b.me, *std::move(mapping));
    mapping.reset();
  });
}

TEST_CASE("R27 an engine's memory is lent again and again: its token is remembered beyond the reference that made it") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const Engine engine(a);
    const BarePid b = a.pid_of("B");
    for (int round = 0; round < 3; ++round) {
      auto token = me.must(export_handle<v2>(me.must(PhysicalHandle::retain_from(a.device, engine.bytes()), "retained")),
                           "exported");
      a.send("B", me.must(token.admit(b), "B is admitted"));
      me.receive<int>("B");
      end(me, me.must(std::move(token).close(), "the loan ends"));
    }
    auto other = export_handle<v1>(me.must(PhysicalHandle::retain_from(a.device, engine.bytes()), "retained"));
    a.refused(other, {Errc::already_exported_as}, "another kind is refused as ever");
    end(me, std::move(other).error().take_back());
    engine.end();
    const Engine fresh(a);
    auto token = me.must(export_handle<v1>(me.must(PhysicalHandle::retain_from(a.device, fresh.bytes()), "retained")),
                         "other memory is not mistaken for it");
    end(me, me.must(std::move(token).close(), "it ends"));
    fresh.end();
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    for (int round = 0; round < 3; ++round) {
      end(me, b.import(b.ticket_from("A")));
      me.send("A", round);
    }
    b.leave();
  });
  story.run();
}

TEST_CASE("R27 threads that export one handle at once get one token") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    for (int round = 0; round < 50; ++round) {
      Mapping mapping = a.map(size);
      std::vector<PhysicalHandle> handles;
      for (int i = 0; i < 4; ++i) {
        handles.push_back(me.must(PhysicalHandle::retain_from(a.device, mapping.bytes()), "retained"));
      }
      std::vector<std::thread> threads;
      for (PhysicalHandle& handle : handles) {
        threads.emplace_back([&] {
          auto token = export_handle<v2>(std::move(handle));
          me.expect(static_cast<bool>(token), "each of them exports");
        });
      }
      for (std::thread& thread : threads) thread.join();
      me.expect_equal(host::counters().tokens_exported, 1U, "the same");
      handles.clear();
      end(me, std::move(mapping));
    }
    a.leave();
  });
  story.run();
}

TEST_CASE("a grant lives as long as the import it was given for, whoever of several objects ends first") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0);
    auto key = me.must(export_key(a.allocate(pattern(size))), "A exports");
    a.share_with("B", key);
    me.pause_until("B", "closed");
    end(me, me.must(std::move(key).close(), "A ends"));
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 1);
    b.introduce_myself_to("A");
    const ReceivedTicket ticket = b.ticket_from("A");
    const auto access_is_on = [&] {
      std::int32_t on = -1;
      b.call_succeeds(api().aclrtDevicePeerAccessStatus(1, 0, &on), "the status is asked for");
      return on == 1;
    };
    PeerAccess grant = me.must(PeerAccess::both_ways(b.device, b.other_device(0)), "a grant");
    ImportedMapping first = me.must(ImportedMapping::open(ticket, b.device, std::move(grant)), "opened with it");
    ImportedMapping second = b.import(ticket);
    end(me, std::move(first));
    me.expect(access_is_on(), "the second object still has peer access");
    end(me, std::move(second));
    me.expect(!access_is_on(), "and the last one gave it back");
    b.leave();
    me.step("closed");
  });
  story.run();
}

TEST_CASE("a range is whole pages of addresses, and memory of another device is refused before any call") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    AddressReservation range = me.must(AddressReservation::reserve(a.device, 3 * MiB), "a range of no whole pages");
    me.expect_equal(range.size(), 4 * MiB, "has whole pages");
    auto refused = std::move(range).map(me.must(PhysicalHandle::allocate(a.other_device(1), size), "of another device"));
    if (a.refused(refused, {Errc::mixed_memory}, "memory of another device")) {
      Unmapped back = std::move(refused).error().take_back();
      end(me, std::move(back.handle));
      Mapping mapping = me.must(
          std::move(back.range).map(me.must(PhysicalHandle::allocate(a.device, 3 * MiB), "memory of 3 MiB")), "fits");
      me.expect_equal(mapping.size(), 3 * MiB, "as much as was asked for");
      PhysicalHandle kept = me.must(PhysicalHandle::retain_from(a.device, mapping.bytes()), "is retained by its bytes");
      me.expect(kept.size() == 3 * MiB && kept.physical_size() == 4 * MiB, "both sizes are known");
      a.refused(PhysicalHandle::retain_from(a.other_device(1), mapping.bytes()), {Errc::invalid_argument},
                "on another device than it is on");
      end(me, std::move(kept));
      end(me, std::move(mapping));
    }
    a.leave();
  });
  story.run();
}

TEST_CASE("a forked child may drop its parent's pool of imports", "[any library]") {
  imported<v2>([](const Party& b, const ReceivedTicket& ticket) {
    ImportedHandle handle = b.me.must(ImportedHandle::open(ticket, b.device), "handle");
    AddressReservation range = b.me.must(AddressReservation::reserve(b.device, 2 * size), "range");
    auto mapped = std::move(range).map(std::move(handle));
    std::optional<ImportedMapping> mapping = b.me.must(std::move(mapped), "mapped");
    const pid_t child = ::fork();
    if (child == 0) {
      mapping.reset();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    b.me.expect_equal(status, 0, "the child ends");
    b.me.must(std::move(*mapping).close(), "closes");
    b.leave();
  });
}

TEST_CASE("every object of the handle path says whose it is: in a forked child, and after its runtime was finalized",
          "[any library]") {
  imported<v2>([](const Party& b, const ReceivedTicket& ticket) {
    std::optional<ImportedHandle> handle = b.me.must(ImportedHandle::open(ticket, b.device), "handle");
    std::optional<AddressReservation> range = b.me.must(AddressReservation::reserve(b.device, 2 * size), "range");
    std::optional<Mapping> own = b.map(size);
    std::optional<Mapping> asleep = b.map(size);
    std::optional<PhysicalHandle> retained = b.me.must(PhysicalHandle::retain_from(b.device, own->bytes()), "retained");
    auto made = export_handle<v2>(b.map(size));
    std::optional<ExportToken<v2>> token = b.me.must(std::move(made), "token");
    b.me.must(asleep->release_backing(), "sleeps");
    // The number of the first that did not; 0: all did.
    const auto end_all = [&](bool child) {
      auto slept = own->release_backing();
      const Errc expected = child ? Errc::forked : Errc::runtime_gone;
      if (slept || slept.error().kind() != expected) return 1;
      auto woken = asleep->restore();
      if (woken || woken.error().kind() != expected) return 2;
      if (const auto checked = own->check(); checked || checked.error().kind() != expected) return 12;
      auto extended = own->extend(std::move(*retained));
      if (extended) return 3;
      if (extended.error().error().kind() != expected) return 4;
      *retained = std::move(extended).error().take_back();
      auto closed = std::move(*token).close();
      if (closed || closed.error().error().kind() != expected) return 5;
      auto back = std::move(closed).error().take_back();
      auto mapped = std::move(*range).map(std::move(*retained));
      if (mapped || mapped.error().error().kind() != expected) return 6;
      auto pair = std::move(mapped).error().take_back();
      if (auto c = std::move(pair.handle).close(); c || c.error().kind() != expected) return 7;
      if (auto c = std::move(pair.range).close(); c || c.error().kind() != expected) return 8;
      if (auto c = std::move(*own).close(); c || c.error().kind() != expected) return 9;
      if (auto c = std::move(*asleep).close(); c || c.error().kind() != expected) return 10;
      if (auto c = std::move(*handle).close(); c || c.error().kind() != expected) return 11;
      return 0;
    };
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(end_all(true));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    b.me.expect_equal(status, 0, "the child ends");
    b.me.must(b.runtime.finalize(), "finalize");
    b.me.expect_equal(end_all(false), 0, "and here");
  });
}

TEST_CASE("B005 objects of the handle path that outlive their runtime call nothing, and say so once, in either order") {
  for (const bool backwards : {false, true}) {
    CAPTURE(backwards);
    imported<v2>([&](const Party& b, const ReceivedTicket& ticket) {
      Actor& me = b.me;
      alignas(4096) static std::byte memory[4096];
      static int outlived;
      outlived = 0;
      std::optional<PhysicalHandle> handle = me.must(PhysicalHandle::allocate(b.device, size), "memory");
      std::optional<AddressReservation> range = me.must(AddressReservation::reserve(b.device, size), "a range");
      std::optional<Mapping> mapping = b.map(size);
      auto made = export_handle<v1>(b.map(size));
      std::optional<ExportToken<v1>> token = me.must(std::move(made), "a token");
      std::optional<ImportedHandle> imported_handle = me.must(ImportedHandle::open(ticket, b.device), "an import");
      std::optional<ImportedMapping> import = b.import(ticket);
      std::optional<HostRegistration> registration = me.must(HostRegistration::of(b.device, memory), "registered");
      (void)set_diagnostic_handler({[](const Diagnostic& diagnostic, void*) {
                                      if (diagnostic.event == DiagnosticEvent::runtime_was_gone) ++outlived;
                                    },
                                    nullptr});
      me.must(b.runtime.finalize(), "the runtime is finalized");
      host::record_calls(true);
      if (backwards) {
        registration.reset();
        import.reset();
        imported_handle.reset();
        token.reset();
        mapping.reset();
        range.reset();
        handle.reset();
      } else {
        handle.reset();
        range.reset();
        mapping.reset();
        token.reset();
        imported_handle.reset();
        import.reset();
        registration.reset();
      }
      me.expect_equal(host::recorded_calls().size(), 0U, "the runtime is not called any more");
      me.expect_equal(outlived, 1, "one report for all of them");
      host::record_calls(false);
      set_diagnostic_handler({});

      const Party again(me);
      end(me, again.map(size));
      again.leave();
    });
  }
}

TEST_CASE("B045 each object of the handle path is released once, however it was moved, swapped or assigned to itself") {
  imported<v2>([](const Party& b, const ReceivedTicket& ticket) {
    Actor& me = b.me;
    // After each release a descriptor of ours takes the number that became free: whoever closes twice closes it.
    std::vector<int> victims;
    const auto recycle = [&] { victims.push_back(::dup(0)); };
    const auto shuffle = [&]<class T>(T first, T second) {
      host::record_calls(true);
      end_in_other_hands(std::move(first), std::move(second), recycle);
    };
    const auto were_called = [&](acl::Entry call, std::size_t times) {
      me.expect_equal(calls_of(call), times, std::string(name_of(call)));
    };
    const auto memory = [&] { return me.must(PhysicalHandle::allocate(b.device, size), "memory"); };
    const auto range = [&] { return me.must(AddressReservation::reserve(b.device, size), "a range"); };
    const auto token = [&] { return me.must(export_handle<v2>(memory()), "a token"); };
    const auto imported_handle = [&] { return me.must(ImportedHandle::open(ticket, b.device), "an import"); };
    alignas(4096) static std::byte pages[8192];
    const auto registered = [&](std::size_t at) {
      return me.must(HostRegistration::of(b.device, std::span(pages).subspan(at, 4096)), "registered");
    };
    shuffle(memory(), memory());
    were_called(acl::Entry::aclrtFreePhysical, 2);
    shuffle(range(), range());
    were_called(acl::Entry::aclrtReleaseMemAddress, 2);
    shuffle(b.map(size), b.map(size));
    for (const acl::Entry call :
         {acl::Entry::aclrtUnmapMem, acl::Entry::aclrtReleaseMemAddress, acl::Entry::aclrtFreePhysical}) {
      were_called(call, 2);
    }
    shuffle(token(), token());
    were_called(acl::Entry::aclrtFreePhysical, 2);
    shuffle(b.import(ticket), b.import(ticket));  // one import, for both
    for (const acl::Entry call :
         {acl::Entry::aclrtUnmapMem, acl::Entry::aclrtReleaseMemAddress, acl::Entry::aclrtFreePhysical}) {
      were_called(call, 1);
    }
    shuffle(imported_handle(), imported_handle());
    were_called(acl::Entry::aclrtFreePhysical, 1);
    shuffle(registered(0), registered(4096));
    were_called(acl::Entry::aclrtHostUnregister, 2);
    host::record_calls(false);
    for (const int victim : victims) me.expect(::close(victim) == 0, "nobody closed a stranger's descriptor");
    b.leave();
  });
}

TEST_CASE("a reference that was freed behind its object is reported by the object's end, and nothing else happens") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    const Reports reports;
    std::optional<Mapping> mapping = a.map(size);
    acl::aclrtDrvMemHandle handle = nullptr;
    me.must(a.device.make_current(), "the device is current");
    a.call_succeeds(api().aclrtMemRetainAllocationHandle(mapping->address().address(), &handle), "its handle");
    a.call_succeeds(api().aclrtFreePhysical(handle), "and the reference that this made is given back");
    mapping.reset();
    me.expect_equal(reports.heard.size(), std::size_t{0}, "a mapping that ends says nothing");

    std::optional<PhysicalHandle> reference = me.must(PhysicalHandle::allocate(a.device, size), "memory");
    Mapping seen = me.must(Mapping::of(me.must(PhysicalHandle::allocate(a.device, size), "other memory")), "mapped");
    host::fail(acl::Entry::aclrtFreePhysical, 1, code::rt_drv_internal);
    reference.reset();
    me.expect(reports.heard.size() == 1 && reports.heard[0].object != nullptr, "an end that is refused is reported once, by its handle");
    end(me, std::move(seen));
  });
  story.run();
}
