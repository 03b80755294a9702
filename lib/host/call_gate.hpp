// SPDX-License-Identifier: Apache-2.0
// The other side of CallGate and of what calls hold (lifecycle.hpp): who closes the one, and who waits for the other.
#pragma once

namespace devshare::host {

// Waits until no call of this process is in flight and keeps new ones waiting. One thread at a time, none that is in a
// call itself.
void close_gate() noexcept;
void open_gate() noexcept;

// Waits until no other thread has `object` in its slot. For whoever has marked it as ended, in sequential consistency: a
// thread puts it there, where threads_can_be_fenced, and looks at the mark before it uses it, likewise. It has it there
// for a short while only.
void wait_until_let_go(const void* object) noexcept;

}  // namespace devshare::host
