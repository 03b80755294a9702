// SPDX-License-Identifier: Apache-2.0
// A plain mistake, refused: the harness sees an error and its words.
// expect(gcc): cannot convert
// expect(clang): cannot initialize
int* pointer = nullptr;
#ifdef DEVSHARE_BAD
int* mistake = 1.5;
#endif
