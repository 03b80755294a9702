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

#if DEVSHARE_BAD == 1
void wrong(const ImportedMapping& mapping) { mapping.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(const ImportedMapping& mapping) { std::move(mapping).close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<ImportedMapping>& result) { (*result).close(); }
#endif
#if DEVSHARE_BAD == 4
void wrong(Result<ImportedMapping>& result) { std::move(*result).close(); }
#endif
#if DEVSHARE_BAD == 5
void wrong(Result<ImportedMapping>& result) { result.value().close(); }
#endif
