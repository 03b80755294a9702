# SPDX-License-Identifier: Apache-2.0
"""Tests of what is installed: commands that must succeed, checks that are counted, and a build's installation."""

import os
import subprocess


class Failed(Exception):
    pass


def run(command, folder, **variables):
    """What a command prints, run in a folder with variables added to the environment; Failed unless it succeeds"""
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900,
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}\nexited with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def forget_the_build():
    """Takes out of the environment what would lead a user's program back into the build"""
    for variable in ("MESON_BUILD_ROOT", "MESON_SOURCE_ROOT", "LD_LIBRARY_PATH", "MALLOC_PERTURB_"):
        os.environ.pop(variable, None)


def install(build, folder, description):
    """The path of a pkg-config description of a fresh installation, moved away from where it was configured for"""
    run(["meson", "install", "-C", build, "--no-rebuild", "--destdir", folder / "installed"], folder)
    (path,) = (folder / "installed").rglob(description)
    return path


def check(results, name, action, *arguments):
    try:
        action(*arguments)
        results.passed(name)
    except Failed as failure:
        results.failed(name, str(failure))
