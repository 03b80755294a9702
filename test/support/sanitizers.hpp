// SPDX-License-Identifier: Apache-2.0
// Which sanitizer this program is built with, as tests need to know it.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define DEVSHARE_TEST_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DEVSHARE_TEST_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define DEVSHARE_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DEVSHARE_TEST_THREAD_SANITIZER 1
#endif
#endif

#include <cstdlib>

#ifdef DEVSHARE_TEST_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#endif

namespace devshare::test {

constexpr bool under_sanitizer() {
#if defined(DEVSHARE_TEST_ADDRESS_SANITIZER) || defined(DEVSHARE_TEST_THREAD_SANITIZER)
  return true;
#else
  return false;
#endif
}

constexpr bool sees_leaks() {
#ifdef DEVSHARE_TEST_ADDRESS_SANITIZER
  return true;
#else
  return false;
#endif
}

constexpr bool sees_races() {
#ifdef DEVSHARE_TEST_THREAD_SANITIZER
  return true;
#else
  return false;
#endif
}

// A child that leaves by _exit asks for its leaks itself; the report is on stderr.
inline bool leaks_found() {
#ifdef DEVSHARE_TEST_ADDRESS_SANITIZER
  return __lsan_do_recoverable_leak_check() != 0;
#else
  return false;
#endif
}

// Leaks, for the tests of leaks_found() itself: many blocks, of which a stale register or stack slot keeps one at most.
[[gnu::noinline]] inline bool lose_memory() {
  void* volatile lost = nullptr;
  for (int i = 0; i < 16; ++i) lost = std::malloc(100);
  return lost != nullptr;
}

}  // namespace devshare::test
