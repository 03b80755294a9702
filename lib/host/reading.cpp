// SPDX-License-Identifier: Apache-2.0
#include "reading.hpp"

#include "block.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace devshare::host {
namespace {

constinit thread_local bool for_reading = false;

}  // namespace

void import_for_reading(bool on) noexcept { for_reading = on; }

bool keep_for_reading(UniqueFd* descriptor) noexcept {
  if (!for_reading) return false;
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor->get());
  UniqueFd reader(::open(path, O_RDONLY | O_CLOEXEC));
  while (!reader && errno == EMFILE && release_cold_descriptor()) reader = UniqueFd(::open(path, O_RDONLY | O_CLOEXEC));
  if (!reader) return false;
  *descriptor = std::move(reader);
  return true;
}

bool imported_for_reading(const void* address) noexcept {
  const PinnedBlock block(address);
  return block && block.origin() != Origin::allocated && block.read_only();
}

}  // namespace devshare::host
