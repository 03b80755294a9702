// SPDX-License-Identifier: Apache-2.0
// An actor that shares physical handles over the C ABI alone: what the stories of the handle path have in common.
#pragma once

#include "key_process.hpp"

#include "host/physical.hpp"
#include "host/token.hpp"

#include <devshare/acl/vmm_types.hpp>

#include <sys/mman.h>

#include <cstring>
#include <type_traits>

namespace devshare::test {

using Handle = acl::aclrtDrvMemHandle;
using host::TokenKind;

constexpr std::uint64_t handle_size = std::uint64_t{2} << 20;

// A token of any kind, in the bytes that travel.
struct Token {
  TokenKind kind = TokenKind::v1;
  acl::aclrtMemFabricHandle bytes{};  // a 64-bit token is in the first eight

  std::uint64_t number() const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data, sizeof value);
    return value;
  }
  Token as(TokenKind other) const { return {other, bytes}; }
};
static_assert(std::is_trivially_copyable_v<Token>);

inline Token token_of(std::uint64_t number, TokenKind kind = TokenKind::v1) {
  Token token{.kind = kind};
  std::memcpy(token.bytes.data, &number, sizeof number);
  return token;
}

inline acl::aclrtMemSharedHandleType share_type_of(TokenKind kind) {
  return kind == TokenKind::fabric ? acl::share_type::fabric : acl::share_type::local;
}
inline const char* name_of(TokenKind kind) {
  return kind == TokenKind::v1 ? "v1" : kind == TokenKind::v2 ? "v2" : "fabric";
}
constexpr TokenKind all_kinds[] = {TokenKind::v1, TokenKind::v2, TokenKind::fabric};

// The calls by the kind of their token, whatever they return.
inline acl::aclError export_to(Handle handle, std::uint64_t flags, TokenKind kind, Token* token) {
  token->kind = kind;
  if (kind != TokenKind::v1) {
    return api().aclrtMemExportToShareableHandleV2(handle, flags, share_type_of(kind), token->bytes.data);
  }
  std::uint64_t number = 0;
  const acl::aclError result =
      api().aclrtMemExportToShareableHandle(handle, acl::mem_handle_type::none, flags, &number);
  std::memcpy(token->bytes.data, &number, sizeof number);
  return result;
}
inline acl::aclError admit_to(Token token, std::int32_t* pids, std::size_t count) {
  if (token.kind == TokenKind::v1) return api().aclrtMemSetPidToShareableHandle(token.number(), pids, count);
  return api().aclrtMemSetPidToShareableHandleV2(token.bytes.data, share_type_of(token.kind), pids, count);
}
inline acl::aclError import_from(Token token, Handle* handle, std::int32_t device = 0) {
  if (token.kind == TokenKind::v1) return api().aclrtMemImportFromShareableHandle(token.number(), device, handle);
  return api().aclrtMemImportFromShareableHandleV2(token.bytes.data, share_type_of(token.kind), 0, handle);
}

// One process of a story, as Process, and the calls of the handle path, each of which must succeed.
class HandleProcess : public Process {
 public:
  using Process::admit;
  using Process::import_fails;

  explicit HandleProcess(Actor& me, Switches switches = {}, std::int32_t device = 0)
      : Process(me, switches, device), me_(me) {}

  Handle make(std::uint64_t bytes = handle_size, std::int32_t device = 0) const {
    return make_at({static_cast<std::uint32_t>(device), acl::mem_location_type::device}, 4, bytes);
  }
  Handle make_at(acl::aclrtMemLocation location, int attribute, std::uint64_t bytes = handle_size) const {
    acl::aclrtPhysicalMemProp property{};
    property.memAttr = attribute;
    property.location = location;
    Handle handle = nullptr;
    const acl::aclError result = api().aclrtMallocPhysical(&handle, bytes, &property, 0);
    if (result != 0) me_.expect(false, fmt::format("aclrtMallocPhysical fails: {} {}", result, text()));
    return handle;
  }
  Token share(Handle handle, std::uint64_t flags = open_to_all, TokenKind kind = TokenKind::v1) const {
    Token token;
    const acl::aclError result = export_to(handle, flags, kind, &token);
    if (result != 0) me_.expect(false, fmt::format("the export as {} fails: {} {}", name_of(kind), result, text()));
    return token;
  }
  void admit(const Token& token, std::int32_t pid) const {
    me_.expect_equal(admit_to(token, &pid, 1), 0, "the pid is set");
  }
  Handle import(const Token& token, std::int32_t device = 0) const {
    Handle handle = nullptr;
    const acl::aclError result = import_from(token, &handle, device);
    if (result != 0) {
      me_.expect(false, fmt::format("the import of {} fails: {} {}", name_of(token.kind), result, text()));
    }
    return handle;
  }
  void release(Handle handle) const { me_.expect_equal(api().aclrtFreePhysical(handle), 0, "aclrtFreePhysical"); }

  void refused(acl::aclError result, acl::aclError expected, Reason reason, std::string_view sentence) const {
    const Reason actual = host::last_cause().reason;
    me_.expect_equal(result, expected, sentence);
    me_.expect(actual == reason, fmt::format("{}: the reason is {} and not {}", sentence, static_cast<int>(actual),
                                             static_cast<int>(reason)));
  }
  void import_fails(const Token& token, acl::aclError expected, Reason reason, std::int32_t device = 0) const {
    Handle handle = nullptr;
    refused(import_from(token, &handle, device), expected, reason, "the import is refused");
  }
  void admit_fails(const Token& token, acl::aclError expected, Reason reason) const {
    std::int32_t pid = bare_pid();
    refused(admit_to(token, &pid, 1), expected, reason, "the admission is refused");
  }

  // The first byte behind a handle, seen by the way of its descriptor: what is shared is the memory, mapped or not.
  unsigned char* look(Handle handle) const {
    const host::Physical memory = host::physical_of(handle);
    if (memory == nullptr) {
      me_.expect(false, "there is no such handle");
      return nullptr;
    }
    void* seen = ::mmap(nullptr, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor.get(), 0);
    return static_cast<unsigned char*>(seen);
  }
  void put(Handle handle, unsigned char value) const { *look(handle) = value; }
  int get(Handle handle) const { return *look(handle); }

  // Nothing of the handle path is left. Connections and peer access stay, as with keys.
  void has_nothing_left() const {
    const host::Counters left = host::counters();
    me_.expect_equal(left.handles, std::uint64_t{0}, "no handle is left");
    me_.expect_equal(left.tokens_exported, std::uint64_t{0}, "no token is left");
    me_.expect_equal(left.handles_imported, std::uint64_t{0}, "no import is left");
    me_.expect_equal(left.descriptors, std::uint64_t{0}, "no descriptor is left");
    me_.expect_equal(left.bytes, std::uint64_t{0}, "no byte is left");
  }

 private:
  Actor& me_;
};

}  // namespace devshare::test
