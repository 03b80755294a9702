// SPDX-License-Identifier: Apache-2.0
// A loop that closes what was made outside it closes it twice.
// only: clang
// expect(clang): state of variable 'mapping' must match at the entry and exit of loop
// expect(clang): \[-Werror,-Wconsumed\]
#include <devshare/imported.hpp>

using namespace devshare;

Result<void> right(const ReceivedTicket& ticket, const Device& device) {
  for (int round = 0; round < 3; ++round) {
    DEVSHARE_TRY(mapping, ImportedMapping::open(ticket, device));
    DEVSHARE_CHECK(std::move(mapping).close());
  }
  return {};
}

#ifdef DEVSHARE_BAD
void mistake_1(ImportedMapping mapping) {
  for (int round = 0; round < 3; ++round) static_cast<void>(std::move(mapping).close());
}
#endif
#ifdef DEVSHARE_BAD
void mistake_2(ImportedMapping mapping, bool& more) {
  while (more) static_cast<void>(std::move(mapping).close());
}
#endif
