// SPDX-License-Identifier: Apache-2.0
// Sharing physical handles between processes of the host runtime: the three kinds of token and the rules of each call.
#include "handle_process.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/sanitizers.hpp"

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace devshare;
using namespace devshare::test;
using namespace std::chrono_literals;

TEST_CASE("B reads and writes the memory behind A's handle, admitted and by a token of any kind (R26, R39)") {
  for (const TokenKind kind : all_kinds) {
    CAPTURE(name_of(kind));
    Story story;
    story.actor("A", [kind](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", "a3"}});
      const Handle handle = a.make(3 * handle_size, 1);
      a.put(handle, 'a');
      const Token token = a.share(handle, listed, kind);
      me.expect_equal(host::counters().tokens_exported, std::uint64_t{1}, "one token");
      a.admit(token, me.receive<std::int32_t>("B"));
      me.send("B", token);
      me.pause_until("B", "wrote");
      me.expect_equal(a.get(handle), 'b', "A sees what B wrote");
      a.release(handle);
      me.expect_equal(host::bytes_in_use(1), 3 * handle_size, "B has the memory still");
      a.has_nothing_left();
      me.step("freed");
      me.pause_until("B", "freed");
      me.expect_equal(host::bytes_in_use(1), std::uint64_t{0}, "nobody has it any more");
    });
    story.actor("B", [kind](Actor& me) {
      const HandleProcess b(me, {{"PROFILE", "a3"}}, 1);
      me.send("A", b.bare_pid());
      const Token token = me.receive<Token>("A");
      const Handle handle = b.import(token, 1);
      me.expect_equal(b.get(handle), 'a', "B sees what A wrote");
      {
        const host::Physical memory = host::physical_of(handle);
        me.expect_equal(memory->size, 3 * handle_size, "as many bytes");
        me.expect_equal(memory->page_size, handle_size, "in as large pages");
        me.expect_equal(memory->device, 1, "on the same device");
        me.expect(memory->origin ==
                      (kind == TokenKind::v1 ? host::HandleOrigin::imported_v1 : host::HandleOrigin::imported_v2),
                  "and it says how it came");
      }
      acl::aclrtPhysicalMemProp property{};
      me.expect_equal(api().aclrtMemGetAllocationPropertiesFromHandle(handle, &property), 0, "it has properties");
      me.expect_equal(property.memAttr, 4, "those that A asked for");
      me.expect_equal(property.location.id, 1U, "its device");
      me.expect_equal(property.location.type, acl::mem_location_type::device, "which is one");
      me.expect_equal(host::counters().handles_imported, std::uint64_t{1}, "one import");
      me.expect_equal(host::bytes_in_use(1), 3 * handle_size, "which counts once");
      b.put(handle, 'b');
      me.step("wrote");
      me.pause_until("A", "freed");
      me.expect_equal(b.get(handle), 'b', "the memory outlives A's handle");
      b.release(handle);
      b.has_nothing_left();
      me.step("freed");
    });
    story.run();
  }
}

TEST_CASE("the exporting calls check their arguments in the documented order") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}});
    const Handle handle = a.make();
    std::uint64_t number = 0;
    Token token;
    std::int32_t pid = 1;
    const auto v1 = [&](Handle of, int type, std::uint64_t flags, std::uint64_t* out) {
      return api().aclrtMemExportToShareableHandle(of, type, flags, out);
    };
    const auto v2 = [&](Handle of, std::uint64_t flags, int type, void* out) {
      return api().aclrtMemExportToShareableHandleV2(of, flags, type, out);
    };
    a.refused(v1(nullptr, 2, 2, &number), code::invalid_param, Reason::bad_argument, "no handle");
    a.refused(v1(handle, 2, 2, nullptr), code::invalid_param, Reason::bad_argument, "nowhere to write");
    a.refused(v1(handle, 2, 2, &number), code::invalid_param, Reason::bad_argument, "a POSIX handle");
    a.refused(v1(handle, 0, 2, &number), code::rt_param_invalid, Reason::bad_argument, "unknown flags");
    a.refused(v2(nullptr, 2, 3, token.bytes.data), code::invalid_param, Reason::bad_argument, "no handle");
    a.refused(v2(handle, 2, 3, nullptr), code::invalid_param, Reason::bad_argument, "nowhere to write");
    a.refused(v2(handle, 2, 3, token.bytes.data), code::rt_param_invalid, Reason::bad_argument, "unknown flags");
    a.refused(v2(handle, 1, 3, token.bytes.data), code::rt_param_invalid, Reason::bad_argument, "unknown type");
    a.refused(v2(handle, 1, 0, token.bytes.data), code::rt_param_invalid, Reason::bad_argument, "type none");

    a.refused(api().aclrtMemSetPidToShareableHandle(1, nullptr, 0), code::invalid_param, Reason::bad_argument, "null");
    a.refused(api().aclrtMemSetPidToShareableHandle(1, &pid, 0), code::invalid_param, Reason::bad_argument, "no pids");
    std::vector<std::int32_t> many(65'536, 1);
    a.refused(api().aclrtMemSetPidToShareableHandle(1, many.data(), many.size()), code::rt_param_invalid,
              Reason::too_many_pids, "65,536 pids");
    const auto set_v2 = [&](void* of, int type, std::int32_t* pids, std::size_t count) {
      return api().aclrtMemSetPidToShareableHandleV2(of, type, pids, count);
    };
    a.refused(set_v2(nullptr, 3, &pid, 1), code::invalid_param, Reason::bad_argument, "no token");
    a.refused(set_v2(token.bytes.data, 3, nullptr, 1), code::invalid_param, Reason::bad_argument, "null pids");
    a.refused(set_v2(token.bytes.data, 3, many.data(), many.size()), code::rt_param_invalid, Reason::too_many_pids,
              "65,536 pids");
    a.refused(set_v2(token.bytes.data, 3, &pid, 1), code::rt_param_invalid, Reason::bad_argument, "unknown type");
    a.refused(set_v2(token.bytes.data, 2, &pid, 1), code::rt_param_invalid, Reason::unknown_key, "no fabric token");

    Handle out = nullptr;
    a.refused(api().aclrtMemImportFromShareableHandle(1, 99, nullptr), code::invalid_param, Reason::bad_argument,
              "nowhere to write");
    for (const std::int32_t device : {-1, 2, 99}) {  // R33
      a.refused(api().aclrtMemImportFromShareableHandle(1, device, &out), code::rt_invalid_deviceid,
                Reason::no_such_device, "a device out of range");
    }
    const auto import_v2 = [&](void* from, int type, std::uint64_t flags, Handle* into) {
      return api().aclrtMemImportFromShareableHandleV2(from, type, flags, into);
    };
    a.refused(import_v2(nullptr, 3, 1, &out), code::invalid_param, Reason::bad_argument, "no token");
    a.refused(import_v2(token.bytes.data, 3, 1, nullptr), code::invalid_param, Reason::bad_argument, "nowhere");
    a.refused(import_v2(token.bytes.data, 3, 1, &out), code::invalid_param, Reason::bad_argument, "flags (R32)");
    a.has_text("R32");
    a.refused(import_v2(token.bytes.data, 3, 0, &out), code::rt_param_invalid, Reason::bad_argument, "unknown type");
    a.refused(import_v2(token.bytes.data, 2, 0, &out), code::rt_param_invalid, Reason::unknown_key, "no fabric token");

    std::thread without_device([&] {
      a.refused(v1(handle, 0, 0, &number), code::rt_context_null, Reason::no_context, "export (R1)");
      a.refused(v2(handle, 0, 2, token.bytes.data), code::rt_context_null, Reason::no_context, "export V2 (R1)");
      a.refused(api().aclrtMemSetPidToShareableHandle(1, &pid, 1), code::rt_context_null, Reason::no_context, "(R1)");
      a.refused(set_v2(token.bytes.data, 1, &pid, 1), code::rt_context_null, Reason::no_context, "V2 (R1)");
      a.refused(api().aclrtMemImportFromShareableHandle(1, 99, &out), code::rt_context_null, Reason::no_context, "R1");
      a.refused(import_v2(token.bytes.data, 1, 0, &out), code::rt_context_null, Reason::no_context, "V2 (R1)");
    });
    without_device.join();
    me.expect_equal(host::counters().tokens_exported, std::uint64_t{0}, "no token was made");
  });
  story.run();
}

TEST_CASE("fabric tokens are a3's alone, the others are everybody's (R35)") {
  for (const std::string product : {"a2", "a3", "training", "310p", "950"}) {
    CAPTURE(product);
    Story story;
    story.actor("A", [product](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", product}});
      const int attribute = product == "310p" ? 13 : 4;  // a 310P has no HBM: what the location has
      for (const TokenKind kind : all_kinds) {
        const Handle handle = a.make_at({0, acl::mem_location_type::device}, attribute);
        if (kind != TokenKind::fabric || product == "a3") {
          me.send("B", a.share(handle, open_to_all, kind));
          continue;
        }
        Token token;
        a.refused(export_to(handle, open_to_all, kind, &token), code::rt_feature_not_support, Reason::unsupported,
                  "no fabric");
        a.admit_fails(token, code::rt_feature_not_support, Reason::unsupported);
        a.import_fails(token, code::rt_feature_not_support, Reason::unsupported);
      }
      me.pause_until("B", "done");
    });
    story.actor("B", [product](Actor& me) {
      const HandleProcess b(me, {{"PROFILE", product}});
      for (int i = 0; i < (product == "a3" ? 3 : 2); ++i) b.release(b.import(me.receive<Token>("A")));
      b.has_nothing_left();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("a handle has one token, of whatever kind, and exports are for those who allocated (R26, R27)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}});
    for (const TokenKind first : all_kinds) {
      const Handle handle = a.make();
      me.send("B", a.share(handle, open_to_all, first));
      for (const TokenKind second : all_kinds) {
        Token token;
        a.refused(export_to(handle, listed, second, &token), code::rt_drv_internal, Reason::already_exported,
                  "a second export");
      }
      a.has_text("R27");
    }
    me.expect_equal(host::counters().tokens_exported, std::uint64_t{3}, "one token each");
    const Handle freed = a.make();
    a.release(freed);
    Token token;
    me.expect_equal(export_to(freed, listed, TokenKind::v1, &token), code::rt_invalid_handle, "a freed handle (R40)");
    me.expect_equal(export_to(&token, listed, TokenKind::v2, &token), code::rt_invalid_handle, "no handle at all");
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}});
    for (const TokenKind kind : all_kinds) {
      const Handle handle = b.import(me.receive<Token>("A"));
      Token token;
      b.refused(export_to(handle, open_to_all, kind, &token), code::rt_drv_internal, Reason::imported_memory,
                "an export of what was imported");
      b.has_text("R26");
    }
    me.step("done");
  });
  story.run();
}

TEST_CASE("B035 a second import is refused, until the first was freed for good; or counted, where asked for (R27)") {
  for (const bool counted : {false, true}) {
    CAPTURE(counted);
    Story story;
    story.actor("A", [](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", "a3"}});
      for (const TokenKind kind : all_kinds) me.send("B", a.share(a.make(), open_to_all, kind));
      me.pause_until("B", "done");
    });
    story.actor("B", [counted](Actor& me) {
      const HandleProcess b(me, {{"PROFILE", "a3"}, {"HANDLE_REIMPORT", counted ? "count" : "refuse"}});
      for (int i = 0; i < 3; ++i) {
        const Token token = me.receive<Token>("A");
        const Handle first = b.import(token);
        if (counted) {
          me.expect(b.import(token) == first, "the same handle");
          me.expect_equal(host::counters().handles, std::uint64_t{1}, "and one");
          b.release(first);
          me.expect_equal(b.get(first), 0, "which is there until it was freed as often");
        } else {
          b.import_fails(token, code::rt_drv_internal, Reason::already_imported);
          b.has_text("R27");
        }
        b.release(first);
        me.expect(host::physical_of(first) == nullptr, "gone for good");
        b.release(b.import(token));  // comes again
      }
      b.has_nothing_left();
      me.step("done");
    });
    story.run();
  }
}

TEST_CASE("tokens go with the calls of their own kind, and the refusal says which (R31)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Token first = a.share(a.make(), listed, TokenKind::v1);
    const Token second = a.share(a.make(), listed, TokenKind::v2);
    a.admit_fails(first.as(TokenKind::v2), code::rt_invalid_handle, Reason::wrong_token_kind);
    a.has_text("by aclrtMemExportToShareableHandle:");
    a.admit_fails(second.as(TokenKind::v1), code::rt_invalid_handle, Reason::wrong_token_kind);
    a.has_text("aclrtMemExportToShareableHandleV2 as ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT");
    const std::int32_t b = me.receive<std::int32_t>("B");
    a.admit(first, b);
    a.admit(second, b);
    me.send("B", first);
    me.send("B", second);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    me.send("A", b.bare_pid());
    const Token first = me.receive<Token>("A");
    const Token second = me.receive<Token>("A");
    b.import_fails(first.as(TokenKind::v2), code::rt_invalid_handle, Reason::wrong_token_kind);
    b.has_text("it goes with aclrtMemImportFromShareableHandle of");
    b.import_fails(second.as(TokenKind::v1), code::rt_invalid_handle, Reason::wrong_token_kind);
    b.has_text("it goes with aclrtMemImportFromShareableHandleV2");
    b.release(b.import(first));
    b.release(b.import(second));
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("the exporter does not import what it exported, but on 950 (R28)") {
  for (const std::string product : {"a3", "950"}) {
    CAPTURE(product);
    Story story;
    story.actor("A", [product](Actor& me) {
      const HandleProcess a(me, {{"PROFILE", product}});
      for (const TokenKind kind : all_kinds) {
        if (kind == TokenKind::fabric && product != "a3") continue;
        const Handle handle = a.make();
        a.put(handle, 'x');
        const Token token = a.share(handle, listed, kind);
        if (product == "a3") {
          a.import_fails(token, code::rt_drv_internal, Reason::own_key);
          a.import_fails(token, code::rt_drv_internal, Reason::own_key, 1);  // on another device neither
          a.has_text("R28");
        } else {
          const Handle own = a.import(token);
          me.expect(own != handle, "a handle of its own");
          me.expect_equal(a.get(own), 'x', "to the same memory");
          me.expect_equal(host::bytes_in_use(0), handle_size, "which counts once");
          a.release(handle);
          me.expect_equal(host::bytes_in_use(0), handle_size, "and stays");
          a.import_fails(token, code::rt_drv_internal, Reason::already_imported);
          a.release(own);
        }
        if (product == "a3") a.release(handle);
        a.import_fails(token, code::rt_invalid_handle, Reason::unknown_key);  // R30
        me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nothing is left");
      }
      a.has_nothing_left();
    });
    story.run();
  }
}

TEST_CASE("a token that has ended stays unknown, whatever is exported later (R30)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me);
    const Handle handle = a.make();
    const Token token = a.share(handle);
    a.release(handle);
    for (int i = 0; i < 5; ++i) me.expect(a.share(a.make()).number() != token.number(), "another token");
    a.admit_fails(token, code::rt_invalid_handle, Reason::unknown_key);
    me.send("B", token);
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me);
    const Token token = me.receive<Token>("A");
    b.import_fails(token, code::rt_invalid_handle, Reason::unknown_key);
    b.has_text("R30");
    b.import_fails(token_of(token.number() ^ 0x1000), code::rt_invalid_handle, Reason::unknown_key);  // no such slot
    b.import_fails(token_of(token.number() ^ std::uint64_t{1} << 40), code::rt_invalid_handle, Reason::exporter_gone);
    b.import_fails(token_of(0), code::rt_invalid_handle, Reason::exporter_gone);
    b.import_fails(token_of(UINT64_MAX, TokenKind::v2), code::rt_invalid_handle, Reason::exporter_gone);
    me.step("done");
  });
  story.run();
}

TEST_CASE("a stranger's fabric token is refused whole, and a guess at its secret finds nothing (R61)") {
  Story story;
  story.actor("A", [](Actor& me) {
    const HandleProcess a(me, {{"PROFILE", "a3"}});
    me.send("B", a.share(a.make(), open_to_all, TokenKind::fabric));
    me.pause_until("B", "done");
  });
  story.actor("B", [](Actor& me) {
    const HandleProcess b(me, {{"PROFILE", "a3"}});
    const Token token = me.receive<Token>("A");
    for (const std::size_t at : {0U, 9U, 20U, 40U, 100U, 127U}) {
      Token damaged = token;
      damaged.bytes.data[at] ^= 0x10;
      b.import_fails(damaged, code::rt_param_invalid, Reason::unknown_key);
    }
    me.expect_equal(host::counters().connections, std::uint64_t{0}, "nobody was asked");
    host::FabricToken guess = *host::decode_fabric(token.bytes);
    guess.name.secret[0] ^= 1;
    b.import_fails({TokenKind::fabric, host::encode_fabric(guess)}, code::rt_invalid_handle, Reason::unknown_key);
    b.release(b.import(token));
    me.step("done");
  });
  story.run();
}

TEST_CASE("B059 B061 200 rounds on a device with room for two leave no byte and no descriptor behind") {
  Story story(120s);
  const Switches small = {{"CAPACITY", "8M"}};
  story.actor("A", [small](Actor& me) {
    const HandleProcess a(me, small);
    std::size_t before = 0;
    for (int i = 0; i < 200; ++i) {
      const Handle handle = a.make(2 * handle_size);
      me.send("B", a.share(handle, open_to_all, i % 2 == 0 ? TokenKind::v1 : TokenKind::v2));
      me.receive<char>("B");
      a.release(handle);
      if (i == 0) before = count_descriptors();
    }
    me.expect_equal(count_descriptors(), before, "A's descriptors");
    a.has_nothing_left();
    me.pause_until("B", "done");
    me.expect_equal(host::bytes_in_use(0), std::uint64_t{0}, "nothing is in use");
  });
  story.actor("B", [small](Actor& me) {
    const HandleProcess b(me, small);
    std::size_t before = 0;
    for (int i = 0; i < 200; ++i) {
      b.release(b.import(me.receive<Token>("A")));
      if (i == 0) before = count_descriptors();
      me.send("A", 'k');
    }
    me.expect_equal(count_descriptors(), before, "B's descriptors");
    b.has_nothing_left();
    me.step("done");
  });
  story.run();
}

TEST_CASE("of eight threads that import a token at once one has it, or all have the same where they count (R27)") {
  for (const bool counted : {false, true}) {
    CAPTURE(counted);
    Story story(120s);
    constexpr int rounds = under_sanitizer() ? 20 : 100;
    story.actor("A", [](Actor& me) {
      const HandleProcess a(me);
      for (int i = 0; i < rounds; ++i) me.send("B", a.share(a.make()));
      me.pause_until("B", "done");
    });
    story.actor("B", [counted](Actor& me) {
      const HandleProcess b(me, {{"HANDLE_REIMPORT", counted ? "count" : "refuse"}});
      for (int i = 0; i < rounds; ++i) {
        const Token token = me.receive<Token>("A");
        std::array<Handle, 8> got{};
        std::array<acl::aclError, 8> result{};
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < got.size(); ++t) {
          threads.emplace_back([&, t] {
            if (api().aclrtSetDevice(0) == 0) result[t] = import_from(token, &got[t]);
          });
        }
        for (std::thread& thread : threads) thread.join();
        std::size_t had = 0;
        Handle handle = nullptr;
        for (std::size_t t = 0; t < got.size(); ++t) {
          if (result[t] == 0) {
            ++had;
            me.expect(handle == nullptr || handle == got[t], "one handle");
            handle = got[t];
          } else {
            me.expect_equal(result[t], code::rt_drv_internal, "the others are refused");
          }
        }
        me.expect_equal(had, counted ? got.size() : std::size_t{1}, "as many had it");
        for (; had > 0; --had) b.release(handle);
      }
      b.has_nothing_left();
      me.step("done");
    });
    story.run();
  }
}
