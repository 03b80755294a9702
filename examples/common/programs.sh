# SPDX-License-Identifier: Apache-2.0
# Read by each example's run.sh: starts the programs of a run, shows and keeps what they say, and checks it.
#
#   begin; start PROGRAM...; start PROGRAM...; finish; count NUMBER PATTERN

# Two devices on any machine: those of the host runtime, whose state nobody else shares.
export DEVSHARE_RUNTIME="${DEVSHARE_RUNTIME:-host}"
work=$(mktemp -d)
export DEVSHARE_HOST_STATE="$work/state"
mkdir -m 700 "$DEVSHARE_HOST_STATE"
running=
trap 'kill -9 $running 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

failed() {
  echo "$0: $*" >&2
  exit 1
}

# digest FILE: its SHA-256 in hexadecimal.
digest() {
  [ -f "$1" ] || failed "no such file: $1"
  sha256sum <"$1" | cut -d ' ' -f 1
}

# begin: a new run, of which nothing has been said yet.
begin() {
  : >"$work/lines"
  mkfifo "$work/pipe"
  tee "$work/lines" <"$work/pipe" &
  printer=$!
  running=$printer
  programs=
  exec 3>"$work/pipe"
  rm "$work/pipe"
}

# start PROGRAM ARGUMENT...: at the same time as the others.
start() {
  "$@" >&3 2>&1 &
  programs="$programs $!"
  running="$! $running"
}

# finish: waits for all, which must end well; one that does not ends the rest.
finish() {
  exec 3>&-
  running="${programs# } $printer"
  for process in $programs; do
    result=0
    wait "$process" || result=$?
    running=${running#"$process "} # its number may be another's from now on
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
}

# count NUMBER PATTERN: that many lines of the run match.
count() {
  found=$(grep -c -- "$2" "$work/lines") || :
  [ "$found" = "$1" ] || failed "$found lines of \"$2\" where $1 were due"
}
