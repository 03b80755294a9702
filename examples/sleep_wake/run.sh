#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the engine with its neighbour on another device and on the same, and checks what the two say. The last line
# begins with `ok:`.
#
#   run.sh SLEEP_WAKE [FILE]     FILE: the weights, else the program itself
set -eu
# shellcheck source=examples/common/programs.sh
. "$(dirname "$0")/../common/programs.sh"
program=$1
file=${2:-$1}
sha=$(digest "$file")

# play PIECES DEVICE: one run, with the neighbour on DEVICE.
play() {
  echo
  echo "== $1 pieces, the neighbour on device $2"
  begin
  start "$program" --pieces "$1" --neighbour "$2" "$file"
  finish

  piece=$(awk '/bytes of weights in/ {print $(NF - 2) + 0}' "$work/lines")
  address=$(awk '/bytes of weights in/ {print $NF}' "$work/lines")
  count 1 "awake at $address, weights loaded again: sha256 $sha"
  count 1 'the engine sleeps, and the bytes here are untouched'
  count 1 'the engine woke, and the piece of today is here too'
  if [ "$DEVSHARE_RUNTIME" = host ]; then # whose devices nobody else uses
    most=$((piece * ($1 - 1)))
    count 1 "asleep: $most bytes given back, $most more free on the device, $piece held by the neighbour"
    count 1 "nobody else holds a piece: $((piece * $1)) bytes given back"
  fi
}

play 4 1
play 2 0

echo
echo "ok: sleep_wake gave back what nobody else held, and woke at the same address"
