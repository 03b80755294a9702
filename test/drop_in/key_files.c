/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing by key over files, with a child that is another program: pid and key lie in a directory, and both sides poll. */
#include "drop_in.h"

#include <fcntl.h>

#define SIZE ((size_t)1 << 20)

static void put(const char *folder, const char *name, const void *data, size_t size) {
  char path[512];
  char hidden[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  snprintf(hidden, sizeof hidden, "%s/.%s", folder, name);
  FILE *file = fopen(hidden, "wb");
  if (file == NULL || fwrite(data, 1, size, file) != size || fclose(file) != 0 || rename(hidden, path) != 0) _exit(6);
}

static void get(const char *folder, const char *name, void *data, size_t size) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  for (int tries = 0; tries < 6000; ++tries) {
    FILE *file = fopen(path, "rb");
    if (file != NULL) {
      if (fread(data, 1, size, file) != size) _exit(7);
      fclose(file);
      return;
    }
    usleep(5000);
  }
  _exit(8);
}

static int importer(const char *folder) {
  int32_t pid = 0;
  char key[KEY_SIZE];
  void *memory = NULL;
  begin(1);
  OK(aclrtDeviceGetBareTgid(&pid));
  put(folder, "pid", &pid, sizeof pid);
  get(folder, "key", key, sizeof key);
  OK(aclrtIpcMemImportByKey(&memory, key, ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS));
  /* The host does not copy memory of another device; kernels, and asynchronous copies inside a device, may (R42). */
  unsigned char byte = 0;
  EXPECT_HERE(aclrtMemcpy(&byte, 1, memory, 1, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  OK(aclrtIpcMemClose(key));
  put(folder, "closed", "c", 1);
  OK(aclFinalize());
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 3) return importer(argv[2]);
  need_devices(2);
  char folder[] = "/tmp/devshare-drop-in-XXXXXX";
  if (mkdtemp(folder) == NULL) return 9;
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], "importer", folder, (char *)NULL);
    _exit(10);
  }
  int32_t pid = 0;
  char key[KEY_SIZE];
  char closed = 0;
  void *memory = NULL;
  begin(0);
  OK(aclrtMalloc(&memory, SIZE, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtIpcMemGetExportKey(memory, SIZE, key, sizeof key, ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT));
  get(folder, "pid", &pid, sizeof pid);
  OK(aclrtIpcMemSetImportPid(key, &pid, 1));
  put(folder, "key", key, sizeof key);
  get(folder, "closed", &closed, 1);
  OK(aclrtIpcMemClose(key));
  OK(aclrtFree(memory));
  OK(aclFinalize());
  ended_well(child);
  char command[600];
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command) != 0) return 11;
  puts("ok");
  return 0;
}
