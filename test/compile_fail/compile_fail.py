#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that must not compile, and the words in which compilers say so.

A case is one source file. Its comments say what is expected:

    // reason: write std::move(key).close()            (words in the line of the deleted function that was chosen)
    // expect(all): what the compiler says itself      (a regular expression; also gcc, clang, clang-tidy; repeatable)
    // only: clang                                     (where nobody else can see it)

What stands between `#ifdef DEVSHARE_BAD` and `#endif` is the mistake; without it the file must compile. There may be
several, each for itself: an error at a line of each is wanted, and every expected message must be in what the compiler
prints there. An error of another kind, or elsewhere, is a failed case. The good half is built as an ordinary target, so
that compile_commands.json holds its flags; this program runs that command again with -fsyntax-only, as it is and with
the macro.

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
    mistakes: list = field(default_factory=list)  # the lines of each: a range
    tools: tuple = ("gcc", "clang")
    control: str = ""

    @property
    def name(self):
        return self.source.stem

    def name_of(self, tool, number):
        which = f", mistake {number + 1}" if len(self.mistakes) > 1 else ""
        return f"{self.name}{which} ({tool})"


def pattern_of_reason(words):
    """Both compilers print the line of the function that was chosen right below a note that says so."""
    return r"(?:declared here|has been explicitly (?:marked )?deleted(?: here)?)\n.*// .*" + re.escape(words)


def read_case(source):
    case = Case(Path(source).resolve())
    text = case.source.read_text()
    for tool, pattern in re.findall(r"^// expect\(([a-z-]+)\): (.+)$", text, re.M):
        for each in ("gcc", "clang") if tool == "all" else (tool,):
            case.expected.setdefault(each, []).append(pattern.strip())
    for words in re.findall(r"^// reason: (.+)$", text, re.M):
        for each in ("gcc", "clang"):
            case.expected.setdefault(each, []).append(pattern_of_reason(words.strip()))
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
    for half in re.finditer(r"^#ifdef DEVSHARE_BAD$.*?^#endif$", text, re.M | re.S):
        first = text.count("\n", 0, half.start()) + 1
        case.mistakes.append(range(first, first + half.group().count("\n") + 1))
    if not case.mistakes:
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


def run_tool(tool, program, command, source, bad):
    """(exit status, everything it printed) of a look at a source, without its mistakes or with them"""
    directory, arguments = command
    arguments = arguments + ["-DDEVSHARE_UNDER_HARNESS"] + (["-DDEVSHARE_BAD"] if bad else [])
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


def printed_by_line(source, text):
    """line of the source -> what was printed of errors there; an error in a header belongs to the line that led to it"""
    found = {}
    line = None
    for words in text.splitlines():
        place = re.match(re.escape(str(source)) + r":(\d+):\d+: +(?:fatal )?(?:error|required from here)", words)
        if place:
            line = int(place.group(1))
        if line is not None:
            found.setdefault(line, []).append(words)
    return {line: "\n".join(words) for line, words in found.items()}


def judge(case, tool, program, command):
    """for each mistake: (verdict, what was printed)"""
    status, text = run_tool(tool, program, command, case.source, bad=False)
    if status != 0:
        return [(BROKEN, text)] * len(case.mistakes)
    status, text = run_tool(tool, program, command, case.source, bad=True)
    by_line = printed_by_line(case.source, text)
    verdicts = []
    for lines in case.mistakes:
        here = "\n".join(words for line, words in by_line.items() if line in lines)
        if status == 0 or (not here and by_line):
            verdicts.append((COMPILES, text))
        elif all(re.search(pattern, here) for pattern in case.expected[tool]):
            verdicts.append((REFUSED, here))
        else:
            verdicts.append((OTHER_WORDS, here or text))
    return verdicts


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
                    results.failed(case.name_of(tool, 0), "no target builds its good half")
                elif not programs[tool]:
                    results.skipped(case.name_of(tool, 0), f"no {tool} here")
                else:
                    running.append((case, tool, pool.submit(judge, case, tool, programs[tool], command)))
        for case, tool, future in running:
            verdicts = future.result()
            if case.control:  # one look that ends as the control says is what it is for
                verdicts = [next((v for v in verdicts if v[0] == case.control), verdicts[0])]
            for number, (verdict, text) in enumerate(verdicts):
                name = f"{case.name} ({tool})" if case.control else case.name_of(tool, number)
                wanted = case.control or REFUSED
                if options.show:
                    print(text)
                if verdict == wanted:
                    results.passed(name)
                else:
                    expected = "\n".join(case.expected[tool])
                    results.failed(
                        name, f"{verdict}; wanted: {wanted}\nexpected words:\n{expected}\nprinted:\n{text[:4000]}"
                    )
    results.finish()


if __name__ == "__main__":
    main()
