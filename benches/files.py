#!/usr/bin/env python3
"""Times reductions over some axes of .npy files of any shape beside NumPy, in processor seconds.

    cargo build --release -p warpfold-cli && benches/files.py --shapes SEED COUNT

Draws shapes of rank 2 to 4, element types, orders and axes, writes each as a file of 64 to 256 MiB, and runs `warpfold OP
--axis` and NumPy in turn: mapped and read into memory, of which the better counts. What is compared is user and system time
together, the least of three runs, so that a busy machine disturbs little. NumPy's start is not counted; ours is. Prints
quantiles of the ratio and the worst cases. The same seed draws the same cases.

Needs NumPy. Files go to a temporary folder, one at a time; `--folder` names another place, best one in memory.
"""

import argparse
import math
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import shapes  # noqa: E402

HERE = Path(__file__).resolve().parent
LEAST, MOST = 64 << 20, 256 << 20
ROUNDS = 3
OPS = {
    "sum": "sum",
    "mean": "mean",
    "var": "var",
    "min": "min",
    "max": "max",
    "argmin": "argmin",
    "prod": "prod",
    "count-nonzero": "count_nonzero",
    "all": "all",
}
DESCR = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "i32": "<i4", "u8": "|u1"}
# Beside ordinary numbers: what takes other paths.
ODD = ("NaN", "infinite", "wide")


def draw(rng):
    """One case, and what its numbers are like."""
    while True:
        dtype = rng.choice(("f32", "f32", "f64", "f64", "i32", "u8", "f16"))
        # Halves are reduced in software by NumPy, and products overflow.
        op = rng.choice([op for op in OPS if (op, dtype) != ("prod", "f16")] + ["sum", "mean", "max"])
        rank = rng.choice((2, 2, 3, 3, 4))
        elements = math.exp(rng.uniform(math.log(LEAST), math.log(MOST))) / shapes.SIZE[dtype]
        shape = shapes.sizes(rng, elements, rank)
        several = op != "argmin" and rank > 2 and rng.random() < 0.3
        axes = sorted(rng.sample(range(rank), rng.randrange(2, rank))) if several else [rng.randrange(rank)]
        order = rng.choice(("C", "C", "Fortran"))
        odd = rng.choice(ODD) if dtype in ("f64", "f32") and rng.random() < 0.25 else ""
        case = shapes.Case(op, dtype, f"{order} {odd}".strip(), tuple(shape), (), 0, tuple(axes))
        if LEAST / 2 <= case.bytes <= MOST * 1.2 and case.outputs * 16 <= 1 << 30:
            return case


def cases(seed, count):
    rng = random.Random(seed)
    return [draw(rng) for _ in range(count)]


def write(numpy, case, path, seed):
    """Writes the case's array, whose elements repeat after some millions."""
    rng = numpy.random.default_rng(seed)
    n = min(case.elements, 1 << 22)
    if case.dtype in shapes.FLOATS:
        block = rng.random(n) * 2 - 1
        if "wide" in case.layout:
            block *= 2.0 ** rng.integers(-100, 100, n)
        elif case.layout.split(" ")[-1] in ODD:
            places = rng.integers(0, n, max(n // 100_000, 1))
            block[places] = numpy.nan if "NaN" in case.layout else numpy.inf
    else:
        block = rng.integers(0, 100, n)
    block = block.astype(DESCR[case.dtype])
    header = {"descr": DESCR[case.dtype], "fortran_order": case.layout.startswith("Fortran"), "shape": case.shape}
    with open(path, "wb") as file:
        numpy.lib.format.write_array_header_1_0(file, header)
        left = case.elements
        while left > 0:
            file.write(block[:left].tobytes())
            left -= len(block)


def spent(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def ours(binary, case, path, answer):
    """Processor seconds of our process."""
    command = [binary, case.op, "-q", "--axis", ",".join(map(str, case.axes)), "-o", answer, path]
    before = spent(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{case}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return spent(resource.RUSAGE_CHILDREN) - before


def theirs(numpy, case, path):
    """Processor seconds of NumPy in this process, the better of two ways to read."""
    axes = case.axes if len(case.axes) > 1 else case.axes[0]
    best = math.inf
    for mode in ("r", None):
        before = spent(resource.RUSAGE_SELF)
        with numpy.errstate(all="ignore"):
            array = numpy.load(path, mmap_mode=mode)
            getattr(numpy, OPS[case.op])(array, axis=axes)
        del array
        best = min(best, spent(resource.RUSAGE_SELF) - before)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shapes", nargs=2, type=int, metavar=("SEED", "COUNT"), required=True, help="COUNT cases drawn by SEED")
    parser.add_argument("--ours", type=Path, default=HERE.parent / "target/release/warpfold", help="the binary")
    parser.add_argument("--folder", type=Path, help="where the files go")
    parser.add_argument("--only", type=int, help="the case of this number alone")
    arguments = parser.parse_args()
    try:
        import numpy
    except ImportError:
        sys.exit("error: NumPy is missing\nhint: python3 -m pip install numpy")
    if not os.access(arguments.ours, os.X_OK):
        sys.exit(f"error: {arguments.ours} is missing\nhint: cargo build --release -p warpfold-cli")
    seed, count = arguments.shapes
    rows = []
    with tempfile.TemporaryDirectory(prefix="warpfold-files-", dir=arguments.folder) as folder:
        path, answer = f"{folder}/a.npy", f"{folder}/answer.npy"
        for number, case in enumerate(cases(seed, count)):
            if arguments.only not in (None, number):
                continue
            write(numpy, case, path, seed + number)
            pairs = [(ours(str(arguments.ours), case, path, answer), theirs(numpy, case, path)) for _ in range(ROUNDS)]
            mine = [a for a, _ in pairs if a is not None]
            rows.append((case, min(mine) if mine else None, min(b for _, b in pairs)))
            shown = "not made" if not mine else f"{rows[-1][1]:.3f} s, NumPy {rows[-1][2]:.3f} s"
            print(f"{number}: {case}: {shown}", file=sys.stderr, flush=True)
    print(f"seed {seed}, {count} cases; processor seconds, user and system")
    print(shapes.report(rows, "NumPy"))


if __name__ == "__main__":
    main()
