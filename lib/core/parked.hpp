// SPDX-License-Identifier: Apache-2.0
// Memory that must not be freed although its object has ended.
#pragma once

#include <devshare/runtime.hpp>

namespace devshare::detail {

Parked parked_now() noexcept;

// What park() does but the report; of memory that may be freed once its holders have gone, how many there are now, and
// that it was freed.
void keep_parked(void* object, std::size_t bytes, std::size_t holders) noexcept;
void set_parked_holders(void* object, std::size_t holders) noexcept;
void unpark(void* object) noexcept;

}  // namespace devshare::detail
