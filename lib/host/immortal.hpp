// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

namespace devshare::host {

// A static object that is never destroyed: calls may still arrive from threads and destructors that outlive main.
template <class T>
class Immortal {
 public:
  Immortal() { ::new (static_cast<void*>(bytes_)) T; }
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() noexcept { return *std::launder(reinterpret_cast<T*>(bytes_)); }
  T* operator->() noexcept { return &**this; }

 private:
  alignas(T) unsigned char bytes_[sizeof(T)];
};

}  // namespace devshare::host
