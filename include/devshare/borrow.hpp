// SPDX-License-Identifier: Apache-2.0
// borrow(): memory that another process lends. Lease: it, until it is returned.
//
//   DEVSHARE_TRY(lease, borrow(device, Endpoint::path("/run/engine/weights.sock"), "weights", 5s));
//   ... use lease.bytes() ...
//   DEVSHARE_CHECK(std::move(lease).close());
//
// The other side is devshare/lend.hpp.
#pragma once

#include <devshare/allow.hpp>
#include <devshare/deadline.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/endpoint.hpp>
#include <devshare/imported.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace devshare {

class Borrower;

namespace detail {

struct LeaseRecord;
struct LeaseValue {
  LeaseRecord* record = nullptr;
};
// Ends by telling the lender that the import is closed.
struct LeasePolicy {
  using Value = LeaseValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value&) noexcept { return nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

struct BorrowerCore;
struct BorrowerValue {
  BorrowerCore* core = nullptr;
};
struct BorrowerPolicy {
  using Value = BorrowerValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value&) noexcept { return nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// A lease: an import that the lender knows of. Movable, not copyable; one thread at a time, different leases from any
// threads, also those of one Borrower. The destructor closes the import and then tells the lender; neither waits.
//
// The lender may want it back (wanted_back()): then close it soon. If it takes it back, or ends, check() says so. What
// came by a handle keeps its bytes even then.
template <class Access>
class DEVSHARE_CONSUMABLE [[nodiscard("the memory is returned when this object ends")]] BasicLease {
 public:
  BasicLease(const BasicLease&) = delete;             // a lease has one owner: std::move it
  BasicLease& operator=(const BasicLease&) = delete;  // a lease has one owner: std::move it
  BasicLease(BasicLease&&) noexcept = default;
  BasicLease& operator=(BasicLease&& other) noexcept {
    BasicLease taken(std::move(other));
    std::swap(lease_, taken.lease_);
    std::swap(mapping_, taken.mapping_);
    return *this;
  }
  ~BasicLease() {
    if (lease_.holds()) end();
  }

  // Exactly what was borrowed, not looked whether it is still lent.
  DEVSHARE_READS DeviceSpan<typename Access::Byte> bytes() const& noexcept DEVSHARE_LIFETIMEBOUND { return mapping_.bytes(); }
  DeviceSpan<typename Access::Byte> bytes() && = delete;  // the lease ends with the temporary: keep it in a named object
  // The same, once check() has nothing to say.
  DEVSHARE_READS DEVSHARE_API Result<DeviceSpan<typename Access::Byte>> checked_bytes() const& noexcept
      DEVSHARE_LIFETIMEBOUND;
  DEVSHARE_READS std::size_t size() const noexcept { return mapping_.size(); }
  DEVSHARE_READS Mechanism mechanism() const noexcept { return mapping_.mechanism(); }
  DEVSHARE_READS Device device() const noexcept { return mapping_.device(); }
  DEVSHARE_READS bool access_enforced() const noexcept { return mapping_.access_enforced(); }

  // Whether the bytes are still there. Errors: revoked (the lender took it back), exporter_gone (it ended, and the
  // mechanism is by key), closed, forked, runtime_gone.
  DEVSHARE_READS DEVSHARE_API Result<void> check() const noexcept;
  // Whether the lender asked for it: it withdrew or revoked the offer, or has ended.
  DEVSHARE_READS DEVSHARE_API bool wanted_back() const noexcept;

  // The generation of the data as far as this process has heard; generations begin with 1.
  DEVSHARE_READS DEVSHARE_API std::uint64_t generation() const noexcept;
  // Waits until there is a generation above `than`, and returns it. It takes no time where that is known already.
  // Errors: timed_out, revoked, exporter_gone, closed, forked, runtime_gone.
  DEVSHARE_READS DEVSHARE_API Result<std::uint64_t> wait_newer(std::uint64_t than, Deadline deadline) const noexcept;

  // A descriptor that is readable when the lender has something to say, or has ended: for an event loop, which then asks
  // check(), wanted_back() or generation(). Shared by the leases of one Borrower, and theirs. Error: fd_limit.
  DEVSHARE_READS DEVSHARE_API Result<int> native_handle() const noexcept;

  // Closes the import and tells the lender. Refused, the lease comes back inside the error. A destructor that cannot close
  // the import either parks it, and the lender is not told: it counts this process as a holder until the process ends.
  // Errors: as of ImportedMapping::close.
  DEVSHARE_API DEVSHARE_CONSUMES Result<void, Refused<BasicLease>> close() && noexcept;
  void close() & = delete;       // write std::move(lease).close(): it ends the lease
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // For the library itself.
  BasicLease(const detail::Session& session, const detail::LeaseValue& lease,
             BasicImportedMapping<Access>&& mapping) noexcept
      : lease_(session, lease), mapping_(std::move(mapping)) {}

 private:
  DEVSHARE_API void end() noexcept;

  detail::Owned<detail::LeasePolicy> lease_;  // ends after the import
  BasicImportedMapping<Access> mapping_;
};

using Lease = BasicLease<ReadWrite>;
using ConstLease = BasicLease<ReadOnly>;

struct BorrowOptions {
  Slice slice{};                           // of what is offered; the whole by default. A view, not a wall
  Allow lender = Allow::same_user();       // whom to borrow from; root's lenders always may
};

// A kept connection to one lender. Movable, not copyable; any thread may borrow by it. Leases keep the connection: they
// may outlive this object.
class DEVSHARE_CONSUMABLE [[nodiscard("the connection is for borrowing: keep it, or use borrow()")]] Borrower {
 public:
  // Waits for the lender to be there, and to answer, until the deadline.
  // Errors: no_lender, timed_out, not_permitted, version_mismatch, bad_message, exporter_gone (it ended meanwhile),
  // invalid_argument (the endpoint cannot be one), fd_limit, backend_unavailable, unsupported_by_runtime, runtime_gone.
  DEVSHARE_API static Result<Borrower> connect(const Device& device, const Endpoint& endpoint, Deadline deadline,
                                               Allow lender = Allow::same_user()) noexcept;

  // Waits for the offer to be there until the deadline, then imports.
  // Errors: no_such_offer, timed_out (the lender does not answer), exporter_gone, revoked, not_permitted,
  // mechanism_mismatch and already_exported_as (what was chosen for others this process cannot, or nothing it can),
  // access_mismatch (it is lent for reading), out_of_range (the slice), bad_message; what the lender's runtime refused,
  // with its reason; those of ImportedMapping::open; closed, forked, runtime_gone.
  DEVSHARE_READS DEVSHARE_API Result<Lease> borrow(std::string_view name, Deadline deadline,
                                                   Slice slice = {}) const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<ConstLease> borrow_to_read(std::string_view name, Deadline deadline,
                                                                Slice slice = {}) const noexcept;
  // Several offers at once, all of them or none, in the order of the names.
  DEVSHARE_READS DEVSHARE_API Result<std::vector<Lease>> borrow_all(std::span<const std::string_view> names,
                                                                    Deadline deadline) const noexcept;
  DEVSHARE_READS DEVSHARE_API Result<std::vector<ConstLease>> borrow_all_to_read(
      std::span<const std::string_view> names, Deadline deadline) const noexcept;

  // Ends the connection once its last lease has ended. Errors: closed, forked, runtime_gone.
  DEVSHARE_CONSUMES Result<void> close() && noexcept { return borrower_.close(Operation::borrow); }
  void close() & = delete;       // write std::move(borrower).close(): it ends the connection
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  Borrower(const detail::Session& session, const detail::BorrowerValue& value) noexcept : borrower_(session, value) {}

  detail::Owned<detail::BorrowerPolicy> borrower_;
};

// Connects, borrows one offer and keeps the connection as long as the lease. Errors: those of both.
DEVSHARE_API Result<Lease> borrow(const Device& device, const Endpoint& endpoint, std::string_view name,
                                  Deadline deadline, BorrowOptions options = {}) noexcept;
DEVSHARE_API Result<ConstLease> borrow_to_read(const Device& device, const Endpoint& endpoint, std::string_view name,
                                               Deadline deadline, BorrowOptions options = {}) noexcept;

}  // namespace devshare
