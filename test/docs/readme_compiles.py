#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every C++ block of the README, as printed there: readme_compiles.py README PRELUDE COMPILER FLAGS..."""
import re
import subprocess
import sys
import tempfile


def main() -> int:
    readme, prelude, *compiler = sys.argv[1:]
    with open(readme, encoding="utf-8") as file:
        blocks = re.findall(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    if not blocks:
        print(f"{readme} has no C++ block to compile")
        return 1
    failed = 0
    for number, block in enumerate(blocks, 1):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as source:
            source.write(f'#include "{prelude}"\n#line 1 "block {number} of README.md"\n{block}')
            source.flush()
            done = subprocess.run([*compiler, "-fsyntax-only", source.name], capture_output=True, text=True, check=False)
        print(f"block {number}: {'ok' if done.returncode == 0 else 'does not compile'}")
        if done.returncode != 0:
            print(done.stderr)
            failed += 1
    print(f"{len(blocks) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
