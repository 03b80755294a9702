// SPDX-License-Identifier: Apache-2.0
// Lender: lends device memory to other processes, by name. Lent: one memory that is lent, and who holds it.
//
//   DEVSHARE_TRY(lender, Lender::at(runtime, Endpoint::path("/run/engine/weights.sock")));
//   DEVSHARE_TRY(lent, lender.offer("weights", std::move(memory)));   // DeviceMemory, Mapping, PhysicalHandle, ...
//   DEVSHARE_TRY(serving, serve(lender));                             // or lender.dispatch() in an event loop
//   ...
//   DEVSHARE_TRY(memory, std::move(lent).close(5s));                  // waits for the borrowers, then gives it back
//
// The other side is devshare/borrow.hpp; docs/lending.md has the protocol and says what the kernel vouches for.
#pragma once

#include <devshare/allow.hpp>
#include <devshare/choose.hpp>
#include <devshare/deadline.hpp>
#include <devshare/detail/owned.hpp>
#include <devshare/endpoint.hpp>
#include <devshare/exported.hpp>
#include <devshare/runtime.hpp>
#include <devshare/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace devshare {

// A borrower of an offer: from the moment its ticket was issued until it has closed its import, or its process has
// ended.
struct Holder {
  std::int32_t pid = 0;      // as this process sees it; 0: of a pid namespace that is not seen from here
  std::int64_t since = 0;    // milliseconds since 1970, when the ticket was issued
  std::int32_t device = -1;  // the borrower's, as the driver numbers it
  Mechanism mechanism{};
  bool imported = false;     // the borrower has said that its import is open
};

struct LendingEvent {
  enum class Kind : std::uint8_t {
    imported,      // a borrower has opened its import
    not_imported,  // a borrower could not: the error is its own
    returned,      // a borrower has closed its import
    died,          // a borrower's process ended, and its lease with it
    refused,       // a borrower was refused; the error is what it was told. `offer` may be empty
  };
  Kind kind{};
  std::string_view offer;  // its name, for the time of the call
  Holder holder;
  Error error{Errc::refused, Operation::none};
};

// Called on the thread that dispatches, with no lock of devshare held, so it may call devshare; not to end the Lender.
// An exception that leaves it is contained.
using LendingHook = void (*)(const LendingEvent& event, void* user);

struct LenderOptions {
  Allow borrowers = Allow::same_user();
  LendingHook hook = nullptr;
  void* user = nullptr;
};

struct Offering {
  Prefer prefer{};                              // which mechanism, where the memory leaves a choice
  AccessMode access = AccessMode::read_write;   // read_only: for borrow_to_read() only
};

// The data is ready once all that is in a stream by now is done: `offer(name, memory, after(stream))` waits for that.
struct After {
  StreamRef stream;
};
inline After after(const StreamRef& stream) noexcept { return {stream}; }

class Lender;
class Serving;

namespace detail {

struct LenderCore;
struct LenderValue {
  LenderCore* core = nullptr;
};
struct LenderPolicy {
  using Value = LenderValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value&) noexcept { return nullptr; }
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

// Memory in the hands of an offer: at one place while it is lent, whatever becomes of the objects that own it.
struct OfferedMemory {
  Result<ExportValue> (*open_export)(OfferedMemory& memory, Mechanism mechanism) noexcept = nullptr;
  void (*destroy)(OfferedMemory& memory) noexcept = nullptr;
  std::size_t size = 0;
};

struct OfferRecord;
struct OfferValue {
  OfferRecord* record = nullptr;
};
struct OfferPolicy {
  using Value = OfferValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  DEVSHARE_API static const void* identity(const Value& value) noexcept;
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

DEVSHARE_API Result<OfferValue> make_offer(const Owned<LenderPolicy>& lender, std::string_view name,
                                           const Device& device, OfferedMemory& memory, Mechanisms family,
                                           const Offering& offering) noexcept;
DEVSHARE_API Result<void> withdraw_offer(const Owned<OfferPolicy>& offer) noexcept;
DEVSHARE_API Result<void> close_offer(const Owned<OfferPolicy>& offer, Deadline deadline) noexcept;
DEVSHARE_API Result<void> revoke_offer(const Owned<OfferPolicy>& offer, Deadline grace) noexcept;
DEVSHARE_API OfferedMemory& memory_of_closed_offer(Owned<OfferPolicy>& offer) noexcept;
DEVSHARE_API OfferedMemory& memory_of_offer(const Owned<OfferPolicy>& offer) noexcept;
DEVSHARE_API Result<std::vector<Holder>> holders_of(const Owned<OfferPolicy>& offer) noexcept;
DEVSHARE_API Result<std::uint64_t> publish_offer(const Owned<OfferPolicy>& offer) noexcept;
DEVSHARE_API std::uint64_t generation_of(const Owned<OfferPolicy>& offer) noexcept;

template <class Owner>
struct OfferedOwner final : OfferedMemory {
  explicit OfferedOwner(Owner&& given) noexcept : owner(std::move(given)) {
    open_export = [](OfferedMemory& memory, Mechanism mechanism) noexcept {
      Owner& lent = static_cast<OfferedOwner&>(memory).owner;
      if constexpr (HandleOwner<Owner>) {
        return open_handle_export(lent, mechanism, false);
      } else {
        const DeviceSpan<std::byte> block = lent.bytes();
        return open_key_export(lent.device(), block.data().address(), block.size(), false);
      }
    };
    destroy = [](OfferedMemory& memory) noexcept { delete static_cast<OfferedOwner*>(&memory); };
    size = bytes_held(owner);
  }

  Owner owner;
};

template <class O>
concept Lendable = !std::is_reference_v<O> && (is_key_exportable<O> || HandleOwner<O>);

}  // namespace detail

// One memory that a Lender offers, and everything that is known of who holds it. Movable, not copyable; any thread may
// ask and publish, everything else one thread at a time. Moved from, it answers `closed`.
//
// The offer lives until it is closed, longer than its Lender if need be: then nobody new gets in.
//
// The destructor never waits and never frees memory that somebody holds: it withdraws the offer, reports once
// (memory_parked) and parks the memory (Runtime::parked), which is freed when the last lease has ended and a call of
// any lender of this process notices. Memory that is shared by a handle needs no parking: its importers keep it.
template <class Owner>
class DEVSHARE_CONSUMABLE [[nodiscard("the offer is withdrawn when this object ends")]] Lent {
 public:
  static_assert(std::is_nothrow_move_constructible_v<Owner>, "a refused step must be able to give its object back");

  // The lender goes on using its memory.
  DEVSHARE_READS const Owner& owner() const& noexcept DEVSHARE_LIFETIMEBOUND { return held().owner; }
  const Owner& owner() && = delete;  // the memory ends with the temporary: keep it in a named object
  DEVSHARE_READS DeviceSpan<std::byte> bytes() & noexcept DEVSHARE_LIFETIMEBOUND
    requires detail::HasBytes<Owner>
  {
    if (!offer_.holds()) return {};
    return held().owner.bytes();
  }
  DeviceSpan<std::byte> bytes() && = delete;  // the memory ends with the temporary: keep it in a named object

  // Who holds it now. Errors: closed, forked, runtime_gone.
  DEVSHARE_READS Result<std::vector<Holder>> holders() const noexcept { return detail::holders_of(offer_); }

  // Says that the memory holds newer data than before, all of it written: bumps the generation, which begins with 1,
  // and wakes the borrowers that wait for it. Returns the new generation. Errors: closed, forked, runtime_gone.
  DEVSHARE_READS Result<std::uint64_t> publish() const noexcept { return detail::publish_offer(offer_); }
  // The same once the stream has written it. Where a task of the stream failed, nothing is published. Errors: those of
  // StreamRef::synchronize as well.
  DEVSHARE_READS Result<std::uint64_t> publish(After ready) const noexcept {
    DEVSHARE_CHECK(ready.stream.synchronize());
    return publish();
  }
  DEVSHARE_READS std::uint64_t generation() const noexcept { return detail::generation_of(offer_); }

  // Lets nobody new in and tells the holders that their lease is wanted back. Errors: closed, forked, runtime_gone.
  DEVSHARE_READS Result<void> withdraw() const noexcept { return detail::withdraw_offer(offer_); }

  // Withdraws, waits until nobody holds it, closes the export and gives the memory back. While it waits it dispatches,
  // if no other thread does. Errors: still_imported (needed: how many), then the offer comes back, withdrawn; closed,
  // forked, runtime_gone, refused.
  DEVSHARE_CONSUMES Result<Owner, Refused<Lent>> close(Deadline deadline) && noexcept {
    if (auto ended = detail::close_offer(offer_, deadline); !ended) {
      return Refused<Lent>(ended.error(), std::move(*this));
    }
    return take<Result<Owner, Refused<Lent>>>();
  }
  void close(Deadline) & = delete;       // write std::move(lent).close(deadline): it ends the offer and gives the memory back
  void close(Deadline) const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

  // The same, but ends whatever happens: borrowers that have not returned it by then lose their lease, which they are
  // told beforehand. By key the memory is taken from under them, as the runtime does that: their check() says so.
  // Errors: closed, forked, runtime_gone; refused, when the runtime did not close the export: then the offer has ended
  // as by the destructor, which parks the memory of an export that cannot be closed.
  DEVSHARE_CONSUMES Result<Owner> revoke(Deadline grace) && noexcept {
    if (auto ended = detail::revoke_offer(offer_, grace); !ended) {
      const Lent over = std::move(*this);
      return ended.error();
    }
    return take<Result<Owner>>();
  }
  void revoke(Deadline) & = delete;       // write std::move(lent).revoke(grace): it ends the offer and gives the memory back
  void revoke(Deadline) const& = delete;  // const, or still inside a Result: make a named object of it first, then revoke that

 private:
  friend class Lender;
  Lent(const detail::Session& session, const detail::OfferValue& offer) noexcept : offer_(session, offer) {}

  detail::OfferedOwner<Owner>& held() const noexcept {
    return static_cast<detail::OfferedOwner<Owner>&>(detail::memory_of_offer(offer_));
  }
  template <class R>
  R take() noexcept {
    auto& held = static_cast<detail::OfferedOwner<Owner>&>(detail::memory_of_closed_offer(offer_));
    struct Emptied {
      detail::OfferedMemory& held;
      ~Emptied() { held.destroy(held); }
    } const emptied{held};
    return std::move(held.owner);
  }

  detail::Owned<detail::OfferPolicy> offer_;
};

// Serves offers at an endpoint. Movable, not copyable. Any thread may offer; one at a time dispatches, others that want
// to wait for it. Ended, it closes the endpoint: nobody new gets in, leases stay.
//
// It has no thread and does nothing by itself: either a loop of the program's watches native_handle() and calls
// dispatch(), or serve() does so on a thread of its own. Without work it never wakes.
class DEVSHARE_CONSUMABLE [[nodiscard("nobody is served any more when this object ends")]] Lender {
 public:
  // Errors: invalid_argument (the endpoint cannot be one), endpoint_in_use, not_permitted, fd_limit,
  // backend_unavailable, runtime_gone, unsupported_by_runtime.
  DEVSHARE_API static Result<Lender> at(const Runtime& runtime, const Endpoint& endpoint,
                                        LenderOptions options = {}) noexcept;

  // Offers memory under a name of 1 to 96 bytes. Nothing is exported before somebody borrows: then the kind is chosen,
  // by `prefer` and what that borrower can do, and it stays. An offer is for finished data: what a stream is still writing
  // is offered after(stream).
  // Errors: invalid_argument (the name, or memory that was moved from), already_offered, closed, forked, runtime_gone.
  template <detail::Lendable O>
  Result<Lent<O>, Refused<O>> offer(std::string_view name, DEVSHARE_CONSUMED_PARAMETER O&& memory,
                                    Offering offering = {}) & noexcept {
    const Device device = memory.device();
    auto* const held = new detail::OfferedOwner<O>(std::move(memory));
    auto made = detail::make_offer(lender_, name, device, *held, mechanisms_of<O>, offering);
    if (!made) {
      O back = std::move(held->owner);
      delete held;
      return Refused<O>(made.error(), std::move(back));
    }
    return Lent<O>(device.session(), *made);
  }
  // The same once the stream has written it: waits for that, and where a task of the stream failed, offers nothing and
  // gives the memory back. Errors: those of StreamRef::synchronize as well.
  template <detail::Lendable O>
  Result<Lent<O>, Refused<O>> offer(std::string_view name, DEVSHARE_CONSUMED_PARAMETER O&& memory, After ready,
                                    Offering offering = {}) & noexcept {
    if (auto done = ready.stream.synchronize(); !done) return Refused<O>(done.error(), std::move(memory));
    return offer(name, std::move(memory), offering);
  }
  template <class O>
    requires std::is_lvalue_reference_v<O>
  void offer(std::string_view, O&&, Offering = {}) & = delete;  // write offer(name, std::move(memory)): the offer owns what it lends
  template <class O>
    requires(!std::is_reference_v<O> && !detail::Lendable<O>)
  void offer(std::string_view, O&&, Offering = {}) & = delete;  // only memory that can be exported can be lent: is_key_exportable

  // Lent::publish of the offer with this name, where its Lent is elsewhere. Error: no_such_offer as well.
  DEVSHARE_API Result<std::uint64_t> publish(std::string_view name) const noexcept;

  // A descriptor that is readable while there is something to dispatch: for epoll, poll or an event loop. It belongs to
  // the lender.
  DEVSHARE_API int native_handle() const noexcept;

  // Does all that is to be done now; where there is nothing, waits for something until the deadline. Returns how many
  // messages, connections and ends of processes it dealt with. Errors: closed, forked, runtime_gone.
  DEVSHARE_API Result<std::size_t> dispatch(Deadline deadline = Deadline::now()) & noexcept;

  // Closes the endpoint. Errors: closed, forked, runtime_gone.
  DEVSHARE_CONSUMES Result<void> close() && noexcept { return lender_.close(Operation::serve); }
  void close() & = delete;       // write std::move(lender).close(): it ends the lender
  void close() const& = delete;  // const, or still inside a Result: make a named object of it first, then close that

 private:
  friend Result<Serving> serve(Lender& lender) noexcept;
  Lender(const detail::Session& session, const detail::LenderValue& value) noexcept : lender_(session, value) {}

  detail::Owned<detail::LenderPolicy> lender_;
};

namespace detail {

struct ServingThread;
struct ServingValue {
  ServingThread* thread = nullptr;
};
struct ServingPolicy {
  using Value = ServingValue;
  DEVSHARE_API static void abandon(const Value& value) noexcept;
  static const void* identity(const Value&) noexcept { return nullptr; }
  static bool gone(const Value&) noexcept { return true; }  // a thread that ends itself belongs to nobody
  DEVSHARE_API static Result<void> close(const Session& session, const Value& value) noexcept;
};

}  // namespace detail

// A thread that dispatches a lender until this object ends, which it does promptly: it waits for one message that is
// being dealt with, not for a borrower. The lender may move meanwhile, and end first. All signals are blocked in it.
class DEVSHARE_CONSUMABLE [[nodiscard("the thread ends when this object ends")]] Serving {
 public:
  // Errors: in_use (in a hook on that very thread: it ends when the hook has returned), closed, forked, runtime_gone.
  DEVSHARE_CONSUMES Result<void> stop() && noexcept { return thread_.close(Operation::serve); }
  void stop() & = delete;       // write std::move(serving).stop(): it ends the thread
  void stop() const& = delete;  // const, or still inside a Result: make a named object of it first, then stop that

 private:
  friend DEVSHARE_API Result<Serving> serve(Lender& lender) noexcept;
  Serving(const detail::Session& session, const detail::ServingValue& value) noexcept : thread_(session, value) {}

  detail::Owned<detail::ServingPolicy> thread_;
};

// Errors: closed, forked, runtime_gone; out_of_memory, no thread can be had.
DEVSHARE_API Result<Serving> serve(Lender& lender) noexcept;

}  // namespace devshare
