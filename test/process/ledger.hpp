// SPDX-License-Identifier: Apache-2.0
// What the tests of the ledger have in common: a machine of 40 units, and processes that take of them.
#pragma once

#include "host/ledger.hpp"
#include "support/host_session.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace devshare::test {

inline constexpr std::uint64_t unit = 1 << 20;

// A session whose device holds 40 units.
inline HostSession open_session() { return HostSession({{"CAPACITY", "40M"}}); }

// What malloc does to the ledger.
inline bool take(std::uint64_t bytes, std::int32_t device = 0) {
  if (host::ledger_claim(device, bytes) != 0) return false;
  host::ledger_commit(device, bytes);
  return true;
}

inline std::uint64_t in_use(std::int32_t device = 0) { return host::bytes_in_use(device); }

inline std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) names.push_back(entry.path().filename());
  return names;
}

// Memory that forked children share with the one who made it.
template <class T>
inline T* shared() {
  void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : ::new (memory) T();
}

// A child of this actor that runs `body` and then ends with no more ado.
inline pid_t spawn(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child < 0) std::abort();  // -1 would be everybody, where it is killed
  if (child != 0) return child;
  body();
  ::_exit(0);
}

inline void spin(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

inline int status_of(pid_t child) {
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace devshare::test
