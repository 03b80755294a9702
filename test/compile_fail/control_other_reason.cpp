// SPDX-License-Identifier: Apache-2.0
// The wrong deleted function of two: its neighbour's reason, which clang prints too, must not do.
// control: other words
// reason: the reason of the pointer
struct Thing {
  void take(int) = delete;   // the reason of the number
  void take(int*) = delete;  // the reason of the pointer
};
#ifdef DEVSHARE_BAD
void mistake(Thing thing) { thing.take(1); }
#endif
