// SPDX-License-Identifier: Apache-2.0
// What ends an object says so where it is called: by std::move.
// reason: write std::move(mapping).close(): it ends the import
#include <devshare/imported.hpp>

using namespace devshare;

auto right(ImportedMapping mapping) { return std::move(mapping).close(); }

#ifdef DEVSHARE_BAD
void mistake_1(ImportedMapping mapping) { mapping.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(ImportedMapping& mapping) { mapping.close(); }
#endif
#ifdef DEVSHARE_BAD
void mistake_3(Result<ImportedMapping>& result) { result->close(); }
#endif
