// SPDX-License-Identifier: Apache-2.0
// What an importer makes of an exporter's answer: a refusal in words, or memory whose size it has checked for itself.
#pragma once

#include "failure.hpp"
#include "unique_fd.hpp"
#include "wire.hpp"

namespace devshare::host {

// What a text speaks of.
enum class Asked : std::uint8_t { key, token };

// The refusal that a reply with a code is, recorded for this thread with a text.
acl::aclError refuse_answer(const Reply& reply, Asked what);

// What makes a SIGBUS by another process's doing impossible: the file is as long as was said and stays so.
bool keeps_its_size(const Reply& reply, const UniqueFd& file) noexcept;

}  // namespace devshare::host
