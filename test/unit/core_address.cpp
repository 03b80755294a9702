// SPDX-License-Identifier: Apache-2.0
// Device addresses and spans of them: pure values, computed with at compile time wherever that can be shown.
#include "support/catch.hpp"

#include <devshare/address.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

using namespace devshare;

namespace {

constexpr std::size_t largest = std::numeric_limits<std::size_t>::max();

template <class T>
DevicePtr<T> at(std::uintptr_t number) {
  return DevicePtr<T>::from_address(reinterpret_cast<void*>(number));
}

template <class T>
std::uintptr_t number_of(DevicePtr<T> pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer.address());
}

template <class T>
bool is_nothing(DeviceSpan<T> span) {
  return span.empty() && span.size_bytes() == 0 && !span.data();
}

}  // namespace

TEST_CASE("a device address is a number that can be added to, compared and handed out") {
  const auto pointer = at<std::int32_t>(0x10000);
  CHECK(pointer);
  CHECK_FALSE(DevicePtr<int>());
  CHECK(number_of(pointer) == 0x10000);
  CHECK(number_of(pointer + 3) == 0x1000c);
  CHECK(number_of(pointer + -1) == 0xfffc);
  CHECK(pointer + 1 == at<std::int32_t>(0x10004));
  CHECK_FALSE(pointer == at<std::int32_t>(0x10004));
  const DevicePtr<const std::int32_t> constant = pointer;
  CHECK(number_of(constant) == 0x10000);
}

TEST_CASE("addresses and spans are plain values, and neither is a range of host memory") {
  STATIC_REQUIRE(std::is_trivially_copyable_v<DevicePtr<std::byte>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<DeviceSpan<std::byte>>);
  STATIC_REQUIRE(sizeof(DevicePtr<std::byte>) == sizeof(void*));
  STATIC_REQUIRE(std::is_nothrow_default_constructible_v<DeviceSpan<std::byte>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<void*, DevicePtr<std::byte>>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<DevicePtr<std::byte>, std::byte*>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<DevicePtr<std::byte>, void*>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<DeviceSpan<std::byte>, std::span<const std::byte>>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<std::span<std::byte>, DeviceSpan<std::byte>>);
}

TEST_CASE("reading what may be written is a conversion, and the way back is none") {
  STATIC_REQUIRE(std::is_convertible_v<DevicePtr<int>, DevicePtr<const int>>);
  STATIC_REQUIRE(std::is_convertible_v<DeviceSpan<int>, DeviceSpan<const int>>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<DevicePtr<int>, DevicePtr<const int>>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<DeviceSpan<int>, DeviceSpan<const int>>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<DeviceSpan<int>, DeviceSpan<float>>);
}

TEST_CASE("a span knows its objects and its bytes") {
  const DeviceSpan<std::uint64_t> span(at<std::uint64_t>(0x2000), 10);
  CHECK(span.size() == 10);
  CHECK(span.size_bytes() == 80);
  CHECK_FALSE(span.empty());
  CHECK(number_of(span.data()) == 0x2000);
  CHECK(is_nothing(DeviceSpan<std::uint64_t>()));
}

TEST_CASE("a subspan counts in objects") {
  const DeviceSpan<std::uint32_t> span(at<std::uint32_t>(0x2000), 10);
  const auto part = span.subspan(2, 3);
  CHECK(part.size() == 3);
  CHECK(number_of(part.data()) == 0x2008);
  CHECK(number_of(span.first(4).data()) == 0x2000);
  CHECK(span.first(4).size() == 4);
  CHECK(number_of(span.last(4).data()) == 0x2018);
  CHECK(span.last(4).size() == 4);
  CHECK(span.subspan(0, 10).size() == 10);
  CHECK(span.first(10).size() == 10);
  CHECK(span.last(10).size() == 10);
}

TEST_CASE("an empty part at the very end is still a place in the span") {
  const DeviceSpan<std::byte> span(at<std::byte>(0x2000), 16);
  const auto end = span.subspan(16, 0);
  CHECK(end.empty());
  CHECK(number_of(end.data()) == 0x2010);
}

TEST_CASE("a part that would leave the span is nothing, however the sum overflows") {
  const DeviceSpan<std::byte> span(at<std::byte>(0x2000), 16);
  CHECK(is_nothing(span.subspan(0, 17)));
  CHECK(is_nothing(span.subspan(16, 1)));
  CHECK(is_nothing(span.subspan(17, 0)));
  CHECK(is_nothing(span.subspan(1, 16)));
  CHECK(is_nothing(span.subspan(1, largest)));
  CHECK(is_nothing(span.subspan(largest, 1)));
  CHECK(is_nothing(span.subspan(largest, largest)));
  CHECK(is_nothing(span.subspan(8, largest - 7)));  // the sum is 0 modulo 2^64
  CHECK(is_nothing(span.first(17)));
  CHECK(is_nothing(span.first(largest)));
  CHECK(is_nothing(span.last(17)));
  CHECK(is_nothing(span.last(largest)));
  CHECK(is_nothing(DeviceSpan<std::byte>().subspan(0, 1)));
  CHECK(is_nothing(DeviceSpan<std::byte>().last(1)));
}

TEST_CASE("the same bytes as objects of another type, where they divide evenly") {
  const DeviceSpan<std::byte> bytes(at<std::byte>(0x4000), 24);
  const auto words = bytes.as<std::uint64_t>();
  STATIC_REQUIRE(std::is_same_v<decltype(words), const DeviceSpan<std::uint64_t>>);
  CHECK(words.size() == 3);
  CHECK(words.size_bytes() == 24);
  CHECK(number_of(words.data()) == 0x4000);
  CHECK(words.as<std::byte>().size() == 24);
  CHECK(bytes.as<const std::uint16_t>().size() == 12);

  struct Five {
    unsigned char part[5];
  };
  CHECK(is_nothing(bytes.as<Five>()));
  CHECK(bytes.first(20).as<Five>().size() == 4);
  CHECK(is_nothing(bytes.first(7).as<std::uint64_t>()));
}

namespace {
template <class Span, class U>
concept Viewable = requires(Span span) {
  span.template as<U>();
};
struct NotPlain {
  ~NotPlain() {}
};
}  // namespace

TEST_CASE("bytes that may only be read stay so as another type, and only plain objects lie in device memory") {
  STATIC_REQUIRE(Viewable<DeviceSpan<std::byte>, int>);
  STATIC_REQUIRE(Viewable<DeviceSpan<const std::byte>, const int>);
  STATIC_REQUIRE_FALSE(Viewable<DeviceSpan<const std::byte>, int>);
  STATIC_REQUIRE_FALSE(Viewable<DeviceSpan<std::byte>, NotPlain>);
}
