// SPDX-License-Identifier: Apache-2.0
// How much an exporter sends ahead, of what, and that its importers keep it: each time by an exporter that has stopped,
// whose importers have what was sent and nothing else.
#include "handle_process.hpp"
#include "meeting.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

#include "host/asked_ahead.hpp"

#include <sys/resource.h>

#include <string>
#include <vector>

using namespace devshare;
using namespace devshare::test;

namespace {

constexpr int for_each_importer = 8;

void share_some(Actor& me, const Process& a, const std::string& importer, std::int32_t number, int keys) {
  for (int i = 0; i < keys; ++i) {
    const Key key = a.export_key(a.allocate(), listed);
    a.admit(key, number);
    me.send(importer, key);
  }
}

rlimit descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit;
}

// How many of the next keys can be had without their exporter.
int import_without_exporter(Actor& me, int keys) {
  int imported = 0;
  for (int i = 0; i < keys; ++i) {
    const Key key = me.receive<Key>("A");
    void* memory = nullptr;
    if (api().aclrtIpcMemImportByKey(&memory, key.bytes, 1) == 0) {
      ++imported;
    } else {
      me.expect_equal(host::last_cause().reason, Reason::timed_out, "the reason of the refused import");
    }
  }
  return imported;
}

}  // namespace

TEST_CASE("an importer is sent eight things ahead") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("B", "done"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    share_some(me, a, "B", meet_importer(me, a), for_each_importer + 1);
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, b);
    me.pause_until("A", "admitted");
    me.expect_equal(import_without_exporter(me, for_each_importer), for_each_importer, "of eight all");
    me.expect_equal(import_without_exporter(me, 1), 0, "and of the ninth nothing");
    me.step("done");
  });
  story.run();
}

TEST_CASE("an importer that takes what it is sent is sent more") {
  Story story;
  story.stop("A", at("fourth"));
  story.resume("A", at("B", "done"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    const std::int32_t importer = meet_importer(me, a);
    for (const char* const step : {"first", "second", "third", "fourth"}) {
      share_some(me, a, "B", importer, for_each_importer);
      me.step(step);
      me.pause_until("B", step);
    }
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, b);
    for (const char* const step : {"first", "second", "third"}) {
      me.expect_equal(import_without_exporter(me, for_each_importer), for_each_importer, "all are imported");
      me.step(step);
    }
    me.pause_until("A", "fourth");
    me.expect_equal(import_without_exporter(me, for_each_importer), for_each_importer, "these with nobody there");
    me.step("done");
    me.step("fourth");
  });
  story.run();
}

TEST_CASE("an exporter sends so much ahead to all of its importers together, by its descriptor limit, and 64 at most") {
  struct Limit {
    rlim_t descriptors;
    int importers;  // that are sent all of theirs; one more is sent nothing
  };
  if (descriptor_limit().rlim_max < 8192) DEVSHARE_SKIP("this user may not have 8,192 descriptors");
  for (const Limit limit : {Limit{1024, 2}, Limit{4096, 8}, Limit{8192, 8}}) {
    CAPTURE(limit.descriptors);
    std::vector<std::string> importers;
    for (int i = 0; i <= limit.importers; ++i) importers.push_back("B" + std::to_string(i));
    const std::string last = importers.back();
    Story story;
    story.stop("A", at("admitted"));
    story.resume("A", at(last, "done"));
    story.actor("A", [importers, last, limit](Actor& me) {
      const rlimit own{limit.descriptors, descriptor_limit().rlim_max};
      me.expect_equal(::setrlimit(RLIMIT_NOFILE, &own), 0, "A may have so many");
      const Process a(me);
      for (const std::string& importer : importers) {
        share_some(me, a, importer, meet_importer(me, a, importer), for_each_importer);
      }
      me.step("admitted");
      me.pause_until(last, "done");
    });
    for (const std::string& importer : importers) {
      story.actor(importer, [importers, is_last = importer == last](Actor& me) {
        const Process b(me, {{"DEADLINE_MS", "100"}});
        meet_exporter(me, b);
        me.pause_until("A", "admitted");
        me.expect_equal(import_without_exporter(me, for_each_importer), is_last ? 0 : for_each_importer, "had ahead");
        if (is_last) {
          for (std::size_t i = 0; i + 1 < importers.size(); ++i) me.pause_until(importers[i], "done");
        }
        me.step("done");
      });
    }
    story.run();
  }
}

TEST_CASE("an importer that meets another exporter keeps what the first has sent it") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("B", "done"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    share_some(me, a, "B", meet_importer(me, a), 2);
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("X", [](Actor& me) {
    const Process x(me);
    me.send("B", x.export_key(x.allocate(), open_to_all));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, b);
    me.pause_until("A", "admitted");
    b.import_key(me.receive<Key>("X"));
    me.expect_equal(import_without_exporter(me, 2), 2, "both of A's");
    me.step("done");
  });
  story.run();
}

TEST_CASE("imports that are asked for together take what was sent ahead first") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("B", "done"));
  story.actor("A", [](Actor& me) {
    const Process a(me);
    share_some(me, a, "B", meet_importer(me, a), 5);
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const Process b(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, b);
    std::vector<Key> keys;
    for (int i = 0; i < 5; ++i) keys.push_back(me.receive<Key>("A"));
    me.pause_until("A", "admitted");
    const std::size_t before = count_descriptors();
    std::vector<host::ExpectedImport> imports;
    for (const Key& key : keys) imports.push_back({host::ExpectedImport::By::key, key.bytes});
    host::ask_ahead(imports);
    me.expect_equal(count_descriptors(), before + keys.size(), "all have come");
    for (const Key& key : keys) b.import_key(key);
    host::forget_asked_ahead();
    me.step("done");
  });
  story.run();
}

TEST_CASE("importers that end make room for what is sent to others") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("C", "done"));
  std::vector<std::string> importers;
  for (int i = 0; i < 8; ++i) importers.push_back("B" + std::to_string(i));
  story.actor("A", [importers](Actor& me) {
    const Process a(me);
    for (const std::string& importer : importers) {
      share_some(me, a, importer, meet_importer(me, a, importer), for_each_importer);
    }
    me.step("sent");
    me.expect(soon([] { return host::counters().connections == 0; }), "A forgets importers that ended");
    share_some(me, a, "C", meet_importer(me, a, "C"), for_each_importer);
    me.step("admitted");
    me.pause_until("C", "done");
  });
  for (const std::string& importer : importers) {
    story.actor(importer, [](Actor& me) {
      const Process b(me);
      meet_exporter(me, b);
      me.pause_until("A", "sent");
    });
  }
  story.actor("C", [](Actor& me) {
    const Process c(me, {{"DEADLINE_MS", "300"}});
    meet_exporter(me, c);
    me.pause_until("A", "admitted");
    me.expect_equal(import_without_exporter(me, for_each_importer), for_each_importer, "all are imported");
    me.step("done");
  });
  story.run();
}

TEST_CASE("tokens of every kind are sent ahead, and memory of the host too") {
  Story story;
  story.stop("A", at("admitted"));
  story.resume("A", at("B", "done"));
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}});
    const std::int32_t importer = meet_importer(me, a);
    std::vector<Token> tokens;
    for (const TokenKind kind : all_kinds) tokens.push_back(a.share(a.make(), listed, kind));
    tokens.push_back(a.share(a.make_at({0, acl::mem_location_type::host}, acl::mem_attr::ddr_huge), listed));
    for (const Token& token : tokens) {
      a.admit(token, importer);
      me.send("B", token);
    }
    me.step("admitted");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}, {"DEADLINE_MS", "300"}});
    meet_exporter(me, b);
    std::vector<Token> tokens;
    for (int i = 0; i < 4; ++i) tokens.push_back(me.receive<Token>("A"));
    me.pause_until("A", "admitted");
    for (const Token& token : tokens) b.import(token);
    me.step("done");
  });
  story.run();
}
