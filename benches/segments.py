#!/usr/bin/env python3
"""Times reductions of segments in memory beside NumPy's reduceat, in turn, and prints a record.

    cargo build --release -p warpfold-cpu --example cpu_segments
    python3 benches/segments.py target/release/examples/cpu_segments            needs numpy

Distributions of lengths are drawn; a case is an operation, a type and a distribution. Contestants take turns, round by round, and the
best of the rounds counts: on one thread both tell processor time, which other processes on the machine disturb least.
"""

import argparse
import datetime
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# Elements of an array.
ELEMENTS = 1 << 22
TYPES = {"f64": "f8", "f32": "f4", "i64": "i8", "i32": "i4", "i16": "i2", "u8": "u1"}
# Operations, and what NumPy has for them; None where it has none.
OPS = {
    "sum": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mean": None,
    "var": None,
    "argmin": None,
}
FLOATS = ("f64", "f32")


def distributions(rng):
    """Names, and lengths of segments that have about ELEMENTS elements."""

    def uniform(mean):
        return rng.integers(1, 2 * mean, ELEMENTS // mean)

    def zipf(a):
        lens = np.minimum(rng.zipf(a, ELEMENTS), 1 << 20)
        return lens[: max(1, np.searchsorted(np.cumsum(lens), ELEMENTS))]

    yield "mean 4", uniform(4)
    yield "mean 16", uniform(16)
    yield "mean 256", uniform(256)
    yield "mean 4096", uniform(4096)
    yield "all 1", np.ones(ELEMENTS // 4, dtype=int)
    yield "all 8", np.full(ELEMENTS // 8, 8)
    yield "alternating 1 and 4096", np.tile([1, 4096], ELEMENTS // 4097)
    yield "Zipf 1.2", zipf(1.2)
    yield "Zipf 1.5", zipf(1.5)
    yield "Zipf 2", zipf(2.0)
    yield "one huge, 2^18 of 1", np.array([ELEMENTS] + [1] * (1 << 18))
    yield "geometric, mean 32", rng.geometric(1 / 32, ELEMENTS // 32)


def data(rng, dtype, count):
    """Elements whose sums fit, and products neither vanish nor overflow."""
    if dtype.startswith("f"):
        return (rng.random(count) + 0.5).astype(TYPES[dtype])
    return rng.integers(0, 100, count).astype(TYPES[dtype])


def timed(call, rounds=3):
    """Seconds of processor time of the best of some calls."""
    best = float("inf")
    begin = time.process_time()
    calls = 0
    while calls < rounds or time.process_time() - begin < 0.02:
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
        calls += 1
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="words that a case's line must contain, separated by commas")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    worker = subprocess.Popen([arguments.program, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ours(line):
        worker.stdin.write(line + "\n")
        worker.stdin.flush()
        answer = worker.stdout.readline().strip()
        return float(answer) if not answer.startswith("error") else sys.exit(f"{line}: {answer}")

    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    print(f"{datetime.date.today()}, {model}, {os.cpu_count()} cores, one thread each, NumPy {np.__version__}, seed {arguments.seed}\n")
    print("| case | segments | ns a segment | ns an element | NumPy, ns a segment | times as fast |")
    print("|---|---|---|---|---|---|")
    words = [word for word in arguments.only.split(",") if word]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for name, lens in distributions(rng):
            offsets = np.concatenate([[0], np.cumsum(lens)]).astype(np.int64)
            path = Path(folder) / f"{name.replace(' ', '-').replace('^', '')}.offsets"
            offsets.tofile(path)
            for dtype in TYPES:
                array = data(rng, dtype, offsets[-1])
                elements = Path(folder) / f"{path.stem}.{dtype}"
                array.tofile(elements)
                for op, peer in OPS.items():
                    if op == "prod" and dtype not in FLOATS:
                        continue
                    case = f"{op} {dtype} {name}"
                    if not all(word in case for word in words):
                        continue
                    best = [float("inf"), float("inf")]
                    for _ in range(arguments.rounds):
                        best[0] = min(best[0], ours(f"{op} {dtype} {path} {elements}"))
                        if peer is not None:
                            best[1] = min(best[1], timed(lambda: peer.reduceat(array, offsets[:-1])))
                    n = len(lens)
                    figures = f"{best[0] * 1e9 / n:.1f} | {best[0] * 1e9 / len(array):.3f}"
                    if peer is None:
                        print(f"| {case} | {n} | {figures} | | |", flush=True)
                        continue
                    ratio = best[1] / best[0]
                    ratios.append((ratio, case))
                    print(f"| {case} | {n} | {figures} | {best[1] * 1e9 / n:.1f} | {ratio:.2f} |", flush=True)
                elements.unlink()
            path.unlink()
    worker.stdin.close()
    worker.wait()
    ratios.sort()
    if len(ratios) > 1:
        values = [ratio for ratio, _ in ratios]
        tenth, median, most = values[len(values) // 10], statistics.median(values), values[-1]
        below = sum(value < 1 for value in values)
        print(f"\n{len(values)} cases beside NumPy: a tenth is below {tenth:.2f}, median {median:.2f}, most {most:.2f}; {below} below 1.00.")
        print("Worst: " + ", ".join(f"{case} {ratio:.2f}" for ratio, case in ratios[:5]))


if __name__ == "__main__":
    main()
