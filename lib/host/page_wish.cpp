// SPDX-License-Identifier: Apache-2.0
#include "page_wish.hpp"

#include "profile.hpp"

namespace devshare::host {
namespace {

constinit thread_local detail::HostWish of_this_thread;

}  // namespace

void wish_pages(detail::HostWish wish) noexcept { of_this_thread = wish; }

PageWish page_wish() noexcept {
  const Profile& everybody = profile();
  return {.huge = everybody.backing_huge || of_this_thread.pages == HostPages::huge_if_free,
          .populate = everybody.backing_populated || of_this_thread.populate == Populate::now};
}

}  // namespace devshare::host
