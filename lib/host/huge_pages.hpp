// SPDX-License-Identifier: Apache-2.0
// Device memory in huge pages of the machine: those that an administrator has set aside (vm.nr_hugepages).
//
// Such memory cannot be written through its descriptor, so whoever has it maps it at once, at addresses that are
// multiples of the page. All its pages are taken from the pool when it is made: a page that is missing at a touch,
// since others were faster or a control group allows no more, would be a SIGBUS.
#pragma once

#include "backing.hpp"

#include <cstdint>

namespace devshare::host {

// `bytes` zero bytes, whole huge pages, sealed. False with nothing taken where there are not as many: the machine has
// no such pages, or too few that are free, a sandbox is in the way, or device memory is to be in files.
bool make_huge_backing(std::uint64_t bytes, Backing* out);

}  // namespace devshare::host
