#!/usr/bin/env python3
"""Times the Python package beside NumPy, and torch where it is, in one run.

    pip install ./crates/python numpy && benches/python.py            # everything; 3 GiB of memory
    benches/python.py --only small,whole --records DIR                # some parts; the record goes to DIR
    benches/python.py --only calls --cases 1000 --seed 7              # more small calls, others

Ours and the peer take turns, round after round, and the least time of each counts: other processes make times
longer, never shorter. What one thread does is told in processor time, which other processes hardly change; two threads and
a device in time that passes. Nothing is asserted; targets stand beside the ratios.
"""

import argparse
import datetime
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np
import rows_of_records
import warpfold as wf

ROUNDS = 7


def least(calls, seconds=0.5, round_s=2e-3, clock=time.process_time):
    """The least time of each call by a clock, in turn; short ones are repeated within a round."""
    loops = []
    for call in calls:
        call()
        began = clock()
        call()
        loops.append(max(1, int(round_s / max(1e-9, clock() - began))))
    best, ends = [float("inf")] * len(calls), time.monotonic() + seconds * len(calls)
    rounds = 0
    while rounds < ROUNDS or time.monotonic() < ends:
        for i, (call, loop) in enumerate(zip(calls, loops)):
            began = clock()
            for _ in range(loop):
                call()
            best[i] = min(best[i], (clock() - began) / loop)
        rounds += 1
    return best


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, peer, ours, theirs, target, clock=time.process_time):
        [mine, other] = least([ours, theirs], clock=clock)
        self.rows.append({"what": what, "peer": peer, "ours_s": mine, "peer_s": other, "ratio": other / mine, "target": target})
        print(f"{what:44} {mine * 1e6:12.2f} us {other * 1e6:12.2f} us {other / mine:7.2f}  at least {target}", flush=True)


# What NumPy has by the same name, and what takes an axis.
BOTH = [
    "sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero",
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanargmin", "nanargmax",
]


def small(table):
    """Calls, not elements."""
    x = np.random.default_rng(1).standard_normal(10)
    for name in BOTH:
        ours, theirs = getattr(wf, name), getattr(np, name)
        table.add(f"{name} of 10 f64", "numpy", lambda: ours(x), lambda: theirs(x), 1.0)
    table.add("dot of 10 f64", "numpy", lambda: wf.dot(x, x), lambda: np.dot(x, x), 1.0)


def drawn(rng):
    """A small call: what it is, its function and its words, and the array."""
    name = str(rng.choice(BOTH))
    dtype = str(rng.choice(["f8", "f8", "f4", "i8", "i4", "u1", "?"]))
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 10, 16, 33, 100], size=rng.integers(1, 4)))
    while np.prod(shape) > 4000:
        shape = shape[1:]
    # Products of integers that fit.
    most = 2 if "prod" in name and dtype[0] in "iu" else 50
    x = np.asarray(rng.integers(0, most, size=shape)).astype(dtype)
    layout = str(rng.choice(["C", "C", "C", "F", "every second"]))
    if layout == "F":
        x = np.asfortranarray(x)
    elif layout == "every second":
        x = np.repeat(x, 2, axis=-1)[..., ::2]
    words = {}
    axis = rng.choice(["none", "first", "last"])
    if axis != "none":
        words["axis"] = 0 if axis == "first" else -1
    if rng.random() < 0.15:
        words["keepdims"] = True
    said = "".join(f", {word}={value}" for word, value in words.items())
    return f"{name}({dtype}{list(shape)} {layout}{said})", name, words, x


def calls(table, cases=300, seed=1):
    """Small calls drawn at random: the worst of them, and how the ratios are spread."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(cases):
        what, name, words, x = drawn(rng)
        ours, theirs = getattr(wf, name), getattr(np, name)
        [mine, other] = least([lambda: ours(x, **words), lambda: theirs(x, **words)], seconds=0.02, round_s=4e-4)
        rows.append({"what": what, "peer": "numpy", "ours_s": mine, "peer_s": other, "ratio": other / mine, "target": 1.0})
    rows.sort(key=lambda row: row["ratio"])
    for row in rows[:15]:
        print(f"{row['what']:60} {row['ours_s'] * 1e6:9.2f} us {row['peer_s'] * 1e6:9.2f} us {row['ratio']:7.2f}")
    at = lambda part: rows[min(len(rows) - 1, int(part * len(rows)))]["ratio"]
    slower = sum(row["ratio"] < 1 for row in rows)
    print(f"{len(rows)} small calls: worst {at(0):.2f}, 1 % {at(0.01):.2f}, 5 % {at(0.05):.2f}, median {at(0.5):.2f}; {slower} slower than NumPy", flush=True)
    table.rows += rows


def imports(table):
    """Importing, in processes of their own."""
    script = "import time; began = time.perf_counter(); import warpfold; print(time.perf_counter() - began)"
    least_s = min(float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout) for _ in range(15))
    table.rows.append({"what": "import warpfold", "ours_s": least_s, "target_s": 0.05})
    print(f"import warpfold: {least_s * 1e3:.1f} ms, at most 50")


def whole(table):
    """Arrays of one axis."""
    for dtype in ["f8", "f4"]:
        for n in [10**6, 10**8]:
            x = np.random.default_rng(2).standard_normal(n).astype(dtype)
            table.add(f"sum of {n} {dtype}, one thread", "numpy", lambda: wf.sum(x, threads=1), lambda: np.sum(x), 1.0)
            if n == 10**8:
                table.add(f"sum of {n} {dtype}, two threads", "numpy", lambda: wf.sum(x, threads=2), lambda: np.sum(x), 1.8, time.perf_counter)
            del x


def axes(table):
    x = np.random.default_rng(3).standard_normal((10**4, 10**4))
    for axis in [0, 1]:
        table.add(f"sum of (10^4, 10^4) f64, axis {axis}, one thread", "numpy", lambda: wf.sum(x, axis=axis, threads=1), lambda: np.sum(x, axis=axis), 1.0)


def spread(table):
    x = np.random.default_rng(4).standard_normal(10**7)
    for name in ["var", "std", "nanmean"]:
        table.add(f"{name} of 10^7 f64, one thread", "numpy", lambda: getattr(wf, name)(x, threads=1), lambda: getattr(np, name)(x), 3.0)


def device(table):
    try:
        import torch
    except ImportError:
        print("device: skipped, torch is not installed")
        return
    if not torch.cuda.is_available():
        print("device: skipped, no CUDA device")
        return
    x = torch.rand(1 << 16, device="cuda")
    table.add("sum of 2^16 f32 on the device, no wait", "torch", lambda: wf.sum(x), lambda: torch.sum(x), 1.0, time.perf_counter)
    torch.cuda.synchronize()


def memory(table):
    """Peak memory beyond an array of 400 MB, in a process of its own."""
    script = (
        "import resource, numpy as np, warpfold as wf\n"
        "x = np.ones(50_000_000); wf.sum(x[:10])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "wf.reduce(x, ['var', 'argmax', 'sum']); wf.sum(x.reshape(5000, -1), axis=0)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    kib = int(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout)
    table.rows.append({"what": "peak memory beyond the array", "mib": kib / 1024, "target": 64})
    print(f"peak memory beyond the array: {kib / 1024:.1f} MiB, at most 64")


PARTS = {part.__name__: part for part in [imports, small, calls, whole, axes, spread, device, memory]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts: " + ", ".join(PARTS))
    parser.add_argument("--records", type=pathlib.Path, help="a folder for the record, as JSON")
    parser.add_argument("--cases", type=int, default=300, help="how many small calls are drawn; 300")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn; 1")
    given = parser.parse_args()
    unknown = [part for part in given.only.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: there are {', '.join(PARTS)}")
    print(f"warpfold {wf.__version__}, NumPy {np.__version__}, CPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors")
    table = Table()
    for part in given.only.split(","):
        words = {"cases": given.cases, "seed": given.seed} if part == "calls" else {}
        PARTS[part](table, **words)
    if given.records:
        given.records.mkdir(parents=True, exist_ok=True)
        path = given.records / f"{datetime.date.today()}-python.json"
        about = {"warpfold": wf.__version__, "numpy": np.__version__, "python": platform.python_version(), "machine": platform.machine(), "processors": os.cpu_count()}
        rows_of_records.write(path, {"about": about, "rows": table.rows})
        print(path)


if __name__ == "__main__":
    main()
