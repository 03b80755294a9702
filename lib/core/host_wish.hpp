// SPDX-License-Identifier: Apache-2.0
// What is asked of the machine's memory beside a call.
#pragma once

#include <devshare/detail/runtime_record.hpp>

namespace devshare::detail {

// While it lives, this is what is asked for what the thread allocates and imports, where the runtime can be asked.
class HostWishes {
 public:
  HostWishes(const RuntimeRecord& runtime, HostWish wish) noexcept
      : tell_(wish.anything() ? runtime.extras.wish_pages : nullptr) {
    if (tell_ != nullptr) tell_(wish);
  }
  ~HostWishes() {
    if (tell_ != nullptr) tell_({});
  }
  HostWishes(const HostWishes&) = delete;
  HostWishes& operator=(const HostWishes&) = delete;

 private:
  void (*tell_)(HostWish) noexcept;
};

}  // namespace devshare::detail
