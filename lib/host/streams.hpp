// SPDX-License-Identifier: Apache-2.0
// Streams, as the rest of the runtime meets them.
#pragma once

#include "contexts.hpp"

#include <cstdint>

namespace devshare::host {

// Waits for what is in the streams of a context and ends them. The context still lives, so that tasks may need it.
void streams_end_with(ContextNumber context);

// Waits for what is in the streams of a physical device. What failed is told by the next synchronise.
void wait_for_streams_of(std::int32_t physical_device);

// Whether a task failed on the device and no synchronise has said so: then a following import is refused.
bool failed_task_unreported(std::int32_t physical_device);
acl::aclError refuse_after_failed_task(std::int32_t physical_device);

// aclFinalize. Before the gate is closed: waits for what runs or could run, and takes nothing new from then on. After
// it: drops what waited for what cannot come any more, ends all streams, joins the workers.
void streams_close();
void streams_shut_down();

std::uint64_t streams_held();  // without default ones

}  // namespace devshare::host
