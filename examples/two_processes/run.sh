#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shares FILE with 1 and with 4 importers, on one device and across two, and checks what the programs say: their digests
# against that of sha256sum, and the memory that was really spent. The last line begins with `ok:`.
#
#   run.sh EXPORTER IMPORTER [FILE]     FILE: else the largest shared library installed that fits into half of the memory
set -eu
# shellcheck source=examples/common/programs.sh
. "$(dirname "$0")/../common/programs.sh"
exporter=$1
importer=$2
file=${3:-}

if [ -z "$file" ]; then
  room=$(awk '/^MemAvailable:/ {printf "%.0f", $2 * 512}' /proc/meminfo)
  file=$(find /usr /opt -xdev -type f -name '*.so*' -size "-${room}c" -printf '%s %p\n' 2>/dev/null |
    sort -rn | sed -n '1s/^[0-9]* //p')
fi
sha=$(digest "$file")
size=$(stat -L -c %s "$file")
patience=300 # a slow machine and a large file are no fault

# bytes WHAT: the number that the exporter printed for it.
bytes() {
  awk -v what="$1" '$1 == "exporter:" && index($0, what) {print $2}' "$work/lines"
}

# share IMPORTERS DEVICE PLACE HOW: one run. The importers use DEVICE and must read by HOW.
share() {
  echo
  echo "== $1 importer(s), $3"
  begin
  start "$exporter" --socket "$work/socket" --patience "$patience" --importers "$1" --device 0 "$file"
  i=0
  while [ "$i" -lt "$1" ]; do
    start "$importer" --socket "$work/socket" --patience "$patience" --device "$2" "$file"
    i=$((i + 1))
  done
  finish

  count "$(($1 + 1))" "sha256 $sha"
  count "$1" ", by $4 in .*: the same as on disk"
  count "$1" 'wrote its stripe: it read the same bytes'
  count 1 'closed the key, got the memory back, freed it'
  shared=$(bytes 'in blocks of shared memory')
  together=$(bytes 'bytes together')
  copies=$(bytes 'were there a copy')
  if [ "$DEVSHARE_RUNTIME" = host ]; then
    # The file is there once: all of it, and beside it no more than stripes and the pages that say who is alive.
    [ "$shared" -ge "$size" ] || failed "$shared bytes of shared memory cannot hold $size"
    [ "$shared" -le $((size + 65536)) ] || failed "$shared bytes of shared memory for $size of the file"
  fi
  echo "== $1 importer(s), $3: spent $together bytes, $shared of them shared; copies would be $copies"
}

echo "$file: $size bytes, sha256 $sha"
for importers in 1 4; do
  share "$importers" 0 'on one device' 'copies to the host'
  share "$importers" 1 'across two devices' 'a kernel'
done

echo
echo "ok: two_processes shared $size bytes with 1 and with 4 importers, on one device and across two"
