#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/cases.md and the tests know the same cases: each row names tests that carry its number, and each number that a
test carries has a row that names the test."""

import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS / "support"))
from results import Results  # noqa: E402

NUMBER = re.compile(r"\bB\d{3}\b")


def named_in_tests():
    """{test: its numbers}: from the names of its cases, or from anywhere in a file that has no cases of its own"""
    found = {}
    for path in sorted(TESTS.rglob("*")):
        if path.suffix not in (".cpp", ".py") or path == Path(__file__).resolve():
            continue
        text = path.read_text()
        names = re.findall(r'TEST_CASE\(\s*((?:"[^"]*"\s*)+)', text)
        found.setdefault(path.stem, set()).update(NUMBER.findall(" ".join(names) if names else text))
    return found


def main():
    results = Results("docs.cases")
    rows = {}
    for line in (TESTS.parent / "docs/cases.md").read_text().splitlines():
        row = re.match(r"\| (B\d{3}) \|.*\| ([^|]*) \|$", line)
        if row:
            rows[row.group(1)] = re.findall(r"`([^`]+)`", row.group(2))
    tests = named_in_tests()
    results.check("docs/cases.md has rows", [] if rows else ["it has none"])
    results.check(
        "each case is carried by the tests that its row names",
        [f"{case}: {test} does not carry it" for case, named in rows.items() for test in named
         if " " not in test and case not in tests.get(test, ())]
        + [f"{case}: no test is named" for case, named in rows.items() if not named])
    results.check(
        "each case that a test carries has a row that names it",
        [f"{case}: {test} is not in its row" for test, cases in tests.items() for case in sorted(cases)
         if test not in rows.get(case, ())])
    results.finish()


main()
