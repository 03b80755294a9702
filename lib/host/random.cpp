// SPDX-License-Identifier: Apache-2.0
#include "random.hpp"

#include "per_process.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace devshare::host {
namespace {

void from_kernel(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const ssize_t got = ::getrandom(out.data(), out.size(), 0);
    if (got > 0) {
      out = out.subspan(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      std::abort();
    }
  }
}

struct Pool : ProcessState<Pool> {
  std::array<std::uint8_t, 4096> bytes{};
  std::size_t used = bytes.size();

  void close_inherited() noexcept {}
};

PerProcess<Pool> pool;

}  // namespace

void random_bytes(std::span<std::uint8_t> out) {
  Pool& mine = pool.get();
  const std::scoped_lock lock(mine.mutex);
  while (!out.empty()) {
    if (mine.used == mine.bytes.size()) {
      from_kernel(mine.bytes);
      mine.used = 0;
    }
    const std::size_t count = std::min(out.size(), mine.bytes.size() - mine.used);
    std::uint8_t* source = mine.bytes.data() + mine.used;
    std::memcpy(out.data(), source, count);
    std::memset(source, 0, count);  // what was handed out is nobody else's to find
    mine.used += count;
    out = out.subspan(count);
  }
}

std::uint64_t random_number() {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  random_bytes(bytes);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

}  // namespace devshare::host
