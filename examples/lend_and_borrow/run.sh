#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lends FILE to 1 and to 4 borrowers, on one device and across two, and checks what the programs say. The last line
# begins with `ok:`.
#
#   run.sh LEND BORROW [FILE]     FILE: else the first 3 MB of LEND itself
set -eu
# shellcheck source=examples/common/programs.sh
. "$(dirname "$0")/../common/programs.sh"
lend=$1
borrow=$2
file=${3:-}
[ -n "$file" ] || {
  file=$work/file
  head -c 3000000 "$lend" >"$file"
}
sha=$(digest "$file")
runs=0
for device in 0 1; do
  for borrowers in 1 4; do
    echo
    echo "== $borrowers borrower(s) on device $device"
    begin
    start "$lend" --socket "$work/socket" --borrowers "$borrowers" "$file"
    i=0
    while [ "$i" -lt "$borrowers" ]; do
      start "$borrow" --socket "$work/socket" --device "$device" "$file"
      i=$((i + 1))
    done
    finish
    count "$((borrowers + 1))" "sha256 $sha"
    count "$borrowers" "borrower: .* the same as on disk"
    count 1 "lender: $borrowers borrowed and returned it; the memory is mine alone again"
    [ ! -e "$work/socket" ] || failed "the lender has left its socket"
    runs=$((runs + 1))
  done
done

echo
echo "ok: lend_and_borrow ran $runs times: 1 and 4 borrowers, on one device and across two"
