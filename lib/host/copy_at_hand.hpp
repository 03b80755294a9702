// SPDX-License-Identifier: Apache-2.0
// The short way of a blocking copy: between memory of the host and plain blocks that are mapped, which is what most
// copies are. It costs a third of the instructions of the long way (copy_ends.hpp), and no locked one.
//
// Both return false when something asks for a closer look, a refusal included. Nothing has happened then.
#pragma once

#include <cstddef>
#include <cstdint>

namespace devshare::host {

// Within a call of the runtime.
bool copied_in_call(void* to, const void* from, std::size_t count) noexcept;

// For the typed layer, in place of a call: in the session `session` (session_word), on a thread whose current device is
// `device`, as long as nobody wants to see the calls. What the thread's last refusal left behind (last_cause) it leaves
// where it is: that is asked for after refusals only.
bool copied_without_call(std::uint64_t session, std::int32_t device, void* to, const void* from,
                         std::size_t count) noexcept;

}  // namespace devshare::host
