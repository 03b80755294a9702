#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One owner and three workers: the weights change while they are used, a worker is killed and started again, then the
# owner is. The last line begins with `ok:`.
#
#   run.sh OWNER WORKER
set -eu
# shellcheck source=examples/common/background.sh
. "$(dirname "$0")/../common/background.sh"
owner=$1
worker=$2
socket=$work/socket

start owner "$owner" --socket "$socket" --updates 1000000 --pause 20
for i in 1 2 3; do start "worker$i" "$worker" --socket "$socket"; done
for i in 1 2 3; do until_says "worker$i" 'works with generation' 3; done

killed=$(cat "$work/worker2.pid")
kill_hard worker2
until_says owner "worker $killed died, and its lease with it"
start worker2 "$worker" --socket "$socket"
until_says worker2 'works with generation' 3

kill_hard owner
for i in 1 2 3; do until_says "worker$i" 'the owner has gone'; done
start owner2 "$owner" --socket "$socket" --updates 40 --pause 20
for i in 1 2 3; do ends "worker$i"; done
ends owner2
until_says owner2 '3 workers have the weights; asks for them'
until_says owner2 'has its weights back'
[ ! -e "$socket" ] || failed 'the owner has left its socket'

echo
echo 'ok: weights were updated in place under three workers; one of them, and the owner, were killed and came again'
