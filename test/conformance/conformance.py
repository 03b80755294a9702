#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the rules on a library of ACL, product after product, and makes the table of docs/conformance.md.

As a test, the drop-in of this build plays each product in turn, and the table in the document must be what it did.
With DEVSHARE_RUNTIME=ascend the library that the machine has is asked instead, once, and its answers are printed beside
what the rules say. test/conformance/run.sh builds what this needs.
"""

import argparse
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "support"))
from results import Results  # noqa: E402

PRODUCTS = ["a2", "a3", "training", "310p", "950"]
DOCUMENT = ROOT / "docs/conformance.md"
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
SKIPPED = 77
C_PROGRAMS = ["key_pair", "key_files", "key_pipes", "handle_pair", "sparse_ranges", "ranks"]


def run_rules(program, record, **variables):
    """(exit status, what was recorded)"""
    environment = {**os.environ, **variables, "DEVSHARE_TEST_RECORD": str(record)}
    status = subprocess.run([program], env=environment, check=False).returncode
    lines = record.read_text().splitlines() if record.exists() else []
    return status, [json.loads(line) for line in lines]


class Table:
    """Rows in the order of the rules; a cell for each product."""

    def __init__(self, products):
        self.products = products
        self.rows = {}  # (rule, what) -> {product: (expected, got)}
        self.skipped = {}  # rule -> {product: why}

    def add(self, product, records):
        for one in records:
            if "skipped" in one:
                self.skipped.setdefault(one["rule"], {})[product] = one["skipped"]
            else:
                self.rows.setdefault((one["rule"], one["what"]), {})[product] = one["expected"], str(one["got"])

    @staticmethod
    def number(rule):
        return int(rule[1:rule.index(":")])

    def expected(self, cells):
        owed = {}
        for product, (expected, _) in cells.items():
            owed.setdefault(expected, []).append(product)
        usual = max(owed, key=lambda expected: len(owed[expected]))
        others = [f"{', '.join(products)}: {expected}" for expected, products in owed.items() if expected != usual]
        return "; ".join([usual, *others])

    def lines(self):
        heading = ["rule", "what is done", "owed", *self.products]
        yield f"| {' | '.join(heading)} |"
        yield f"|{' --- |' * len(heading)}"
        rules = sorted({rule for rule, _ in self.rows} | set(self.skipped), key=self.number)
        for rule in rules:
            number, _, sentence = rule.partition(": ")
            yield f"| **{number}** | *{sentence}* |{' |' * (len(self.products) + 1)}"
            for (of, what), cells in self.rows.items():
                if of == rule:
                    got = [cells[product][1] if product in cells else "–" for product in self.products]
                    yield f"| | {what} | {self.expected(cells)} | {' | '.join(got)} |"


def document_table():
    text = DOCUMENT.read_text()
    return text[text.index(BEGIN) + len(BEGIN):text.index(END)]


def write_document(lines):
    text = DOCUMENT.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    DOCUMENT.write_text(text[:start] + "\n".join(lines) + "\n" + text[end:])


def without_rules(lines, excused):
    kept, number = [], 0
    for line in lines:
        if line.startswith("| **R"):
            number = int(line[5:line.index("**", 4)])
        if number not in excused:
            kept.append(line)
    return kept


def differences(table):
    """What the document has otherwise. A rule that this machine cannot show (a sanitizer, no rights) is not compared."""
    excused = {Table.number(rule) for rule, why in table.skipped.items() if set(why) == set(table.products)}
    said, seen = (without_rules(list(lines), excused) for lines in (document_table().splitlines(), table.lines()))
    lines = list(difflib.unified_diff(said, seen, "docs/conformance.md", "what the library does", lineterm="", n=1))
    return [*lines, "where that is right: sh test/conformance/run.sh --write"] if lines else []


def rules_not_asked(table):
    known = set(re.findall(r"^\| (R\d+) \|", (ROOT / "docs/rules.md").read_text(), re.MULTILINE))
    asked = {f"R{table.number(rule)}" for rule in [*table.skipped, *(rule for rule, _ in table.rows)]}
    return [f"no case: {rule}" for rule in sorted(known - asked)] + [f"no rule: {rule}" for rule in sorted(asked - known)]


def play_products(options, results):
    table = Table(PRODUCTS)
    with tempfile.TemporaryDirectory(prefix="devshare-conformance-") as folder:
        for product in PRODUCTS:
            status, records = run_rules(options.program, Path(folder) / product, DEVSHARE_TEST_PROFILE=product,
                                        DEVSHARE_TEST_ACL=options.library, DEVSHARE_TEST_NAME=f"conformance.{product}")
            table.add(product, records)
            results.check(f"{product}: every rule holds", "" if status == 0 and records else f"exited with {status}")
        # By its name, as a vendor's library is found, and known by what it calls itself.
        status, records = run_rules(options.program, Path(folder) / "by_name", DEVSHARE_RUNTIME="ascend",
                                    LD_LIBRARY_PATH=str(Path(options.library).parent),
                                    DEVSHARE_TEST_NAME="conformance.by_name")
        results.check("a library that is found by its name is asked too",
                      "" if status == 0 and records else f"exited with {status}")
    results.check("every rule of docs/rules.md is asked", rules_not_asked(table))
    if options.write:
        write_document(table.lines())
    results.check("docs/conformance.md has what the library does", differences(table))


def ask_the_machine(options, results):
    table = Table(["here"])
    with tempfile.TemporaryDirectory(prefix="devshare-conformance-") as folder:
        status, records = run_rules(options.program, Path(folder) / "record", DEVSHARE_TEST_NAME="conformance.here")
        table.add("here", records)
        results.check("every rule holds", "" if status == 0 and records else f"exited with {status}")
        for name in C_PROGRAMS:
            built = Path(folder) / name
            command = ["cc", "-std=c11", "-D_GNU_SOURCE", "-DANOTHER_LIBRARY", f"-I{ROOT / 'lib/drop_in/include'}",
                       HERE.parent / f"drop_in/{name}.c", "-o", built, *options.link.split(), "-lascendcl"]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            ran = made if made.returncode else subprocess.run([built], capture_output=True, text=True, check=False)
            if made.returncode == 0 and ran.returncode == SKIPPED:
                results.skipped(f"{name}.c, in C11", "it needs two devices")
            else:
                results.check(f"{name}.c, in C11", "" if ran.returncode == 0 else f"{ran.returncode}: {ran.stdout}{ran.stderr}")
    print("\n".join(table.lines()))
    for rule, why in table.skipped.items():
        print(f"not shown: {rule}: {why['here']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the Catch2 program of the rules")
    parser.add_argument("--library", help="the library that plays the products")
    parser.add_argument("--write", action="store_true", help="puts what was seen into docs/conformance.md")
    parser.add_argument("--link", default="", help="for the C programs: where the machine's library is")
    options = parser.parse_args()
    results = Results("conformance")
    if os.environ.get("DEVSHARE_RUNTIME") == "ascend":
        if options.write:
            parser.error("--write: the table is what the drop-in does")
        ask_the_machine(options, results)
    else:
        play_products(options, results)
    results.finish()


main()
