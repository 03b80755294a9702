// SPDX-License-Identifier: Apache-2.0
// DEVSHARE_HOST_LEAKS=report: what a session still has when it ends, by aclFinalize or with its process.
#pragma once

namespace devshare::host {

// When a session starts and the switch is on: reports at the exit of this process too.
void watch_for_leaks();

// One line on standard error, if there is something and the switch is on.
void report_leaks();

}  // namespace devshare::host
