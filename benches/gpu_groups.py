#!/usr/bin/env python3
"""Times sums of groups on a GPU beside torch, CuPy and cuDF, of the same keys, and prints milliseconds and ratios.

    cargo build --release -p warpfold-cuda --example groups
    python3 benches/gpu_groups.py target/release/examples/groups            needs numpy; torch, CuPy and cuDF where they are installed

Columns have 2^28 rows of f32. Keys are drawn and written to files, which all contestants read. Contestants get keys of the type that
they are fastest with: torch takes 64 bits alone, CuPy and we 32.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import rows_of_records

ROWS = 1 << 28
ROUNDS = 7
CALLS = 4


def zipf(rng, groups):
    """The continuous law of exponent 1."""
    keys = np.exp(rng.random(ROWS, dtype=np.float32) * np.float32(np.log(groups)))
    return np.minimum(keys - 1, groups - 1).astype(np.uint32)


# Names, numbers of groups, and what draws keys.
CASES = [
    ("one-group", 1, lambda rng, groups: np.zeros(ROWS, dtype=np.uint32)),
    *((f"uniform-2^{log}", 1 << log, lambda rng, groups: rng.integers(0, groups, ROWS, dtype=np.uint32)) for log in (4, 10, 14, 20)),
    ("zipf-2^20", 1 << 20, zipf),
    ("sorted-2^20", 1 << 20, lambda rng, groups: np.repeat(np.arange(groups, dtype=np.uint32), ROWS // groups)),
]


def drawn(folder, wanted):
    """Files with keys, and their numbers of groups. What lies in the folder already is taken as it is."""
    files = {}
    for name, groups, draw in CASES:
        if wanted and name not in wanted.split(","):
            continue
        file = folder / name
        if not file.exists() or file.stat().st_size != 4 * ROWS:
            draw(np.random.default_rng(16), groups).tofile(file)
        files[file] = groups
    return files


def ours(example, files):
    words = [str(example), "--json", "f32", "sum", *(f"{file}:{groups}" for file, groups in files.items())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {example}: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def timed(call, wait):
    """Seconds of a call, the median over rounds of several."""
    seconds = []
    for _ in range(ROUNDS + 1):
        wait()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        wait()
        seconds.append((time.perf_counter() - begin) / CALLS)
    return sorted(seconds[1:])[ROUNDS // 2]


def torch_calls():
    """For keys and a number of groups: what waits, and calls by name."""
    import torch

    data = torch.rand(ROWS, device="cuda") * 2 - 1

    def calls(keys, groups):
        index = torch.from_numpy(keys.astype(np.int64)).cuda()
        out = torch.zeros(groups, device="cuda")
        return torch.cuda.synchronize, {
            "torch scatter_add": lambda: out.zero_().scatter_add_(0, index, data),
            "torch index_add": lambda: out.zero_().index_add_(0, index, data),
        }

    return calls


def cupy_calls():
    import cupy
    import cupyx

    data = cupy.random.random(ROWS, dtype=cupy.float32) * 2 - 1

    def calls(keys, groups):
        index = cupy.asarray(keys.view(np.int32))
        out = cupy.zeros(groups, dtype=cupy.float32)

        def scatter():
            out.fill(0)
            cupyx.scatter_add(out, index, data)

        return cupy.cuda.Device().synchronize, {
            "cupy scatter_add": scatter,
            "cupy bincount": lambda: cupy.bincount(index, weights=data, minlength=groups),
        }

    return calls


def cudf_calls():
    import cudf
    import cupy

    data = cupy.random.random(ROWS, dtype=cupy.float32) * 2 - 1

    def calls(keys, _):
        frame = cudf.DataFrame({"key": cupy.asarray(keys), "value": data})
        return cupy.cuda.Device().synchronize, {"cudf groupby": lambda: frame.groupby("key").value.sum()}

    return calls


def peers(files, keep):
    for made in (torch_calls, cupy_calls, cudf_calls):
        name = made.__name__.partition("_")[0]
        try:
            calls_of = made()
        except Exception as error:  # whatever a missing or broken installation raises
            print(f"left out: {name}: {error}", file=sys.stderr)
            continue
        for file, groups in files.items():
            try:
                wait, calls = calls_of(np.fromfile(file, dtype=np.uint32), groups)
                for call, run in calls.items():
                    if keep in call:
                        yield {"peer": call, "case": str(file), "groups": groups, "seconds": timed(run, wait)}
            except Exception as error:  # a case that a peer cannot take is a gap in the table
                print(f"left out: {name} of {Path(file).name}: {error}", file=sys.stderr)
        del calls_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("example", type=Path, help="the example `groups` of warpfold-cuda")
    parser.add_argument("--peer", default="", help="only peers whose name contains this")
    parser.add_argument("--only", default="", help=f"only these cases, of {', '.join(name for name, _, _ in CASES)}")
    parser.add_argument("--folder", type=Path, help="where the keys are kept, a GiB for each case; without it a temporary one")
    parser.add_argument("--json", type=Path, help="where all figures go")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        files = drawn(folder, arguments.only)
        rows = ours(arguments.example.resolve(), files) + list(peers(files, arguments.peer))
        names = [file.name for file in files]
    seconds = {(Path(row["case"]).name, row["peer"]): row["seconds"] for row in rows}
    columns = sorted({row["peer"] for row in rows} - {"warpfold"})
    print(f"{'ms, and the peer by ours':24}{'warpfold':>10}" + "".join(f"{peer:>26}" for peer in columns))
    for name in names:
        mine = seconds[name, "warpfold"]
        line = f"{name:24}{mine * 1e3:10.3f}"
        for peer in columns:
            its = seconds.get((name, peer))
            line += f"{'-':>26}" if its is None else f"{its * 1e3:16.3f} ({its / mine:6.2f})"
        print(line)
    if arguments.json:
        rows_of_records.write(arguments.json, rows)


if __name__ == "__main__":
    main()
