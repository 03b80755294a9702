// SPDX-License-Identifier: Apache-2.0
// Processes whose runtimes are of different releases: they share by what both have.
#include "support/sharing.hpp"

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t size = 64 << 10;

// The exporter chooses among what works in its release and what the importer's can, and shares by it.
void share_by(Mechanism expected, std::string_view exporter_release, std::string_view importer_release) {
  INFO(exporter_release << " shares with " << importer_release);
  Story story;
  story.actor("A", [&](Actor& me) {
    const Party a(me, 0, {{"INTERFACE", exporter_release}});
    const Probe found = me.must(probe(a.device, a.device), "what works is known beforehand");
    const auto can = Mechanisms::from_message(me.receive<std::uint32_t>("B"));
    const Mechanism chosen = me.must(choose(found.working(), Prefer{}, can), "one is chosen");
    me.expect_equal(name_of(chosen), name_of(expected), "it is one that both have");
    with_mechanism(chosen, [&]<class K>(K) {
      auto exported = me.must(export_for<K>(me.must(allocate_for<K>(a.device, size), "memory")), "exported");
      a.write(exported.bytes(), pattern(size));
      a.share_with("B", exported);
      me.pause_until("B", "closed");
      auto memory = me.must(std::move(exported).close(), "the export ends");
      me.must(std::move(memory).close(), "and the memory");
    });
    a.leave();
  });
  story.actor("B", [&](Actor& me) {
    const Party b(me, 0, {{"INTERFACE", importer_release}});
    me.send("A", importable(b.device).to_message());
    b.introduce_myself_to("A");
    ImportedMapping mapping = b.import(b.ticket_from("A"));
    me.expect_equal(name_of(mapping.mechanism()), name_of(expected), "the importer is told what it got");
    me.expect(b.read(mapping.bytes()) == pattern(size), "with the bytes");
    me.must(std::move(mapping).close(), "it closes");
    b.leave();
    me.step("closed");
  });
  story.run();
}

}  // namespace

TEST_CASE("B095 an exporter and an importer of different releases share by the best that both have") {
  share_by(Mechanism::v1, "8.0", "all");
  share_by(Mechanism::v1, "8.2.RC1", "8.5.0");  // it has keys too, and prefers what needs no order of closing
  share_by(Mechanism::by_key, "all", "8.2.RC1");
  share_by(Mechanism::by_key, "8.2.RC1", "8.2.RC1");
  share_by(Mechanism::v2, "8.5.0", "9.1.0");
}

TEST_CASE("B095 releases that have nothing in common are told so before there is a ticket") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me, 0, {{"INTERFACE", "8.0"}});
    const Probe found = me.must(probe(a.device, a.device), "what works is known beforehand");
    const auto can = Mechanisms::from_message(me.receive<std::uint32_t>("B"));
    a.refused(choose(found.working(), Prefer{}, can), {Errc::mechanism_mismatch},
              "8.0 has no keys, 8.2.RC1 imports no V1");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"INTERFACE", "8.2.RC1"}});
    me.send("A", importable(b.device).to_message());
    b.leave();
  });
  story.run();
}

TEST_CASE("B095 a ticket of a kind that the importer's release lacks is refused by the name of the call") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Party a(me);
    auto exported = me.must(export_handle_unrestricted<v2>(a.map(pattern(size))), "exported");
    a.send("B", me.must(exported.ticket(), "there is a ticket"));
    me.pause_until("B", "refused");
    auto memory = me.must(std::move(exported).close(), "the export ends");
    me.must(std::move(memory).close(), "and the memory");
    a.leave();
  });
  story.actor("B", [](Actor& me) {
    const Party b(me, 0, {{"INTERFACE", "8.2.RC1"}});
    const auto imported = ImportedMapping::open(b.ticket_from("A"), b.device);
    b.refused(imported, {Errc::unsupported_by_runtime}, "this release has no V2");
    me.expect(imported.error().entry() == acl::Entry::aclrtMemImportFromShareableHandleV2, "the call is named");
    b.leave();
    me.step("refused");
  });
  story.run();
}
