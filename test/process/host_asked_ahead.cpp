// SPDX-License-Identifier: Apache-2.0
// Imports that are asked for together: the calls that follow are what they were, and nothing stays of what no call took.
#include "key_process.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

#include "host/asked_ahead.hpp"

#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr std::size_t keys = 20;

std::vector<host::ExpectedImport> expected(const std::vector<Key>& all) {
  std::vector<host::ExpectedImport> imports;
  for (const Key& key : all) imports.push_back({host::ExpectedImport::By::key, key.bytes});
  return imports;
}

}  // namespace

TEST_CASE("imports that were asked for together are imports; what is left of them is closed, and can be asked for again") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const std::int32_t importer = me.receive<std::int32_t>("B");
    std::vector<void*> memory;
    std::vector<Key> all;
    for (std::size_t i = 0; i < keys; ++i) {
      memory.push_back(a.allocate());
      a.fill(memory.back(), static_cast<unsigned char>(i));
      all.push_back(a.export_key(memory.back(), listed));
      if (i != 3) a.admit(all.back(), importer);
      me.send("B", all.back());
    }
    me.pause_until("B", "done");
    for (std::size_t i = 0; i < keys; ++i) {
      a.close(all[i]);
      a.free(memory[i]);
    }
    a.finalize();
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    std::vector<Key> all;
    for (std::size_t i = 0; i < keys; ++i) all.push_back(me.receive<Key>("A"));
    b.close([&] {
      me.expect(b.peek(b.import_key(all[0])) == 0, "a first import, which connects");
      return all[0];
    }());
    const std::size_t before = count_descriptors();

    host::ask_ahead(expected(all));
    me.expect_equal(count_descriptors(), before + keys - 1, "all that may be imported came at once");
    std::vector<void*> imported;
    for (std::size_t i = 4; i < keys; ++i) imported.push_back(b.import_key(all[i]));
    for (std::size_t i = 4; i < keys; ++i) {
      me.expect_equal(b.peek(imported[i - 4]), static_cast<int>(i), "each has its own bytes");
    }
    b.import_fails(all[3], code::rt_drv_internal, Reason::not_admitted);
    host::forget_asked_ahead();
    for (std::size_t i = 4; i < keys; ++i) b.close(all[i]);
    me.expect_equal(count_descriptors(), before, "nothing stays open");

    me.expect_equal(b.peek(b.import_key(all[1])), 1, "what was left can be imported by itself");
    b.close(all[1]);
    host::ask_ahead(expected(all));
    host::ask_ahead(expected({all[2], all[5]}));  // instead of those before
    me.expect_equal(count_descriptors(), before + 2, "only these are kept");
    host::forget_asked_ahead();
    me.expect_equal(count_descriptors(), before, "nothing stays open");
    me.step("done");
    b.finalize();
  });
  story.run();
}

TEST_CASE("asking together for what does not exist, or of an exporter that has ended, leaves everything to the calls") {
  Story story;
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const std::int32_t importer = me.receive<std::int32_t>("B");
    void* const memory = a.allocate();
    const Key key = a.export_key(memory, listed);
    a.admit(key, importer);
    me.send("B", key);
    me.pause_until("B", "never");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me);
    me.send("A", b.bare_pid());
    const Key key = me.receive<Key>("A");
    Key damaged = key;
    damaged.bytes[20] = damaged.bytes[20] == '0' ? '1' : '0';
    host::ask_ahead(expected({damaged, key, Key{}}));
    b.import_fails(damaged, code::rt_drv_internal, Reason::unknown_key);
    host::forget_asked_ahead();
    me.step("asked");
    me.pause_until_ended("A");
    const std::size_t before = count_descriptors();
    host::ask_ahead(expected({key, damaged}));
    b.import_fails(key, code::rt_drv_internal, Reason::exporter_gone);
    host::forget_asked_ahead();
    me.expect(count_descriptors() <= before, "nothing stays open");
    b.finalize();
  });
  story.kill("A", at("B", "asked"));
  story.run();
}
