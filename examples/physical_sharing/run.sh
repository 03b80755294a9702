#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shares FILE by each kind of token, with 1 and with 4 importers, on one device and across two, and a fabric token across
# two servers as well; checks what the programs say. The last line begins with `ok:`.
#
#   run.sh EXPORTER IMPORTER [FILE]     FILE: else 3 MB of the exporter itself, which are more than a page of a device
set -eu
# shellcheck source=examples/common/programs.sh
. "$(dirname "$0")/../common/programs.sh"
exporter=$1
importer=$2
file=${3:-}
[ -n "$file" ] || {
  file=$work/file
  head -c 3000000 "$exporter" >"$file"
}
sha=$(digest "$file")

# One product that has all three kinds, and another server of the super-pod.
export DEVSHARE_HOST_PROFILE=a3
runs=0

# share KIND IMPORTERS DEVICE SERVER: one run, with the importers on DEVICE of SERVER.
share() {
  echo
  echo "== $1: $2 importer(s) on device $3 of server $4"
  begin
  start "$exporter" --socket "$work/socket" --kind "$1" --importers "$2" "$file"
  i=0
  while [ "$i" -lt "$2" ]; do
    start env DEVSHARE_HOST_SERVER="$4" "$importer" --socket "$work/socket" --device "$3" "$file"
    i=$((i + 1))
  done
  finish

  count "$(($2 + 1))" "sha256 $sha"
  count "$2" "imported .* bytes by $1 of process"
  count "$2" 'wrote its stripe: it read the same bytes'
  count "$2" 'the exporter has freed its handle: the bytes are there'
  if [ "$DEVSHARE_RUNTIME" = host ]; then # whose devices nobody else uses
    pages=$(awk '/bytes asked for/ {print $6}' "$work/lines")
    held=$pages # by the importers; those on another server have its device's count, not this one's
    [ "$4" = 0 ] || held=0
    count 1 "freed the handle: $pages bytes of the device in use before, $held after"
    count 1 'all importers have closed: 0 bytes of the device in use'
  fi
  runs=$((runs + 1))
}

for kind in v1 v2 fabric; do
  for device in 0 1; do
    share $kind 1 $device 0
    share $kind 4 $device 0
  done
done
[ "$DEVSHARE_RUNTIME" != host ] || share fabric 4 1 1

echo
echo "ok: physical_sharing ran $runs times: v1, v2 and fabric, 1 and 4 importers, one device, two, and two servers"
