/* SPDX-License-Identifier: Apache-2.0 */
/* An older CANN is played: a call that came later is linked and found, but says that it is not there. */
#include "drop_in.h"

#include <dlfcn.h>

int main(void) {
  int32_t pid = 0;
  void *memory = NULL;
  char key[KEY_SIZE];
  setenv("DEVSHARE_HOST_INTERFACE", "8.2.RC1", 1);
  begin(0);
  OK(aclrtDeviceGetBareTgid(&pid));
  OK(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtIpcMemGetExportKey(memory, 4096, key, sizeof key, 0));
  OK(aclrtIpcMemClose(key));
  EXPECT(aclrtFreeWithDevSync(memory), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const char *text = aclGetRecentErrMsg();
  if (text == NULL || strstr(text, "aclrtFreeWithDevSync") == NULL || strstr(text, "8.5.0") == NULL) {
    fprintf(stderr, "the text does not name call and release: %s\n", text != NULL ? text : "none");
    return 1;
  }
  EXPECT(dlsym(RTLD_DEFAULT, "aclrtFreeWithDevSync") != NULL, 1);
  OK(aclrtFree(memory));
  OK(aclFinalize());
  puts("ok");
  return 0;
}
