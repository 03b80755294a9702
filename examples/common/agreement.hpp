// SPDX-License-Identifier: Apache-2.0
// What an exporter and its importers agree about: the messages they exchange and the layout of the shared block.
#pragma once

#include <devshare/ticket.hpp>

#include "sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace examples {

// --- Messages, in the order in which they are sent -------------------------------------------------------------------

// Importer: who I am, to be admitted.
struct Hello {
  std::int32_t bare_pid = 0;
};

// Exporter: what to open, and what is where in it.
struct Invitation {
  std::uint32_t importer = 0;  // the number of this importer, from 1
  std::uint64_t file_size = 0;
  std::array<std::byte, devshare::ticket_size> ticket{};
};

// Importer: I have read the file and written my stripe; I still hold the block.
struct Written {
  std::uint64_t private_bytes = 0;  // memory that I alone have
};

// Exporter: I have seen your stripe; close now.
struct Seen {
  std::uint32_t importer = 0;
};

// Importer: I have closed; as far as I am concerned the block is yours alone again.
struct Closed {
  std::uint32_t importer = 0;
};

// --- The block: the bytes of the file, then a stripe for each importer -----------------------------------------------

inline constexpr std::size_t stripe_size = 4096;

constexpr std::size_t stripe_offset(std::size_t file_size, std::uint32_t importer) noexcept {
  return (file_size + stripe_size - 1) / stripe_size * stripe_size + (importer - 1) * stripe_size;
}

constexpr std::size_t block_size(std::size_t file_size, std::uint32_t importers) noexcept {
  return stripe_offset(file_size, importers + 1);
}

// What an importer writes into its stripe, to the last byte: its number and the digest of what it read, line by line.
// So the exporter learns from the memory itself that the importer saw the right bytes.
inline std::vector<std::byte> stripe_of(std::uint32_t importer, const Digest& read) {
  struct Line {
    std::uint32_t importer;
    std::uint32_t number;
    Digest read;
    std::array<std::uint8_t, 24> rest;  // to 64 bytes
  };
  static_assert(stripe_size % sizeof(Line) == 0);
  std::vector<std::byte> stripe(stripe_size);
  for (std::size_t at = 0; at < stripe_size; at += sizeof(Line)) {
    const Line line = {importer, static_cast<std::uint32_t>(at / sizeof(Line)), read, {}};
    std::memcpy(stripe.data() + at, &line, sizeof line);
  }
  return stripe;
}

}  // namespace examples
