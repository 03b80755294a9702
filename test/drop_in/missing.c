/* SPDX-License-Identifier: Apache-2.0 */
/* A call that the host runtime does not have says so by its name. */
#include "drop_in.h"

int aclrtMemFlush(void *devPtr, size_t size);

int main(void) {
  begin(0);
  EXPECT(aclrtMemFlush(NULL, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const char *text = aclGetRecentErrMsg();
  if (text == NULL || strstr(text, "aclrtMemFlush") == NULL) {
    fprintf(stderr, "the text does not name the call: %s\n", text != NULL ? text : "none");
    return 1;
  }
  OK(aclFinalize());
  puts("ok");
  return 0;
}
