#!/usr/bin/env python3
"""Times the GPU engine beside CUB, torch and CuPy in one run, prints a table, and writes a dated record of it.

    cargo build --release -p warpfold-cuda --examples
    benches/gpu.py                                  # what is in target/release/examples
    benches/gpu.py --ours DIR --records DIR         # packed binaries, on a machine without Rust

Needs a GPU, and for its peers nvcc, torch and CuPy: what is missing is left out, and the record says so. Every contestant goes
through the same sizes of the same kind of data: calls follow one another without a wait, each on the next part of a buffer of
8 GiB, so that none finds its data in the L2 cache. Figures are medians of several rounds.
"""

import argparse
import datetime
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rows_of_records
import shapes
from gpu_targets import LARGE, SHAPES, SIZE, text as targets_text

HERE = Path(__file__).resolve().parent
BUFFER = 8 << 30
ROUND = 16 << 30
MOST_CALLS = 2000
ROUNDS = 7
LOGS = (10, 16, 20, 24, 28)

def run(command, **options):
    """Standard output of a command, or None and a word on standard error."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        print(f"left out: {error}", file=sys.stderr)
        return None
    if done.returncode != 0:
        print(f"left out: {' '.join(map(str, command))}: {done.stderr.strip()[-500:]}", file=sys.stderr)
        return None
    return done.stdout


def lines_of(text):
    return [json.loads(line) for line in (text or "").splitlines() if line.startswith("{")]


def cub(program):
    """CUB's figures, by this program, or one that is compiled here."""
    if program:
        return lines_of(run([program]))
    if not shutil.which("nvcc"):
        print("left out: CUB, as there is no nvcc", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "cub"
        command = ["nvcc", "-O3", "-std=c++17", "-arch=native", "-o", program, HERE / "peers" / "cub.cu"]
        return [] if run(command) is None else lines_of(run([program]))


def python_peer(name, calls, events, synchronise, buffers):
    """Figures of a library: `calls` maps (op, dtype) to a function of a part of a buffer."""
    rows = []

    def row(op, dtype, elements, seconds):
        rows.append({"peer": name, "op": op, "dtype": dtype, "elements": elements, "seconds": seconds})

    for (op, dtype), call in calls.items():
        buffer = buffers(dtype)
        for elements in [1 << log for log in LOGS] + [LARGE // SIZE[dtype]]:
            used = elements * SIZE[dtype]
            count = min(max(ROUND // used, 4), MOST_CALLS if used < 1 << 24 else 200)
            stride = -(-used // 256) * 256 // SIZE[dtype]
            parts = max(len(buffer) // stride, 1)
            times = []
            for _ in range(4 if used >= 1 << 28 else ROUNDS + 1):
                start = events()
                for i in range(count):
                    at = i % parts * stride
                    call(buffer[at : at + elements])
                end = events()
                synchronise()
                times.append(start.elapsed(end) / 1e3)
            # The first round warms up.
            row(op, dtype, elements, statistics.median(times[1:]) / count)
    return rows


def torch_axes(torch, buffer, events):
    """Sums over an axis, on parts of the buffer in turn."""
    rows = []
    for shape in SHAPES:
        elements = shape[0] * shape[1]
        for axis in (0, 1):
            times = []
            for _ in range(5):
                start = events()
                for i in range(16):
                    at = i % (len(buffer) // elements) * elements
                    torch.sum(buffer[at : at + elements].view(shape), axis)
                end = events()
                torch.cuda.synchronize()
                times.append(start.elapsed(end) / 1e3 / 16)
            rows.append({"peer": "torch", "op": "sum", "dtype": "f32", "shape": shape, "axis": axis, "elements": elements, "seconds": statistics.median(times[1:])})
    return rows


def torch_peer():
    try:
        import torch
    except ImportError as error:
        print(f"left out: torch ({error})", file=sys.stderr)
        return []
    types = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "i8": torch.int8, "f16": torch.float16, "bf16": torch.bfloat16}
    kept = {}

    def buffers(dtype):
        if dtype not in kept:
            kept.clear()
            torch.cuda.empty_cache()
            kept[dtype] = torch.empty(BUFFER // SIZE[dtype], dtype=types[dtype], device="cuda")
            if types[dtype].is_floating_point:
                kept[dtype].uniform_(0, 1)
            else:
                kept[dtype].random_(0, 100)
        return kept[dtype]

    class Event:
        def __init__(self):
            self.event = torch.cuda.Event(enable_timing=True)
            self.event.record()

        def elapsed(self, end):
            return self.event.elapsed_time(end.event)

    calls = {}
    for dtype in ("f32", "f64", "f16", "bf16", "i32", "i8"):
        calls["sum", dtype] = torch.sum
    for dtype in ("f32", "f64"):
        calls["min", dtype] = torch.amin
        calls["argmin", dtype] = torch.argmin
        calls["var", dtype] = lambda x: torch.var(x, correction=0)
        calls["norm2", dtype] = torch.linalg.vector_norm
    calls["dot", "f32"] = lambda x: torch.dot(x[: len(x) // 2], x[len(x) // 2 : len(x) // 2 * 2])
    calls["logsumexp", "f32"] = lambda x: torch.logsumexp(x, 0)
    calls = dict(sorted(calls.items(), key=lambda item: item[0][1]))
    rows = python_peer("torch", calls, Event, torch.cuda.synchronize, buffers)
    buffer = buffers("f32")
    rows += torch_axes(torch, buffer, Event)
    times = []
    for _ in range(200):
        begin = time.perf_counter()
        float(torch.sum(buffer[: 1 << 16]))
        times.append(time.perf_counter() - begin)
    rows.append({"peer": "torch", "op": "call to value", "dtype": "f32", "elements": 1 << 16, "seconds": statistics.median(times)})
    return rows


def cupy_peer():
    try:
        import cupy
    except ImportError as error:
        print(f"left out: CuPy ({error})", file=sys.stderr)
        return []
    kept = {}

    def buffers(dtype):
        if dtype not in kept:
            kept.clear()
            cupy.get_default_memory_pool().free_all_blocks()
            kept[dtype] = cupy.random.random(BUFFER // SIZE[dtype], dtype={"f32": "f4", "f64": "f8"}[dtype])
        return kept[dtype]

    class Event:
        def __init__(self):
            self.event = cupy.cuda.Event()
            self.event.record()

        def elapsed(self, end):
            return cupy.cuda.get_elapsed_time(self.event, end.event)

    calls = {(op, "f32"): function for op, function in (("sum", cupy.sum), ("min", cupy.amin), ("argmin", cupy.argmin))}
    return python_peer("CuPy", calls, Event, cupy.cuda.runtime.deviceSynchronize, buffers)


def machine():
    """The device, its driver and the compiler, in one line each."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem", "--format=csv,noheader"]
    found = {"device": (run(query) or "unknown").strip().splitlines()[0]}
    version = re.search(r"release ([\d.]+)", run(["nvcc", "--version"]) or "") if shutil.which("nvcc") else None
    found["nvcc"] = version.group(1) if version else None
    return found


def arrays_table(rows):
    """Rates of the large arrays, and microseconds of the small ones, op by op."""
    by = {}
    for row in rows:
        if "elements" not in row or "shape" in row:
            continue
        data = row.get("data", "uniform" if "f" in row["dtype"] else "bits")
        by.setdefault((row["op"], row["dtype"], data), {}).setdefault(row["peer"], {})[row["elements"]] = row["seconds"]
    out = [f"{'':30}{'':9}" + "".join(f"{'2^%d us' % log:>9}" for log in LOGS[:3]) + "".join(f"{'2^%d' % log:>8}" for log in LOGS[3:]) + f"{'4 GiB':>8}"]
    for (op, dtype, data), peers in sorted(by.items()):
        for peer in sorted(peers, key=lambda p: (p != "warpfold", p)):
            times, size = peers[peer], SIZE[dtype]
            name = f"{op} {dtype} {data}" if peer == "warpfold" or "warpfold" not in peers else ""
            line = f"{name:30}{peer:9}"
            line += "".join(f"{times[1 << log] * 1e6:9.2f}" if 1 << log in times else f"{'':9}" for log in LOGS[:3])
            large = [1 << log for log in LOGS[3:]] + [LARGE // size]
            line += "".join(f"{n * size / times[n] / 1e9:8.0f}" if n in times else f"{'':8}" for n in large)
            out.append(line.rstrip())
    return "\n".join(out)


def axes_table(rows):
    """GB/s over either axis, shape by shape."""
    by = {}
    for row in rows:
        if "shape" in row:
            key = (row["op"], row["dtype"], tuple(row["shape"]))
            by.setdefault(key, {})[row["peer"], row["axis"]] = row["elements"] * SIZE[row["dtype"]] / row["seconds"] / 1e9
    columns = [(peer, axis) for peer in ("warpfold", "torch") for axis in (0, 1)]
    out = [f"{'':34}" + "".join(f"{f'{peer} axis {axis}':>17}" for peer, axis in columns)]
    for (op, dtype, shape), rates in by.items():
        shown = "".join(f"{rates[c]:17.0f}" if c in rates else f"{'':17}" for c in columns)
        out.append(f"{f'{op} {dtype} {shape[0]} x {shape[1]}':34}{shown}".rstrip())
    return "\n".join(out)


def host_table(rows):
    """GB/s through the bus, and the first call."""
    out = []
    for row in rows:
        if "bytes" in row:
            name = f"{row['op']}, {row['memory']} memory, {row['threads']} threads" if "memory" in row else row["op"]
            out.append(f"{name:52}{row['bytes'] / row['seconds'] / 1e9:9.1f} GB/s")
        elif row["op"] == "first call":
            out.append(f"{'first call of a process':52}{row['seconds'] * 1e3:9.1f} ms after {row['opening'] * 1e3:.0f} ms to open the device")
    return "\n".join(out)


def first_calls(example):
    """The median of several processes; the first one fills the driver's cache."""
    rows = [row for _ in range(6) for row in lines_of(run([example]))][1:]
    return sorted(rows, key=lambda row: row["seconds"])[len(rows) // 2 : len(rows) // 2 + 1]


def attempt(name, peer):
    """A peer's rows; one that fails is left out, and what the others did is kept."""
    try:
        return peer()
    except Exception as error:
        print(f"left out: {name} ({type(error).__name__}: {str(error)[:300]})", file=sys.stderr)
        return []


class TorchShapes:
    """Times torch's reduction of any view: the calls that `examples/shapes` times of ours, over the same parts of a buffer."""

    def __init__(self):
        import torch

        self.torch = torch
        self.types = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
        self.dtype, self.buffer = None, None

    def fill(self, dtype):
        torch = self.torch
        if dtype == self.dtype:
            return
        self.buffer = None
        torch.cuda.empty_cache()
        self.dtype, self.buffer = dtype, torch.empty(BUFFER // SIZE[dtype], dtype=self.types[dtype], device="cuda")
        if dtype == "bool":
            self.buffer.view(torch.uint8).random_(0, 2)
        elif self.types[dtype].is_floating_point:
            self.buffer.uniform_(0, 1)
        else:
            self.buffer.random_()

    def call(self, case):
        torch, axes = self.torch, list(case.axes)
        one = None if len(axes) == len(case.shape) else axes[0]
        whole = len(axes) == len(case.shape)
        return {
            "sum": lambda x: torch.sum(x, axes),
            "mean": lambda x: torch.mean(x, axes),
            "min": lambda x: torch.amin(x, axes),
            "max": lambda x: torch.amax(x, axes),
            "argmin": lambda x: torch.argmin(x, one),
            "argmax": lambda x: torch.argmax(x, one),
            "var": lambda x: torch.var(x, axes, correction=0),
            "std": lambda x: torch.std(x, axes, correction=0),
            "norm1": lambda x: torch.linalg.vector_norm(x, 1, axes),
            "norm2": lambda x: torch.linalg.vector_norm(x, 2, axes),
            "norm-inf": lambda x: torch.linalg.vector_norm(x, float("inf"), axes),
            "prod": lambda x: torch.prod(x) if whole else torch.prod(x, one),
            "logsumexp": lambda x: torch.logsumexp(x, axes),
            "any": lambda x: torch.any(x, axes),
            "all": lambda x: torch.all(x, axes),
            "count-nonzero": lambda x: torch.count_nonzero(x, axes),
        }[case.op]

    def seconds(self, case):
        self.fill(case.dtype)
        torch, call = self.torch, self.call(case)
        span = -(-case.span * SIZE[case.dtype] // 256) * 256 // SIZE[case.dtype]
        count = min(max((4 << 30) // (span * SIZE[case.dtype]), 4), 200)
        parts = max(len(self.buffer) // span, 1)
        views = [torch.as_strided(self.buffer, case.shape, case.strides, i % parts * span + case.offset) for i in range(count)]
        times = []
        for _ in range(4):
            begin = time.perf_counter()
            for view in views:
                call(view)
            torch.cuda.synchronize()
            times.append((time.perf_counter() - begin) / count)
        return statistics.median(times[1:])


def shapes_run(arguments, seed, count):
    """Cases drawn at random, ours and torch in turn; prints and records how they compare."""
    drawn = shapes.cases(seed, count, 1 << 10, 2 << 30)
    program = subprocess.Popen([arguments.ours / "shapes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    torch = TorchShapes()
    deadline = time.monotonic() + arguments.seconds if arguments.seconds else None
    rows = []
    for done, case in enumerate(drawn):
        if deadline and time.monotonic() > deadline:
            print(f"stopped after {done} of {len(drawn)} cases", file=sys.stderr)
            break
        print(case.line(), file=program.stdin, flush=True)
        answer = program.stdout.readline().strip()
        try:
            ours = float(answer)
        except ValueError:
            ours = None
            print(f"{case}: {answer}", file=sys.stderr)
        try:
            theirs = torch.seconds(case)
        except RuntimeError as error:
            print(f"left out: {case}: {str(error).splitlines()[0][:120]}", file=sys.stderr)
            continue
        rows.append((case, ours, theirs))
    program.stdin.close()
    program.wait()
    line = machine()
    print(line["device"])
    text = f"seed {seed}, {count} cases asked for\n" + shapes.report(rows, "torch", arguments.read_rate)
    print(text)
    arguments.records.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", line["device"].split(",")[0].lower()).strip("-")
    stem = arguments.records / f"{datetime.date.today().isoformat()}-{name}-shapes-{seed}"
    fields = [{**shapes.dataclasses.asdict(case), "ours": ours, "torch": theirs} for case, ours, theirs in rows]
    rows_of_records.write(stem.with_suffix(".json"), fields)
    stem.with_suffix(".md").write_text(f"# {datetime.date.today().isoformat()}, shapes drawn at random on {line['device'].split(',')[0]}\n\n{line['device']}. `benches/gpu.py --shapes {seed} {count}`.\n\n```text\n{text}\n```\n")
    print(f"written: {stem}.md, {stem}.json", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    root = HERE.parent
    parser.add_argument("--ours", type=Path, default=root / "target/release/examples", help="the folder of our examples")
    parser.add_argument("--records", type=Path, default=HERE / "records", help="the folder that the record goes to")
    parser.add_argument("--only", default="ours,cub,torch,cupy", help="contestants, separated by commas")
    parser.add_argument("--cub", type=Path, help="peers/cub.cu, compiled before")
    parser.add_argument("--quick", action="store_true", help="of ours, only what a target asks for")
    parser.add_argument("--brief", action="store_true", help="print only how the targets were met; the record has all")
    parser.add_argument("--shapes", nargs=2, type=int, metavar=("SEED", "COUNT"), help="times COUNT cases drawn by SEED, of any shape, beside torch, and nothing else")
    parser.add_argument("--seconds", type=float, help="of --shapes: stop after so long")
    parser.add_argument("--read-rate", type=float, help="of --shapes: GB/s at which a whole array is read, to tell shares of it")
    arguments = parser.parse_args()
    if arguments.shapes:
        return shapes_run(arguments, *arguments.shapes)
    only = set(arguments.only.split(","))
    rows = []
    if "ours" in only:
        quick = ["--quick"] if arguments.quick else []
        for example, *rest in (("full_reductions", *quick), ("axes", "f32"), ("feeder", "2")):
            rows += lines_of(run([arguments.ours / example, "--json", *rest]))
        rows += first_calls(arguments.ours / "first_call")
        if not rows:
            sys.exit("error: our own figures are missing\nhint: cargo build --release -p warpfold-cuda --examples, or name their folder with --ours")
    for name, peer in (("cub", lambda: cub(arguments.cub)), ("torch", torch_peer), ("cupy", cupy_peer)):
        if name in only:
            rows += attempt(name, peer)
    line = machine()
    parts = [
        ("Against the targets", targets_text(rows)),
        ("Whole arrays: microseconds a call back to back, and GB/s", arrays_table(rows)),
        ("Over an axis: GB/s of input", axes_table(rows)),
        ("Host memory", host_table(rows)),
    ]
    print(line["device"])
    print(parts[0][1] if arguments.brief else "\n\n".join(text for _, text in parts))
    arguments.records.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", line["device"].split(",")[0].lower()).strip("-")
    stem = arguments.records / f"{datetime.date.today().isoformat()}-{name}-peers"
    rows_of_records.write(stem.with_suffix(".json"), {"machine": line, "rows": rows})
    peers = ", ".join(sorted({row["peer"] for row in rows}))
    sections = "\n".join(f"## {title}\n\n```text\n{text}\n```\n" for title, text in parts)
    stem.with_suffix(".md").write_text(
        f"# {datetime.date.today().isoformat()}, {line['device'].split(',')[0]} and its peers\n\n"
        f"{line['device']}; nvcc {line['nvcc']}. `benches/gpu.py`, with {peers}.\n\n{sections}"
    )
    print(f"written: {stem}.md, {stem}.json", file=sys.stderr)


if __name__ == "__main__":
    main()
