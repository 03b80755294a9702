/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing physical memory by handle, into a range with a hole, and the memory stays when its exporter has let go. */
#include "drop_in.h"

static aclrtPhysicalMemProp on_device(uint32_t device) {
  aclrtPhysicalMemProp prop;
  memset(&prop, 0, sizeof prop);
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

static size_t page(void) {
  aclrtPhysicalMemProp prop = on_device(0);
  size_t size = 0;
  OK(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &size));
  return size;
}

static void importer(int line) {
  int32_t pid = 0;
  uint64_t tokens[2];
  aclrtDrvMemHandle handles[2];
  void *range = NULL;
  char word = 0;
  begin(0);
  const size_t size = page();
  OK(aclrtDeviceGetBareTgid(&pid));
  tell(line, &pid, sizeof pid);
  hear(line, tokens, sizeof tokens);
  OK(aclrtReserveMemAddress(&range, 3 * size, 0, NULL, 1));
  for (size_t i = 0; i < 2; ++i) {
    OK(aclrtMemImportFromShareableHandle(tokens[i], 0, &handles[i]));
    OK(aclrtMapMem((char *)range + 2 * i * size, size, 0, handles[i], 0)); /* a hole between them */
  }
  EXPECT(peek(range, 5), 1);
  EXPECT(peek(range, 2 * size + 5), 2);
  tell(line, "m", 1);
  hear(line, &word, 1); /* the exporter has freed */
  EXPECT(peek(range, 5), 1);
  for (size_t i = 0; i < 2; ++i) {
    OK(aclrtUnmapMem((char *)range + 2 * i * size));
    OK(aclrtFreePhysical(handles[i]));
  }
  OK(aclrtReleaseMemAddress(range));
  OK(aclFinalize());
}

int main(void) {
  pid_t child = 0;
  const int line = beside(&importer, &child);
  int32_t pid = 0;
  uint64_t tokens[2];
  aclrtDrvMemHandle handles[2];
  void *range = NULL;
  char word = 0;
  begin(0);
  const size_t size = page();
  const aclrtPhysicalMemProp prop = on_device(0);
  OK(aclrtReserveMemAddress(&range, 2 * size, 0, NULL, 1));
  hear(line, &pid, sizeof pid);
  for (size_t i = 0; i < 2; ++i) {
    OK(aclrtMallocPhysical(&handles[i], size, &prop, 0));
    OK(aclrtMapMem((char *)range + i * size, size, 0, handles[i], 0));
    fill((char *)range + i * size, size, (int)i + 1);
    OK(aclrtMemExportToShareableHandle(handles[i], ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DEFAULT, &tokens[i]));
    OK(aclrtMemSetPidToShareableHandle(tokens[i], &pid, 1));
  }
  tell(line, tokens, sizeof tokens);
  hear(line, &word, 1);
  for (size_t i = 0; i < 2; ++i) {
    OK(aclrtUnmapMem((char *)range + i * size));
    OK(aclrtFreePhysical(handles[i]));
  }
  tell(line, "f", 1);
  OK(aclrtReleaseMemAddress(range));
  ended_well(child);
  OK(aclFinalize());
  puts("ok");
  return 0;
}
