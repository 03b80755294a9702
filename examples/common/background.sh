# SPDX-License-Identifier: Apache-2.0
# Read by scripts that kill programs, or look at what one of several says: each has a name and an output of its own.
#
#   start NAME PROGRAM...; until_says NAME TEXT; kill_hard NAME; ends NAME

export DEVSHARE_RUNTIME="${DEVSHARE_RUNTIME:-host}"
work=$(mktemp -d)
export DEVSHARE_HOST_STATE="$work/state"
mkdir -m 700 "$DEVSHARE_HOST_STATE"
trap 'kill -9 $(cat "$work"/*.pid 2>/dev/null) 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

failed() {
  echo "$0: $*" >&2
  for output in "$work"/*.out; do
    echo "--- ${output##*/}" >&2
    cat "$output" >&2
  done
  exit 1
}

# start NAME PROGRAM ARGUMENT...: in the background.
start() {
  name=$1
  shift
  : >"$work/$name.out"
  "$@" >"$work/$name.out" 2>&1 &
  echo "$!" >"$work/$name.pid"
}

# until_says NAME TEXT [NUMBER]: waits until NUMBER lines (one) of its output have the text.
until_says() {
  tries=0
  until [ "$(grep -cF -- "$2" "$work/$1.out")" -ge "${3:-1}" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 1200 ] || failed "$1 never said: $2"
    sleep 0.05
  done
}

# kill_hard NAME: kill -9.
kill_hard() {
  killed=$(cat "$work/$1.pid")
  rm "$work/$1.pid"
  kill -9 "$killed"
  wait "$killed" 2>/dev/null || :
}

# ends NAME: it ends by itself, and well; then what it said is shown.
ends() {
  process=$(cat "$work/$1.pid")
  wait "$process" || failed "$1 failed"
  rm "$work/$1.pid"
  sed "s/^/$1 | /" "$work/$1.out"
}
