// SPDX-License-Identifier: Apache-2.0
// Counts system calls exactly: those of a process, its threads and its children, as the kernel reports them to a tracer.
// What strace counts, without needing strace, and only between two marks.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace devshare::test {

// Descriptors from here on belong to the test itself: what is done with them is not counted.
inline constexpr int uncounted_descriptor = 900;
int as_uncounted(int descriptor);  // moves it there; the number it has now, or -1

// In a traced process: the counted part begins, or ends. Returns when every other traced thread has gone to sleep, so
// that what a thread still had to do belongs to the part in which it was asked to. Nothing happens without a tracer.
void begin_counting();
void end_counting();

struct CountedCalls {
  std::string problem;                // why nothing was counted, or how the processes failed; "" when all went well
  std::map<std::string, long> calls;  // "A: sendmsg", by the name of the thread that made it

  long total() const;
  long named(const std::string& call) const;  // by whatever thread
  std::string in_words() const;
};

// Runs `body` in a child process until that and all it forked have ended. `body` names its threads (prctl PR_SET_NAME)
// if it wants them told apart.
CountedCalls count_calls(const std::function<void()>& body);

// Why this program cannot count: a sanitizer makes calls of its own, or the kernel allows no tracing. "" when it can.
std::string why_no_counting();

}  // namespace devshare::test
