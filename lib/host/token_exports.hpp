// SPDX-License-Identifier: Apache-2.0
// Tokens this process has exported; the calls are in token_exports.cpp, what serves them in export_session.hpp.
#pragma once

#include "client.hpp"
#include "physical.hpp"
#include "token.hpp"

#include <cstdint>
#include <optional>

namespace devshare::host {

// The memory has no handle any more, or on 950 its handle was freed: its token ends, if it had one.
void token_of_memory_ends(std::uint64_t memory_id);

// The same, and the memory ends. True when nothing but messages that nobody has read would keep its bytes.
bool shared_memory_ends(std::uint64_t memory_id);

std::uint64_t tokens_exported();  // live

// For the importing side of this same process: the answer to an import of a token that this process exported, where
// nobody is asked. Empty for the token of another process.
std::optional<Fetched> open_own_token(const KeyName& name, TokenKind kind);

// The answer to a process that imports this memory.
void describe_memory(const PhysicalMemory& memory, Reply* reply) noexcept;

}  // namespace devshare::host
