// SPDX-License-Identifier: Apache-2.0
// Closing ends an object, so it takes one that may change and that nothing else still holds: a Result would go
// on holding what is left of it.
// reason: const, or still inside a Result: make a named object of it first, then close that
#include <devshare/imported.hpp>

using namespace devshare;

auto right(Result<ImportedMapping> result) {
  ImportedMapping mapping = *std::move(result);
  return std::move(mapping).close();
}

#ifdef DEVSHARE_BAD
void mistake_1(const ImportedMapping& mapping) { mapping.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(const ImportedMapping& mapping) { std::move(mapping).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<ImportedMapping>& result) { (*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_4(Result<ImportedMapping>& result) { std::move(*result).close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_5(Result<ImportedMapping>& result) { result.value().close(); }
#endif
