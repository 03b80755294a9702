// SPDX-License-Identifier: Apache-2.0
// Host memory that stays in place: a stream copies to and from it by itself, and the call does not wait.
#pragma once

#include "sharing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

namespace devshare::test {

class LockedBytes {
 public:
  LockedBytes(const Party& party, const Bytes& content)
      : size_(content.size()),
        bytes_(static_cast<std::byte*>(std::aligned_alloc(page, (size_ + page - 1) / page * page))),
        registration_(party.me.must(HostRegistration::of(party.device, span()), "the memory is registered")) {
    std::copy(content.begin(), content.end(), bytes_.get());
  }

  std::span<std::byte> span() const { return {bytes_.get(), size_}; }
  bool hold(const Bytes& content) const { return std::equal(content.begin(), content.end(), bytes_.get()); }

 private:
  static constexpr std::size_t page = 4096;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte, Free> bytes_;
  HostRegistration registration_;
};

}  // namespace devshare::test
