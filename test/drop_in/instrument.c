/* SPDX-License-Identifier: Apache-2.0 */
/* A program in C that tests itself with the instrument: faults, counters, a journal, and a kernel of its own. */
#include "drop_in.h"

#include <devshare/instrument.h>
#include <errno.h>
#include <time.h>

#define SIZE ((size_t)4 << 10)

static uint64_t count(const char *name) {
  uint64_t value = 0;
  OK(devshare_host_counter(name, &value));
  return value;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

struct kernel {
  const void *memory;
  int ran;
};
static void kernel(void *argument) {
  struct kernel *self = argument;
  unsigned char *bytes = devshare_host_view(self->memory, SIZE, 1);
  if (bytes == NULL) return;
  for (size_t i = 0; i < SIZE; ++i) bytes[i] = (unsigned char)i;
  self->ran = 1;
}

int main(void) {
  char journal[] = "/tmp/devshare-instrument-XXXXXX";
  const int file = mkstemp(journal);
  void *memory = NULL;
  aclrtStream stream = NULL;
  uint32_t devices = 0;
  int32_t device = -1;
  uint64_t value = 0;
  EXPECT(file >= 0, 1);
  OK(devshare_host_set("DEVICES", "3"));
  begin(0);
  OK(aclrtGetDeviceCount(&devices));
  EXPECT(devices, 3);
  EXPECT(devshare_host_active(), 1);

  /* The second of them fails, once. */
  OK(devshare_host_fail("aclrtMalloc", 2, ACL_ERROR_RT_MEMORY_ALLOCATION));
  OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  void *none = NULL;
  EXPECT(aclrtMalloc(&none, SIZE, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT(count("allocations"), 1);

  /* A task that fails is told by synchronise. */
  OK(aclrtCreateStream(&stream));
  OK(devshare_host_fail_task("aclrtMemsetAsync", 1, ACL_ERROR_RT_DRV_INTERNAL_ERROR));
  OK(aclrtMemsetAsync(memory, SIZE, 1, SIZE, stream));
  EXPECT(aclrtSynchronizeStream(stream), ACL_ERROR_RT_DRV_INTERNAL_ERROR);

  /* A kernel. */
  OK(devshare_host_journal_to(journal));
  struct kernel play = {memory, 0};
  OK(devshare_host_launch(stream, kernel, &play));
  OK(aclrtSynchronizeStream(stream));
  OK(devshare_host_journal_to(""));
  EXPECT(play.ran, 1);
  EXPECT(peek(memory, 255), 255);
  char line[4096] = "";
  EXPECT(read(file, line, sizeof line - 1) > 0, 1);
  EXPECT(strstr(line, "\"call\":\"aclrtSynchronizeStream\"") != NULL, 1);
  EXPECT(devshare_host_journal_lines_lost(), 0);

  /* Delays, chance, and an end of all of them. */
  OK(devshare_host_delay("aclrtGetDevice", 20));
  OK(devshare_host_delay_task("aclrtMemsetAsync", 20));
  OK(aclrtMemsetAsync(memory, SIZE, 1, SIZE, stream));
  const double called = now();
  OK(aclrtGetDevice(&device));
  EXPECT(now() - called >= 0.02, 1);
  OK(aclrtSynchronizeStream(stream));
  OK(devshare_host_fail_with_probability("aclrtGetDevice", 1.0, 7, ACL_ERROR_RT_DRV_INTERNAL_ERROR));
  EXPECT(aclrtGetDevice(&device), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
  devshare_host_clear();
  OK(aclrtGetDevice(&device));

  /* The device, over all processes. */
  EXPECT(strcmp(devshare_host_device_state_scope(), "machine"), 0);
  EXPECT(devshare_host_bytes_in_use(0) >= SIZE, 1);

  /* What is no name is said so. */
  EXPECT(devshare_host_fail("aclrtMalloooc", 1, 1), -1);
  EXPECT(errno, EINVAL);
  EXPECT(devshare_host_counter("allocation", &value), -1);
  EXPECT(devshare_host_set("NO_SUCH_SWITCH", "1"), -1);
  EXPECT(devshare_host_view(&value, 1, 0) == NULL, 1);

  OK(aclrtDestroyStream(stream));
  OK(aclrtFree(memory));
  EXPECT(count("allocations") + count("bytes") + count("streams"), 0);
  OK(aclFinalize());
  EXPECT(devshare_host_bytes_in_use(0), 0);

  /* And as it was, from the next session on. */
  devshare_host_unset_all();
  begin(0);
  OK(aclrtGetDeviceCount(&devices));
  EXPECT(devices, 2);
  OK(aclFinalize());
  unlink(journal);
  puts("ok");
  return 0;
}
