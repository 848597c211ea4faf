#!/usr/bin/env python3
"""Writes expected.json: what the reductions of the example data must give.

Each value is computed with rational numbers and rounded once. Needs the
standard library only.

    python3 expected.py           write expected.json
    python3 expected.py --check   fail if expected.json says anything else
"""

import csv
import json
import struct
import sys
from fractions import Fraction
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here.parents[1] / "tests" / "oracle"))

from rounding import F64, round_sqrt, round_to  # noqa: E402


def f64(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def answers(cells):
    """What a column of f64 gives; None is a missing value."""
    present = [(i, x) for i, x in enumerate(cells) if x is not None]
    exact = [Fraction(x) for _, x in present]
    n = len(exact)
    mean = sum(exact) / n
    variance = sum((x - mean) ** 2 for x in exact) / n
    least = min(x for _, x in present)
    greatest = max(x for _, x in present)
    floats = {
        "sum": f64(round_to(F64, sum(exact))),
        "mean": f64(round_to(F64, mean)),
        "var": f64(round_to(F64, variance)),
        "std": f64(round_sqrt(F64, variance)),
        "min": least,
        "max": greatest,
    }
    return {
        "rows": len(cells),
        "missing": len(cells) - n,
        "count": n,
        **{
            op: {"value": x, "hex": x.hex(), "bits": F64.hex(int.from_bytes(struct.pack(">d", x), "big"))}
            for op, x in floats.items()
        },
        "argmin": next(i for i, x in present if x == least),
        "argmax": next(i for i, x in present if x == greatest),
    }


def table(name):
    with open(here / name, newline="") as file:
        header, *rows = csv.reader(file)
    return {
        column: [float(row[i]) if row[i] else None for row in rows]
        for i, column in enumerate(header)
    }


def main():
    co2, elnino = table("co2.csv"), table("elnino.csv")
    months = [name for name in elnino if name != "YEAR"]
    by_year = list(zip(*(elnino[m] for m in months)))
    expected = {
        "co2.csv": {"co2": answers(co2["co2"])},
        "elnino.csv": {m: answers(elnino[m]) for m in months},
        "elnino.npy": {
            "shape": [len(by_year), len(months)],
            "all": answers([x for year in by_year for x in year]),
            "axis 0": [answers(elnino[m]) for m in months],
            "axis 1": [answers(list(year)) for year in by_year],
        },
    }
    text = json.dumps(expected, indent=1) + "\n"
    path = here / "expected.json"
    if "--check" in sys.argv[1:]:
        if path.read_text() != text:
            sys.exit(f"{path.name} is not what {Path(__file__).name} computes")
    else:
        path.write_text(text)


if __name__ == "__main__":
    main()
