/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that break a rule, each with the code that it gets for it. */
#include "drop_in.h"

#define SIZE ((size_t)1 << 20)
#define REFUSED ACL_ERROR_RT_DRV_INTERNAL_ERROR

static void *allocate(void) {
  void *memory = NULL;
  OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  return memory;
}

/* The importer's part: sends its pid, gets a key and a command, tries, says what came of it. */
enum { try_import = 'i', try_admit = 'a', try_double = 'd', import_and_read = 'r', import_and_keep = 'k' };
static void importer(int line) {
  int32_t pid = 0;
  char key[KEY_SIZE];
  char command = 0;
  void *memory = NULL;
  void *again = NULL;
  int32_t code = 0;
  begin(0);
  OK(aclrtDeviceGetBareTgid(&pid));
  tell(line, &pid, sizeof pid);
  hear(line, key, sizeof key);
  hear(line, &command, 1);
  switch (command) {
    case try_import: code = aclrtIpcMemImportByKey(&memory, key, 1); break;
    case try_admit: code = aclrtIpcMemSetImportPid(key, &pid, 1); break;
    case try_double:
      OK(aclrtIpcMemImportByKey(&memory, key, 1));
      code = aclrtIpcMemImportByKey(&again, key, 1);
      if (code == 0) {
        EXPECT(again == memory, 1); /* counted: R24 */
        OK(aclrtIpcMemClose(key));
      }
      OK(aclrtIpcMemClose(key));
      break;
    case import_and_read: {
      unsigned char byte = 0;
      OK(aclrtIpcMemImportByKey(&memory, key, 1));
      tell(line, "i", 1);
      hear(line, &command, 1); /* the exporter has closed */
      code = aclrtMemcpy(&byte, 1, memory, 1, ACL_MEMCPY_DEVICE_TO_HOST);
      break;
    }
    case import_and_keep:
      OK(aclrtIpcMemImportByKey(&memory, key, 1));
      break; /* and ends without a word */
  }
  tell(line, &code, sizeof code);
}

struct other {
  pid_t child;
  int line;
  int32_t pid;
};
static struct other start(void) {
  struct other other;
  other.line = beside(&importer, &other.child);
  hear(other.line, &other.pid, sizeof other.pid);
  return other;
}
static int32_t result(struct other other) {
  int32_t code = 0;
  hear(other.line, &code, sizeof code);
  ended_well(other.child);
  close(other.line);
  return code;
}
static void hand(struct other other, const char *key, char command) {
  tell(other.line, key, KEY_SIZE);
  tell(other.line, &command, 1);
}

int main(void) {
  char key[KEY_SIZE];
  struct other others[6];
  for (int i = 0; i < 6; ++i) others[i] = start(); /* before this process has a runtime */
  begin(0);

  /* Nobody was admitted. */
  void *memory = allocate();
  OK(aclrtIpcMemGetExportKey(memory, SIZE, key, sizeof key, 0));
  hand(others[0], key, try_import);
  EXPECT(result(others[0]), REFUSED);

  /* The importer admits itself. */
  hand(others[1], key, try_admit);
  EXPECT(result(others[1]), REFUSED);

  /* Two imports of one key are counted. */
  OK(aclrtIpcMemSetImportPid(key, &others[2].pid, 1));
  hand(others[2], key, try_double);
  EXPECT(result(others[2]), 0);

  /* An importer that ends without closing leaves nothing. */
  OK(aclrtIpcMemSetImportPid(key, &others[3].pid, 1));
  hand(others[3], key, import_and_keep);
  EXPECT(result(others[3]), 0);

  /* The exporter closes first. */
  OK(aclrtIpcMemSetImportPid(key, &others[4].pid, 1));
  hand(others[4], key, import_and_read);
  char imported = 0;
  hear(others[4].line, &imported, 1);
  OK(aclrtIpcMemClose(key));
  tell(others[4].line, "c", 1);
  EXPECT(result(others[4]), REFUSED);

  /* A closed key is nobody's. */
  hand(others[5], key, try_import);
  EXPECT(result(others[5]), REFUSED);
  EXPECT(aclrtIpcMemClose(key), REFUSED);
  OK(aclrtFree(memory));

  /* An address inside a block has no key. */
  memory = allocate();
  EXPECT(aclrtIpcMemGetExportKey((char *)memory + 4096, SIZE - 4096, key, sizeof key, 0), REFUSED);
  /* A buffer that is too short. */
  EXPECT(aclrtIpcMemGetExportKey(memory, SIZE, key, 64, 0), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtFree(memory));
  EXPECT(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID);

  /* After the end everything is an error, and nothing a crash. */
  OK(aclFinalize());
  EXPECT(aclrtFree(memory), ACL_ERROR_UNINITIALIZE);
  EXPECT(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_UNINITIALIZE);
  puts("ok");
  return 0;
}
