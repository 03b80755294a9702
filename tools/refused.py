# SPDX-License-Identifier: Apache-2.0
"""Code that compilers must refuse: what a source says it expects, and what a compiler says of it.

    // reason: write std::move(key).close()            (words in the line of the deleted function that was chosen)
    // expect(all): what the compiler says itself      (a regular expression; also gcc, clang, clang-tidy; repeatable)
    // only: clang                                     (where nobody else can see it)

Used by test/compile_fail and by examples/wrong_order.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

TOOLS = ("gcc", "clang", "clang-tidy")


@dataclass
class Expectation:
    tools: tuple = ("gcc", "clang")  # those that must refuse
    patterns: dict = field(default_factory=dict)  # tool -> regular expressions, all of which it must print


def pattern_of_reason(words):
    """Both compilers print the line of the function that was chosen right below a note that says so."""
    return r"(?:declared here|has been explicitly (?:marked )?deleted(?: here)?)\n.*// .*" + re.escape(words)


def read_expectation(source, text):
    expectation = Expectation()
    for tool, pattern in re.findall(r"^// expect\(([a-z-]+)\): (.+)$", text, re.M):
        for each in ("gcc", "clang") if tool == "all" else (tool,):
            expectation.patterns.setdefault(each, []).append(pattern.strip())
    for words in re.findall(r"^// reason: (.+)$", text, re.M):
        for each in ("gcc", "clang"):
            expectation.patterns.setdefault(each, []).append(pattern_of_reason(words.strip()))
    only = re.search(r"^// only: ([a-z-]+)$", text, re.M)
    if only:
        expectation.tools = (only.group(1),)
    for tool in expectation.tools:
        if tool not in TOOLS:
            sys.exit(f"{source}: no such tool: {tool}")
        if not expectation.patterns.get(tool):
            sys.exit(f"{source}: says nothing of what {tool} prints")
    return expectation


def commands_by_source(database):
    """source -> (directory, arguments that every compiler takes, without output and dependency options)"""
    found = {}
    for entry in json.loads(Path(database).read_text()):
        directory = Path(entry["directory"])
        arguments = shlex.split(entry["command"])
        while Path(arguments[0]).name == "ccache":
            arguments.pop(0)
        kept = []
        skip = False
        for argument in arguments[1:]:
            if skip:
                skip = False
            elif argument in ("-o", "-MF", "-MQ", "-MT"):
                skip = True
            elif argument not in ("-c", "-MD", "-MMD", "-Winvalid-pch") and not argument.startswith(
                ("-fdiagnostics-color", "-fcolor-diagnostics", "-Wno-attributes=", "-Wconsumed", "-Wthread-safety")
            ):
                kept.append(argument)
        source = (directory / entry["file"]).resolve()
        found[source] = (directory, [a for a in kept if (directory / a).resolve() != source])
    return found


def run_tool(tool, program, command, source, *defines, whole=False):
    """(exit status, everything it printed) of a look at a source with the flags of a command; of a compilation to the
    end, where `whole` says so"""
    directory, arguments = command
    arguments = arguments + [f"-D{name}" for name in defines]
    if tool == "clang-tidy":
        check = "bugprone-use-after-move"
        line = [program, f"--checks=-*,{check}", f"--warnings-as-errors={check}", "--quiet", str(source), "--"]
        line += arguments
    else:
        line = [program, *arguments, *(["-c", "-o", os.devnull] if whole else ["-fsyntax-only"])]
        line += ["-fdiagnostics-color=never", str(source)]
        line += ["-Wconsumed", "-ferror-limit=0"] if tool == "clang" else ["-Wno-attributes=clang::"]
    environment = dict(os.environ, LC_ALL="C")
    look = {"capture_output": True, "text": True, "errors": "replace", "timeout": 300}
    done = subprocess.run(line, cwd=directory, env=environment, check=False, **look)
    ended = f"ended by signal {-done.returncode}" if done.returncode < 0 else ""
    return done.returncode, done.stdout + done.stderr + ended
