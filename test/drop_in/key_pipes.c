/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing by key over pipes, with a child that is another program: started when this one has long had a runtime. */
#include "drop_in.h"

#define SIZE ((size_t)2 << 20)

/* Its standard input and output are the pipes. */
static int importer(void) {
  int32_t pid = 0;
  char key[KEY_SIZE];
  void *memory = NULL;
  begin(0);
  OK(aclrtDeviceGetBareTgid(&pid));
  tell(1, &pid, sizeof pid);
  hear(0, key, sizeof key);
  OK(aclrtIpcMemImportByKey(&memory, key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
  EXPECT(peek(memory, SIZE - 1), 3);
  fill((char *)memory + SIZE / 2, SIZE / 2, 4);
  OK(aclrtIpcMemClose(key));
  tell(1, "c", 1);
  OK(aclFinalize());
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 2) return importer();
  int to[2];
  int from[2];
  int32_t pid = 0;
  char key[KEY_SIZE];
  char closed = 0;
  void *memory = NULL;
  begin(0);
  OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  fill(memory, SIZE, 3);
  OK(aclrtIpcMemGetExportKey(memory, SIZE, key, sizeof key, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
  if (pipe(to) != 0 || pipe(from) != 0) return 6;
  const pid_t child = fork();
  if (child == 0) { /* calls nothing of ACL before it is another program */
    dup2(to[0], 0);
    dup2(from[1], 1);
    execl("/proc/self/exe", argv[0], "importer", (char *)NULL);
    _exit(7);
  }
  close(to[0]);
  close(from[1]);
  hear(from[0], &pid, sizeof pid);
  EXPECT_HERE(pid, child); /* no container is played, so the bare pid is the pid */
  OK(aclrtIpcMemSetImportPid(key, &pid, 1));
  tell(to[1], key, sizeof key);
  hear(from[0], &closed, 1);
  EXPECT(peek(memory, SIZE / 2 - 1), 3);
  EXPECT(peek(memory, SIZE / 2), 4);
  OK(aclrtIpcMemClose(key));
  OK(aclrtFree(memory));
  OK(aclFinalize());
  ended_well(child);
  puts("ok");
  return 0;
}
