// SPDX-License-Identifier: Apache-2.0
// A policy asks its list again and again: the list must be there.
// reason: the list would end before it is asked: keep it in a named object
#include <devshare/allow.hpp>

#include <array>
#include <vector>

using namespace devshare;

auto right(const std::vector<int>& users) { return Allow::users(users); }

#ifdef DEVSHARE_BAD
void mistake_1() { Allow::users(std::vector<int>{1000}); }
#endif
#ifdef DEVSHARE_BAD
void mistake_2(std::array<unsigned, 2> users) { Allow::users(std::move(users)); }
#endif
