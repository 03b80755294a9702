#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds the benchmarks and prints their table. docs/performance.md says how to read it.
#
#   sh test/bench/run.sh [--rounds N] [--patience SECONDS] [PART...]
#
# Without a PART all of them. Waits for a machine that does nothing else, PATIENCE seconds in all for each part, and then
# goes on as it is: rows that were disturbed are void. Exits with 1 when a goal was missed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/build.sh

need g++ meson ninja-build pkg-config libfmt-dev libexpected-dev libcli11-dev catch2 python3 libbenchmark-dev \
  libboost-dev valgrind

directory=build/bench
configure g++ "$directory" -Dbench=enabled -Dexamples=false -Dfuzz=disabled
meson compile -C "$directory" devshare_bench call_cost_probe empty_acl || give_up "the build failed"
exec "$directory/test/bench/devshare_bench" "$@"
