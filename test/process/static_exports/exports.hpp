// SPDX-License-Identifier: Apache-2.0
// Exports that live in static objects of several translation units, whose order of destruction nobody chose.
#pragma once

#include <cstddef>

std::size_t export_from_a(std::size_t count);
std::size_t export_from_b(std::size_t count);
std::size_t export_from_c(std::size_t count);
