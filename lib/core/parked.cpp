// SPDX-License-Identifier: Apache-2.0
#include "parked.hpp"

#include "locks.hpp"

#include <devshare/diagnostic.hpp>
#include <devshare/exported.hpp>

#include <vector>

namespace devshare::detail {
namespace {

struct ParkedObject {
  void* object = nullptr;  // reachable for leak checkers
  std::size_t bytes = 0;
  std::size_t holders = 0;
};

// Guarded by Lock::parked. Immortal, so that static objects may park at exit in any order (B011).
std::vector<ParkedObject>& list() noexcept {
  static auto* const parked = new std::vector<ParkedObject>;
  return *parked;
}

}  // namespace

void park(void* object, std::size_t bytes, const Error& error) noexcept {
  keep_parked(object, bytes, 0);
  report({DiagnosticEvent::memory_parked, error, object});
}

void keep_parked(void* object, std::size_t bytes, std::size_t holders) noexcept {
  const std::lock_guard lock(mutex_of(Lock::parked));
  list().push_back({object, bytes, holders});
}

void set_parked_holders(void* object, std::size_t holders) noexcept {
  const std::lock_guard lock(mutex_of(Lock::parked));
  for (ParkedObject& parked : list()) {
    if (parked.object == object) parked.holders = holders;
  }
}

void unpark(void* object) noexcept {
  const std::lock_guard lock(mutex_of(Lock::parked));
  std::erase_if(list(), [&](const ParkedObject& parked) { return parked.object == object; });
}

Parked parked_now() noexcept {
  const std::lock_guard lock(mutex_of(Lock::parked));
  Parked sum;
  for (const ParkedObject& parked : list()) {
    ++sum.objects;
    sum.bytes += parked.bytes;
    sum.holders += parked.holders;
  }
  return sum;
}

}  // namespace devshare::detail
