// SPDX-License-Identifier: Apache-2.0
#include "copy_at_hand.hpp"

#include "block_pool.hpp"
#include "bulk_copy.hpp"
#include "contexts.hpp"
#include "device.hpp"
#include "instrument.hpp"
#include "lifecycle.hpp"

#include <atomic>

namespace devshare::host {
namespace {

// Short enough that whoever frees the memory may as well watch for its end.
constexpr std::size_t most_at_hand = std::size_t{1} << 20;

// One end of a copy, if it can be had without more ado: memory of the host, or a range of a plain block that is mapped.
// The block is not pinned, which would be two locked instructions, but named in the thread's slot for as long as this
// object lives. It is not freed in that time, nor at the end of the session (wait_until_let_go).
class EndAtHand {
 public:
  [[gnu::always_inline]] EndAtHand(std::atomic<const void*>& held, const void* address, std::uint64_t count,
                                   bool Block::*plain) noexcept
      : held_(held) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    block_ = record_at(at);
    if (block_ == nullptr) {
      if (!in_window(at, count)) bytes_ = static_cast<std::byte*>(const_cast<void*>(address));
      return;
    }
    held.store(block_, std::memory_order_release);  // whoever waits for the one before takes this for its end
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if ((block_->life.load(std::memory_order_seq_cst) & Block::live_bit) == 0) return;
    const std::uint64_t offset = at - block_->base;
    std::byte* const view = block_->view.load(std::memory_order_acquire);
    const bool inside = offset <= block_->size && count <= block_->size - offset;
    if (inside && view != nullptr && block_->*plain && !block_->watch.gone()) bytes_ = view + offset;
  }
  [[gnu::always_inline]] ~EndAtHand() { held_.store(nullptr, std::memory_order_release); }
  EndAtHand(const EndAtHand&) = delete;
  EndAtHand& operator=(const EndAtHand&) = delete;

  std::byte* bytes() const noexcept { return bytes_; }  // null: look more closely
  const Block* block() const noexcept { return block_; }

 private:
  std::atomic<const void*>& held_;
  const Block* block_;
  std::byte* bytes_ = nullptr;
};

template <class StillRight>
[[gnu::always_inline]] inline bool copied(GateSlot& slot, void* dst, const void* src, std::size_t count,
                                          StillRight still_right) noexcept {
  const EndAtHand to(slot.held[0], dst, count, &Block::plain_target);
  if (to.bytes() == nullptr) return false;
  const EndAtHand from(slot.held[1], src, count, &Block::plain_source);
  if (from.bytes() == nullptr || !still_right()) return false;
  if (to.block() != nullptr && from.block() != nullptr && to.block()->device != from.block()->device) return false;
  copy_bulk(to.bytes(), from.bytes(), count);
  return true;
}

bool in_session(std::uint64_t session) noexcept {
  return process_page().session.load(std::memory_order_acquire) == session;
}

// Finds out that `device` is current and that the thread has a slot, and remembers it for as long as no more contexts
// have ended than the `ended` that had when the caller began to ask.
[[gnu::noinline]] bool find_device(ThreadCall& thread, std::uint64_t session, std::int32_t device,
                                   std::uint32_t ended) noexcept {
  if (thread.gate == nullptr || thread.gate->process != process_generation()) return false;
  if (device_at_hand(thread) != device || !in_session(session)) return false;
  thread.device = device;
  thread.contexts_ended = ended;
  thread.device_session = session;
  return true;
}

}  // namespace

bool copied_in_call(void* to, const void* from, std::size_t count) noexcept {
  const ThreadCall& thread = find_this_call();
  // In a call inside a call, as of a signal handler, the slot is in use.
  if (count > most_at_hand || thread.gate->depth.load(std::memory_order_relaxed) != 1) return false;
  if (!threads_can_be_fenced.load(std::memory_order_relaxed) || device_at_hand(thread) < 0) return false;
  return copied(*thread.gate, to, from, count, [] { return true; });
}

bool copied_without_call(std::uint64_t session, std::int32_t device, void* to, const void* from,
                         std::size_t count) noexcept {
  ThreadCall& thread = find_this_call();
  if (count == 0 || count > most_at_hand || to == from) return false;
  if (instrument_armed() || !threads_can_be_fenced.load(std::memory_order_relaxed)) return false;
  const std::uint32_t ended = contexts_ended.load(std::memory_order_acquire);
  const bool known = thread.device_session == session && thread.device == device && thread.contexts_ended == ended;
  if (!known && !find_device(thread, session, device, ended)) return false;
  GateSlot& slot = *thread.gate;
  if (slot.depth.load(std::memory_order_relaxed) != 0) return false;  // of a signal handler, in a call
  slot.depth.store(1, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool done = !CallGate::is_closed() && copied(slot, to, from, count, [session] { return in_session(session); });
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot.depth.store(0, std::memory_order_release);
  return done;
}

}  // namespace devshare::host
