// SPDX-License-Identifier: Apache-2.0
// A thread that dispatches.
#include "lender_core.hpp"

#include "../host/signals_blocked.hpp"

#include <cerrno>

#include <pthread.h>

namespace devshare {
namespace detail {

struct ServingThread {
  LenderCore* core = nullptr;
  pthread_t thread{};
  bool stop = false;   // guarded by Lock::lending, like the next
  bool alone = false;  // nobody will join it: it was stopped in a hook of its own
};

namespace {

void* run(void* argument) {
  ServingThread& serving = *static_cast<ServingThread*>(argument);
  LenderCore& core = *serving.core;
  ::pthread_setname_np(::pthread_self(), "devshare-lend");
  bool alone = false;
  {
    Locked lock = lock_lending();
    core.turn.wait(
        lock, Deadline::never(), [&] { return serving.stop; },
        [&](Deadline until) { (void)dispatch_events(core, until); });
    alone = serving.alone;
  }
  if (alone) {
    drop_reference(core);
    delete &serving;
  }
  return nullptr;
}

int start_thread(ServingThread& serving) noexcept {
  const host::AllSignalsBlocked blocked;  // signals are the program's
  return ::pthread_create(&serving.thread, nullptr, &run, &serving);
}

}  // namespace

Result<void> ServingPolicy::close(const Session&, const Value& value) noexcept {
  ServingThread* const serving = value.thread;
  if (::pthread_equal(serving->thread, ::pthread_self())) {
    // In a hook: the thread cannot wait for itself. It ends when the hook has returned.
    const Locked lock = lock_lending();
    serving->stop = serving->alone = true;
    ::pthread_detach(serving->thread);
    return Error(Errc::in_use, Operation::serve);
  }
  {
    const Locked lock = lock_lending();
    serving->stop = true;
    wake_dispatcher(*serving->core);
    serving->core->turn.changed();
  }
  ::pthread_join(serving->thread, nullptr);
  drop_reference(*serving->core);
  delete serving;
  return {};
}

// The thread is not the child's; where only the runtime has gone, it is still there and must end.
void ServingPolicy::abandon(const Value& value) noexcept {
  if (!value.thread->core->of_parent) (void)close({}, value);
}

}  // namespace detail

Result<Serving> serve(Lender& lender) noexcept {
  const auto& owned = lender.lender_;
  if (!owned.holds() || !owned.session().alive()) return detail::unusable(owned.session(), Operation::serve);
  auto* const serving = new detail::ServingThread;
  serving->core = owned.value().core;
  {
    const detail::Locked lock = detail::lock_lending();
    ++serving->core->references;
  }
  if (const int failed = detail::start_thread(*serving); failed != 0) {
    detail::drop_reference(*serving->core);
    delete serving;
    return Error(Errc::out_of_memory, Operation::serve, {.system_errno = failed});
  }
  return Serving(owned.session(), {serving});
}

}  // namespace devshare
