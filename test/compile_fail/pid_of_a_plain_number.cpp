// SPDX-License-Identifier: Apache-2.0
// A number becomes a BarePid by the name that says where it came from, and by nothing else.
// expect(gcc): conversion from .int. to non-scalar type|no known conversion|is private within this context|cannot convert
// expect(clang): no viable conversion|private constructor|no matching
#include <devshare/process.hpp>

using namespace devshare;

BarePid right(std::int32_t number_in_message) { return BarePid::from_peer_message(number_in_message); }

#if DEVSHARE_BAD == 1
BarePid wrong(std::int32_t number) { return number; }
#endif
#if DEVSHARE_BAD == 2
BarePid wrong(std::int32_t number) { return BarePid(number); }
#endif
#if DEVSHARE_BAD == 3
BarePid wrong(std::int32_t number) { return BarePid{number}; }
#endif
#if DEVSHARE_BAD == 4
std::int32_t wrong(BarePid pid) { return pid; }
#endif
