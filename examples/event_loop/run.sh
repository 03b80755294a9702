#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One lender and two borrowers, each in a loop of its own; one borrower is killed. The last line begins with `ok:`.
#
#   run.sh LENDER BORROWER
set -eu
# shellcheck source=examples/common/background.sh
. "$(dirname "$0")/../common/background.sh"
lender=$1
borrower=$2
socket=$work/socket

start lender "$lender" --socket "$socket" --ticks 100
start first "$borrower" --socket "$socket"
start second "$borrower" --socket "$socket"
until_says lender 'has it' 2
killed=$(cat "$work/first.pid")
kill_hard first
until_says lender "process $killed died"
ends second
ends lender
until_says second 'the count was 100 in the end'
until_says lender 'counted to 100; nobody holds it any more'

echo
echo 'ok: event_loop: two loops, no thread; one borrower was killed'
