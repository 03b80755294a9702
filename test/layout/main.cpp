// SPDX-License-Identifier: Apache-2.0
// A program that includes the headers, and so wants the library of their layout.
#include <devshare/runtime.hpp>

int main() { return 0; }
