// SPDX-License-Identifier: Apache-2.0
// Device addresses: values that can be computed with and passed to the runtime, never dereferenced. A device address
// means nothing in another process (R62); send a ticket instead.
#pragma once

#include <devshare/error.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace devshare {

// A part of a block: `size` bytes from `offset`. Size 0 with offset 0 stands for the whole block.
struct Slice {
  std::size_t offset = 0;
  std::size_t size = 0;
};

template <class T>
class DevicePtr {
 public:
  constexpr DevicePtr() noexcept = default;
  // From an address that came out of the runtime. Nothing is checked here: the runtime does, at use.
  static DevicePtr from_address(void* address) noexcept {
    DevicePtr pointer;
    pointer.address_ = static_cast<T*>(address);
    return pointer;
  }
  constexpr operator DevicePtr<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return DevicePtr<const T>::from_raw(address_);
  }

  // The number, to hand to a kernel launch or an ACL call.
  constexpr T* address() const noexcept { return address_; }
  explicit constexpr operator bool() const noexcept { return address_ != nullptr; }

  constexpr DevicePtr operator+(std::ptrdiff_t count) const noexcept { return from_raw(address_ + count); }
  friend constexpr bool operator==(DevicePtr, DevicePtr) noexcept = default;

  T& operator*() const = delete;               // device memory is not host memory: copy it, or launch a kernel on it
  T* operator->() const = delete;              // device memory is not host memory: copy it, or launch a kernel on it
  T& operator[](std::ptrdiff_t) const = delete;  // device memory is not host memory: copy it, or launch a kernel on it

 private:
  template <class>
  friend class DevicePtr;
  template <class>
  friend class DeviceSpan;

  static constexpr DevicePtr from_raw(T* address) noexcept {
    DevicePtr pointer;
    pointer.address_ = address;
    return pointer;
  }

  T* address_ = nullptr;
};

// A run of `size()` objects in device memory. Refers, does not own: it is good for as long as the object it came from.
template <class T>
class DeviceSpan {
 public:
  constexpr DeviceSpan() noexcept = default;
  constexpr DeviceSpan(DevicePtr<T> data, std::size_t size) noexcept : data_(data), size_(size) {}
  constexpr operator DeviceSpan<const T>() const noexcept
    requires(!std::is_const_v<T>)
  {
    return DeviceSpan<const T>(data_, size_);
  }

  constexpr DevicePtr<T> data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }              // objects
  constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  constexpr bool empty() const noexcept { return size_ == 0; }

  // A part of it, or the empty span when the part would leave it: nothing outside can be named by mistake.
  constexpr DeviceSpan subspan(std::size_t offset, std::size_t count) const noexcept {
    if (offset > size_ || count > size_ - offset) return {};
    return DeviceSpan(data_ + static_cast<std::ptrdiff_t>(offset), count);
  }
  constexpr DeviceSpan first(std::size_t count) const noexcept { return subspan(0, count); }
  constexpr DeviceSpan last(std::size_t count) const noexcept {
    return count > size_ ? DeviceSpan() : subspan(size_ - count, count);
  }

  // The same bytes as objects of another type; empty unless they divide evenly.
  template <class U>
  DeviceSpan<U> as() const noexcept
    requires std::is_trivially_copyable_v<U> && (std::is_const_v<U> || !std::is_const_v<T>)
  {
    if (size_bytes() % sizeof(U) != 0) return {};
    return DeviceSpan<U>(DevicePtr<U>::from_raw(reinterpret_cast<U*>(data_.address())), size_bytes() / sizeof(U));
  }

  T& operator[](std::size_t) const = delete;  // device memory is not host memory: copy it, or launch a kernel on it

 private:
  DevicePtr<T> data_;
  std::size_t size_ = 0;
};

static_assert(std::is_trivially_copyable_v<DeviceSpan<std::byte>>);

}  // namespace devshare
