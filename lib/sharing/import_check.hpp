// SPDX-License-Identifier: Apache-2.0
// What can be said of a ticket before the runtime is asked, and how a refused import is put into words.
#pragma once

#include <devshare/imported.hpp>

namespace devshare::detail {

// Whether `device` may import what the ticket names, as far as this process can tell.
Result<void> check_ticket(const TicketFields& fields, const Device& device, const PeerAccess* grant, AccessMode access,
                          Operation operation) noexcept;

// Whether a ticket may share an import that is open: of the same export, on the same device (R25, R27), and writable
// where it is to be written to.
struct Opened {
  const TicketFields& fields;
  std::int32_t device;
  AccessMode access;
};
Result<void> may_share(const Opened& open, const TicketFields& fields, const Device& device, AccessMode access,
                       Operation operation) noexcept;

// While it lives, what this thread imports is for reading, where that is asked for and the runtime knows how.
class ReadingOnly {
 public:
  ReadingOnly(const RuntimeRecord& runtime, AccessMode access) noexcept
      : tell_(access == AccessMode::read_only ? runtime.extras.import_for_reading : nullptr) {
    if (tell_ != nullptr) tell_(true);
  }
  ~ReadingOnly() {
    if (tell_ != nullptr) tell_(false);
  }
  ReadingOnly(const ReadingOnly&) = delete;
  ReadingOnly& operator=(const ReadingOnly&) = delete;

 private:
  void (*tell_)(bool) noexcept;
};

Error refuse_import(const Session& session, const TicketFields& fields, std::int32_t device, Operation operation,
                    acl::Entry entry, acl::aclError code) noexcept;

// Installs the listener that forgets imports with their session; before the first of them.
void listen_for_imports() noexcept;

inline Operation import_operation(Mechanism mechanism) noexcept {
  return mechanism == Mechanism::by_key ? Operation::import_key : Operation::import_handle;
}

}  // namespace devshare::detail
