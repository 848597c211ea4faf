#!/usr/bin/env python3
"""The same data through every container, against an independent oracle.

    python3 tests/oracle/containers.py target/debug/warpfold                 a hundred seconds
    python3 tests/oracle/containers.py --seconds 600 target/debug/warpfold   longer, more cases
    python3 tests/oracle/containers.py --self-test target/debug/warpfold     that faults are found

Draws arrays and tables, writes them in every container by every writer that is installed, asks for
every operation that the type has, and compares with exact arithmetic. Damages files and expects an
error, or the answer as it was. Prints one line for each kind of fault, with the smallest case found.

Needs Python 3.9 and its standard library; NumPy, pandas, Polars, DuckDB, PyArrow and safetensors write
more containers. What a missing package skips is counted and told. A case depends on the seed and its
number alone: `--only arrays:17` repeats it. Exit status: 0, or 1 if there are faults.
"""

import argparse
import collections
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
# One thread each: the cases run side by side.
os.environ.setdefault("POLARS_MAX_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import array_cases  # noqa: E402
import containers_self_test  # noqa: E402
import damage_cases  # noqa: E402
import odd_cases  # noqa: E402
import text_cases  # noqa: E402
import typed_cases  # noqa: E402
from binary import Warpfold  # noqa: E402
from elements import rng_for  # noqa: E402

FAMILIES = {
    "arrays": array_cases.cases,
    "text": text_cases.cases,
    "odd": odd_cases.cases,
    "typed": typed_cases.cases,
    "damage": damage_cases.cases,
}
SHRINK_SECONDS = 4


class Kind:
    """One kind of fault: how often it was seen, and the smallest case."""

    def __init__(self, case, fault, where):
        self.case, self.fault, self.where = case, fault, where
        self.count = 0
        self.seen = collections.Counter()


class Findings:
    """What was checked, skipped and found; safe to share among threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.kinds = {}
        self.checked = collections.Counter()
        self.skipped = collections.Counter()

    def add(self, case, faults, where):
        with self.lock:
            self.checked[case.label] += 1
            for fault in faults:
                kind = self.kinds.setdefault(fault.kind, Kind(case, fault, where))
                kind.count += 1
                kind.seen[fault.where] += 1


def check(warpfold, case):
    with tempfile.TemporaryDirectory(prefix="warpfold-containers-") as folder:
        return case.check(warpfold, Path(folder))


def check_number(warpfold, findings, seed, family, number):
    """All cases of one number of a family."""
    skipped = collections.Counter()
    for case in FAMILIES[family](rng_for(seed, family, number), skipped):
        try:
            faults = check(warpfold, case)
        except Exception as error:
            raise RuntimeError(f"the check itself fails: {family}:{number} of seed {seed}, {case.label}") from error
        findings.add(case, faults, f"{family}:{number}")
    with findings.lock:
        findings.skipped.update(skipped)


def shrink(warpfold, kind, deadline):
    """Replaces the case by smaller ones as long as the same kind of fault remains."""
    smaller = kind.case.smaller()
    while time.monotonic() < deadline:
        case = next(smaller, None)
        if case is None:
            return
        same = [f for f in check(warpfold, case) if f.kind == kind.fault.kind]
        if same:
            kind.case, kind.fault = case, same[0]
            smaller = case.smaller()


def keep(warpfold, kind, folder):
    """Writes the files of the case, so that its command can be repeated there."""
    folder.mkdir(parents=True, exist_ok=True)
    kind.case.check(warpfold, folder)


def run(warpfold, options):
    findings = Findings()
    families = [f for f in FAMILIES if options.only is None or f == options.only.split(":")[0]]
    if options.only and ":" in options.only:
        check_number(warpfold, findings, options.seed, *numbered(options.only))
        return findings
    end = time.monotonic() + options.seconds
    numbers = iter(range(options.count if options.count else 10**9))
    lock = threading.Lock()

    def work():
        while time.monotonic() < end:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            for family in families:
                check_number(warpfold, findings, options.seed, family, number)

    with ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(work) for _ in range(options.jobs)]:
            job.result()
    return findings


def numbered(only):
    family, number = only.split(":")
    return family, int(number)


def report(warpfold, findings, options):
    kinds = sorted(findings.kinds.items())
    folder = Path(options.keep or tempfile.mkdtemp(prefix="warpfold-faults-")) if kinds else None
    for i, (name, kind) in enumerate(kinds, 1):
        shrink(warpfold, kind, time.monotonic() + SHRINK_SECONDS)
        keep(warpfold, kind, folder / str(i))
        print(f"FAULT {i}: {name} ({kind.count} times; {kind.where} of seed {options.seed})")
        print(f"  in {', '.join(w for w, _ in kind.seen.most_common(8))}{', ...' * (len(kind.seen) > 8)}")
        print(f"  cd {folder / str(i)}; {kind.fault.command}")
        print(f"  wanted {kind.fault.wanted}")
        print(f"  found  {kind.fault.found}", flush=True)
    for what, count in sorted(findings.skipped.items()):
        print(f"skipped {count} times: {what}")
    checked = sum(findings.checked.values())
    print(
        f"{checked} cases in {len(findings.checked)} containers, {sum(findings.skipped.values())} skipped, {len(kinds)} kinds of faults"
    )
    return 1 if kinds or not checked else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", help="the warpfold binary")
    parser.add_argument("--seed", default="1", help="another seed, other data (default 1)")
    parser.add_argument("--seconds", type=float, default=100, help="how long to draw cases (default 100)")
    parser.add_argument("--count", type=int, help="how many numbers to draw at most")
    parser.add_argument("--only", metavar="FAMILY[:NUMBER]", help=f"one of {', '.join(FAMILIES)}, or one of its cases")
    parser.add_argument("--keep", metavar="FOLDER", help="where the files of faults go (default: a temporary folder)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--self-test", action="store_true", help="test that faults are found")
    options = parser.parse_args()
    warpfold = Warpfold(options.binary)
    if options.self_test:
        passed, failed = containers_self_test.run(warpfold)
        print(f"self-test: {passed} passed, {failed} failed")
        return 1 if failed else 0
    return report(warpfold, run(warpfold, options), options)


if __name__ == "__main__":
    sys.exit(main())
