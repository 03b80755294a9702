// SPDX-License-Identifier: Apache-2.0
// A process that is led from one system call to the next, and killed or stopped at exactly one of them.
//
//   for (int n = 1;; ++n) {
//     Led led([] { ...; begin_steps(); ...; end_steps(); ... });
//     if (!led.to_step(n)) break;  // it has come through
//     led.kill();
//   }
//
// What a process leaves to others, or takes from them, it does by system calls: whoever survives its death before each
// of them survives its death anywhere.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace devshare::test {

// In the led process, on its first thread, which alone is led: the steps begin, and end. Without a leader nothing
// happens.
void begin_steps();
void end_steps();

class Led {
 public:
  // Runs `body` in a child process, which exits with 0 when it returns. The caller has no other threads.
  explicit Led(const std::function<void()>& body);
  ~Led();  // kills it, if it is there still
  Led(const Led&) = delete;
  Led& operator=(const Led&) = delete;

  // Lets it go on to its n-th system call after begin_steps(), before which it then stands. False: it came to
  // end_steps(), or to its end, before that, and is led no more.
  bool to_step(int n);

  // Where it stands: SIGKILL, and it is gone when this returns; SIGSTOP, and it has stopped. It is led no more.
  void kill();
  void stop();
  void go_on();  // after a stop

  // Waits for its end. Whether it exited with 0; in words if not.
  bool ends_well();
  std::string end_in_words() const;

 private:
  void take(int status);
  void let_go();

  pid_t child_ = -1;
  int gate_ = -1;
  bool led_ = false;
  bool ended_ = false;
  int status_ = 0;
};

// Why no process can be led here: the kernel allows no tracing. "" when it can.
std::string why_no_leading();

}  // namespace devshare::test
