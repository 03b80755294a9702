// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(mapping).close(): it ends the import
#include <devshare/imported.hpp>

using namespace devshare;

auto right(ImportedMapping mapping) { return std::move(mapping).close(); }

#if DEVSHARE_BAD == 1
void wrong(ImportedMapping mapping) { mapping.close(); }
#endif
#if DEVSHARE_BAD == 2
void wrong(ImportedMapping& mapping) { mapping.close(); }
#endif
#if DEVSHARE_BAD == 3
void wrong(Result<ImportedMapping>& result) { result->close(); }
#endif
