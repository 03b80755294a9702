// SPDX-License-Identifier: Apache-2.0
// The pages of the machine, as against those of the device that is played.
#pragma once

#include <cstdint>

namespace devshare::host {

// Of a machine's normal pages.
std::uint64_t normal_page_bytes() noexcept;

// Of its huge ones: as large as a granule of the window, so that every place that a block may have there is one for
// such a page.
inline constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

// The pages of the file behind a descriptor, in bytes.
std::uint64_t page_bytes_of(int descriptor) noexcept;

// Whether all pages of a mapping are there, as far as the kernel tells.
bool all_resident(const void* mapped, std::uint64_t bytes) noexcept;

}  // namespace devshare::host
