#!/usr/bin/env python3
"""Times the Python package beside NumPy, and torch where it is, in one run.

    pip install ./crates/python numpy && benches/python.py            # everything; 3 GiB of memory
    benches/python.py --only small,whole --records DIR                # some parts; the record goes to DIR

Ours and the peer take turns, round after round, and the least time of each counts: other processes make times
longer, never shorter. Nothing is asserted; targets stand beside the ratios.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

import numpy as np
import warpfold as wf

ROUNDS = 7


def least(calls, seconds=0.5):
    """The least time of each call, in turn; short ones are repeated within a round."""
    loops = []
    for call in calls:
        call()
        began = time.perf_counter()
        call()
        loops.append(max(1, int(2e-3 / max(1e-9, time.perf_counter() - began))))
    best, ends = [float("inf")] * len(calls), time.monotonic() + seconds * len(calls)
    rounds = 0
    while rounds < ROUNDS or time.monotonic() < ends:
        for i, (call, loop) in enumerate(zip(calls, loops)):
            began = time.perf_counter()
            for _ in range(loop):
                call()
            best[i] = min(best[i], (time.perf_counter() - began) / loop)
        rounds += 1
    return best


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, peer, ours, theirs, target):
        [mine, other] = least([ours, theirs])
        self.rows.append({"what": what, "peer": peer, "ours_s": mine, "peer_s": other, "ratio": other / mine, "target": target})
        print(f"{what:44} {mine * 1e6:12.2f} us {other * 1e6:12.2f} us {other / mine:7.2f}  at least {target}", flush=True)


def small(table):
    """Calls, not elements."""
    x = np.random.default_rng(1).standard_normal(10)
    for name in ["sum", "mean", "max", "var", "argmax"]:
        ours, theirs = getattr(wf, name), getattr(np, name)
        table.add(f"{name} of 10 f64", "numpy", lambda: ours(x), lambda: theirs(x), 1.0)


def whole(table):
    """Arrays of one axis."""
    for dtype in ["f8", "f4"]:
        for n in [10**6, 10**8]:
            x = np.random.default_rng(2).standard_normal(n).astype(dtype)
            table.add(f"sum of {n} {dtype}, one thread", "numpy", lambda: wf.sum(x, threads=1), lambda: np.sum(x), 1.0)
            if n == 10**8:
                table.add(f"sum of {n} {dtype}, two threads", "numpy", lambda: wf.sum(x, threads=2), lambda: np.sum(x), 1.8)
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
    table.add("sum of 2^16 f32 on the device, no wait", "torch", lambda: wf.sum(x), lambda: torch.sum(x), 1.0)
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


PARTS = {part.__name__: part for part in [small, whole, axes, spread, device, memory]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="parts: " + ", ".join(PARTS))
    parser.add_argument("--records", type=pathlib.Path, help="a folder for the record, as JSON")
    given = parser.parse_args()
    unknown = [part for part in given.only.split(",") if part not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}: there are {', '.join(PARTS)}")
    print(f"warpfold {wf.__version__}, NumPy {np.__version__}, CPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} processors")
    table = Table()
    for part in given.only.split(","):
        PARTS[part](table)
    if given.records:
        given.records.mkdir(parents=True, exist_ok=True)
        path = given.records / f"{datetime.date.today()}-python.json"
        about = {"warpfold": wf.__version__, "numpy": np.__version__, "python": platform.python_version(), "machine": platform.machine(), "processors": os.cpu_count()}
        path.write_text(json.dumps({"about": about, "rows": table.rows}, indent=1) + "\n")
        print(path)


if __name__ == "__main__":
    main()
