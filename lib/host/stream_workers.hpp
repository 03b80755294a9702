// SPDX-License-Identifier: Apache-2.0
// The threads that work streams off. All of this is called under the lock of the streams.
#pragma once

#include "stream_state.hpp"

namespace devshare::host {

// There is a worker, or one is started. 0, or the errno of why there is none.
int start_first_worker(StreamState& all);
inline int first_worker(StreamState& all) { return all.threads.empty() ? start_first_worker(all) : 0; }

// The stream has something to do and nobody at it: some worker will take it. True when one that sleeps is to be woken
// by `work`, which is cheaper after the lock.
bool make_ready(StreamState& all, Queue& queue);
void unmake_ready(StreamState& all, Queue& queue);

// Tells all workers to end, and waits for them. Releases the lock meanwhile; nothing may be ready or running.
void join_workers(StreamState& all, std::unique_lock<std::mutex>& lock);

}  // namespace devshare::host
