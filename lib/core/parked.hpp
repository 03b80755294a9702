// SPDX-License-Identifier: Apache-2.0
// Memory that must not be freed although its object has ended.
#pragma once

#include <devshare/runtime.hpp>

namespace devshare::detail {

Parked parked_now() noexcept;

}  // namespace devshare::detail
