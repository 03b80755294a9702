#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the two programs do when something goes wrong: each fault ends with its reason on stderr and a non-zero exit, and
# none of them with a signal or a hang.
#
#   faults.sh EXPORTER IMPORTER FILE     FILE: some MiB, so that an importer can be caught while it reads
set -eu
exporter=$1
importer=$2
file=$3

export DEVSHARE_RUNTIME=host
work=$(mktemp -d)
export DEVSHARE_HOST_STATE="$work/state"
mkdir -m 700 "$DEVSHARE_HOST_STATE"
started=
trap 'kill -9 $started 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
socket=$work/socket
cases=0

failed() {
  echo "$0: $*" >&2
  for output in "$work"/*.out; do
    echo "--- $output" >&2
    cat "$output" >&2
  done
  exit 1
}

# start NAME COMMAND...: in the background, its output in NAME.out, its process in $started_last.
start() {
  name=$1
  shift
  : >"$work/$name.out" # now, so that nobody reads what an earlier one said
  "$@" >"$work/$name.out" 2>&1 &
  started_last=$!
  started="$started $started_last"
}

# ends PROCESS STATUS: it ends by itself with this exit status (`fails`: with any that says failure).
ends() {
  status=0
  wait "$1" 2>/dev/null || status=$? # not the shell's word for it
  started=$(echo "$started" | sed "s/ $1\\( \\|\$\\)/\\1/") # its number may be another's from now on
  case "$2:$status" in
    fails:0) failed "a program ended well that should have failed" ;;
    fails:12[6-9] | fails:1[3-9]? | fails:2??) failed "a program ended with status $status" ;;
    fails:*) ;;
    *) [ "$status" = "$2" ] || failed "a program ended with status $status, not $2" ;;
  esac
}

# says NAME TEXT: its output has it.
says() { grep -qF -- "$2" "$work/$1.out" || failed "$1 does not say: $2"; }

# until_says NAME TEXT: waits for that.
until_says() {
  tries=0
  until grep -qF -- "$2" "$work/$1.out" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || failed "$1 never said: $2"
    sleep 0.05
  done
}

# refuses TEXT COMMAND...: it fails and says so.
refuses() {
  text=$1
  shift
  start alone "$@"
  ends "$started_last" fails
  says alone "$text"
  cases=$((cases + 1))
}

refuses 'file is required' "$exporter"
refuses 'file is required' "$importer"
refuses 'does not exist: /does/not/exist' "$exporter" /does/not/exist
refuses 'is actually a directory: /usr' "$importer" /usr
: >"$work/empty"
refuses 'is empty: there is nothing to share' "$exporter" --socket "$socket" "$work/empty"
refuses 'not in range' "$exporter" --importers 0 "$file"
refuses 'No such file or directory' "$exporter" --socket "$work/nowhere/socket" "$file"
refuses 'too long for the path of a socket' "$exporter" --socket "$(printf '%0200d' 0)" "$file"
: >"$work/taken"
refuses 'Address already in use' "$exporter" --socket "$work/taken" "$file"
[ -f "$work/taken" ] || failed "the exporter removed a file that was not its own"

refuses 'runtime_not_found' env DEVSHARE_RUNTIME=/does/not/exist.so "$exporter" --socket "$socket" "$file"
refuses 'runtime_not_found' env DEVSHARE_RUNTIME=nonsense "$importer" --socket "$socket" "$file"
refuses 'no_such_device' "$exporter" --socket "$socket" --device 7 "$file"
refuses 'out_of_memory' env DEVSHARE_HOST_CAPACITY=64K "$exporter" --socket "$socket" "$file"
refuses 'nobody listens' "$importer" --socket "$socket" --patience 1 "$file"
refuses '0 of 1 importers were served' "$exporter" --socket "$socket" --patience 1 "$file"
[ ! -e "$socket" ] || failed "the exporter left its socket behind"

# An importer that was given another file finds that out, and the exporter lives through it.
start exporter "$exporter" --socket "$socket" --importers 2 "$file"
a=$started_last
start other "$importer" --socket "$socket" "$work/taken"
b=$started_last
start same "$importer" --socket "$socket" "$file"
c=$started_last
ends "$b" 1
says other 'the shared memory does not hold'
ends "$c" 0
ends "$a" 1
says exporter 'the other side hung up'
says exporter 'closed the key, got the memory back, freed it'
says exporter '1 of 2 importers were served to the end'
cases=$((cases + 1))

# An importer that is killed while it reads: the exporter hears it, serves the other, and has its memory back.
start exporter "$exporter" --socket "$socket" --importers 2 "$file"
a=$started_last
start killed env DEVSHARE_HOST_DELAY=aclrtMemcpy:60000 "$importer" --socket "$socket" "$file"
b=$started_last
until_says killed 'imported'
start same "$importer" --socket "$socket" "$file"
c=$started_last
until_says same 'the same as on disk'
kill -9 "$b"
ends "$b" 137
ends "$c" 0
ends "$a" 1
says exporter 'the other side hung up'
says exporter 'closed the key, got the memory back, freed it'
says exporter '1 of 2 importers were served to the end'
cases=$((cases + 1))

# An exporter that is killed: its importer gets an error, by copies and by views alike, never foreign bytes.
for device in 0 1; do
  start exporter "$exporter" --socket "$socket" "$file"
  a=$started_last
  start orphan env DEVSHARE_HOST_DELAY=aclrtMemcpy:2000,aclrtIpcMemClose:3000 "$importer" --socket "$socket" \
    --device $device "$file"
  b=$started_last
  until_says orphan 'imported'
  kill -9 "$a"
  ends "$a" 137
  ends "$b" 1
  grep -qF -e 'exporter_gone' -e 'the other side hung up' "$work/orphan.out" || failed 'the orphan gives no reason'
  cases=$((cases + 1))
  # It could not remove its socket; the next one says so rather than take it from somebody who may be alive.
  refuses 'Address already in use' "$exporter" --socket "$socket" "$file"
  rm "$socket"
done

echo "ok: $cases faults, each with its reason"
