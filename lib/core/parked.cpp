// SPDX-License-Identifier: Apache-2.0
#include "parked.hpp"

#include "locks.hpp"

#include <devshare/diagnostic.hpp>
#include <devshare/exported.hpp>

#include <vector>

namespace devshare::detail {
namespace {

// Guarded by Lock::parked.
struct ParkedList {
  std::vector<void*> objects;  // reachable for leak checkers, freed never
  std::size_t bytes = 0;
};

// Immortal, so that static objects may park at exit in any order (B011).
ParkedList& list() noexcept {
  static ParkedList* const parked = new ParkedList;
  return *parked;
}

}  // namespace

void park(void* object, std::size_t bytes, const Error& error) noexcept {
  {
    const std::lock_guard lock(mutex_of(Lock::parked));
    list().objects.push_back(object);
    list().bytes += bytes;
  }
  report({DiagnosticEvent::memory_parked, error, object});
}

Parked parked_now() noexcept {
  const std::lock_guard lock(mutex_of(Lock::parked));
  return {list().objects.size(), list().bytes};
}

}  // namespace devshare::detail
