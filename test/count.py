#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the cases that really ran.

Every Catch2 program and every Python test writes its cases, one line each, to a file of its own in the results
directory: `start`, `pass`, `fail` or `skip`, a tab, a name. A case that started and never ended has failed. A program
that was to write results and wrote none has failed: it found no tests. A plain program (an example) is one case, by its
exit status. Exits with 1 when anything failed, or nothing ran.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path


def read_results(path):
    """(Counter of kinds, names that failed, names that were skipped) of one program's run"""
    counts, failed, skipped, open_case = Counter(), [], [], None
    for line in path.read_text(errors="replace").splitlines():
        kind, _, name = line.partition("\t")
        if kind == "start":
            if open_case is not None:
                failed.append(f"{open_case} (did not end)")
            open_case = name
            continue
        open_case = None
        counts[kind] += 1
        if kind == "fail":
            failed.append(name)
        elif kind == "skip":
            skipped.append(name)
    if open_case is not None:
        failed.append(f"{open_case} (did not end)")
    counts["fail"] = len(failed)
    return counts, failed, skipped


def count_run(log, status, results):
    """Counter of the cases of one `meson test`, after saying which failed and which were skipped"""
    total = Counter()
    runs = []
    if log.exists():
        runs = [json.loads(line) for line in log.read_text().splitlines() if line.strip()]
    for run in runs:
        label = run["name"].split(" / ")[-1]
        good = run["result"] in ("OK", "SKIP")
        named = run.get("env", {}).get("DEVSHARE_TEST_NAME")
        paths = sorted(results.glob(f"{named or Path(run['command'][0]).name}.*.tsv"))
        if not named and not paths:  # a plain program
            kind = "skip" if run["result"] == "SKIP" else "pass" if good else "fail"
            total[kind] += 1
            if kind == "fail":
                print(f"FAILED  {label}")
            continue
        counts = Counter()
        for path in paths:
            some, failed, skipped = read_results(path)
            counts += some
            for name in failed:
                print(f"FAILED  {label}: {name}")
            for name in skipped:
                print(f"skipped {label}: {name}")
        if not counts:
            print(f"FAILED  {label}: found no tests")
            counts["fail"] += 1
        elif not good and not counts["fail"]:
            print(f"FAILED  {label}: exited with {run.get('returncode')} ({run['result']}) though no case failed")
            counts["fail"] += 1
        total += counts

    if not runs:
        print("FAILED  no test was found")
        total["fail"] += 1
    if status != 0 and not total["fail"]:
        print(f"FAILED  the run ended with status {status}")
        total["fail"] += 1
    (results / "totals.json").write_text(json.dumps(total))
    return total


def sum_runs(files, failed_steps):
    """Counter over several runs; a step that failed without a failed case (a build) counts as one"""
    total = Counter()
    for file in files:
        total += Counter(json.loads(file.read_text()))
    if failed_steps and not total["fail"]:
        total["fail"] = failed_steps
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", type=Path, help="Meson's testlog.json: which programs ran, and how they exited")
    parser.add_argument("--status", type=int, default=0, help="exit status of the run as a whole")
    parser.add_argument("--results", type=Path, help="where the programs wrote their cases; totals.json goes there")
    parser.add_argument("--sum", nargs="+", type=Path, help="instead: add up the totals.json of several runs")
    parser.add_argument("--failed-steps", type=int, default=0, help="with --sum: how many steps failed")
    options = parser.parse_args()

    if options.sum:
        total = sum_runs([file for file in options.sum if file.exists()], options.failed_steps)
    else:
        total = count_run(options.log, options.status, options.results)
    print(f"{total['pass']} passed, {total['fail']} failed, {total['skip']} skipped")
    sys.exit(1 if total["fail"] or options.failed_steps or not total["pass"] else 0)


if __name__ == "__main__":
    main()
