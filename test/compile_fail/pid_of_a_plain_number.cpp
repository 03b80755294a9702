// SPDX-License-Identifier: Apache-2.0
// A number becomes a BarePid by the name that says where it came from, and by nothing else.
// expect(gcc): could not convert|is private within this context|cannot convert
// expect(clang): no viable conversion|private constructor|no matching
#include <devshare/process.hpp>

using namespace devshare;

BarePid right(std::int32_t number_in_message) { return BarePid::from_peer_message(number_in_message); }

#ifdef DEVSHARE_BAD
BarePid mistake_1(std::int32_t number) { return number; }
#endif
#ifdef DEVSHARE_BAD
BarePid mistake_2(std::int32_t number) { return BarePid(number); }
#endif
#ifdef DEVSHARE_BAD
BarePid mistake_3(std::int32_t number) { return BarePid{number}; }
#endif
#ifdef DEVSHARE_BAD
std::int32_t mistake_4(BarePid pid) { return pid; }
#endif
