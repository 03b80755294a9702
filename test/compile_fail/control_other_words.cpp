// SPDX-License-Identifier: Apache-2.0
// A mistake, but not the one that is expected: any error at all must not do.
// control: other words
// expect(all): a reason that no compiler gives
int number = 1;
#ifdef DEVSHARE_BAD
int mistake = undeclared;
#endif
