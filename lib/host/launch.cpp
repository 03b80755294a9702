// SPDX-License-Identifier: Apache-2.0
// Functions of the program in streams: host::launch of devshare/instrument.hpp.
#include "failure.hpp"
#include "lifecycle.hpp"
#include "stream_state.hpp"

#include <devshare/instrument.hpp>

#include <memory>

namespace devshare::host {
namespace {

class FunctionTask final : public Task {
 public:
  FunctionTask(ContextNumber context, void (*function)(void*), void* argument) noexcept
      : Task(acl::Entry::none, Kind::user_function), context_(context), function_(function), argument_(argument) {}

  // With the context of whoever launched it, and nothing left of that for the next one.
  acl::aclError run() override {
    set_thread_context(context_);
    function_(argument_);
    set_thread_context({});
    return 0;
  }

 private:
  ContextNumber context_;
  void (*function_)(void*);
  void* argument_;
};

acl::aclError enter(acl::aclrtStream stream, void (*function)(void*), void* argument) {
  if (in_forked_child()) {
    return refuse(acl::code::rt_context_null, Reason::forked, "the runtime belongs to the parent process (R4)");
  }
  const auto without_session = [] {
    return refuse(acl::code::uninitialize, Reason::not_initialised, "aclInit has not been called");
  };
  if (!initialised()) return without_session();  // without a gate, which a child born unseen may have found closed
  const CallGate gate;
  if (!initialised()) return without_session();
  if (function == nullptr) return refuse(acl::code::invalid_param, Reason::bad_argument, "function is null");
  StreamPlace place;
  if (const acl::aclError refused = place_of(stream, &place)) return refused;
  return enqueue(place, std::make_unique<FunctionTask>(place.context, function, argument));
}

}  // namespace

acl::aclError launch(acl::aclrtStream stream, void (*function)(void*), void* argument, detail::Cause* why) {
  call_begins();
  const acl::aclError code = enter(stream, function, argument);
  if (code != 0 && why != nullptr) *why = last_cause();
  return code;
}

}  // namespace devshare::host
