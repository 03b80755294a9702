#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets the two programs choose on every product, by every preference and where nothing works, and checks what they say.
# The last line begins with `ok:`.
#
#   run.sh EXPORTER IMPORTER [FILE]     FILE: else the script itself
set -eu
# shellcheck source=examples/common/programs.sh
. "$(dirname "$0")/../common/programs.sh"
exporter=$1
importer=$2
file=${3:-$0}
sha=$(digest "$file")

# pick PRODUCT DEVICE WORKS CHOSEN HOW OPTION...: they choose CHOSEN of the WORKS that work, and the importer on DEVICE
# reads by HOW.
pick() {
  product=$1 device=$2 works=$3 chosen=$4 how=$5
  shift 5
  echo
  echo "== $product, the importer on device $device${*:+, $*}"
  begin
  start env DEVSHARE_HOST_PROFILE="$product" "$exporter" --socket "$work/socket" --importer-device "$device" "$@" "$file"
  start env DEVSHARE_HOST_PROFILE="$product" "$importer" --socket "$work/socket" --device "$device" "$file"
  finish
  count "$works" '^exporter: [a-z0-9_]*  *yes  *can  *-$'
  count "$((4 - works))" '^exporter: [a-z0-9_]*  *no  *can  *cannot export'
  count 1 "^exporter: chose $chosen\$"
  count 1 "^importer: .* bytes by $chosen on device $device, read by $how: sha256 $sha, the same as on disk\$"
}

for product in a2 training 310p 950; do
  pick "$product" 0 3 v2 copies
  pick "$product" 1 3 by_key 'a kernel' --prefer by_key
  pick "$product" 1 3 v1 copies --prefer fabric,v1
done
pick a3 1 4 v2 copies
pick a3 1 4 fabric copies --prefer fabric,v2

# fails PROGRAM...: ends well when the program does not.
fails() { ! "$@"; }

echo
echo '== two devices that do not reach each other: nothing works, and the exporter says why'
begin
start fails env DEVSHARE_HOST_PEERS=10/01 "$exporter" --socket "$work/socket" --importer-device 1 "$file"
start fails env DEVSHARE_HOST_PEERS=10/01 "$importer" --socket "$work/socket" --device 1 "$file"
finish
count 4 'no  *can  *cannot .*peer_access_impossible'
count 1 '^exporter: cannot choose a mechanism'
count 1 '^importer: the other side hung up'

echo
echo '== only fabric is wanted, on a product that has none'
begin
start fails "$exporter" --socket "$work/socket" --prefer fabric "$file"
start fails "$importer" --socket "$work/socket" "$file"
finish
count 1 '^exporter: cannot choose a mechanism'

echo
echo "ok: pick_mechanism chose on five products, and said why where nothing was left to choose"
