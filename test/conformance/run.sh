#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asks a library of ACL whether it keeps the rules of docs/rules.md; docs/conformance.md has what came of it.
#
#   sh test/conformance/run.sh                              the drop-in of this tree, as each product in turn
#   sh test/conformance/run.sh --write                      the same, and puts it into docs/conformance.md
#   DEVSHARE_RUNTIME=ascend sh test/conformance/run.sh      the libascendcl.so that the loader finds, on a board
set -u
cd "$(dirname "$0")/../.." || exit 1
. tools/build.sh

need g++ meson ninja-build pkg-config libfmt-dev libexpected-dev catch2 python3

directory=build/conformance
configure g++ "$directory" -Dexamples=false -Dfuzz=disabled
meson compile -C "$directory" conformance ascendcl || give_up "the build failed"
link=
for home in "${ASCEND_TOOLKIT_HOME-}" "${ASCEND_HOME_PATH-}"; do
  [ -z "$home" ] || link="$link -L$home/lib64"
done
exec python3 test/conformance/conformance.py --program "$directory/test/conformance/conformance" \
  --library "$PWD/$directory/lib/drop_in/libascendcl.so" "--link=$link" "$@"
