// SPDX-License-Identifier: Apache-2.0
// What is asked of the machine's memory behind device memory. ACL has no word for it; devshare asks beside its calls,
// on the thread that makes them, and a program that knows nothing of devshare is asked for by its environment.
#pragma once

#include <devshare/host_pages.hpp>

namespace devshare::host {

// What this thread allocates and imports from now on.
void wish_pages(detail::HostWish wish) noexcept;

struct PageWish {
  bool huge = false;
  bool populate = false;
};

// This thread's wishes, and those of DEVSHARE_HOST_BACKING_PAGES and DEVSHARE_HOST_BACKING_POPULATE.
PageWish page_wish() noexcept;

}  // namespace devshare::host
