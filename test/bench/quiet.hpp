// SPDX-License-Identifier: Apache-2.0
// Whether somebody else uses the processors: figures taken meanwhile are about the other.
#pragma once

namespace devshare::bench {

// Processor time of this machine, in seconds since it started: of all, and of this program with all its processes.
struct Usage {
  double at = 0;  // CLOCK_MONOTONIC, s
  double all = 0;
  double ours = 0;
};
Usage usage();

// What others used between two moments, as a share of one processor.
double used_by_others(const Usage& before, const Usage& after);

// Waits until others use less than that for half a second, and no longer than so many seconds; returns the seconds.
double wait_for_quiet(double share, double limit_s);

}  // namespace devshare::bench
