/* SPDX-License-Identifier: Apache-2.0 */
/* A call that the host runtime does not have says so by its name. */
#include "drop_in.h"

int aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, int kind);

int main(void) {
  begin(0);
  EXPECT(aclrtMemcpy2d(NULL, 0, NULL, 0, 0, 0, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  const char *text = aclGetRecentErrMsg();
  if (text == NULL || strstr(text, "aclrtMemcpy2d") == NULL) {
    fprintf(stderr, "the text does not name the call: %s\n", text != NULL ? text : "none");
    return 1;
  }
  OK(aclFinalize());
  puts("ok");
  return 0;
}
