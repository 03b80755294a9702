#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds devshare and runs its examples. The last line begins with `ok:`.
#
#   sh examples/run.sh [FILE]     FILE is what two_processes shares; by default the largest shared library installed
set -eu
file=
[ $# = 0 ] || file=$(realpath -- "$1")
cd "$(dirname "$0")/.."
# shellcheck source=tools/build.sh
. tools/build.sh

need g++ meson ninja-build pkg-config libfmt-dev libexpected-dev libcli11-dev libssl-dev python3 dpkg-dev
directory=build/g++ # which test/run.sh goes on with
configure g++ "$directory" -Dtests=false
build "$directory" examples

python3 examples/wrong_order/page.py --commands "$directory/compile_commands.json" --page "$directory/wrong_order.md"

lend_and_borrow=$directory/examples/lend_and_borrow
sh examples/lend_and_borrow/run.sh "$lend_and_borrow/lend" "$lend_and_borrow/borrow" "$file"

weights=$directory/examples/weights
sh examples/weights/run.sh "$weights/owner" "$weights/worker"

event_loop=$directory/examples/event_loop
sh examples/event_loop/run.sh "$event_loop/lender" "$event_loop/borrower"

two_processes=$directory/examples/two_processes
sh examples/two_processes/run.sh "$two_processes/exporter" "$two_processes/importer" "$file"

physical_sharing=$directory/examples/physical_sharing
sh examples/physical_sharing/run.sh "$physical_sharing/exporter" "$physical_sharing/importer"

sh examples/sleep_wake/run.sh "$directory/examples/sleep_wake/sleep_wake"

pick_mechanism=$directory/examples/pick_mechanism
sh examples/pick_mechanism/run.sh "$pick_mechanism/exporter" "$pick_mechanism/importer"
