#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The count of cases, tested: nothing that went wrong may be counted as passed."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from results import Results  # noqa: E402

COUNT = Path(__file__).resolve().parent.parent / "count.py"


def count(runs, lines, status=0):
    """(exit status, last line) for programs {name: (Meson's result, named)} and what they wrote {name: text}"""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "testlog.json"
        log.write_text("".join(
            json.dumps({
                "name": f"devshare:unit / {program}", "result": result, "returncode": 0 if result == "OK" else 1,
                "env": {"DEVSHARE_TEST_NAME": program} if named else {}, "command": [f"/build/{program}"],
            }) + "\n"
            for program, (result, named) in runs.items()
        ))
        for program, text in lines.items():
            (folder / f"{program}.1.tsv").write_text(text)
        command = [sys.executable, COUNT, "--log", log, "--results", folder, "--status", str(status)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()[-1]


CASES = [
    ("cases are counted, whatever the number of programs",
     ({"a": ("OK", True), "b": ("OK", True)}, {"a": "start\tx\npass\tx\n", "b": "start\ty\npass\ty\nstart\tz\nskip\tz (why)\n"}),
     (0, "2 passed, 0 failed, 1 skipped")),
    ("a failed case fails the run",
     ({"a": ("FAIL", True)}, {"a": "start\tx\nfail\tx\nstart\ty\npass\ty\n"}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a failed case counts even where its program exits with 0",
     ({"a": ("OK", True)}, {"a": "start\tx\nfail\tx\n"}),
     (1, "0 passed, 1 failed, 0 skipped")),
    ("a case that starts and does not end has failed",
     ({"a": ("FAIL", True)}, {"a": "start\tx\npass\tx\nstart\ty\n"}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a case that gives way to another without an end has failed",
     ({"a": ("OK", True)}, {"a": "start\tx\nstart\ty\npass\ty\n"}),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a program that found no tests has failed",
     ({"a": ("OK", True), "b": ("OK", True)}, {"a": "start\tx\npass\tx\n"}),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a program that fails after its last case has failed",
     ({"a": ("FAIL", True)}, {"a": "start\tx\npass\tx\n"}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a program that hangs after its last case has failed",
     ({"a": ("TIMEOUT", True)}, {"a": "start\tx\npass\tx\n"}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a plain program is one case, by its exit status",
     ({"a": ("OK", False), "b": ("FAIL", False)}, {}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a run without any test has failed", ({}, {}), (1, "0 passed, 1 failed, 0 skipped")),
    ("a run that fails as a whole has failed",
     ({"a": ("OK", True)}, {"a": "start\tx\npass\tx\n"}, 1),
     (1, "1 passed, 1 failed, 0 skipped")),
    ("a run in which everything was skipped has not passed",
     ({"a": ("OK", True)}, {"a": "start\tx\nskip\tx (why)\n"}),
     (1, "0 passed, 0 failed, 1 skipped")),
]


def main():
    results = Results("count")
    for name, arguments, wanted in CASES:
        seen = count(*arguments)
        results.check(name, "" if seen == wanted else f"{seen} instead of {wanted}")
    results.finish()


if __name__ == "__main__":
    main()
