// SPDX-License-Identifier: Apache-2.0
// Weights in one range of addresses, as an engine's allocator with sleep mode holds them: made of several pieces of
// physical memory, it can give the memory back and keep the addresses.
#pragma once

#include <devshare/devshare.hpp>

#include <cstddef>
#include <utility>

class WeightPool {
 public:
  // The range is reserved once, for all that it shall ever hold; the pieces go into it side by side.
  static devshare::Result<WeightPool> allocate(const devshare::Device& device, std::size_t pieces, std::size_t piece) {
    using namespace devshare;
    DEVSHARE_TRY(range, AddressReservation::reserve(device, pieces * piece));
    DEVSHARE_TRY(first, PhysicalHandle::allocate(device, piece));
    DEVSHARE_TRY(mapping, std::move(range).map(std::move(first)));
    for (std::size_t i = 1; i < pieces; ++i) {
      DEVSHARE_TRY(next, PhysicalHandle::allocate(device, piece));
      DEVSHARE_CHECK(mapping.extend(std::move(next)));
    }
    return WeightPool(std::move(mapping), piece);
  }

  devshare::DeviceSpan<std::byte> bytes() { return mapping_.bytes(); }
  devshare::DevicePtr<std::byte> address() const { return mapping_.address(); }
  bool asleep() const { return mapping_.asleep(); }
  std::size_t piece_size() const { return piece_; }
  devshare::DeviceSpan<std::byte> piece(std::size_t number) { return bytes().subspan(number * piece_, piece_); }

  // A reference of its own to one piece, which can be exported: a mapping of several handles cannot. An engine that
  // mapped its memory by ACL's calls shares it in the same way. The reference keeps the piece awake: end it to sleep.
  devshare::Result<devshare::PhysicalHandle> retain(std::size_t number) {
    return devshare::PhysicalHandle::retain_from(mapping_.device(), piece(number));
  }

  // The bytes that the device really got back: not those that somebody else holds.
  devshare::Result<std::size_t> sleep() { return mapping_.release_backing(); }
  // At the same addresses, with fresh memory. The weights must be loaded again.
  devshare::Result<void> wake() { return mapping_.restore(); }

  devshare::Result<void> close() && { return std::move(mapping_).close(); }

 private:
  WeightPool(devshare::Mapping mapping, std::size_t piece) : mapping_(std::move(mapping)), piece_(piece) {}

  devshare::Mapping mapping_;
  std::size_t piece_;
};
