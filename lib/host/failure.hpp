// SPDX-License-Identifier: Apache-2.0
// How a call of the host runtime says no: the exact ACL code, the reason for whoever can use more than a code, and a
// text for aclGetRecentErrMsg. All three are of this thread.
#pragma once

#include "thread_call.hpp"

#include <devshare/acl/codes.hpp>
#include <devshare/acl/table.hpp>
#include <devshare/detail/cause.hpp>

#include <string>

namespace devshare::host {

using detail::Cause;
using detail::Reason;

// Records the refusal for this thread and returns `code`, so that a call can end with `return refuse(...)`.
// `text` says what was wrong and what to do, without the code: aclGetRecentErrMsg adds call and code.
[[nodiscard]] acl::aclError refuse(acl::aclError code, const Cause& cause, std::string text);
[[nodiscard]] acl::aclError refuse(acl::aclError code, Reason reason, std::string text);

// The same without a text, and leaving the text of an earlier call where it is: for a call that is asked in order to
// find out, whose refusal is an answer.
[[nodiscard]] acl::aclError refuse_quietly(acl::aclError code, Reason reason) noexcept;

// The reason of the last refused call of this thread; {none} when the last call succeeded. Set by the entry layer
// around every call, so that it never belongs to an older one.
inline const Cause& last_cause() noexcept { return this_call.cause; }

// The text of what refuse recorded last in the call that is running, for whoever passes a refusal on.
const std::string& last_text() noexcept;

// For the entry layer. A call starts with no cause and ends with its code; a refused one leaves the text that
// aclGetRecentErrMsg hands out.
inline void call_begins(ThreadCall& thread = this_call) noexcept { thread.cause = {}; }
void keep_refusal(acl::Entry call, acl::aclError code);
inline void call_ends(acl::Entry call, acl::aclError code, ThreadCall& thread = this_call) {
  if (code != 0) return keep_refusal(call, code);
  thread.cause = {};  // something inside may have been refused and got over
}

// Whose the texts are that aclGetRecentErrMsg hands out: the calling thread's, or those of all threads of the process.
// Set by the aclInit that starts a session; the last text of the other kind is not found any more. A forked child has
// those of the thread until its own aclInit.
enum class TextsOf : bool { thread, process };
void keep_recent_messages(TextsOf whose);

// "<call>: <code name>: <text>" of the last refused call of this thread, and forgets it (of this process, where
// that was asked for); null when there is none. The pointer is valid until the next time this thread asks.
const char* take_recent_message();

// The same, left where it is; "" when there is none.
std::string recent_message();

}  // namespace devshare::host
