// SPDX-License-Identifier: Apache-2.0
// Imports for reading only. ACL has none; devshare asks for them beside its calls, on the thread that makes them, and
// the kernel enforces it: what this process then holds is a descriptor through which nobody can write (B107).
#pragma once

#include "unique_fd.hpp"

namespace devshare::host {

// Imports of this thread are for reading from now on, or not any more.
void import_for_reading(bool on) noexcept;

// For the importing side: gives up what could write, where this thread's imports are for reading. False where they are
// not, and where the system has no such descriptor (no /proc, or a full table): the import can then be written to.
bool keep_for_reading(UniqueFd* descriptor) noexcept;

// Whether the kernel lets nobody of this process write to the import at this address.
bool imported_for_reading(const void* address) noexcept;

}  // namespace devshare::host
