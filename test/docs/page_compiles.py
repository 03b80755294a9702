#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles every C++ block of a page, as printed there: page_compiles.py PAGE PRELUDE COMPILER FLAGS..."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from results import Results  # noqa: E402


def main():
    path, prelude, *compiler = sys.argv[1:]
    page = Path(path).name
    results = Results("docs." + Path(path).stem.lower().replace("-", "_"))
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```cpp\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    results.check(f"{page} has C++ blocks", "" if blocks else "it has none")
    for number, block in enumerate(blocks, 1):
        with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as source:
            source.write(f'#include "{prelude}"\n#line 1 "block {number} of {page}"\n{block}')
            source.flush()
            done = subprocess.run([*compiler, "-fsyntax-only", source.name], capture_output=True, text=True, check=False)
        results.check(f"C++ block {number} of {page} compiles", done.stderr if done.returncode != 0 else "")
    results.finish()


main()
