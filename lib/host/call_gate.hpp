// SPDX-License-Identifier: Apache-2.0
// The other side of CallGate (lifecycle.hpp): who closes it.
#pragma once

namespace devshare::host {

// Waits until no call of this process is in flight and keeps new ones waiting. One thread at a time, none that is in a
// call itself.
void close_gate() noexcept;
void open_gate() noexcept;

}  // namespace devshare::host
