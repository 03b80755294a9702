// SPDX-License-Identifier: Apache-2.0
// What the stories of sharing by key have in common: an actor that has opened the runtime and a device, as any program
// does, and shares through the typed layer. Whatever is not expected to fail must succeed, or the actor ends there.
#pragma once

#include "catch.hpp"
#include "descriptors.hpp"
#include "story.hpp"

#include "host/host_runtime.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/devshare.hpp>
#include <devshare/format.hpp>
#include <devshare/host.hpp>

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devshare::test {

namespace code = acl::code;
using Reason = Error::Reason;

// Bytes that repeat after 251, a prime: a wrong offset shows. Another seed gives other bytes at every place.
inline Bytes pattern(std::size_t size, std::size_t seed = 0, std::size_t from = 0) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((from + i + seed * 101) % 251);
  return bytes;
}

// A refusal, as its receiver sees it: the kind, the code of ACL, the host runtime's reason. A refusal before any call
// of the runtime has neither of the latter.
struct Refusal {
  Errc kind;
  acl::aclError code = 0;
  Reason reason = Reason::none;
};

inline Refusal refusal_of(const Error& error) { return {error.kind(), error.acl_code(), error.reason()}; }

inline std::string in_words(const Refusal& refusal) {
  return fmt::format("{} with code {}, because {}", name_of(refusal.kind), refusal.code, name_of(refusal.reason));
}

inline bool operator==(const Refusal& a, const Refusal& b) {
  return a.kind == b.kind && a.code == b.code && a.reason == b.reason;
}

using Switches = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// A process of a story, with its runtime and one device.
class Party {
  std::size_t descriptors_before_ = count_descriptors();  // first: before anything of devshare is opened

 public:
  Actor& me;
  Runtime runtime;
  Device device;

  explicit Party(Actor& actor, std::int32_t number = 0, Switches switches = {})
      : me(actor),
        runtime(open_runtime(actor, switches)),
        device(actor.must(runtime.device(DeviceId{number}), "the device is there")) {}

  Device other_device(std::int32_t number) const {
    return me.must(runtime.device(DeviceId{number}), "the other device is there");
  }

  // --- memory ---

  DeviceMemory allocate(std::size_t size, Placement placement = {}) const {
    return me.must(DeviceMemory::allocate(device, size, placement), "memory is allocated");
  }
  DeviceMemory allocate(const Bytes& content) const {
    DeviceMemory memory = allocate(content.size());
    write(memory.bytes(), content);
    return memory;
  }
  // Physical memory with addresses.
  Mapping map(std::size_t size, Placement placement = {}) const {
    return me.must(Mapping::of(me.must(PhysicalHandle::allocate(device, size, placement), "physical memory is allocated")),
                   "and mapped");
  }
  Mapping map(const Bytes& content) const {
    Mapping mapping = map(content.size());
    write(mapping.bytes(), content);
    return mapping;
  }
  void write(DeviceSpan<std::byte> to, const Bytes& from) const {
    me.must(copy_to_device(device, to, from), "the bytes are written");
  }
  Bytes read(DeviceSpan<const std::byte> from) const {
    Bytes bytes(from.size());
    me.must(copy_to_host(device, bytes, from), "the bytes are read");
    return bytes;
  }
  // A kernel's sight of device memory.
  std::span<std::byte> view(DeviceSpan<std::byte> memory) const {
    return me.must(host::view(memory), "a kernel can use the memory");
  }

  // --- admission and tickets ---

  BarePid own_pid() const { return me.must(runtime.bare_pid(), "the process has a number for others"); }
  void introduce_myself_to(std::string_view exporter) const { me.send(exporter, own_pid().to_message()); }
  BarePid pid_of(std::string_view importer) const {
    return BarePid::from_peer_message(me.receive<std::int32_t>(importer));
  }

  template <class M>
  void send(std::string_view importer, const Ticket<M>& ticket) const {
    me.send_bytes(importer, ticket.bytes().data(), ticket.bytes().size());
  }
  // Admits who introduces itself, and sends it its ticket.
  template <class Key>
  void share_with(std::string_view importer, Key& key, Slice slice = {}) const {
    send(importer, me.must(key.admit(pid_of(importer), slice), "the importer is admitted"));
  }
  ReceivedTicket ticket_from(std::string_view exporter) const {
    return me.must(ReceivedTicket::decode(me.receive_bytes(exporter)), "the ticket arrives whole");
  }
  ImportedMapping import(const ReceivedTicket& ticket) const {
    return me.must(ImportedMapping::open(ticket, device), "the ticket is imported");
  }

  // --- refusals ---

  template <class R>
  bool refused(const R& result, const Refusal& expected, std::string_view sentence, const char* file = __builtin_FILE(),
               int line = __builtin_LINE()) const {
    if (result) return me.expect(false, fmt::format("{}, but it was not refused", sentence), file, line);
    const Refusal actual = refusal_of(detail::plain_error(result.error()));
    return me.expect_equal(actual, expected, sentence, file, line);
  }
  // The same for a call of the table, whose reason the runtime keeps for the thread.
  bool call_refused(acl::aclError code, acl::aclError expected, Reason reason, std::string_view sentence,
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    const Reason actual = host::last_cause().reason;
    const std::string words = fmt::format("{} ({})", sentence, name_of(actual));
    return me.expect_equal(code, expected, words, file, line) &&
           me.expect(actual == reason, fmt::format("{}, not {}", words, name_of(reason)), file, line);
  }
  void call_succeeds(acl::aclError code, std::string_view sentence, const char* file = __builtin_FILE(),
                     int line = __builtin_LINE()) const {
    me.expect_equal(code, 0, sentence, file, line);
  }

  // --- the end ---

  // Nothing that this process took is left with it. Connections stay until an end closes them, and peer access that
  // imports enabled stays until the process ends. Of a library that is meant nobody can ask this: the counters are those
  // of the runtime that is linked in, and it is the descriptors that tell.
  void has_given_everything_back() const {
    host::Counters left = host::counters();
    left.connections = 0;
    left.peer_grants = 0;
    me.expect(left == host::Counters{}, fmt::format("everything is given back: {}", host::in_words(left)));
  }
  // Ends the runtime, with nothing left of it.
  void leave() const {
    has_given_everything_back();
    me.must(runtime.finalize(), "the runtime is finalized");
    me.expect(host::counters() == host::Counters{}, fmt::format("nothing is left: {}", host::in_words(host::counters())));
    me.expect_equal(count_descriptors(), descriptors_before_, "no descriptor is left");
  }

 private:
  static Runtime open_runtime(Actor& me, Switches switches) {
    for (const auto& [name, value] : switches) {
      me.expect(host::set(name, value), "there is such a switch");
      if (a_library_is_meant()) set_in_environment(name, value);
    }
    Runtime opened = me.must(Runtime::open(), "the runtime opens");
    me.expect_equal(opened.name(), a_library_is_meant() ? "ascend" : "host", "it is the runtime that is meant");
    return opened;
  }

  // A library of ACL for which devshare's own host runtime is a stranger: the cases that are tagged [any library].
  static bool a_library_is_meant() {
    const char* const name = std::getenv("DEVSHARE_TEST_RUNTIME_NAME");
    return name != nullptr && std::string_view(name) == "ascend";
  }
  // Where such a library, if it is a host runtime too, looks for its switches.
  static void set_in_environment(std::string_view name, std::string_view value) {
    const bool whole = name.starts_with("DEVSHARE_") || name.starts_with("ASCEND_");
    ::setenv(((whole ? "" : "DEVSHARE_HOST_") + std::string(name)).c_str(), std::string(value).c_str(), 1);
  }
};

// The story of one process that leaves nothing behind.
template <class Part>
void alone(Switches switches, Part part) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, switches);
    part(a);
    a.leave();
  });
  story.run();
}
template <class Part>
void alone(Part part) {
  alone({}, std::move(part));
}

// The story of A, which exports what `made` makes to B, waits for it and ends, and of B, which does `part` with the
// ticket. Neither leaves anything behind.
template <class Made, class Part>
void import_story(Made made, Part part) {
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me);
    auto exported = made(a);
    a.share_with("B", exported);
    me.pause_until("B", "closed");
    me.must(me.must(std::move(exported).close(), "A ends the export").close(), "and frees the memory");
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me);
    b.introduce_myself_to("A");
    part(b, b.ticket_from("A"));
    b.leave();
    me.step("closed");
  });
  story.run();
}

// A refusal of this kind, whatever else it says.
template <class R>
void refused_as(const Party& a, const R& result, Errc kind, std::string_view what, const char* file = __builtin_FILE(),
                int line = __builtin_LINE()) {
  if (!a.me.expect(!result, what, file, line)) return;
  a.me.expect_equal(name_of(detail::plain_error(result.error()).kind()), name_of(kind), what, file, line);
}

// Moves two objects to and fro until both have ended, and says so after each end.
template <class T, class Ended>
void end_in_other_hands(T first, T second, Ended has_ended) {
  T third(std::move(first));
  first = std::move(second);
  std::swap(first, third);
  T& same = third;
  third = std::move(same);
  second = std::move(third);
  third = std::move(second);
  T ended(std::move(first));
  has_ended();
  { T gone(std::move(third)); }
  has_ended();
}

// The table of the runtime, for what the types let nobody do.
inline const acl::Table& api() { return host::table(); }

// The key inside a ticket, as ACL has it.
struct Key {
  std::array<char, acl::ipc_key_size> bytes{};
  const char* text() const noexcept { return bytes.data(); }
};
inline Key key_in(const ReceivedTicket& ticket) {
  Key key;
  std::memcpy(key.bytes.data(), ticket.fields().payload.data(), key.bytes.size());
  return key;
}
template <class M>
Key key_in(const Ticket<M>& ticket) {
  const std::span<const std::byte> bytes(ticket.bytes().data(), ticket_size);
  return key_in(*ReceivedTicket::decode(bytes));
}

inline void* address_of(DeviceSpan<std::byte> memory) { return memory.data().address(); }
inline DeviceSpan<std::byte> span_at(const void* address, std::size_t bytes) {
  return {DevicePtr<std::byte>::from_address(const_cast<void*>(address)), bytes};
}

// How many calls of an entry this process has made since host::record_calls(true).
inline std::size_t calls_of(acl::Entry entry) {
  std::size_t count = 0;
  for (const host::CallRecord& record : host::recorded_calls()) count += record.call == entry ? 1 : 0;
  return count;
}

}  // namespace devshare::test
