// SPDX-License-Identifier: Apache-2.0
// What devshare/instrument.hpp shows of the state of the runtime: counters, device state, and a kernel's view of memory.
#include "block.hpp"
#include "block_bytes.hpp"
#include "events.hpp"
#include "exports.hpp"
#include "failure.hpp"
#include "host_runtime.hpp"
#include "imports.hpp"
#include "ledger.hpp"
#include "lifecycle.hpp"
#include "mapping_limit.hpp"
#include "notifies.hpp"
#include "physical.hpp"
#include "pieces.hpp"
#include "registration.hpp"
#include "reservation.hpp"
#include "streams.hpp"
#include "token_exports.hpp"
#include "token_imports.hpp"

#include <devshare/instrument.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

namespace devshare::host {
namespace {

std::atomic<bool> chosen{false};

void* no_view(detail::Cause* why, const Cause& cause) {
  if (why != nullptr) *why = cause;
  return nullptr;
}

}  // namespace

void note_chosen() noexcept { chosen.store(true, std::memory_order_release); }

bool active() noexcept { return chosen.load(std::memory_order_acquire); }

std::uint64_t bytes_in_use(std::int32_t physical_device) { return ledger_bytes_in_use(physical_device); }

std::string_view device_state_scope() { return ledger_scope(); }

std::string device_state_note() { return ledger_note(); }

void* view_of(const void* device_address, std::size_t size, ViewAccess access, detail::Cause* why) {
  if (in_forked_child()) return no_view(why, {.reason = Reason::forked});
  if (!initialised()) return no_view(why, {.reason = Reason::not_initialised});
  const CallGate gate;
  if (!initialised()) return no_view(why, {.reason = Reason::not_initialised});
  const PinnedBlock block(device_address);
  if (!block) return no_view(why, {.reason = Reason::not_device_memory});
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(device_address) - block.base();
  std::vector<PinnedBlock> behind;
  const bool leaves = offset > block.size() || size > block.size() - offset;
  if (leaves && !pin_pieces_behind(block, offset, size, &behind)) {
    const std::uint64_t available = offset < block.size() ? block.size() - offset : 0;
    return no_view(why, {.reason = Reason::out_of_bounds, .needed = size, .available = available});
  }
  bool read_only = block.read_only();
  for (const PinnedBlock& piece : behind) read_only = read_only || piece.read_only();
  if (access == ViewAccess::read_write && read_only) return no_view(why, {.reason = Reason::read_only});
  const auto may_be_viewed = [](const PinnedBlock& piece) { return piece.may_be_viewed(); };
  std::byte* const view = block.view();
  if (view == nullptr || !std::all_of(behind.begin(), behind.end(), may_be_viewed)) return no_view(why, last_cause());
  // Each is shown in its place, so that the whole is contiguous.
  if (!map_pieces(behind)) {
    (void)refuse_mapping(block.backed(), errno);
    return no_view(why, last_cause());
  }
  return view + offset;
}

}  // namespace devshare::host
