#!/usr/bin/env python3
"""Holds `--by` against exact rational arithmetic, group by group.

    python3 tests/oracle/groups.py target/debug/warpfold              60 tables
    python3 tests/oracle/groups.py --cases 1000 target/debug/warpfold
    python3 tests/oracle/groups.py --only 17 target/debug/warpfold    one of them again

Draws tables of text with keys and values that are hard (empty cells, quotes, NaN,
numbers that cancel), and compares the answers, those of merged pieces and those of
the rows in another order. Needs the standard library only. Exit status 3 if anything
differs.
"""

import argparse
import csv
import io
import math
import random
import re
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

MISSING = ("", "NA", "NULL")
KEYS = ("north", "south", "01", "1", "1.0", "10", "2", "-3", "a,b", 'say "x"', "é", "")
VALUES = ("0", "-0.0", "1e308", "-1e308", "1e-308", "5e-324", "0.1", "-2.5", "1e16", "-1e16", "3", "")
OPS = ("sum", "mean", "min", "max", "argmin", "count", "count-nan", "sumsq")


def draw(rng):
    """The rows of a table: some keys each, and a value."""
    width, rows = rng.randint(1, 3), rng.choice((1, 2, 20, 200, 3000))
    keys = rng.sample(KEYS, rng.randint(1, len(KEYS)))
    values = list(rng.sample(VALUES, rng.randint(2, len(VALUES))))
    if rng.random() < 0.3:
        values += ["nan", "inf", "-inf"][: rng.randint(1, 3)]

    def value():
        if rng.random() < 0.4:
            return rng.choice(values)
        return repr(math.ldexp(rng.uniform(-1, 1), rng.choice((0, 3, 60, -80, 900))))

    rows = [[rng.choice(keys) for _ in range(width)] + [value()] for _ in range(rows)]
    # One number with a decimal: the column is of floats.
    rows[0][-1] = "0.25"
    return width, rows


def text(width, rows):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow([f"k{i}" for i in range(width)] + ["x"])
    writer.writerows(rows)
    return out.getvalue()


def order(key):
    """Texts that are whole numbers by value, other texts by their bytes, none last."""
    if key is None:
        return (2, 0, b"")
    if re.fullmatch(r"0|-?[1-9][0-9]*", key):
        return (0, int(key), b"")
    return (1, 0, key.encode())


def rounded(fraction):
    try:
        return float(fraction)
    except OverflowError:
        return math.inf if fraction > 0 else -math.inf


def total(terms):
    """The exact total of floats, or what specials make of it."""
    if any(math.isnan(x) for x in terms) or {math.inf, -math.inf} <= set(terms):
        return math.nan
    for special in (math.inf, -math.inf):
        if special in terms:
            return special
    return sum(map(Fraction, terms), Fraction(0))


def answer(op, found):
    """One operation over (row, number) pairs, as text."""
    xs = [x for _, x in found]
    nans = sum(math.isnan(x) for x in xs)
    if op == "count":
        return str(len(xs))
    if op == "count-nan":
        return str(nans)
    if op in ("min", "max", "argmin"):
        if not xs:
            return ""
        if nans:
            return "nan" if op != "argmin" else str(next(i for i, x in found if math.isnan(x)))
        # Zeros of either sign are equal where a position is asked for; a value has the sign of the least.
        if op == "argmin":
            return str(min(found, key=lambda pair: (pair[1], pair[0]))[0])
        return bits((min if op == "min" else max)(found, key=lambda pair: (pair[1], math.copysign(1, pair[1])))[1])
    if op == "sumsq":
        result = sum((Fraction(x) ** 2 for x in xs), Fraction(0)) if all(map(math.isfinite, xs)) else (
            math.nan if nans else math.inf)
    else:
        result = total(xs)
        if op == "mean":
            if not xs:
                return "nan"
            result = result / len(xs) if isinstance(result, Fraction) else result
    return bits(rounded(result) if isinstance(result, Fraction) else result)


def bits(x):
    return "nan" if math.isnan(x) else float.hex(x)


def expected(width, rows):
    groups = {}
    for i, row in enumerate(rows):
        key = tuple(None if k in MISSING else k for k in row[:width])
        group = groups.setdefault(key, [])
        if row[-1] not in MISSING:
            group.append((i, float(row[-1])))
    table = []
    for key in sorted(groups, key=lambda key: [order(k) for k in key]):
        table.append(["" if k is None else k for k in key] + [answer(op, groups[key]) for op in OPS])
    return table


def read(out, width):
    """What warpfold printed, with floats as their bits."""
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == [f"k{i}" for i in range(width)] + list(OPS), rows[0]
    floats = {"sum", "mean", "min", "max", "sumsq"}
    value = lambda op, cell: bits(float(cell)) if cell and op in floats else cell
    return [row[:width] + [value(*pair) for pair in zip(OPS, row[width:])] for row in rows[1:]]


def run(binary, folder, *words):
    done = subprocess.run([binary, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{words}: {done.stderr}")
    return done.stdout


def check(binary, seed):
    rng = random.Random(f"groups {seed}")
    width, rows = draw(rng)
    wanted = expected(width, rows)
    keys = ",".join(f"k{i}" for i in range(width))
    flags = ["-q", "-c", "x", "--by", keys, "--dtype", "f64"]
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        write = lambda name, part: Path(folder, name).write_text(text(width, part), "utf-8")
        write("all.csv", rows)
        ask = ["reduce", *flags, "--op", ",".join(OPS), "-f", "csv"]
        got = read(run(binary, folder, *ask, "all.csv"), width)
        if got != wanted:
            problems.append(("whole", got, wanted))
        # Pieces, merged in another order.
        cuts = sorted({0, len(rows), *(rng.randint(0, len(rows)) for _ in range(3))})
        states = []
        for start, end in zip(cuts, cuts[1:]):
            write("piece.csv", rows[start:end])
            state = f"{start}.state"
            run(binary, folder, "partial", *flags, "--op", ",".join(OPS), "--start", str(start),
                "piece.csv", "-o", state)
            states.append(state)
        rng.shuffle(states)
        got = read(run(binary, folder, "merge", *states, "-f", "csv"), width)
        if got != wanted:
            problems.append(("merged", got, wanted))
        # Rows in another order: all but positions stay.
        write("all.csv", rng.sample(rows, len(rows)))
        place = width + OPS.index("argmin")
        without = lambda table: [row[:place] + row[place + 1:] for row in table]
        got = without(read(run(binary, folder, *ask, "all.csv"), width))
        if got != without(wanted):
            problems.append(("shuffled", got, without(wanted)))
    for what, got, wanted in problems:
        rows = [pair for pair in zip(got, wanted) if pair[0] != pair[1]][:3]
        print(f"FAIL groups {seed} {what}: {len(got)} and {len(wanted)} groups, {rows}", flush=True)
    return not problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--only", type=int)
    args = parser.parse_args()
    seeds = range(args.cases) if args.only is None else [args.only]
    binary = str(Path(args.binary).resolve())
    passed = sum(check(binary, seed) for seed in seeds)
    print(f"groups: {passed} of {len(seeds)} tables")
    sys.exit(0 if passed == len(seeds) else 3)


if __name__ == "__main__":
    main()
