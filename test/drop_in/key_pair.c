/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing by key over a socket, as programs do it: the importer sends its bare pid and gets the key. */
#include "drop_in.h"

#define SIZE ((size_t)3 << 20)

static void importer(int line) {
  int32_t pid = 0;
  char key[KEY_SIZE];
  void *memory = NULL;
  begin(0);
  OK(aclrtDeviceGetBareTgid(&pid));
  tell(line, &pid, sizeof pid);
  hear(line, key, sizeof key);
  OK(aclrtIpcMemImportByKey(&memory, key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
  EXPECT(peek(memory, SIZE - 1), 7);
  fill(memory, 100, 9);
  const char column[] = {1, 2, 3}; /* one byte of each row of 100 */
  OK(aclrtMemcpy2d((char *)memory + 1000, 100, column, 1, 1, sizeof column, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtIpcMemClose(key));
  tell(line, "c", 1);
  OK(aclFinalize());
}

int main(void) {
  pid_t child = 0;
  const int line = beside(&importer, &child); /* before this process has a runtime */
  int32_t pid = 0;
  char key[KEY_SIZE];
  char closed = 0;
  void *memory = NULL;
  begin(0);
  OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_HERE(peek(memory, 12345), 0); /* fresh memory is zero */
  fill(memory, SIZE, 7);
  OK(aclrtIpcMemGetExportKey(memory, SIZE, key, sizeof key, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
  hear(line, &pid, sizeof pid);
  OK(aclrtIpcMemSetImportPid(key, &pid, 1));
  tell(line, key, sizeof key);
  hear(line, &closed, 1);
  EXPECT(peek(memory, 99), 9);
  EXPECT(peek(memory, 100), 7);
  EXPECT(peek(memory, 1000), 1);
  EXPECT(peek(memory, 1001), 7);
  EXPECT(peek(memory, 1200), 3);
  OK(aclrtIpcMemClose(key));
  OK(aclrtFree(memory));
  OK(aclFinalize());
  ended_well(child);
  puts("ok");
  return 0;
}
