# SPDX-License-Identifier: Apache-2.0
"""Results of a test that is a Python program, in the form in which Catch2's main writes them (see test/count.py)."""

import os
import sys


class Results:
    """Counts checks, prints one line for each, and says so again in DEVSHARE_TEST_RESULTS."""

    def __init__(self, program):
        self.counts = {"pass": 0, "fail": 0, "skip": 0}
        name = os.environ.get("DEVSHARE_TEST_NAME", program)
        directory = os.environ.get("DEVSHARE_TEST_RESULTS")
        self._file = open(f"{directory}/{name}.{os.getpid()}.tsv", "w", buffering=1) if directory else None

    def _line(self, kind, name, detail):
        self.counts[kind] += 1
        print({"pass": "ok  ", "fail": "FAIL", "skip": "skip"}[kind], name)
        if detail:
            print("     " + detail.rstrip().replace("\n", "\n     "))
        sys.stdout.flush()
        if self._file:
            self._file.write(f"{kind}\t{name.replace(chr(9), ' ')}\n")

    def passed(self, name):
        self._line("pass", name, "")

    def failed(self, name, why):
        self._line("fail", name, why)

    def skipped(self, name, why):
        self._line("skip", f"{name} ({why})", "")

    def check(self, name, problems):
        """`problems` is a text or a list of texts; empty means passed."""
        text = problems if isinstance(problems, str) else "\n".join(problems)
        if text:
            self.failed(name, text)
        else:
            self.passed(name)

    def finish(self):
        """Ends the program: non-zero when something failed, and when nothing was looked at."""
        print("{pass} passed, {fail} failed, {skip} skipped".format(**self.counts))
        if sum(self.counts.values()) == 0:
            print("no check was made at all")
            sys.exit(1)
        sys.exit(1 if self.counts["fail"] else 0)
