// SPDX-License-Identifier: Apache-2.0
// The other side of CallGate and of what calls hold (lifecycle.hpp): who closes the one, and who waits for the other.
#pragma once

namespace devshare::host {

// Waits until no call of this process is in flight and keeps new ones waiting. One thread at a time, none that is in a
// call itself.
void close_gate() noexcept;
void open_gate() noexcept;

// Waits until no thread has `object` in its slot. For whoever has marked it as ended by a sequentially consistent
// operation. A thread that wants to use the object, where threads_can_be_fenced, puts it into its slot, then looks at the
// mark by a sequentially consistent load, and leaves the object alone if it has ended. It is there for a short while:
// only a signal handler that ends what its own thread was using waits for ever, as it would for a pin.
void wait_until_let_go(const void* object) noexcept;

}  // namespace devshare::host
