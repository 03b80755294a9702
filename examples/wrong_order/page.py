#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives each program of this folder to the compilers, and makes one page of the programs and of what the compilers say.

Fails when right_order.cpp does not compile, when another one does, or when the reason that it expects (see
tools/refused.py) is not in a compiler's words.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.append(str(here.parent.parent / "tools"))
from refused import commands_by_source, read_expectation, run_tool  # noqa: E402

RIGHT = "right_order"
# As one reads them: A's mistakes, B's, what both may forget.
WRONG = (
    "send_before_admit",
    "getpid_for_a_pid",
    "keep_what_is_exported",
    "free_what_is_exported",
    "export_twice",
    "export_a_part",
    "export_an_import",
    "import_own_export",
    "import_before_decode",
    "write_what_is_read_only",
    "close_without_a_word",
    "close_twice",
    "use_after_close",
    "view_of_what_is_gone",
    "view_returned",
    "follow_a_device_pointer",
    "number_for_a_device",
    "ignore_a_failure",
)

INTRODUCTION = """# Wrong orders, in the compiler's words

Each program below is wrong in one way, and none of them compiles with this project's flags, where warnings are errors.
The words under each are the compilers' own, from the first error to the reason; only paths are shortened. Where one
compiler cannot see a mistake, what happens then is said.
"""


class Program:
    def __init__(self, name):
        self.source = here / f"{name}.cpp"
        text = self.source.read_text()
        comments, _, code = text.partition("#include")
        self.code = "#include" + code
        lines = [line.removeprefix("// ") for line in comments.splitlines()]
        keyword = re.compile(r"SPDX|(?:only|reason|otherwise|expect\S+): ")
        self.about = " ".join(line for line in lines if not keyword.match(line))
        self.otherwise = "".join(line.removeprefix("otherwise: ") for line in lines if line.startswith("otherwise: "))
        self.text = text


def title(name):
    return name.replace("_", " ").capitalize()


def shortened(text, source):
    text = text.replace(str(source), source.name)
    return re.sub(r"[^\s:]*include/devshare/", "devshare/", text)


def to_the_reason(text, patterns):
    """The lines from the first error to the last that was expected, and the code below them."""
    ends = [re.search(pattern, text).end() for pattern in patterns]
    lines = text.splitlines()
    last = text.count("\n", 0, max(ends))
    while last + 1 < len(lines) and not re.match(r"\S+:|In file included|\d+ errors?|cc1plus:", lines[last + 1]):
        last += 1
    first = next(number for number, line in enumerate(lines) if " error: " in line)
    return "\n".join(lines[first : last + 1])


def version_of(program):
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def section(program, compilers, said, problems):
    """The part of the page for one program; what is wrong with it goes into `problems`."""
    expectation = read_expectation(program.source, program.text)
    parts = [f"\n## {title(program.source.stem)}\n\n{program.about}\n\n```cpp\n{program.code}```\n"]
    for tool, compiler in compilers.items():
        name = Path(compiler).name
        status, text = said[program.source, tool]
        if tool not in expectation.tools:
            if status != 0:
                problems.append(f"{program.source.name}: {name} was not expected to refuse it, and says:\n{text}")
            parts.append(f"\n{name} compiles it; {program.otherwise}\n")
        elif status == 0:
            problems.append(f"{program.source.name}: {name} compiles it")
        elif not all(re.search(pattern, text) for pattern in expectation.patterns[tool]):
            problems.append(f"{program.source.name}: {name} does not say why:\n{text}")
        else:
            words = shortened(to_the_reason(text, expectation.patterns[tool]), program.source)
            parts.append(f"\n{name} says:\n\n```text\n{words}\n```\n")
    if not any(tool in compilers for tool in expectation.tools):
        parts.append(f"\nOnly {', '.join(expectation.tools)} sees this, and is not installed here.\n")
    return "".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", required=True, help="compile_commands.json of a build that has right_order.cpp")
    parser.add_argument("--page", required=True, type=Path, help="where to write the page")
    options = parser.parse_args()

    compilers = {tool: shutil.which(name) for tool, name in {"gcc": "g++", "clang": "clang++"}.items()}
    compilers = {tool: compiler for tool, compiler in compilers.items() if compiler}
    if not compilers:
        sys.exit("neither g++ nor clang++ is here")
    right = Program(RIGHT)
    wrong = [Program(name) for name in WRONG]
    left_out = {path.stem for path in here.glob("*.cpp")} ^ {RIGHT, *WRONG}
    if left_out:
        sys.exit(f"in this folder or in the list, but not in both: {', '.join(sorted(left_out))}")
    command = commands_by_source(options.commands).get(right.source)
    if command is None:
        sys.exit(f"{options.commands} has no command for {right.source}")

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = {
            (program.source, tool): pool.submit(run_tool, tool, compiler, command, program.source)
            for program in [right, *wrong]
            for tool, compiler in compilers.items()
        }
        said = {key: look.result() for key, look in looks.items()}

    problems = [
        f"{right.source.name}: {tool} refuses it:\n{said[right.source, tool][1]}"
        for tool in compilers
        if said[right.source, tool][0] != 0
    ]
    page = [INTRODUCTION]
    page += [f"\nMade with {', '.join(version_of(compiler) for compiler in compilers.values())}.\n"]
    page += [f"\n## {title(RIGHT)}\n\n{right.about}\n\n```cpp\n{right.code}```\n"]
    page += [section(program, compilers, said, problems) for program in wrong]
    for problem in problems:
        print("FAILED", problem)
    if problems:
        sys.exit(1)
    options.page.write_text("".join(page))
    print("".join(page))
    print(f"ok: {len(wrong)} programs, none of which compiles, each for its reason; the page is {options.page}")


if __name__ == "__main__":
    main()
