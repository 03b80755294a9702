// SPDX-License-Identifier: Apache-2.0
// Where the bytes of device memory are: a memfd, sealed so that nobody can resize it under its importers (which is what
// makes SIGBUS impossible).
//
// With DEVSHARE_HOST_BACKING=<directory> they are unlinked files there, reserved whole when they are made (B047). With
// DEVSHARE_HOST_FALLBACK=allow a system that refuses sealed memfds gets what it has: a memfd without seals, else an
// unlinked file (B099). Neither can be sealed, and the block says so.
#pragma once

#include "unique_fd.hpp"

#include <devshare/acl/types.hpp>

#include <cstdint>

namespace devshare::host {

struct Backing {
  UniqueFd descriptor;
  bool sealed = true;
  std::uint64_t page_bytes = 0;  // of the machine's pages
  bool populated = false;        // all pages are there
};

// `bytes` zero bytes in normal pages, close-on-exec; with `populate` all of them are there, unless a sandbox knows no
// way. Refuses with 207001 and the reason: descriptor_limit, no_space (needed and available), backend_unavailable with
// errno.
acl::aclError make_backing(std::uint64_t bytes, bool populate, Backing* out);

// Gives back all pages of a file that somebody has still who will never need them.
void empty_file(int descriptor, std::uint64_t bytes) noexcept;

// Has a file of `bytes` take all its pages now. 0 or an errno.
int reserve_file(int descriptor, std::uint64_t bytes);

// What a system without sealed memfds has, for whoever DEVSHARE_HOST_FALLBACK permits: `bytes` zero bytes in a memfd
// without seals, else in an unlinked file, where they are reserved. 0 or an errno.
int make_unsealed(std::uint64_t bytes, UniqueFd* out);

}  // namespace devshare::host
