/* SPDX-License-Identifier: Apache-2.0 */
/* What the C programs here have in common: two processes, a line between them, and a word about what went wrong. */
#ifndef DROP_IN_H
#define DROP_IN_H

#include <acl/acl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_SIZE 65

/* Ends the process unless a call returned what it should. */
#define EXPECT(call, code)                                                                                   \
  do {                                                                                                       \
    const long got_ = (long)(call);                                                                          \
    if (got_ != (long)(code)) {                                                                              \
      const char *text_ = aclGetRecentErrMsg();                                                              \
      fprintf(stderr, "%s:%d: %s: %ld, not %ld (%s)\n", __FILE__, __LINE__, #call, got_, (long)(code),       \
              text_ != NULL ? text_ : "");                                                                   \
      _exit(1);                                                                                              \
    }                                                                                                        \
  } while (0)
#define OK(call) EXPECT(call, 0)
/* What only the host runtime promises: left out where another library is tried (test/conformance). */
#ifdef ANOTHER_LIBRARY
#define EXPECT_HERE(call, code) (void)(call)
#else
#define EXPECT_HERE(call, code) EXPECT(call, code)
#endif
#define SKIPPED 77

static inline void begin(int32_t device) {
  alarm(60); /* whoever waits for a process that failed ends too */
  OK(aclInit(NULL));
  OK(aclrtSetDevice(device));
}

/* Ends the program as skipped where there are fewer devices; asked by a child, so that this process has no runtime yet. */
static inline void need_devices(uint32_t most) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    uint32_t count = 0;
    OK(aclInit(NULL));
    OK(aclrtGetDeviceCount(&count));
    OK(aclFinalize());
    _exit(count < most ? SKIPPED : 0);
  }
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) _exit(12);
  if (WEXITSTATUS(status) != 0) _exit(WEXITSTATUS(status));
}

static inline void tell(int line, const void *data, size_t size) {
  if (write(line, data, size) != (ssize_t)size) _exit(2);
}
static inline void hear(int line, void *data, size_t size) {
  if (read(line, data, size) != (ssize_t)size) _exit(3);
}

/* Runs `other` in a child, which gets its end of a line; returns ours. */
static inline int beside(void (*other)(int line), pid_t *child) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) _exit(4);
  *child = fork();
  if (*child == 0) {
    close(ends[0]);
    other(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  return ends[0];
}
static inline void ended_well(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "the other process failed: %d\n", status);
    _exit(5);
  }
}

static inline void fill(void *memory, size_t size, int value) { OK(aclrtMemset(memory, size, value, size)); }
static inline unsigned char peek(const void *memory, size_t offset) {
  unsigned char byte = 0;
  OK(aclrtMemcpy(&byte, 1, (const char *)memory + offset, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  return byte;
}

#endif
