// SPDX-License-Identifier: Apache-2.0
// What an importer makes of an exporter's answer: a refusal in words, or memory whose size it has checked for itself.
#pragma once

#include "failure.hpp"
#include "unique_fd.hpp"
#include "wire.hpp"

#include <cstdint>

namespace devshare::host {

// What a text speaks of.
enum class Asked : std::uint8_t { key, token, notify, event };

// The refusal that a reply with a code is, recorded for this thread with a text.
acl::aclError refuse_answer(const Reply& reply, Asked what);

// The machine's pages that received memory is in; 0 for what is not taken. A file that is as long as was said and stays
// so makes a SIGBUS by another process's doing impossible; pages that do not fit where the memory is to lie would be
// mapped over its neighbours. `inode` gets the file's number where it is asked for.
std::uint64_t checked_pages(const Reply& reply, const UniqueFd& file, std::uint64_t* inode = nullptr) noexcept;

}  // namespace devshare::host
