// SPDX-License-Identifier: Apache-2.0
// The immortal record of the process's runtime, and what every inline call needs of it. Not for users: Runtime and
// Device are the handles to it.
#pragma once

#include <devshare/acl/table.hpp>
#include <devshare/detail/attributes.hpp>
#include <devshare/detail/cause.hpp>
#include <devshare/error.hpp>
#include <devshare/host_pages.hpp>

namespace devshare::detail {

// What only the host runtime can tell; null pointers with the vendor's.
struct RuntimeExtras {
  const Cause& (*last_cause)() noexcept = nullptr;
  // A blocking copy in that session, on the thread's current device, if that is `device` and nothing stands in its way;
  // false otherwise, and then nothing has happened.
  bool (*copied_without_call)(std::uint64_t session, std::int32_t device, void* to, const void* from,
                              std::size_t size) noexcept = nullptr;
  bool (*import_gone)(const void* address) noexcept = nullptr;
  void (*import_for_reading)(bool on) noexcept = nullptr;  // the imports that this thread makes
  bool (*imported_for_reading)(const void* address) noexcept = nullptr;
  void (*wish_pages)(HostWish wish) noexcept = nullptr;  // of what this thread allocates and imports from now on
  HostBacking (*backing_at)(const void* address, std::size_t size) noexcept = nullptr;  // of all of the range
  HostBacking (*backing_of)(acl::aclrtDrvMemHandle handle) noexcept = nullptr;
};

struct RuntimeRecord {
  acl::Table table;
  RuntimeExtras extras;
  // The number of the session: two counters in one word, so that one load tells. Above, in steps of 2^32, devshare's own
  // (Runtime::finalize, fork in the child); below the runtime's (its own finalize, where it tells). Objects made under
  // another number are not usable any more.
  static constexpr std::uint64_t session_step = std::uint64_t{1} << 32;
  std::uint64_t* session_word = nullptr;

  std::uint64_t session_now() const noexcept { return __atomic_load_n(session_word, __ATOMIC_ACQUIRE); }
};

// The record and the session an object was made under.
struct Session {
  const RuntimeRecord* record = nullptr;
  std::uint64_t number = 0;

  bool alive() const noexcept { return record != nullptr && record->session_now() == number; }
  // The same of a session that has a record, as that of every Device has.
  bool current() const noexcept { return record->session_now() == number; }
};

// Turns a code into an Error, with the runtime's reason where it gives one. Out of line, no allocation.
DEVSHARE_API Error refusal(const RuntimeRecord& record, Operation operation, acl::Entry entry, acl::aclError code,
                           const Detail& detail) noexcept;

// The error of an object that cannot be used any more: closed, forked or runtime_gone.
[[gnu::cold]] DEVSHARE_API Error unusable(Session session, Operation operation) noexcept;

// An entry that this runtime lacks.
[[gnu::cold]] DEVSHARE_API Error lacking(Operation operation, acl::Entry entry) noexcept;

// What the runtime says of the pages behind a range of addresses. Unknown where it does not say, and in a session that
// is over.
DEVSHARE_API HostBacking backing_at(const Session& session, const void* address, std::size_t size) noexcept;

// The number of an entry by its pointer in the table, at compile time.
template <auto Pointer>
inline constexpr acl::Entry entry_of = acl::Entry::none;
#define DEVSHARE_ACL_ENTRY_OF(name, result, parameters, need, since) \
  template <>                                                        \
  inline constexpr acl::Entry entry_of<&acl::Table::name> = acl::Entry::name;
DEVSHARE_ACL_ENTRIES(DEVSHARE_ACL_ENTRY_OF)
#undef DEVSHARE_ACL_ENTRY_OF

// Whether a device is current on the calling thread: what an inline call asks before it takes the long way.
inline bool is_current(const RuntimeRecord& record, std::int32_t device) noexcept {
  std::int32_t current;  // written where the call succeeds; two instructions of every copy if it were set before
  return record.table.aclrtGetDevice(&current) == 0 && current == device;
}

// Makes a device current on the calling thread for its lifetime and gives the thread back what it had (R1). Where the
// device is current already, it costs one aclrtGetDevice and changes nothing.
class CurrentDevice {
 public:
  CurrentDevice(const RuntimeRecord& record, std::int32_t device) noexcept {
    if (!is_current(record, device)) [[unlikely]] enter(record, device);
  }
  ~CurrentDevice() {
    if (record_ != nullptr) [[unlikely]] leave();
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  // 0, or the code of the call that could not make the device current.
  acl::aclError code() const noexcept { return code_; }

 private:
  DEVSHARE_API void enter(const RuntimeRecord& record, std::int32_t device) noexcept;
  DEVSHARE_API void leave() noexcept;

  const RuntimeRecord* record_ = nullptr;  // null: nothing to give back
  void* previous_ = nullptr;               // the context the thread had; null: none
  std::int32_t device_ = -1;
  acl::aclError code_ = 0;
};

}  // namespace devshare::detail
