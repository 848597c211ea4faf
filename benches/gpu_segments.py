#!/usr/bin/env python3
"""Times sums of segments on a GPU beside CUB and torch, of the same offsets, and prints GB/s of elements, offsets and answers.

    cargo build --release -p warpfold-cuda --example segments
    python3 benches/gpu_segments.py target/release/examples/segments            needs numpy; CUB needs nvcc, torch a GPU's

Arrays have 2^28 elements of f32. Distributions of lengths are drawn and written to files, which all contestants read.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rows_of_records

HERE = Path(__file__).resolve().parent
ELEMENTS = 1 << 28
ROUNDS = 7
CALLS = 4
# Mean lengths of segments whose lengths are uniform.
MEANS = {"uniform-16": 16, "uniform-256": 256, "uniform-4096": 4096}


def cut(lengths):
    """Offsets of lengths, of all elements."""
    ends = np.cumsum(lengths, dtype=np.int64)
    ends = ends[: np.searchsorted(ends, ELEMENTS)]
    return np.concatenate([[0], ends, [ELEMENTS]]).astype(np.uint32)


def cases(rng):
    for name, mean in MEANS.items():
        yield name, cut(rng.integers(1, 2 * mean, 2 * ELEMENTS // mean))
    yield "huge-and-2^20-of-1", cut(np.ones(1 << 20, dtype=np.int64))
    for exponent in (1.0, 1.5, 2.0):
        u = rng.random(ELEMENTS // 2)
        most = float(1 << 24)
        lengths = most**u if exponent == 1.0 else (1 - u) ** (-1 / (exponent - 1))
        yield f"zipf-{exponent}", cut(np.minimum(lengths, most).astype(np.int64))
    yield "alternating-1-4096", cut(np.tile([1, 4096], ELEMENTS // 4097 + 1))
    yield "fixed-2^24", cut(np.full(16, 1 << 24))


def lines(command):
    """The JSON lines that a command prints, or none and a word on standard error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"left out: {command[0]}: {done.stderr.strip()[-500:]}", file=sys.stderr)
        return []
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def cub(files):
    if not shutil.which("nvcc"):
        print("left out: CUB, as there is no nvcc", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "cub_segments"
        source = HERE / "peers" / "cub_segments.cu"
        made = subprocess.run(["nvcc", "-O3", "-std=c++17", "-arch=native", "-o", str(program), str(source)], check=False)
        return lines([program, *files]) if made.returncode == 0 else []


def torch_rows(files):
    try:
        import torch

        data = torch.rand(ELEMENTS, device="cuda")
    except (ImportError, RuntimeError, AssertionError) as error:
        print(f"left out: torch: {error}", file=sys.stderr)
        return
    for file in files:
        offsets = torch.from_numpy(np.fromfile(file, dtype=np.uint32).astype(np.int64)).cuda()
        seconds = []
        for _ in range(ROUNDS + 1):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(CALLS):
                torch.segment_reduce(data, "sum", offsets=offsets)
            torch.cuda.synchronize()
            seconds.append((time.perf_counter() - begin) / CALLS)
        yield {"peer": "torch", "case": str(file), "seconds": sorted(seconds[1:])[ROUNDS // 2]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("example", type=Path, help="the example `segments` of warpfold-cuda")
    parser.add_argument("--json", type=Path, help="where all figures go")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files, sizes = [], {}
        for name, offsets in cases(np.random.default_rng(16)):
            file = Path(folder) / name
            offsets.tofile(file)
            files.append(file)
            sizes[name] = 4 * ELEMENTS + 4 * len(offsets) + 4 * (len(offsets) - 1)
        rows = lines([arguments.example, "--json", "f32", "sum", *files]) + cub(files) + list(torch_rows(files))
    if not rows:
        sys.exit("error: there are no figures\nhint: cargo build --release -p warpfold-cuda --example segments")
    peers = sorted({row["peer"] for row in rows})
    rates = {}
    for row in rows:
        name = Path(row["case"]).name
        rates[name, row["peer"]] = sizes[name] / row["seconds"] / 1e9
    print(f"{'GB/s':24}" + "".join(f"{peer:>12}" for peer in peers))
    for name in sizes:
        print(f"{name:24}" + "".join(f"{rates.get((name, peer), float('nan')):12.0f}" for peer in peers))
    if arguments.json:
        rows_of_records.write(arguments.json, rows)


if __name__ == "__main__":
    main()
