/* SPDX-License-Identifier: Apache-2.0 */
/* Four ranks that give each other their blocks and pass a value round, ordered by streams and notifies alone. */
#include "drop_in.h"

#define RANKS 4
#define SIZE ((size_t)64 << 10)

struct card {
  int32_t pid;
  char memory[KEY_SIZE];
  char notify[KEY_SIZE];
};

/* Everybody's words to everybody, by way of the parent. */
static void exchange(int line, const void *mine, void *all, size_t size) {
  tell(line, mine, size);
  hear(line, all, size * RANKS);
}

static void rank(int line) {
  int32_t me = 0;
  struct card mine;
  struct card all[RANKS];
  void *block = NULL;
  void *next_block = NULL;
  aclrtNotify turn = NULL;
  aclrtNotify next_turn = NULL;
  aclrtStream stream = NULL;
  hear(line, &me, sizeof me);
  begin(0);
  memset(&mine, 0, sizeof mine);
  OK(aclrtDeviceGetBareTgid(&mine.pid));
  OK(aclrtMalloc(&block, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtIpcMemGetExportKey(block, SIZE, mine.memory, KEY_SIZE, 0));
  OK(aclrtCreateNotify(&turn, ACL_NOTIFY_DEFAULT));
  OK(aclrtNotifyGetExportKey(turn, mine.notify, KEY_SIZE, ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT));
  exchange(line, &mine, all, sizeof mine);
  for (int i = 0; i < RANKS; ++i) {
    if (i == me) continue;
    OK(aclrtIpcMemSetImportPid(mine.memory, &all[i].pid, 1));
    OK(aclrtNotifySetImportPid(turn, &all[i].pid, 1));
  }
  char admitted = 'a';
  char everybody[RANKS];
  exchange(line, &admitted, everybody, 1);
  const int next = (me + 1) % RANKS;
  OK(aclrtIpcMemImportByKey(&next_block, all[next].memory, 1));
  OK(aclrtNotifyImportByKey(&next_turn, all[next].notify, ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT));
  OK(aclrtCreateStream(&stream));
  /* Only the creator of a notify can wait for it. */
  EXPECT(aclrtWaitAndResetNotify(next_turn, stream, 0), ACL_ERROR_RT_PARAM_INVALID);

  for (int round = 0; round < 3; ++round) {
    /* Each looks at its block before it passes the turn on: whoever comes before writes into it again once the value has
     * gone round. */
    if (me == 0) {
      OK(aclrtMemsetAsync(block, SIZE, 40 + round, SIZE, stream));
    } else {
      OK(aclrtWaitAndResetNotify(turn, stream, 0));
    }
    OK(aclrtSynchronizeStream(stream));
    EXPECT(peek(block, SIZE - 1), 40 + round);
    OK(aclrtMemcpyAsync(next_block, SIZE, block, SIZE, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
    OK(aclrtRecordNotify(next_turn, stream));
    if (me == 0) OK(aclrtWaitAndResetNotify(turn, stream, 0)); /* it has come round */
    OK(aclrtSynchronizeStream(stream));
  }
  OK(aclrtDestroyStream(stream));
  OK(aclrtDestroyNotify(next_turn));
  OK(aclrtIpcMemClose(all[next].memory));
  exchange(line, &admitted, everybody, 1); /* all importers have closed */
  OK(aclrtDestroyNotify(turn));
  OK(aclrtIpcMemClose(mine.memory));
  OK(aclrtFree(block));
  OK(aclFinalize());
}

int main(void) {
  pid_t children[RANKS];
  int lines[RANKS];
  struct card cards[RANKS];
  char words[RANKS];
  for (int32_t i = 0; i < RANKS; ++i) {
    lines[i] = beside(&rank, &children[i]);
    tell(lines[i], &i, sizeof i);
  }
  for (int i = 0; i < RANKS; ++i) hear(lines[i], &cards[i], sizeof cards[i]);
  for (int i = 0; i < RANKS; ++i) tell(lines[i], cards, sizeof cards);
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < RANKS; ++i) hear(lines[i], &words[i], 1);
    for (int i = 0; i < RANKS; ++i) tell(lines[i], words, sizeof words);
  }
  for (int i = 0; i < RANKS; ++i) ended_well(children[i]);
  puts("ok");
  return 0;
}
