#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds devshare and runs its tests. The last line counts the cases.
#
#   sh test/run.sh                     everything, with g++
#   --compiler=g++|clang++
#   --sanitize=address|thread          address comes with undefined behaviour and leaks
#   --no-exceptions                    the library and the tests built without C++ exceptions
#   --suite=NAME                       only that one: unit process fault counts compile_fail architecture consumer drop_in conformance
#                                      fuzz docs examples
#   --soak                             only the suite `soak`: kills, rounds and mutations, many times over; takes long
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/build.sh

compiler=g++
sanitize=
exceptions=true
suites=
for option in "$@"; do
  case "$option" in
    --compiler=g++ | --compiler=clang++) compiler=${option#*=} ;;
    --sanitize=address | --sanitize=thread) sanitize=${option#*=} ;;
    --no-exceptions) exceptions=false ;;
    --suite=?*) suites="$suites --suite=devshare:${option#*=}" ;;
    --soak) suites="$suites --suite=devshare:soak" ;;
    *) sed -n '3,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; give_up "no such option: $option" ;;
  esac
done

need g++ meson ninja-build pkg-config libfmt-dev libexpected-dev libcli11-dev libssl-dev catch2 python3 cmake clang \
  clang-tidy lld libclang-rt-dev valgrind dpkg-dev

directory=build/$compiler${sanitize:+-$sanitize}
[ "$exceptions" = true ] || directory=$directory-no-exceptions
multiplier=1
case "$sanitize" in
  address) set -- -Db_sanitize=address,undefined -Db_lundef=false ;;
  thread) set -- -Db_sanitize=thread -Db_lundef=false ;;
  *) set -- ;;
esac
[ -z "$sanitize" ] || multiplier=4
configure "$compiler" "$directory" -Dexceptions=$exceptions "$@"
# examples/run.sh does without the tests
[ -d "$directory/test" ] || meson configure "$directory" -Dtests=true || give_up "the tests could not be added"
[ -n "$suites" ] || build "$directory" # for a suite Meson builds what its tests need

# A sanitizer's finding ends the process that it is found in.
export ASAN_OPTIONS="${ASAN_OPTIONS-detect_stack_use_after_return=1}"
export UBSAN_OPTIONS="${UBSAN_OPTIONS-print_stacktrace=1:halt_on_error=1}"
# ThreadSanitizer would wait a second at the end of each of thousands of processes.
export TSAN_OPTIONS="${TSAN_OPTIONS-second_deadlock_stack=1:atexit_sleep_ms=0}"
export DEVSHARE_TEST_RESULTS="$PWD/$directory/results"
rm -rf "$DEVSHARE_TEST_RESULTS" "$directory/meson-logs/testlog.json"
mkdir -p "$DEVSHARE_TEST_RESULTS"

# shellcheck disable=SC2086 # a list of words
meson test -C "$directory" --print-errorlogs --timeout-multiplier=$multiplier $suites
status=$?
python3 test/count.py --log "$directory/meson-logs/testlog.json" --status $status \
  --results "$DEVSHARE_TEST_RESULTS"
