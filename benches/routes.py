"""Times every walk that can answer each of some tables drawn at random, on a device, and says how long the chosen one takes beside the
quickest: what the thresholds of `route.rs`, `question.rs` and `abreast.rs` in `crates/cuda/src/engine` are chosen by.

    cargo build --release -p warpfold-cuda --features cudarc --example shapes
    python3 routes.py 1 4000 --seconds 200
"""

import argparse
import datetime
import math
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import rows_of_records
import shapes

HERE = Path(__file__).resolve().parent
# One of each kind of accumulator at least.
OPS = {
    "sum": shapes.NUMBERS,
    "mean": shapes.FLOATS,
    "norm1": shapes.FLOATS,
    "norm2": shapes.FLOATS,
    "var": shapes.FLOATS,
    "sumsq": shapes.INTEGERS,
    "min": shapes.NUMBERS,
    "max": shapes.NUMBERS,
    "argmax": shapes.NUMBERS,
    "prod": shapes.FLOATS,
    "logsumexp": shapes.FLOATS,
    "or": shapes.INTEGERS,
    "any": ("bool",),
    "count-nonzero": (*shapes.NUMBERS, "bool"),
}
LEAST, MOST = 1 << 11, 1 << 30


def table(rng, dtype, op):
    """Rows, columns or the middle of three axes, in C order."""
    while True:
        logs = math.log(math.exp(rng.uniform(math.log(LEAST), math.log(MOST))) / shapes.SIZE[dtype])
        kind = rng.choice(("rows", "rows", "columns", "columns", "middle"))
        cuts = sorted(rng.uniform(0, logs) for _ in range(2 if kind == "middle" else 1))
        shape = [max(1, round(math.exp(b - a))) for a, b in zip([0, *cuts], [*cuts, logs])]
        shape = [1 << round(math.log2(n)) if rng.random() < 0.2 else n for n in shape]
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        case = shapes.Case(op, dtype, kind, tuple(shape), tuple(strides), 0, (0,) if kind == "columns" else (1,))
        if LEAST / 2 <= case.bytes <= 2 * MOST and case.outputs * 8 <= 2 * MOST:
            return case


def cases(seed, count):
    """Four of five are tables; the rest any shapes."""
    rng = random.Random(seed)
    drawn = []
    while len(drawn) < count:
        if rng.random() < 0.2:
            drawn.append(shapes.draw(rng, LEAST, MOST, shapes.DEVICE))
            continue
        dtype = rng.choice(shapes.TYPES)
        drawn.append(table(rng, dtype, rng.choice([op for op, types in OPS.items() if dtype in types])))
    return sorted(drawn, key=lambda case: list(shapes.SIZE).index(case.dtype))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--ours", type=Path, default=HERE.parent / "target/release/examples", help="the folder of our examples")
    parser.add_argument("--records", type=Path, help="the folder that a record goes to")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    arguments = parser.parse_args()
    command = [arguments.ours / "shapes", "--walk", "each"]
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + arguments.seconds if arguments.seconds else math.inf
    rows = []
    for done, case in enumerate(cases(arguments.seed, arguments.count)):
        if time.monotonic() > deadline:
            print(f"stopped after {done} of {arguments.count} cases", file=sys.stderr)
            break
        print(case.line(), file=program.stdin, flush=True)
        words = [word.split("=") for word in program.stdout.readline().split()]
        if any(len(word) != 3 for word in words) or not words:
            print(f"left out: {case}: {words}", file=sys.stderr)
            continue
        rows.append((case, {name: (walk, float(seconds)) for name, walk, seconds in words}))
    program.stdin.close()
    program.wait()

    def beside(row):
        """The time of what is chosen, of that of the quickest walk; nothing where there is no choice."""
        times = {walk: seconds for walk, seconds in row[1].values()}
        return row[1]["chosen"][1] / min(times.values()) if "chosen" in row[1] and len(times) > 1 else None

    rows = sorted(((beside(row), *row) for row in rows if beside(row)), key=lambda row: -row[0])
    if not rows:
        sys.exit("no case was timed in two ways")
    ratios = [ratio for ratio, *_ in rows]
    shown = ", ".join(f"{name} {shapes.quantile(ratios, q):.2f}" for name, q in (("90 %", 0.9), ("95 %", 0.95), ("99 %", 0.99), ("worst", 1)))
    text = [f"seed {arguments.seed}, {len(rows)} cases, chosen walks of the quickest: mean {statistics.geometric_mean(ratios):.3f}, {shown}"]
    for ratio, case, ways in rows[:30]:
        best = min(ways.values(), key=lambda way: way[1])
        text.append(f"{ratio:.2f}  {str(case):64} {ways['chosen'][0]} {ways['chosen'][1] * 1e6:.1f} us, {best[0]} {best[1] * 1e6:.1f}")
    print("\n".join(text))
    if arguments.records:
        stem = arguments.records / f"{datetime.date.today().isoformat()}-routes-{arguments.seed}"
        flat = [{"case": str(case), "line": case.line(), **{name: f"{walk} {seconds:.3e}" for name, (walk, seconds) in ways.items()}} for _, case, ways in rows]
        rows_of_records.write(stem.with_suffix(".json"), flat)
        print(f"written: {stem}.json", file=sys.stderr)


if __name__ == "__main__":
    main()
