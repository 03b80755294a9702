#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""devshare as its users get it: installed, found by pkg-config and by CMake, and as a subproject of Meson."""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "support"))
from installed import Failed, check, forget_the_build, install, run  # noqa: E402
from results import Results  # noqa: E402

SAYS = "host runtime, a ticket of 256 bytes for 5000 bytes of memory"


def copy_project(name, folder):
    project = folder / name
    shutil.copytree(HERE / name, project)
    shutil.copy(HERE / "main.cpp", project)
    return project


def check_program(program, folder, libraries=""):
    state = folder / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    said = run([program], folder, DEVSHARE_RUNTIME="host", DEVSHARE_HOST_STATE=str(state), LD_LIBRARY_PATH=libraries)
    if SAYS not in said:
        raise Failed(f"the program says: {said}")


def install_devshare(build, folder):
    """(prefix, library folder)"""
    libraries = install(build, folder, "devshare.pc").parent.parent
    prefix = next(p for p in libraries.parents if (p / "include/devshare").is_dir())
    return prefix, libraries


def by_pkg_config(folder, prefix, libraries):
    project = copy_project("pkg_config", folder)
    run(["meson", "setup", "build"], project, PKG_CONFIG_PATH=str(libraries / "pkgconfig"))
    run(["meson", "compile", "-C", "build"], project)
    check_program(project / "build/consumer", folder, str(libraries))


def by_cmake(folder, prefix, libraries):
    project = copy_project("cmake", folder)
    run(["cmake", "-S", ".", "-B", "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}"], project)
    run(["cmake", "--build", "build"], project)
    check_program(project / "build/consumer", folder, str(libraries))


def as_subproject(folder):
    project = copy_project("subproject", folder)
    (project / "subprojects").mkdir()
    (project / "subprojects/devshare").symlink_to(ROOT)
    run(["meson", "setup", "build"], project)
    commands = json.loads((project / "build/compile_commands.json").read_text())
    ours = [c["command"] for c in commands if "subprojects/devshare" in c["file"]]
    if not ours:
        raise Failed("nothing of devshare is compiled")
    if not all("-Wno-error" in command for command in ours):
        raise Failed("devshare's warnings are errors in somebody else's build")
    if json.loads(run(["meson", "introspect", "--tests", "build"], project)):
        raise Failed("devshare's tests are in somebody else's build")
    if json.loads(run(["meson", "introspect", "--installed", "build"], project)):
        raise Failed("devshare is installed with somebody else's program")
    run(["meson", "compile", "-C", "build"], project)
    check_program(project / "build/consumer", folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True, type=Path)
    options = parser.parse_args()
    forget_the_build()
    results = Results("consumer")
    with tempfile.TemporaryDirectory(prefix="devshare-consumer-") as name:
        folder = Path(name)
        try:
            installed = install_devshare(options.build, folder)
        except Failed as failure:
            results.failed("devshare installs", str(failure))
        else:
            results.passed("devshare installs")
            check(results, "a Meson project finds the installed devshare by pkg-config", by_pkg_config, folder, *installed)
            check(results, "a CMake project finds the installed devshare by find_package", by_cmake, folder, *installed)
        check(results, "a Meson project takes devshare as a subproject, without its tests and errors", as_subproject, folder)
    results.finish()


if __name__ == "__main__":
    main()
