// SPDX-License-Identifier: Apache-2.0
// Owned: the one owning template under every owner of a runtime resource.
#pragma once

#include <devshare/detail/runtime_record.hpp>
#include <devshare/diagnostic.hpp>
#include <devshare/result.hpp>

#include <type_traits>
#include <utility>

namespace devshare::detail {

// Keeps for the life of the process what must not be freed (Runtime::parked), and reports it once.
DEVSHARE_API void park(void* object, std::size_t bytes, const Error& error) noexcept;

// A value and the session it belongs to. Policy says how it ends:
//
//   struct Policy {
//     using Value = ...;                                   // trivially copyable
//     static Result<void> close(const Session&, Value&) noexcept;  // refused, the value is what is left to close
//     static bool gone(const Value&) noexcept;  // optional: whether a refused close has ended it all the same
//     static void abandon(const Value&) noexcept;          // nothing to close it with, or to close: drop our own part
//     static const void* identity(const Value&) noexcept;  // for reports
//     static void park(const Value&, const Error&) noexcept;  // optional: what the destructor does with what is left, or
//                                                             // gone, and how it tells
//   };
//
// Moved from or closed, it is empty. A refused close leaves it what is left to close.
// The destructor closes, never throws, and reports a failure once, by park() where there is one. In a forked child, and
// after the runtime is gone, it does nothing.
template <class Policy>
class Owned {
 public:
  using Value = typename Policy::Value;
  static_assert(std::is_trivially_copyable_v<Value>, "an Owned moves its value by copying the bytes");

  Owned() noexcept = default;
  Owned(const Session& session, const Value& value) noexcept : session_(session), value_(value) {}
  Owned(Owned&& other) noexcept : session_(taken_from(other.session_)), value_(other.value_) {}
  Owned& operator=(Owned&& other) noexcept {
    Owned taken(std::move(other));
    std::swap(session_, taken.session_);
    std::swap(value_, taken.value_);
    return *this;
  }
  Owned(const Owned&) = delete;             // it has one owner: std::move it
  Owned& operator=(const Owned&) = delete;  // it has one owner: std::move it
  ~Owned() {
    if (session_.record != nullptr) end(session_, value_);
  }

  bool holds() const noexcept { return session_.record != nullptr; }
  const Value& value() const noexcept { return value_; }
  const Session& session() const noexcept { return session_; }

  // Of an object that holds one and goes on holding it.
  void set_value(const Value& value) noexcept { value_ = value; }

  // Returns what closing returned; `unusable` when there is nothing to close any more, and nothing is left then.
  DEVSHARE_INLINE Result<void> close(Operation operation) noexcept {
    const Session session = taken_from(session_);
    if (!session.alive()) [[unlikely]] {
      if (session.record != nullptr) Policy::abandon(value_);
      return unusable(session, operation);
    }
    auto closed = Policy::close(session, value_);
    if (!closed && something_left(session, value_, closed.error().kind())) [[unlikely]] session_ = session;
    return closed;
  }

  // Gives up ownership without closing.
  Value release() noexcept {
    session_ = {};
    return value_;
  }

 private:
  static bool gone(const Value& value) noexcept {
    if constexpr (requires { Policy::gone(value); }) return Policy::gone(value);
    return false;
  }

  // After a refused close: whether there is anything to be tried again. What the runtime does not know is not there, and
  // its number may be somebody else's by then; what outlives its session went with that.
  [[gnu::noinline, gnu::cold]] static bool something_left(Session session, Value value, Errc refusal) noexcept {
    if (gone(value)) return false;
    if (refusal != Errc::invalid_argument && session.alive()) return true;
    Policy::abandon(value);
    return false;
  }

  static Session taken_from(Session& session) noexcept { return {std::exchange(session.record, nullptr), session.number}; }

  // By value: an object whose address goes nowhere can live in registers.
  [[gnu::noinline]] static void end(Session session, Value value) noexcept {
    if (!session.alive()) [[unlikely]] {
      Policy::abandon(value);
      report_outlived(session);
      return;
    }
    const void* const identity = Policy::identity(value);  // before: with close its record may be gone
    if (auto closed = Policy::close(session, value); !closed) [[unlikely]] {
      if constexpr (requires { Policy::park(value, closed.error()); }) {
        if (gone(value) || something_left(session, value, closed.error().kind())) return Policy::park(value, closed.error());
      } else {
        (void)something_left(session, value, closed.error().kind());
      }
      report({DiagnosticEvent::close_failed, closed.error(), identity});
    }
  }

  Session session_;
  Value value_{};
};

// Closes what an object owns. Refused, the object goes into the error, with what is left.
template <class Object, class Policy>
DEVSHARE_INLINE Result<void, Refused<Object>> close_or_give_back(Object& object, Owned<Policy>& owned,
                                                                 Operation operation) noexcept {
  auto closed = owned.close(operation);
  if (closed) [[likely]] return {};
  return Refused<Object>(closed.error(), std::move(object));
}

}  // namespace devshare::detail
