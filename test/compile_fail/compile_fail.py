#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that must not compile, and the words in which compilers say so.

A case is one source file. Its comments say what is expected:

    // reason: write std::move(key).close()            (words in the line of the deleted function that was chosen)
    // expect(all): what the compiler says itself      (a regular expression; also gcc, clang, clang-tidy; repeatable)
    // only: clang                                     (where nobody else can see it)

What stands between `#ifdef DEVSHARE_BAD` and `#endif` is the mistake; without it the file must compile. Several mistakes
of one kind stand each in an `#if DEVSHARE_BAD == 1` of its number and are looked at one by one. The good half is built
as an ordinary target, so that compile_commands.json holds its flags; this program runs that command again with
-fsyntax-only, as it is and with the macro. The bad half must fail, and every expected message must be in what the
compiler prints: an error of another kind is a failed case.

A control, `// control: VERDICT`, is a file on which this program must come to another verdict than "refused"; it proves
that the others can fail.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from results import Results  # noqa: E402

REFUSED = "refused"
COMPILES = "the bad half compiles"
OTHER_WORDS = "other words"
BROKEN = "the good half does not compile"
TOOLS = ("gcc", "clang", "clang-tidy")


@dataclass
class Case:
    source: Path
    expected: dict = field(default_factory=dict)  # tool -> regular expressions
    mistakes: list = field(default_factory=lambda: [1])
    tools: tuple = ("gcc", "clang")
    control: str = ""

    @property
    def name(self):
        return self.source.stem

    def name_of(self, tool, mistake):
        number = f", mistake {mistake}" if len(self.mistakes) > 1 else ""
        return f"{self.name}{number} ({tool})"


def pattern_of_reason(words):
    """Both compilers print the line of the function that was chosen right below a note that says so."""
    return r"(?:declared here|has been explicitly (?:marked )?deleted(?: here)?)\n.*// .*" + re.escape(words)


def read_case(source):
    case = Case(Path(source))
    text = case.source.read_text()
    for tool, pattern in re.findall(r"^// expect\(([a-z-]+)\): (.+)$", text, re.M):
        for each in ("gcc", "clang") if tool == "all" else (tool,):
            case.expected.setdefault(each, []).append(pattern.strip())
    for words in re.findall(r"^// reason: (.+)$", text, re.M):
        for each in ("gcc", "clang"):
            case.expected.setdefault(each, []).append(pattern_of_reason(words.strip()))
    numbers = sorted({int(number) for number in re.findall(r"^#(?:el)?if DEVSHARE_BAD == (\d+)$", text, re.M)})
    if numbers:
        case.mistakes = numbers
    only = re.search(r"^// only: ([a-z-]+)$", text, re.M)
    if only:
        case.tools = (only.group(1),)
    control = re.search(r"^// control: (.+)$", text, re.M)
    case.control = control.group(1) if control else ""
    for tool in case.tools:
        if tool not in TOOLS:
            sys.exit(f"{case.source}: no such tool: {tool}")
        if not case.expected.get(tool):
            sys.exit(f"{case.source}: says nothing of what {tool} prints")
    if not re.search(r"^#if.*\bDEVSHARE_BAD\b", text, re.M):
        sys.exit(f"{case.source}: has no bad half")
    return case


def commands_by_source(database):
    """source -> (directory, arguments without compiler, output and dependency options)"""
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
                ("-fdiagnostics-color", "-fcolor-diagnostics", "-Wno-attributes=")
            ):
                kept.append(argument)
        source = (directory / entry["file"]).resolve()
        found[source] = (directory, [a for a in kept if (directory / a).resolve() != source])
    return found


def run_tool(tool, program, command, source, mistake=None):
    """(exit status, everything it printed) of a look at a source, as it is or with a mistake"""
    directory, arguments = command
    arguments = arguments + ["-DDEVSHARE_CHECK"] + ([f"-DDEVSHARE_BAD={mistake}"] if mistake else [])
    if tool == "clang-tidy":
        check = "bugprone-use-after-move"
        line = [program, f"--checks=-*,{check}", f"--warnings-as-errors={check}", "--quiet", str(source), "--"]
        line += arguments
    else:
        line = [program, *arguments, "-fsyntax-only", "-fdiagnostics-color=never", str(source)]
        line += ["-Wconsumed"] if tool == "clang" else ["-Wno-attributes=clang::"]
    environment = dict(os.environ, LC_ALL="C")
    done = subprocess.run(line, cwd=directory, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def judge_good(case, tool, program, command):
    """(verdict, what was printed): BROKEN, or nothing to object to"""
    status, text = run_tool(tool, program, command, case.source)
    return (BROKEN if status != 0 else None), text


def judge_mistake(case, tool, program, command, mistake):
    """(verdict, what was printed)"""
    status, text = run_tool(tool, program, command, case.source, mistake)
    if status == 0:
        return COMPILES, text
    if "fatal error" in text or not all(re.search(pattern, text) for pattern in case.expected[tool]):
        return OTHER_WORDS, text
    return REFUSED, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", required=True, help="compile_commands.json")
    parser.add_argument("--gcc", default="")
    parser.add_argument("--clang", default="")
    parser.add_argument("--clang-tidy", default="")
    parser.add_argument("--show", action="store_true", help="print what the compilers say")
    parser.add_argument("sources", nargs="*")
    options = parser.parse_args()

    programs = {"gcc": options.gcc, "clang": options.clang, "clang-tidy": options.clang_tidy}
    cases = [read_case(source) for source in options.sources]
    results = Results("compile_fail")
    if all(case.name.startswith("control_") for case in cases):
        results.failed("the list of cases", "it is empty")
        results.finish()
    if not {COMPILES, OTHER_WORDS, BROKEN} <= {case.control for case in cases}:
        results.failed("the controls", "not every way to fail has one")

    commands = commands_by_source(options.commands)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        running = []
        for case in cases:
            command = commands.get(case.source.resolve())
            for tool in case.tools:
                if command is None:
                    results.failed(case.name_of(tool, case.mistakes[0]), "no target builds its good half")
                elif not programs[tool]:
                    results.skipped(case.name_of(tool, case.mistakes[0]), f"no {tool} here")
                else:
                    good = pool.submit(judge_good, case, tool, programs[tool], command)
                    for mistake in case.mistakes:
                        bad = pool.submit(judge_mistake, case, tool, programs[tool], command, mistake)
                        running.append((case, tool, mistake, good, bad))
        for case, tool, mistake, good, bad in running:
            verdict, text = good.result()
            if verdict is None:
                verdict, text = bad.result()
            wanted = case.control or REFUSED
            name = case.name_of(tool, mistake)
            if options.show:
                print(text)
            if verdict == wanted:
                results.passed(name)
            else:
                expected = "\n".join(case.expected[tool])
                results.failed(name, f"{verdict}; wanted: {wanted}\nexpected words:\n{expected}\nprinted:\n{text[:4000]}")
    results.finish()


if __name__ == "__main__":
    main()
