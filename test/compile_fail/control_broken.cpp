// SPDX-License-Identifier: Apache-2.0
// A good half that does not compile under the harness: its bad half proves nothing.
// control: the good half does not compile
// expect(all): undeclared|not declared
int number = 1;
#ifdef DEVSHARE_UNDER_HARNESS
int mistake = undeclared;
#endif
#ifdef DEVSHARE_BAD
int mistake_too = undeclared;
#endif
