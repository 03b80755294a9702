// SPDX-License-Identifier: Apache-2.0
// No mistake: a harness that takes this for refused takes anything for it.
// control: the bad half compiles
// expect(all): error
int number = 1;
#ifdef DEVSHARE_BAD
int another = 2;
#endif
