// SPDX-License-Identifier: Apache-2.0
// The content of a shared block: a file, brought into device memory and read back out of it a piece at a time.
#pragma once

#include "agreement.hpp"
#include "file_reader.hpp"
#include "sha256.hpp"

#include <devshare/copy.hpp>
#include <devshare/host.hpp>
#include <devshare/result.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

inline constexpr std::size_t piece_size = 1 << 20;

// Copies the file into device memory of its size, and returns its digest.
inline devshare::Result<Digest> load(const devshare::Device& device, devshare::DeviceSpan<std::byte> to,
                                     FileReader& file) {
  std::vector<std::byte> room(piece_size);
  Sha256 hash;
  std::size_t done = 0;
  for (auto piece = file.next(room); !piece.empty(); piece = file.next(room)) {
    DEVSHARE_CHECK(devshare::copy_to_device(device, to.subspan(done, piece.size()), piece));
    hash.update(piece);
    done += piece.size();
  }
  if (done != to.size()) throw std::runtime_error("the file changed while it was read");
  return hash.finish();
}

inline Digest digest_on_disk(const std::string& path) {
  std::vector<std::byte> room(piece_size);
  FileReader file(path);
  Sha256 hash;
  for (auto piece = file.next(room); !piece.empty(); piece = file.next(room)) hash.update(piece);
  return hash.finish();
}

// By copies to the host, which memory that came by key from another device does not take (R42).
inline devshare::Result<Digest> digest_by_copies(const devshare::Device& device,
                                                 devshare::DeviceSpan<const std::byte> memory) {
  std::vector<std::byte> room(piece_size);
  Sha256 hash;
  for (std::size_t done = 0; done < memory.size();) {
    const auto piece = std::span(room).first(std::min(room.size(), memory.size() - done));
    DEVSHARE_CHECK(devshare::copy_to_host(device, piece, memory.subspan(done, piece.size())));
    hash.update(piece);
    done += piece.size();
  }
  return hash.finish();
}

// On another device, where R42 leaves such memory to kernels: plays one. On a card this is a launch with the address.
inline devshare::Result<Digest> digest_by_kernel(devshare::DeviceSpan<const std::byte> memory) {
  DEVSHARE_TRY(bytes, devshare::host::view(memory));
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

// Whether an importer's stripe in the block holds what that importer had to write.
inline devshare::Result<bool> stripe_is_right(const devshare::Device& device,
                                              devshare::DeviceSpan<const std::byte> block, std::size_t file_size,
                                              std::uint32_t importer, const Digest& digest) {
  std::vector<std::byte> stripe(stripe_size);
  DEVSHARE_CHECK(
      devshare::copy_to_host(device, stripe, block.subspan(stripe_offset(file_size, importer), stripe_size)));
  return stripe == stripe_of(importer, digest);
}

}  // namespace examples
