// SPDX-License-Identifier: Apache-2.0
// Two mistakes, each with its number, seen one by one.
// reason: no numbers here
struct Words {
  template <class T>
  void take(T) = delete;  // no numbers here
};
#if DEVSHARE_BAD == 1
void mistake(Words words) { words.take(1); }
#endif
#if DEVSHARE_BAD == 2
void mistake(Words words) { words.take(2.0); }
#endif
