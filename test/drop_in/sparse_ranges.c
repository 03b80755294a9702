/* SPDX-License-Identifier: Apache-2.0 */
/* A paged cache on two devices: a range on each, with a piece in every other place of it, shared piece by piece. */
#include "drop_in.h"

#define DEVICES 2
#define PLACES 5 /* of a range; the odd ones are holes */
#define PIECES 3

static size_t page(int32_t device, aclrtPhysicalMemProp *prop) {
  size_t size = 0;
  memset(prop, 0, sizeof *prop);
  prop->handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop->allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop->memAttr = ACL_HBM_MEM_HUGE;
  prop->location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  prop->location.id = (uint32_t)device;
  OK(aclrtMemGetAllocationGranularity(prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &size));
  return size;
}

static int value(int32_t device, int piece) { return 10 * (device + 1) + piece; }
static char *place(void *range, int piece, size_t size) { return (char *)range + (size_t)(2 * piece) * size; }

static void importer(int line) {
  int32_t pid = 0;
  uint64_t tokens[DEVICES][PIECES];
  aclrtDrvMemHandle handles[DEVICES][PIECES];
  void *ranges[DEVICES] = {NULL, NULL};
  aclrtPhysicalMemProp prop;
  begin(0);
  OK(aclrtDeviceGetBareTgid(&pid));
  tell(line, &pid, sizeof pid);
  hear(line, tokens, sizeof tokens);
  for (int32_t device = 0; device < DEVICES; ++device) {
    const size_t size = page(device, &prop);
    OK(aclrtSetDevice(device));
    OK(aclrtReserveMemAddress(&ranges[device], PLACES * size, 0, NULL, 0));
    for (int i = 0; i < PIECES; ++i) {
      OK(aclrtMemImportFromShareableHandle(tokens[device][i], device, &handles[device][i]));
      OK(aclrtMapMem(place(ranges[device], i, size), size, 0, handles[device][i], 0));
    }
    for (int i = 0; i < PIECES; ++i) EXPECT(peek(place(ranges[device], i, size), size - 1), value(device, i));
    /* A copy does not cross a hole, nor read one. */
    char byte = 0;
    EXPECT_HERE(aclrtMemcpy(&byte, 1, (char *)ranges[device] + size, 1, ACL_MEMCPY_DEVICE_TO_HOST),
                ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    EXPECT_HERE(aclrtMemset((char *)ranges[device] + size - 1, 2, 1, 2), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    /* A range has one device (R29), and holes for whatever comes later. */
    if (device == 1) {
      EXPECT(aclrtMapMem((char *)ranges[1] + size, size, 0, handles[0][0], 0), ACL_ERROR_RT_DRV_INTERNAL_ERROR);
    }
    fill(place(ranges[device], 1, size), size, 99);
  }
  for (int32_t device = 0; device < DEVICES; ++device) {
    const size_t size = page(device, &prop);
    for (int i = 0; i < PIECES; ++i) {
      OK(aclrtUnmapMem(place(ranges[device], i, size)));
      OK(aclrtFreePhysical(handles[device][i]));
    }
    OK(aclrtReleaseMemAddress(ranges[device]));
  }
  tell(line, "c", 1);
  OK(aclFinalize());
}

int main(void) {
  pid_t child = 0;
  need_devices(DEVICES);
  const int line = beside(&importer, &child);
  int32_t pid = 0;
  uint64_t tokens[DEVICES][PIECES];
  aclrtDrvMemHandle handles[DEVICES][PIECES];
  void *ranges[DEVICES] = {NULL, NULL};
  aclrtPhysicalMemProp prop;
  char closed = 0;
  begin(0);
  hear(line, &pid, sizeof pid);
  for (int32_t device = 0; device < DEVICES; ++device) {
    const size_t size = page(device, &prop);
    OK(aclrtSetDevice(device));
    OK(aclrtReserveMemAddress(&ranges[device], PLACES * size, 0, NULL, 0));
    for (int i = 0; i < PIECES; ++i) {
      OK(aclrtMallocPhysical(&handles[device][i], size, &prop, 0));
      OK(aclrtMapMem(place(ranges[device], i, size), size, 0, handles[device][i], 0));
      fill(place(ranges[device], i, size), size, value(device, i));
      OK(aclrtMemExportToShareableHandle(handles[device][i], ACL_MEM_HANDLE_TYPE_NONE, ACL_RT_VMM_EXPORT_FLAG_DEFAULT,
                                         &tokens[device][i]));
      OK(aclrtMemSetPidToShareableHandle(tokens[device][i], &pid, 1));
    }
  }
  tell(line, tokens, sizeof tokens);
  hear(line, &closed, 1);
  for (int32_t device = 0; device < DEVICES; ++device) {
    const size_t size = page(device, &prop);
    OK(aclrtSetDevice(device));
    EXPECT(peek(place(ranges[device], 0, size), 0), value(device, 0));
    EXPECT(peek(place(ranges[device], 1, size), 0), 99);
    for (int i = 0; i < PIECES; ++i) {
      OK(aclrtUnmapMem(place(ranges[device], i, size)));
      OK(aclrtFreePhysical(handles[device][i]));
    }
    OK(aclrtReleaseMemAddress(ranges[device]));
  }
  OK(aclFinalize());
  ended_well(child);
  puts("ok");
  return 0;
}
