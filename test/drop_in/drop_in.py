#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-in as its users get it: installed, found by pkg-config or by its name, with unmodified programs in C."""

import argparse
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "support"))
from installed import Failed, check, forget_the_build, install, run  # noqa: E402
from results import Results  # noqa: E402

PROGRAMS = {
    "key_pair": "a program that shares by key over a socket builds unmodified and runs",
    "key_files": "a program that shares by key over files, with a child that is another program, builds and runs",
    "key_pipes": "a program that shares by key over pipes, with a child that is another program, builds and runs",
    "handle_pair": "a program that shares by handles, into a range with a hole, builds and runs",
    "sparse_ranges": "a program that shares ranges with holes on two devices, piece by piece, builds and runs",
    "ranks": "four ranks ordered by streams and notifies alone build and run",
    "broken": "programs that break a rule get its code: not admitted, admit by the importer, an address inside a block, a "
              "double import, the exporter first, an importer that never closes, after finalize",
    "missing": "a call that is not implemented returns 207000 and names itself",
    "older": "a call that the release lacks which is played returns 207000 and names itself and its own release",
}
C_FLAGS = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]
HEADERS = ["acl/acl.h", "acl/acl_rt.h", "acl/acl_base.h", "acl/error_codes/rt_error_codes.h"]


class Installed:
    def __init__(self, build, folder):
        self.folder = folder
        description = install(build, folder, "devshare-drop-in.pc")
        self.packages = description.parent
        self.libraries = description.parent.parent / "devshare/drop-in"

    def flags(self, *what):
        return run(["pkg-config", *what], self.folder, PKG_CONFIG_PATH=str(self.packages)).split()

    def state(self):
        path = Path(tempfile.mkdtemp(dir=self.folder))
        return {"DEVSHARE_HOST_STATE": str(path), "DEVSHARE_RUNTIME": ""}

    def says_ok(self, command, **variables):
        said = run(command, self.folder, **self.state(), **variables)
        if said.strip().splitlines()[-1:] != ["ok"]:
            raise Failed(f"{command[0]} says: {said}")


def c_program(installed, name, *packages):
    program = installed.folder / name
    flags = installed.flags("--cflags", "--libs", "devshare-drop-in", *packages)
    run(["cc", *C_FLAGS, HERE / f"{name}.c", "-o", program, *flags], installed.folder)
    # The drop-in is found by what pkg-config says, and finds devshare itself; a program that wants devshare looks for it.
    installed.says_ok([program], **({"LD_LIBRARY_PATH": str(installed.packages.parent)} if packages else {}))


def under_valgrind(installed, name):
    installed.says_ok(["valgrind", "-q", "--error-exitcode=9", "--trace-children=yes", installed.folder / name])


def beside_devshare(installed):
    program = installed.folder / "beside_devshare"
    run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-attributes=clang::", HERE / "beside_devshare.cpp",
         "-o", program, *installed.flags("--cflags", "--libs", "devshare-drop-in", "devshare")], installed.folder)
    installed.says_ok([program], LD_LIBRARY_PATH=str(installed.packages.parent))


def by_name(installed):
    installed.says_ok([sys.executable, HERE / "probe.py"], LD_LIBRARY_PATH=str(installed.libraries))


def not_implemented(installed):
    source = (ROOT / "lib/drop_in/not_implemented.cpp").read_text()
    names = re.findall(r"^  X\((acl\w+)\)", source, re.MULTILINE)
    if not names:
        raise Failed("no names found")
    page = (ROOT / "docs/drop-in.md").read_text()
    if silent := [name for name in names if f"`{name}`" not in page]:
        raise Failed(f"docs/drop-in.md does not name: {silent}")
    installed.says_ok([sys.executable, HERE / "missing.py", *names], LD_LIBRARY_PATH=str(installed.libraries))


def headers(installed):
    flags = installed.flags("--cflags", "devshare-drop-in")
    for header in HEADERS:
        for compiler, language, standard in (("cc", "c", "c11"), ("g++", "c++", "c++17"), ("clang", "c", "c11")):
            source = installed.folder / f"header.{'c' if language == 'c' else 'cpp'}"
            source.write_text(f"#include <{header}>\nint main(void) {{ return 0; }}\n")
            run([compiler, f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", *flags, source],
                installed.folder)


def symbols(installed):
    names = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", installed.libraries / "libascendcl.so"],
                                              installed.folder).splitlines()]
    strangers = [name for name in names if not re.match(r"acl(rt)?[A-Z]", name)]
    if strangers:
        raise Failed(f"not ACL's, and shown: {strangers}")
    entries = set(re.findall(r"X\((acl\w+),", (ROOT / "include/devshare/acl/entries.hpp").read_text()))
    if missing := entries - set(names):
        raise Failed(f"not shown: {sorted(missing)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--valgrind", help="its path; without it nothing runs under it")
    options = parser.parse_args()
    forget_the_build()
    results = Results("drop_in")
    with tempfile.TemporaryDirectory(prefix="devshare-drop-in-") as name:
        try:
            installed = Installed(options.build, Path(name))
        except (Failed, ValueError) as failure:
            results.failed("the drop-in installs", str(failure))
            results.finish()
        check(results, "the headers are clean as C11 and as C++17", headers, installed)
        check(results, "the drop-in shows every entry of ACL, and nothing but ACL's names", symbols, installed)
        for program, says in PROGRAMS.items():
            check(results, says, c_program, installed, program)
        check(results, "each call that is not implemented is named in the document, and says so by its name",
              not_implemented, installed)
        check(results, "a program in C has the instrument", c_program, installed, "instrument", "devshare")
        check(results, "a program that uses devshare too has one runtime", beside_devshare, installed)
        check(results, "a Python program finds it by both of its names", by_name, installed)
        for program in ("key_pair", "missing"):
            if options.valgrind:
                check(results, f"{program} is clean under valgrind", under_valgrind, installed, program)
            else:
                results.skipped(f"{program} is clean under valgrind", "there is no valgrind")
    results.finish()


main()
