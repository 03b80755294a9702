// SPDX-License-Identifier: Apache-2.0
// Result: a value or the error why there is none. Refused: an error that brings the object of the refused step back.
//
//   DEVSHARE_TRY(memory, DeviceMemory::allocate(device, bytes));   // a local named `memory`, or return the error
//   DEVSHARE_CHECK(copy_to_device(device, memory.bytes(), data));  // the same where there is no value
//
// The library throws nothing. `value()` throws BadResult for a program that prefers exceptions, and aborts in one that
// is built without them.
#pragma once

#include <devshare/error.hpp>

#include <tl/expected.hpp>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace devshare {

// Thrown by Result::value() only.
class DEVSHARE_API BadResult : public std::exception {
 public:
  explicit BadResult(const Error& error) noexcept : error_(error) {}
  const char* what() const noexcept override;
  const Error& error() const noexcept DEVSHARE_LIFETIMEBOUND { return error_; }

 private:
  Error error_;
};

// The error of a consuming step that was refused, with the object that went in: untouched, or after a close() with what
// is left of it. It is empty if the resource has ended in spite of the refusal (a stream whose work failed) or the
// runtime does not know it; closing an empty one says `closed`. Dropping it ends the object as its destructor does.
template <class Input>
class [[nodiscard("a refused step gives its object back: take_back() it, or it ends here")]] Refused {
 public:
  Refused(const Error& error, Input&& input) noexcept : error_(error), input_(std::move(input)) {}

  const Error& error() const noexcept DEVSHARE_LIFETIMEBOUND { return error_; }
  Errc kind() const noexcept { return error_.kind(); }

  Input take_back() && noexcept { return std::move(input_); }
  void take_back() const& = delete;  // write std::move(refused).take_back(), or std::move(result).error().take_back()

 private:
  Error error_;
  Input input_;
};

namespace detail {

[[noreturn]] DEVSHARE_API void throw_bad_result(const Error& error);

inline const Error& plain_error(const Error& error) noexcept { return error; }
template <class Input>
const Error& plain_error(const Refused<Input>& refused) noexcept {
  return refused.error();
}

// What DEVSHARE_TRY returns: fits a Result of the same error type as well as one that only wants the Error.
template <class T, class E>
inline constexpr bool moves_without_throwing =
    std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_constructible_v<E>;

template <class E>
struct Propagated {
  E error;
};
template <class E>
Propagated<E> propagate(E error) noexcept {
  return {std::move(error)};
}

}  // namespace detail

template <class T, class E = Error>
class [[nodiscard("a failure must be looked at: test it, or use DEVSHARE_TRY")]] Result {
 public:
  using value_type = T;
  using error_type = E;

  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : storage_(std::move(value)) {}
  Result(E error) noexcept : storage_(tl::unexpect, std::move(error)) {}
  template <class Other>
    requires std::is_same_v<Other, E> || std::is_same_v<E, Error>
  Result(detail::Propagated<Other>&& propagated) noexcept : storage_(tl::unexpect, convert(std::move(propagated.error))) {}

  Result(const Result&) = default;
  Result(Result&&) = default;
  Result& operator=(const Result&) = default;
  // The other is taken, then what is here ends: the assignment of tl::expected 1.0 copies where there are no exceptions,
  // and an owner cannot be copied. The other may be a part of what is here.
  Result& operator=(Result&& other) noexcept
    requires(detail::moves_without_throwing<T, E>)
  {
    Storage taken(std::move(other.storage_));
    storage_.~Storage();
    ::new (static_cast<void*>(&storage_)) Storage(std::move(taken));
    return *this;
  }
  Result& operator=(Result&& other)
    requires(!detail::moves_without_throwing<T, E> && std::is_move_assignable_v<tl::expected<T, E>>)
  {
    storage_ = std::move(other.storage_);
    return *this;
  }
  ~Result() = default;

  explicit operator bool() const noexcept { return storage_.has_value(); }

  // By value from a temporary or a moved Result, by const reference otherwise: a consuming step cannot be taken on a
  // value that is still inside, because the Result would go on holding what is left of it.
  const T& operator*() const& noexcept DEVSHARE_LIFETIMEBOUND { return *storage_; }
  T operator*() && noexcept { return *std::move(storage_); }
  T* operator->() & noexcept DEVSHARE_LIFETIMEBOUND { return &*storage_; }
  const T* operator->() const& noexcept DEVSHARE_LIFETIMEBOUND { return &*storage_; }
  T* operator->() && = delete;  // the value ends with the temporary Result: unwrap it into a named object first

  const T& value() const& DEVSHARE_LIFETIMEBOUND {
    if (!*this) [[unlikely]] detail::throw_bad_result(detail::plain_error(storage_.error()));
    return *storage_;
  }
  T value() && {
    if (!*this) [[unlikely]] detail::throw_bad_result(detail::plain_error(storage_.error()));
    return *std::move(storage_);
  }

  const E& error() const& noexcept DEVSHARE_LIFETIMEBOUND { return storage_.error(); }
  E error() && noexcept { return std::move(storage_).error(); }

 private:
  template <class Other>
  static E convert(Other&& error) noexcept {
    if constexpr (std::is_same_v<std::remove_cvref_t<Other>, E>) {
      return std::forward<Other>(error);
    } else {
      return detail::plain_error(error);
    }
  }

  using Storage = tl::expected<T, E>;
  Storage storage_;
};

template <class E>
class [[nodiscard("a failure must be looked at: test it, or use DEVSHARE_CHECK")]] Result<void, E> {
 public:
  using value_type = void;
  using error_type = E;

  Result() noexcept = default;
  Result(E error) noexcept : storage_(tl::unexpect, std::move(error)) {}
  template <class Other>
    requires std::is_same_v<Other, E> || std::is_same_v<E, Error>
  Result(detail::Propagated<Other>&& propagated) noexcept
      : storage_(tl::unexpect, [&]() -> E {
          if constexpr (std::is_same_v<Other, E>) {
            return std::move(propagated.error);
          } else {
            return detail::plain_error(propagated.error);
          }
        }()) {}

  // For whoever only wants to know: an object that came back in the refusal ends as its destructor does.
  template <class Input>
    requires std::is_same_v<E, Error>
  Result(Result<void, Refused<Input>>&& refusable) noexcept {
    if (!refusable) storage_ = tl::unexpected<E>(refusable.error().error());
  }

  explicit operator bool() const noexcept { return storage_.has_value(); }

  void value() const {
    if (!*this) [[unlikely]] detail::throw_bad_result(detail::plain_error(storage_.error()));
  }
  const E& error() const& noexcept DEVSHARE_LIFETIMEBOUND { return storage_.error(); }
  E error() && noexcept { return std::move(storage_).error(); }

 private:
  tl::expected<void, E> storage_;
};

}  // namespace devshare

// Evaluates an expression that is a Result; on failure returns its error from the enclosing function, else makes a
// local `name` of the value. An object inside a Refused ends there: use an if where it is wanted back.
#define DEVSHARE_TRY(name, ...)                                                                                  \
  auto devshare_result_of_##name = (__VA_ARGS__);                                                                \
  if (!devshare_result_of_##name) [[unlikely]]                                                                   \
    return ::devshare::detail::propagate(std::move(devshare_result_of_##name).error());                          \
  auto name = *std::move(devshare_result_of_##name)

// The same for a Result<void>, or for a value nobody wants.
#define DEVSHARE_CHECK(...)                                                                                      \
  do {                                                                                                           \
    if (auto devshare_result = (__VA_ARGS__); !devshare_result) [[unlikely]]                                     \
      return ::devshare::detail::propagate(std::move(devshare_result).error());                                  \
  } while (false)
