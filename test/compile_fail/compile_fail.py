#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that must not compile, and the words in which compilers say so.

A case is one source file. Its comments say what is expected: see tools/refused.py. What stands between
`#ifdef DEVSHARE_BAD` and `#endif` is the mistake; without it the file must compile. There may be several, each for
itself: an error at a line of each is wanted, and every expected message must be in what the compiler prints there. An
error of another kind, or elsewhere, is a failed case. The good half is in a target that nobody builds, so that
compile_commands.json holds its flags; this program runs that command, as it is and with the macro.

A control, `// control: VERDICT`, is a file on which this program must come to another verdict than "refused"; it proves
that the others can fail.
"""

import argparse
import concurrent.futures
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

root = Path(__file__).resolve().parent.parent.parent
sys.path += [str(root / "test" / "support"), str(root / "tools")]
from refused import Expectation, commands_by_source, read_expectation, run_tool  # noqa: E402
from results import Results  # noqa: E402

REFUSED = "refused"
COMPILES = "the bad half compiles"
OTHER_WORDS = "other words"
BROKEN = "the good half does not compile"


@dataclass
class Case:
    source: Path
    expected: Expectation
    mistakes: list = field(default_factory=list)  # the lines of each: a range
    control: str = ""

    @property
    def name(self):
        return self.source.stem

    def name_of(self, tool, number):
        which = f", mistake {number + 1}" if len(self.mistakes) > 1 else ""
        return f"{self.name}{which} ({tool})"


def read_case(source):
    source = Path(source).resolve()
    text = source.read_text()
    case = Case(source, read_expectation(source, text))
    control = re.search(r"^// control: (.+)$", text, re.M)
    case.control = control.group(1) if control else ""
    for half in re.finditer(r"^#ifdef DEVSHARE_BAD$.*?^#endif$", text, re.M | re.S):
        first = text.count("\n", 0, half.start()) + 1
        case.mistakes.append(range(first, first + half.group().count("\n") + 1))
    if not case.mistakes:
        sys.exit(f"{case.source}: has no bad half")
    return case


def printed_by_line(source, text):
    """line of the source -> what was printed of an error there, or of one in a header that this line led to"""
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
    # g++ warns of some things only while it optimises
    status, text = run_tool(tool, program, command, case.source, "DEVSHARE_UNDER_HARNESS", whole=tool == "gcc")
    if status != 0:
        return [(BROKEN, text)] * len(case.mistakes)
    status, text = run_tool(tool, program, command, case.source, "DEVSHARE_UNDER_HARNESS", "DEVSHARE_BAD")
    by_line = printed_by_line(case.source, text)
    verdicts = []
    for lines in case.mistakes:
        here = "\n".join(words for line, words in by_line.items() if line in lines)
        if status == 0 or (not here and by_line):
            verdicts.append((COMPILES, text))
        elif all(re.search(pattern, here) for pattern in case.expected.patterns[tool]):
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
            command = commands.get(case.source)
            for tool in case.expected.tools:
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
                    expected = "\n".join(case.expected.patterns[tool])
                    results.failed(
                        name, f"{verdict}; wanted: {wanted}\nexpected words:\n{expected}\nprinted:\n{text[:4000]}"
                    )
    results.finish()


if __name__ == "__main__":
    main()
