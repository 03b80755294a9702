#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shares FILE with 1 and with 4 importers, on one device and across two, and checks what the programs say: their digests
# against that of sha256sum, and the memory that was really spent. The last line begins with `ok:`.
#
#   run.sh EXPORTER IMPORTER [FILE]     FILE: else the largest shared library installed that fits into half of the memory
set -eu
exporter=$1
importer=$2
file=${3:-}

if [ -z "$file" ]; then
  room=$(awk '/^MemAvailable:/ {printf "%.0f", $2 * 512}' /proc/meminfo)
  file=$(find /usr /opt -xdev -type f -name '*.so*' -size "-${room}c" -printf '%s %p\n' 2>/dev/null |
    sort -rn | sed -n '1s/^[0-9]* //p')
fi
[ -f "$file" ] || {
  echo "$0: no such file: $file" >&2
  exit 1
}
size=$(stat -L -c %s "$file")
sha=$(sha256sum <"$file")
sha=${sha%% *}

# Two devices on any machine: those of the host runtime, whose state nobody else shares.
export DEVSHARE_RUNTIME="${DEVSHARE_RUNTIME:-host}"
work=$(mktemp -d)
export DEVSHARE_HOST_STATE="$work/state"
mkdir "$DEVSHARE_HOST_STATE"
patience=300 # a slow machine and a large file are no fault
running=
trap 'kill -9 $running 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

failed() {
  echo "$0: $*" >&2
  exit 1
}

# count NUMBER PATTERN: that many lines of the run match.
count() {
  found=$(grep -c -- "$2" "$work/lines") || :
  [ "$found" = "$1" ] || failed "$found lines of \"$2\" where $1 were due"
}

# bytes WHAT: the number that the exporter printed for it.
bytes() {
  awk -v what="$1" '$1 == "exporter:" && index($0, what) {print $2}' "$work/lines"
}

# share IMPORTERS DEVICE PLACE HOW: one run. The importers use DEVICE and must read by HOW.
share() {
  echo
  echo "== $1 importer(s), $3"
  : >"$work/lines"
  mkfifo "$work/pipe"
  tee "$work/lines" <"$work/pipe" &
  printer=$!
  exec 3>"$work/pipe"
  rm "$work/pipe"

  "$exporter" --socket "$work/socket" --patience "$patience" --importers "$1" --device 0 "$file" >&3 2>&1 &
  programs=$!
  i=0
  while [ "$i" -lt "$1" ]; do
    "$importer" --socket "$work/socket" --patience "$patience" --device "$2" "$file" >&3 2>&1 &
    programs="$programs $!"
    i=$((i + 1))
  done
  exec 3>&-
  running="$programs $printer"
  for program in $programs; do
    result=0
    wait "$program" || result=$?
    running=${running#"$program "} # its number may be another's from now on
    [ "$result" = 0 ] || {
      running=${running%"$printer"}
      # shellcheck disable=SC2086 # a list of words
      kill -9 $running 2>/dev/null || : # a program that is just being started would miss a milder signal
      running=
      wait "$printer" # so that its last words are seen
      failed "a program of this run failed"
    }
  done
  wait "$printer"
  running=

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
