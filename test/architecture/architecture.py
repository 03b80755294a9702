#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of the house that no compiler knows: who may include whom, and what the library shows.

Floors: each stands only on those below.

    0  include/devshare/acl   the ACL interface, declared
    1  lib/host, lib/vendor   the runtimes: two ways to fill its table
    2  lib/core               errors, sessions, identities, addresses
    3  lib/dma                owners of memory and of peer access
    4  lib/sharing            keys, tickets, imports
    5  lib/lending            the rendezvous of lender and borrower
    6  lib/drop_in            the host runtime under ACL's own names
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from results import Results  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent

PUBLIC_FLOOR = {
    "acl/codes.hpp": 0, "acl/entries.hpp": 0, "acl/table.hpp": 0, "acl/types.hpp": 0, "acl/vmm_types.hpp": 0,
    "detail/attributes.hpp": 0, "detail/cause.hpp": 0, "host_pages.hpp": 0,
    "instrument.h": 1, "instrument.hpp": 1,
    "address.hpp": 2, "device.hpp": 2, "diagnostic.hpp": 2, "error.hpp": 2, "explain.hpp": 2, "format.hpp": 2,
    "host.hpp": 2, "mechanism.hpp": 2, "process.hpp": 2, "result.hpp": 2, "runtime.hpp": 2,
    "detail/owned.hpp": 2, "detail/runtime_layout.hpp": 2, "detail/runtime_record.hpp": 2,
    "copy.hpp": 3, "event.hpp": 3, "host_registration.hpp": 3, "mapping.hpp": 3, "memory.hpp": 3, "peer.hpp": 3, "physical.hpp": 3,
    "rehouse.hpp": 3, "reservation.hpp": 3, "stream.hpp": 3, "stream_copy.hpp": 3, "value.hpp": 3,
    "choose.hpp": 4, "exported.hpp": 4, "imported.hpp": 4, "imported_handle.hpp": 4, "notify.hpp": 4, "shared_event.hpp": 4, "sync_ticket.hpp": 4,
    "ticket.hpp": 4,
    "allow.hpp": 5, "borrow.hpp": 5, "deadline.hpp": 2, "endpoint.hpp": 5, "lend.hpp": 5,
    "devshare.hpp": 9,
}
LIBRARY_FLOOR = {"host": 1, "vendor": 1, "core": 2, "dma": 3, "sharing": 4, "lending": 5, "drop_in": 6}

# What a public header may take from outside. The second table is for headers that one includes for just that.
CHEAP = set(
    "array bit compare concepts cstddef cstdint cstring exception initializer_list iterator limits new optional span "
    "string_view tuple type_traits utility vector tl/expected.hpp".split()
)
BY_NAME = {"format.hpp": {"fmt/format.h", "string"}, "instrument.hpp": {"string"},
           "instrument.h": {"stddef.h", "stdint.h"}}

# Host runtime: what it may see of the public headers.
HOST_SEES = re.compile(r"^devshare/(acl/[a-z_]+|detail/(cause|attributes)|host_pages|instrument)\.hpp$|^devshare/instrument\.h$")

# Folders that compute no address.
NO_ADDRESSES = ["include/devshare/acl", "lib/drop_in", "lib/lending"]

# The page sizes that addresses are aligned to come from the profile (B031). Elsewhere the number means another thing.
NOT_A_PAGE_SIZE = {
    "include/devshare/instrument.hpp": "an example in a comment",
    "lib/host/instrument.hpp": "an example in a comment",
    "lib/host/contexts.hpp": "how many contexts there are",
    "lib/host/endpoint.cpp": "how many may wait for a connection",
    "lib/host/lifecycle.cpp": "the length of a buffer",
    "lib/host/profile.hpp": "the page size of the device that is played",
    "lib/host/random.cpp": "the length of a buffer",
    "lib/host/shared_moment.hpp": "the length of a file",
    "lib/host/state_layout.hpp": "an offset in the state file",
    "lib/host/switches.cpp": "the smallest page size that may be set",
}

MACHINE_PATH = re.compile(r"(?<![\w.])/(work|farm|home|root|Users)/")


def includes(path):
    """(line number, name, whether in quotes) of each include"""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)', line)
        if found:
            yield number, found.group(2), found.group(1) == '"'


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".h", ".c"):
                yield path


def relative(path):
    return str(path.relative_to(ROOT))


def public_headers():
    base = ROOT / "include/devshare"
    return [(path, str(path.relative_to(base))) for path in sources("include/devshare")]


def check_public_includes():
    problems = []
    for path, name in public_headers():
        if name not in PUBLIC_FLOOR:
            problems.append(f"{relative(path)}: on no floor; give it one in PUBLIC_FLOOR")
            continue
        for number, what, quoted in includes(path):
            where = f"{relative(path)}:{number}"
            if quoted:
                problems.append(f"{where}: public headers include <devshare/...>, not \"{what}\"")
            elif what.startswith("devshare/"):
                other = PUBLIC_FLOOR.get(what[len("devshare/"):])
                if other is None or other > PUBLIC_FLOOR[name]:
                    problems.append(f"{where}: <{what}> stands on a higher floor, or on none")
            elif what not in CHEAP | BY_NAME.get(name, set()):
                problems.append(f"{where}: <{what}> is too costly, or no business of a public header")
    return problems


def check_library_includes():
    problems = []
    for path in sources("lib"):
        folder = path.relative_to(ROOT / "lib").parts[0]
        if folder not in LIBRARY_FLOOR:
            problems.append(f"{relative(path)}: lib/{folder} is on no floor; give it one in LIBRARY_FLOOR")
            continue
        for number, what, quoted in includes(path):
            where = f"{relative(path)}:{number}"
            if quoted:
                target = (path.parent / what).resolve()
                if not target.is_relative_to(ROOT / "lib"):
                    problems.append(f"{where}: \"{what}\" is outside lib")
                    continue
                other = target.relative_to(ROOT / "lib").parts[0]
                if other != folder and LIBRARY_FLOOR.get(other, 9) >= LIBRARY_FLOOR[folder]:
                    problems.append(f"{where}: lib/{folder} stands below or beside lib/{other}")
            elif what.startswith("devshare/"):
                if folder == "host" and not HOST_SEES.match(what):
                    problems.append(f"{where}: the host runtime knows nothing of <{what}>")
                if folder != "host" and PUBLIC_FLOOR.get(what[len("devshare/"):], 9) > max(LIBRARY_FLOOR[folder], 4):
                    problems.append(f"{where}: <{what}> stands above lib/{folder}")
            elif what.startswith("acl/"):
                problems.append(f"{where}: the vendor's headers are not needed to build devshare")
    return problems


def check_examples():
    problems = []
    for path in sources("examples"):
        for number, what, quoted in includes(path):
            if what.startswith(("lib/", "core/", "host/", "sharing/", "vendor/", "devshare/detail/")):
                problems.append(f"{relative(path)}:{number}: examples use what users have, not <{what}>")
    return problems


def check_page_sizes():
    problems = []
    number_of_a_page = re.compile(r"\b(4096|0x1000|2097152|0x200000|1\s*<<\s*12|1\s*<<\s*21)[uUlLzZ]*\b")
    for path in sources("lib", "include/devshare"):
        if relative(path) in NOT_A_PAGE_SIZE or any(path.is_relative_to(ROOT / folder) for folder in NO_ADDRESSES):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if number_of_a_page.search(line):
                problems.append(f"{relative(path)}:{number}: a page size by number; it comes from the profile (B031)")
    return problems


def check_machine_paths():
    listed = None
    if shutil.which("git"):
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if listed and listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:  # a release archive, or nobody to ask
        paths = [p for p in ROOT.rglob("*") if p.relative_to(ROOT).parts[0] not in ("build", ".git")]
    problems = []
    for path in paths:
        if not path.is_file() or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if MACHINE_PATH.search(line):
                problems.append(f"{relative(path)}:{number}: a path of one machine: {line.strip()[:100]}")
    return problems


def check_licence_lines():
    problems = []
    for path in sources("lib", "include", "test", "examples", "tools"):
        if "SPDX-License-Identifier: Apache-2.0" not in path.read_text(errors="replace")[:200]:
            problems.append(f"{relative(path)}: says no licence")
    return problems


def check_symbols(library):
    done = subprocess.run(["nm", "-DC", "--defined-only", str(library)], capture_output=True, text=True)
    if done.returncode != 0:
        return [done.stderr]
    problems = []
    ours = 0
    for line in done.stdout.splitlines():
        _, kind, name = line.split(" ", 2)
        if re.match(r"(__asan|__odr_asan|__ubsan|__tsan|__lsan|__sanitizer|__start_|__stop_)", name):
            continue
        if re.search(r"\bacl[A-Z]|\baclrt", name) and "devshare::" not in name:
            problems.append(f"{name}: an ACL name; it would stand in the way of the vendor's")
        elif kind in "wWvVu":
            continue  # templates and inline functions of the standard library
        elif not re.search(r"\bdevshare(::|_host_)", name):
            problems.append(f"{name}: not ours, and shown")
        elif re.search(r"\bdevshare::host::calls::", name):
            problems.append(f"{name}: inside the host runtime, and shown")
        else:
            ours += 1
    if ours == 0:
        problems.append("the library shows nothing at all")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="the shared library")
    options = parser.parse_args()

    results = Results("architecture")
    results.check("public headers include only cheap headers and lower floors", check_public_includes())
    results.check("the library's floors include only lower floors", check_library_includes())
    results.check("examples include public headers only", check_examples())
    results.check("no code of addresses has a page size of its own (B031)", check_page_sizes())
    results.check("no file names a path of one machine", check_machine_paths())
    results.check("every source says its licence", check_licence_lines())
    if options.library.suffix == ".a":
        results.skipped("the library shows its own names only", "built as a static library")
    else:
        results.check("the library shows its own names only", check_symbols(options.library))
    results.finish()


if __name__ == "__main__":
    main()
