// SPDX-License-Identifier: Apache-2.0
// Result, Refused, DEVSHARE_TRY and DEVSHARE_CHECK, on values that count and cannot be copied.
#include "support/catch.hpp"

#include <devshare/result.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

using namespace devshare;

namespace {

// Cannot be copied, and tells a counter when it ends.
class Owner {
 public:
  Owner(int number, int& ended) : number_(number), ended_(&ended) {}
  Owner(Owner&& other) noexcept : number_(other.number_), ended_(std::exchange(other.ended_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(ended_, other.ended_);
    return *this;
  }
  ~Owner() {
    if (ended_ != nullptr) ++*ended_;
  }

  int number() const { return number_; }
  void rename(int number) { number_ = number; }

 private:
  int number_;
  int* ended_;
};

Error failure(Errc kind = Errc::out_of_memory) { return Error(kind, Operation::allocate, {.device = 3, .needed = 64}); }

Result<Owner> make(bool good, int& ended) {
  if (!good) return failure();
  return Owner(7, ended);
}

Result<void> act(bool good) {
  if (!good) return failure(Errc::timed_out);
  return {};
}

// A consuming step: it makes a number of the owner, or is refused and gives the owner back.
Result<int, Refused<Owner>> consume(Owner&& owner, bool good) {
  if (!good) return Refused<Owner>(failure(Errc::refused), std::move(owner));
  const Owner taken = std::move(owner);
  return taken.number() * 10;
}

}  // namespace

TEST_CASE("a result takes another that is a part of its own value") {
  struct Chain {
    std::unique_ptr<Result<Chain>> next;
    int number;
  };
  Result<Chain> chain = Chain{std::make_unique<Result<Chain>>(Chain{nullptr, 2}), 1};
  chain = std::move(*chain->next);
  REQUIRE(bool(chain));
  CHECK(chain->number == 2);
}

TEST_CASE("a result can be assigned where its value can: also one that throws when it moves") {
  struct MayThrow {
    MayThrow() = default;
    MayThrow(MayThrow&& other) noexcept(false) : number(other.number) {}
    MayThrow& operator=(MayThrow&&) noexcept(false) = default;
    int number = 1;
  };
  struct Neither {
    Neither(Neither&&) noexcept(false) {}
    Neither& operator=(Neither&&) = delete;
  };
  STATIC_REQUIRE(std::is_nothrow_move_assignable_v<Result<Owner>>);
  STATIC_REQUIRE(!std::is_copy_assignable_v<Result<Owner>>);
  STATIC_REQUIRE(std::is_move_assignable_v<Result<MayThrow>>);
  STATIC_REQUIRE(!std::is_move_assignable_v<Result<Neither>>);
}

TEST_CASE("a result takes another in its place, of a value that cannot be copied too") {
  int first = 0;
  int second = 0;
  int third = 0;
  Result<Owner> result = make(true, first);
  result = make(true, second);
  CHECK(first == 1);  // ended when the other came
  CHECK(second == 0);
  result = make(false, second);
  CHECK(!result);
  CHECK(second == 1);
  result = make(true, third);
  CHECK(bool(result));
  Result<Owner>& itself = result;
  result = std::move(itself);
  CHECK(third == 0);
}

TEST_CASE("a result holds a value or the error why there is none") {
  int ended = 0;
  const Result<Owner> good = make(true, ended);
  REQUIRE(good);
  CHECK((*good).number() == 7);
  CHECK(good->number() == 7);
  CHECK(good.value().number() == 7);

  const Result<Owner> bad = make(false, ended);
  REQUIRE_FALSE(bad);
  CHECK(bad.error() == Errc::out_of_memory);
  CHECK(bad.error().operation() == Operation::allocate);
  CHECK(bad.error().detail().device == 3);
  CHECK(bad.error().detail().needed == 64);
}

TEST_CASE("a value leaves its result by move, once") {
  int ended = 0;
  {
    Result<Owner> result = make(true, ended);
    result->rename(8);
    const Owner owner = *std::move(result);
    CHECK(owner.number() == 8);
    CHECK(ended == 0);
  }
  CHECK(ended == 1);
  {
    const Owner owner = make(true, ended).value();
    CHECK(owner.number() == 7);
  }
  CHECK(ended == 2);
}

TEST_CASE("an lvalue result lends its value for reading, and a temporary gives it by value") {
  using OwnerResult = Result<Owner>;
  CHECK(std::is_same_v<decltype(*std::declval<OwnerResult&>()), const Owner&>);
  CHECK(std::is_same_v<decltype(*std::declval<const OwnerResult&>()), const Owner&>);
  CHECK(std::is_same_v<decltype(*std::declval<OwnerResult>()), Owner>);
  CHECK(std::is_same_v<decltype(std::declval<OwnerResult&>().value()), const Owner&>);
  CHECK(std::is_same_v<decltype(std::declval<OwnerResult>().value()), Owner>);
  CHECK(std::is_same_v<decltype(std::declval<OwnerResult>().error()), Error>);
  CHECK_FALSE(std::is_copy_constructible_v<OwnerResult>);
  CHECK(std::is_nothrow_move_constructible_v<OwnerResult>);
}

TEST_CASE("DEVSHARE_TRY makes a named local of the value, and looks at its expression once") {
  int ended = 0;
  int evaluated = 0;
  const auto body = [&]() -> Result<int> {
    DEVSHARE_TRY(owner, (++evaluated, make(true, ended)));
    DEVSHARE_TRY(other, make(true, ended));
    owner.rename(owner.number() + other.number());
    return owner.number();
  };
  const Result<int> result = body();
  REQUIRE(result);
  CHECK(*result == 14);
  CHECK(evaluated == 1);
  CHECK(ended == 2);
}

TEST_CASE("DEVSHARE_TRY returns the error and runs nothing after it") {
  int ended = 0;
  bool went_on = false;
  const auto body = [&]() -> Result<std::string> {
    DEVSHARE_TRY(owner, make(false, ended));
    went_on = true;
    return std::to_string(owner.number());
  };
  const Result<std::string> result = body();
  REQUIRE_FALSE(result);
  CHECK(result.error() == Errc::out_of_memory);
  CHECK(result.error().detail().needed == 64);
  CHECK_FALSE(went_on);
}

TEST_CASE("DEVSHARE_CHECK returns an error, and is one statement") {
  int steps = 0;
  const auto body = [&](bool first, bool second) -> Result<void> {
    if (first)
      DEVSHARE_CHECK(act(true));
    else
      DEVSHARE_CHECK(act(false));
    ++steps;
    DEVSHARE_CHECK(act(second));
    ++steps;
    return {};
  };
  CHECK(body(true, true));
  CHECK(steps == 2);
  const Result<void> at_first = body(false, true);
  REQUIRE_FALSE(at_first);
  CHECK(at_first.error() == Errc::timed_out);
  CHECK(steps == 2);
  CHECK_FALSE(body(true, false));
  CHECK(steps == 3);
}

TEST_CASE("a refused step gives its object back, untouched") {
  int ended = 0;
  {
    Owner owner(7, ended);
    owner.rename(9);
    auto refused = consume(std::move(owner), false);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().kind() == Errc::refused);
    CHECK(refused.error().error().operation() == Operation::allocate);
    Owner back = std::move(refused).error().take_back();
    CHECK(back.number() == 9);
    CHECK(ended == 0);

    const auto good = consume(std::move(back), true);
    REQUIRE(good);
    CHECK(*good == 90);
    CHECK(ended == 1);
  }
  CHECK(ended == 1);
}

TEST_CASE("a refused step can be tried again with what came back, until it is taken") {
  int ended = 0;
  Owner owner(5, ended);
  int tries = 0;
  for (;;) {
    auto result = consume(std::move(owner), ++tries == 4);
    if (result) {
      CHECK(*result == 50);
      break;
    }
    owner = std::move(result).error().take_back();
    REQUIRE(ended == 0);
  }
  CHECK(tries == 4);
  CHECK(ended == 1);
}

TEST_CASE("a refusal that nobody asks for its object ends it, and its error goes on alone") {
  int ended = 0;
  const auto plain = [&]() -> Result<int> {
    DEVSHARE_TRY(number, consume(Owner(1, ended), false));
    return number;
  };
  const Result<int> result = plain();
  REQUIRE_FALSE(result);
  CHECK(result.error() == Errc::refused);
  CHECK(ended == 1);

  const auto checked = [&]() -> Result<void> {
    DEVSHARE_CHECK(consume(Owner(1, ended), false));
    return {};
  };
  const Result<void> nothing = checked();
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error() == Errc::refused);
  CHECK(ended == 2);
}

TEST_CASE("a refusal goes up whole where the caller's result has room for its object") {
  int ended = 0;
  const auto body = [&]() -> Result<std::string, Refused<Owner>> {
    DEVSHARE_TRY(number, consume(Owner(4, ended), false));
    return std::to_string(number);
  };
  auto result = body();
  REQUIRE_FALSE(result);
  CHECK(ended == 0);
  const Owner back = std::move(result).error().take_back();
  CHECK(back.number() == 4);

  const auto void_body = [&]() -> Result<void, Refused<Owner>> {
    DEVSHARE_CHECK(consume(Owner(6, ended), false));
    return {};
  };
  auto void_result = void_body();
  REQUIRE_FALSE(void_result);
  const Owner other = std::move(void_result).error().take_back();
  CHECK(other.number() == 6);
  CHECK(ended == 0);
}

TEST_CASE("results of values that cannot be copied live in containers") {
  int ended = 0;
  {
    std::vector<Result<Owner>> results;
    for (int i = 0; i < 20; ++i) results.push_back(make(i % 2 == 0, ended));
    int good = 0;
    for (const Result<Owner>& result : results) good += result ? 1 : 0;
    CHECK(good == 10);
    CHECK(ended == 0);
  }
  CHECK(ended == 10);
}

TEST_CASE("an error is small, plain and compared by its kind") {
  STATIC_REQUIRE(sizeof(Error) <= 48);
  STATIC_REQUIRE(std::is_trivially_copyable_v<Error>);
  constexpr Error error(Errc::stale_token, Operation::import_key, {.device = 1, .peer_device = 0});
  STATIC_REQUIRE(error == Errc::stale_token);
  STATIC_REQUIRE_FALSE(error == Errc::refused);
  STATIC_REQUIRE(error.acl_code() == 0);
  STATIC_REQUIRE(error.entry() == acl::Entry::none);
  STATIC_REQUIRE(error.reason() == Error::Reason::none);
  STATIC_REQUIRE(error.detail().device == 1);
  STATIC_REQUIRE(error.detail().peer_device == 0);
}

#if defined(__cpp_exceptions)

TEST_CASE("value() of a result without one throws its error") {
  int ended = 0;
  const Result<Owner> bad = make(false, ended);
  CHECK_THROWS_AS(bad.value(), BadResult);
  try {
    static_cast<void>(make(false, ended).value());
    FAIL("nothing was thrown");
  } catch (const BadResult& thrown) {
    CHECK(thrown.error() == Errc::out_of_memory);
    CHECK(thrown.error().detail().needed == 64);
    CHECK(std::string_view(thrown.what()) == "out_of_memory");
  }
}

TEST_CASE("value() of a result of nothing throws too, or returns") {
  CHECK_NOTHROW(act(true).value());
  CHECK_THROWS_AS(act(false).value(), BadResult);
}

TEST_CASE("value() of a refused step throws the error, and the object ends") {
  int ended = 0;
  try {
    static_cast<void>(consume(Owner(1, ended), false).value());
    FAIL("nothing was thrown");
  } catch (const std::exception& thrown) {
    CHECK(std::string_view(thrown.what()) == "refused");
  }
  CHECK(ended == 1);
}

#endif
