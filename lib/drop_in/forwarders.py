#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the drop-in's functions: each entry of ACL as a C function that calls the host runtime's. Made of the one list
of entries, so that none is missing.

  forwarders.py ENTRIES.HPP > forwarders.cpp
"""

import re
import sys

ENTRY = re.compile(r'X\((acl\w+),\s*([\w: *]+?),\s*\((.*?)\),\s*(?:required|optional),')


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        entries = ENTRY.findall(file.read())
    if not entries:
        sys.exit(f"{sys.argv[1]}: no entries found")
    print('#include "drop_in.hpp"\n\nusing namespace devshare::acl;\n\nextern "C" {\n')
    for name, result, parameters in entries:
        names = [re.search(r"(\w+)$", one.strip()).group(1) for one in parameters.split(",") if one.strip()]
        print(f"DEVSHARE_DROP_IN {result} {name}({parameters}) {{")
        print(f"  return entries().{name}({', '.join(names)});\n}}")
    print("\n}  // extern \"C\"")


main()
