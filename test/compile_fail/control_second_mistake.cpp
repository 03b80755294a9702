// SPDX-License-Identifier: Apache-2.0
// Two mistakes, one of which compiles: the other's error does not stand for it.
// control: the bad half compiles
// expect(all): undeclared
int number = 1;
#ifdef DEVSHARE_BAD
int no_mistake = 2;
#endif
#ifdef DEVSHARE_BAD
int mistake = undeclared;
#endif
