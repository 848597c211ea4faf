#!/usr/bin/env python3
"""Times warpfold beside its peers in one run, and writes a dated record of it.

Contestants take turns, round by round, so that what disturbs the machine disturbs
all of them; every figure is a median. This process uses the standard library only:
it must stay small, because the peak memory of a child is never below its parent's.
"""

import argparse
import contextlib
import datetime
import json
import math
import os
import platform
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

HERE = Path(__file__).resolve().parent
PARTS = ("memory", "npy", "csv", "parquet", "rss")
PYTHON = sys.executable

# What the project promises itself: how many times as fast as the peer at least.
MEMORY_PEER = "numpy, 1 thread"
MEMORY_TARGETS = {
    "sum f64": 0.9,
    "sum f32": 0.9,
    "min f64": 1.0,
    "min f32": 1.0,
    "max f64": 1.0,
    "max f32": 1.0,
    "argmin f64": 1.0,
    "argmin f32": 1.0,
    "var f64": 2.0,
    "var f32": 2.0,
    "norm2 f64": 0.9,
    "norm2 f32": 0.9,
    "dot f64": 0.8,
    "dot f32": 0.9,
    "sum f64 axis 0": 1.0,
    "sum f64 axis 1": 1.0,
    "sum f32 axis 0": 1.0,
    "sum f32 axis 1": 1.0,
}
RSS_TARGET_MIB = 256


# ---- running ---------------------------------------------------------------


def run(command, folder=None, environment=None):
    """(seconds, peak resident bytes, standard output) of one process, or None and why not."""
    start = time.perf_counter()
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C", **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        return None, str(error)
    output = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    if process.returncode:
        lines = errors.strip().splitlines() or ["no message"]
        line = next((line for line in lines if "rror" in line), lines[-1])
        return None, f"exit {process.returncode}: {line.strip()}"
    return (seconds, usage.ru_maxrss * 1024, output), None


def python(*lines):
    return [PYTHON, "-c", "\n".join(lines)]


def generate(kind, path, elements):
    """Writes a file in a process of its own and gives the exact sum."""
    print(f"  generating {path.name}, {elements} elements", flush=True)
    command = [PYTHON, str(HERE / "generate.py"), kind, str(path), str(elements)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    with open(path, "rb", buffering=0) as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return float.fromhex(json.loads(done.stdout)["sum"])


def ulps(got, wanted):
    """How many units in the last place `got` is from the exact answer `wanted`."""
    if not (math.isfinite(got) and math.isfinite(wanted)):
        return math.nan
    return abs(got - wanted) / math.ulp(wanted)


# ---- whole processes -------------------------------------------------------


class Contestant:
    def __init__(self, name, command, against=None, target=None):
        self.name = name
        self.command = command
        self.against = against  # the peer the target is about
        self.target = target


def contest(title, folder, size, exact, contestants, rounds):
    """Alternates whole processes; the record of one table."""
    print(f"  {title}", flush=True)
    results = {c.name: {"seconds": [], "rss": [], "error": None, "ulps": None} for c in contestants}
    for i in range(rounds + 1):  # the first round warms up and is not counted
        for c in contestants:
            result = results[c.name]
            if result["error"]:
                continue
            done, result["error"] = run(c.command, folder)
            if done and i:
                result["seconds"].append(done[0])
                result["rss"].append(done[1])
            if done and exact is not None:
                with contextlib.suppress(ValueError):
                    result["ulps"] = ulps(float(done[2].strip().splitlines()[-1]), exact)
    for c in contestants:
        result = results[c.name]
        result["target"] = c.target
        result["against"] = c.against
        if result["error"]:
            print(f"    {c.name}: {result['error']}", flush=True)
        else:
            result["median"] = statistics.median(result["seconds"])
            print(f"    {c.name}: {result['median']:.3f} s", flush=True)
    return {"title": title, "bytes": size, "exact": exact, "results": results}


def contest_table(record):
    lines = [
        f"### {record['title']}",
        "",
        "| | seconds (median) | spread | GB/s of the file | peak MiB | off by | warpfold is | target |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    results = record["results"]
    ours = results.get("warpfold", {}).get("median")
    for name, r in results.items():
        if r["error"]:
            lines.append(f"| {name} | failed: {r['error']} | | | | | | |")
            continue
        s = r["seconds"]
        ratio = f"{r['median'] / ours:.2f}x" if ours and name != "warpfold" else ""
        # A target stands in the row of the peer it is about.
        aims = [o["target"] for o in results.values() if o["against"] == name]
        lines.append(
            f"| {name} | {r['median']:.3f} | {min(s):.3f} to {max(s):.3f} "
            f"| {record['bytes'] / r['median'] / 1e9:.2f} | {statistics.median(r['rss']) / 2**20:.0f} "
            f"| {error_text(r['ulps'])} | {ratio} | {', '.join(f'{a}x' for a in aims if a)} |"
        )
    return [*lines, ""]


def error_text(off):
    if off is None or math.isnan(off):
        return ""
    return "0" if off == 0 else f"{off:.0f} ulp"


def part_npy(options, folder):
    n = int(options.scale * 2**28)
    exact = generate("npy", folder / "big.npy", n)
    load = "x = np.load('big.npy', mmap_mode='r')"
    contestants = warpfolds(options, ["sum", "big.npy"])
    if contestants:
        contestants[0].against, contestants[0].target = "numpy, mapped", 1.0
    contestants += [
        Contestant("numpy, mapped", python("import numpy as np", load, "print(repr(float(x.sum())))")),
        Contestant("numpy, read", python("import numpy as np", "print(repr(float(np.load('big.npy').sum())))")),
    ]
    return contest(".npy, one f64 array: sum", folder, 8 * n, exact, contestants, options.rounds)


def part_csv(options, folder):
    n = int(options.scale * 10_000_000)
    path = folder / "numbers.csv"
    exact = generate("csv", path, n)
    contestants = warpfolds(options, ["sum", "-c", "1", "numbers.csv"])
    if contestants:
        contestants[0].against, contestants[0].target = "polars scan_csv", 1.0
    scan = "pl.scan_csv('numbers.csv', has_header=False)"
    query = "select sum(column0) from read_csv('numbers.csv', header=false)"
    contestants += [
        Contestant("polars scan_csv", python("import polars as pl", f"print({scan}.select(pl.all().sum()).collect().item())")),
        Contestant("duckdb read_csv", python("import duckdb", f"print(duckdb.execute({query!r}).fetchone()[0])")),
        Contestant("datamash", ["sh", "-c", "datamash -R 6 sum 1 < numbers.csv"], None, None),
        Contestant("awk", ["sh", "-c", "awk '{s += $1} END {printf \"%.17g\\n\", s}' numbers.csv"]),
    ]
    if not shutil.which("datamash"):
        contestants = [c for c in contestants if c.name != "datamash"]
    record = contest("CSV, one column of decimals: sum", folder, path.stat().st_size, exact, contestants, options.rounds)
    # datamash prints a rounded decimal, so its last places say nothing.
    if "datamash" in record["results"]:
        record["results"]["datamash"]["ulps"] = None
    return record


def part_parquet(options, folder):
    n = int(options.scale * 2**27)
    exact = generate("parquet", folder / "big.parquet", n)
    contestants = warpfolds(options, ["sum", "-c", "x", "big.parquet"])
    if contestants:
        contestants[0].against, contestants[0].target = "polars scan_parquet", 1.0
    contestants += [
        Contestant("polars scan_parquet", python("import polars as pl", "print(pl.scan_parquet('big.parquet').select(pl.col('x').sum()).collect().item())")),
        Contestant("polars read_parquet", python("import polars as pl", "print(pl.read_parquet('big.parquet', columns=['x'])['x'].sum())")),
        Contestant("duckdb", python("import duckdb", "print(duckdb.execute(\"select sum(x) from 'big.parquet'\").fetchone()[0])")),
        Contestant("duckdb, Kahan", python("import duckdb", "print(duckdb.execute(\"select fsum(x) from 'big.parquet'\").fetchone()[0])")),
        Contestant(
            "pyarrow",
            python(
                "import pyarrow.compute as pc, pyarrow.parquet as pq",
                "print(pc.sum(pq.read_table('big.parquet', columns=['x'])['x']).as_py())",
            ),
        ),
    ]
    return contest("Parquet, one plain f64 column: sum", folder, 8 * n, exact, contestants, options.rounds)


def warpfolds(options, arguments):
    if options.warpfold is None:
        return []
    command = [options.warpfold, *arguments]
    contestants = [
        Contestant("warpfold", command),
        Contestant("warpfold -j 1", [*command, "-j", "1"]),
    ]
    return contestants


# ---- peak memory -----------------------------------------------------------


def part_rss(options, folder):
    """Peak resident memory over a small and a large raw file: it must not follow the size."""
    floor = run(["true"])[0][1]
    rows = []
    for gib in (0.25, 4):
        n = int(options.scale * gib * 2**27)
        path = folder / "big.bin"
        exact = generate("raw", path, n)
        for command in ["sum"], ["var"], ["argmin"]:
            if options.warpfold is None:
                continue
            done, error = run([options.warpfold, *command, "--dtype", "f64", "big.bin"], folder)
            row = {"gib": n / 2**27, "command": command[0], "error": error, "floor": floor}
            if done:
                row["rss"] = done[1]
                row["seconds"] = done[0]
                if command == ["sum"]:
                    with contextlib.suppress(ValueError):
                        row["ulps"] = ulps(float(done[2]), exact)
            rows.append(row)
        path.unlink()
    return {"title": "Peak memory over a raw f64 file", "rows": rows, "floor": floor}


def rss_table(record):
    lines = [
        f"### {record['title']}",
        "",
        f"As the kernel counts it, mapped pages of the file included; the measuring process alone counts "
        f"{record['floor'] / 2**20:.0f} MiB.",
        "",
        "| command | file, GiB | peak MiB | target MiB | seconds |",
        "|---|---:|---:|---:|---:|",
    ]
    for r in record["rows"]:
        if r["error"]:
            lines.append(f"| {r['command']} | {r['gib']:g} | failed: {r['error']} | | |")
        else:
            lines.append(
                f"| {r['command']} | {r['gib']:g} | {r['rss'] / 2**20:.0f} | {RSS_TARGET_MIB} | {r['seconds']:.2f} |"
            )
    return [*lines, ""]


# ---- in memory -------------------------------------------------------------


class Worker:
    """A peer that holds its data and runs a case when told to."""

    def __init__(self, peer, elements, threads):
        self.name = f"{peer}, {threads} thread" + ("s" if threads > 1 else "")
        limits = ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
        self.process = subprocess.Popen(
            [PYTHON, str(HERE / "worker.py"), peer, str(elements), str(threads)],
            env={**os.environ, **{name: str(threads) for name in limits}},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.cases = None

    def wait(self):
        line = self.process.stdout.readline()
        if not line:
            print(f"    {self.name} did not start", flush=True)
            self.cases = {}
            return
        self.cases = json.loads(line)["cases"]

    def run(self, case):
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def canonical(case):
    """`warpfold bench` case -> (a peer's case, "exact" or "plain"); words in any order."""
    words = re.findall(r"[a-z0-9-]+", case.lower().replace("axis=", "axis ").replace("axis0", "axis 0").replace("axis1", "axis 1"))
    adds = "plain" if "plain" in words else "exact"
    dtype = next((w for w in words if re.fullmatch(r"b?f(16|32|64)|[iu](8|16|32|64)|bool", w)), "")
    axis = f"axis {words[words.index('axis') + 1]}" if "axis" in words[:-1] else ""
    operations = ("sum", "min", "max", "argmin", "argmax", "var", "std", "norm2", "dot", "mean", "minmax")
    operation = next((w for w in words if w in operations), None)
    if operation is None:
        return case, adds
    known = {"exact", "plain", "axis", dtype, operation, *axis.split()}
    rest = [w for w in words if w not in known]
    return " ".join(filter(None, [operation, dtype, axis, *rest])), adds


def warpfold_bench(options, elements, threads):
    """[(case, "exact" or "plain", GB/s)] of one run of `warpfold bench`, however it spells the fields."""
    command = [options.warpfold, "bench", "--elements", str(elements), "-j", str(threads), "-f", "json"]
    done, error = run(command)
    if error:
        print(f"    warpfold bench -j {threads}: {error}", flush=True)
        return []
    try:
        document = json.loads(done[2])
    except ValueError:
        print("    warpfold bench printed no JSON", flush=True)
        return []
    results = document.get("results", []) if isinstance(document, dict) else document
    found = []
    for r in results:
        speed = r.get("gbps") or r.get("gb_per_s")
        if "case" in r and speed:
            found.append((*canonical(r["case"]), float(speed)))
    return found


def part_memory(options, _folder):
    n = int(options.scale * 2**26)
    threads = sorted({1, min(2, os.cpu_count() or 1)})
    workers = [Worker("numpy", n, 1), Worker("fsum", max(n // 64, 1), 1)]
    workers += [Worker(peer, n, t) for peer in ("polars", "duckdb") for t in threads]
    print("  in memory; loading the peers", flush=True)
    for worker in workers:
        worker.wait()
    samples = {}

    def ours():
        if options.warpfold is None:
            return
        for t in threads:
            for case, adds, speed in warpfold_bench(options, n, t):
                name = f"warpfold {adds}, {t} thread" + ("s" if t > 1 else "")
                samples.setdefault(case, {}).setdefault(name, []).append(speed)

    cases = list(dict.fromkeys(case for worker in workers for case in worker.cases))
    for i in range(options.rounds + 1):
        # `warpfold bench` measures all its cases in one go: at the start, half-way, at the end.
        if i in (0, (options.rounds + 1) // 2, options.rounds):
            ours()
        for case in cases:
            for worker in workers:
                if case in worker.cases:
                    seconds = worker.run(case)["seconds"]
                    if i:
                        speed = worker.cases[case] / seconds / 1e9
                        samples.setdefault(case, {}).setdefault(worker.name, []).append(speed)
        print(f"    round {i} of {options.rounds}", flush=True)
    for worker in workers:
        worker.close()
    return {"title": "In memory", "elements": n, "samples": samples}


def memory_table(record):
    samples = record["samples"]
    names = list(dict.fromkeys(name for by_name in samples.values() for name in by_name))
    names.sort(key=lambda name: not name.startswith("warpfold"))
    ours = "warpfold exact, 1 thread"
    lines = [
        f"### In memory, {record['elements']} elements, GB/s",
        "",
        f"The ratios are {ours} to {MEMORY_PEER}, with its target, and to the fastest peer on one thread. "
        "`fsum` is Python's exact sum of a list, on 1/64 of the elements.",
        "",
        f"| | {' | '.join(names)} | ratio | target | to the fastest |",
        "|---|" + "---:|" * (len(names) + 3),
    ]
    for case, by_name in samples.items():
        medians = {name: statistics.median(speeds) for name, speeds in by_name.items()}
        cells = [f"{medians[name]:.2f}" if name in medians else "" for name in names]
        ratio = fastest = ""
        if ours in medians and MEMORY_PEER in medians:
            ratio = f"{medians[ours] / medians[MEMORY_PEER]:.2f}x"
        peers = [m for name, m in medians.items() if name.endswith(", 1 thread") and not name.startswith("warpfold")]
        if ours in medians and peers:
            fastest = f"{medians[ours] / max(peers):.2f}x"
        target = f"{MEMORY_TARGETS[case]}x" if case in MEMORY_TARGETS else ""
        lines.append(f"| {case} | {' | '.join(cells)} | {ratio} | {target} | {fastest} |")
    return [*lines, ""]


# ---- the record ------------------------------------------------------------


def first_match(path, pattern, default):
    with contextlib.suppress(OSError):
        found = re.search(pattern, Path(path).read_text(), re.MULTILINE)
        if found:
            return found.group(1).strip()
    return default


def versions(options):
    """The contestants' versions, each asked in a process of its own."""
    names = ("numpy", "polars", "duckdb", "pyarrow")
    code = ["from importlib.metadata import version", f"print(*map(version, {names!r}))"]
    found = run(python(*code))[0]
    table = {"python": platform.python_version()}
    if found:
        table |= dict(zip(names, found[2].split()))
    if shutil.which("datamash"):
        table["datamash"] = run(["datamash", "--version"])[0][2].split()[3]
    if options.warpfold is not None:
        done, _ = run([options.warpfold, "--version"])
        table["warpfold"] = done[2].split()[-1] if done else "unknown"
        commit, _ = run(["git", "describe", "--always", "--dirty", "--exclude", "*"], HERE)
        if commit:
            table["warpfold"] += f" ({commit[2].strip()})"
    return table


def machine():
    cpu = first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$", platform.processor() or platform.machine())
    family = first_match("/proc/cpuinfo", r"^cpu family\s*:\s*(.+)$", "?")
    model = first_match("/proc/cpuinfo", r"^model\s*:\s*(.+)$", "?")
    memory = int(first_match("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0"))
    cores = len(os.sched_getaffinity(0))
    flags = first_match("/proc/cpuinfo", r"^flags\s*:\s*(.+)$", "").split()
    widest = next((isa for isa in ("avx512f", "avx2", "sse2") if isa in flags), "")
    return {
        "cpu": f"{re.sub(r'[(]R[)]|[(]TM[)]', '', cpu)} (family {family}, model {model}, {widest})",
        "cores": cores,
        "memory_gib": round(memory / 2**20, 1),
        "kernel": f"{platform.system()} {platform.release()}",
        "load": [round(x, 2) for x in os.getloadavg()],
        "slug": re.sub(r"[^a-z0-9]+", "-", f"{re.sub(r'[(].*?[)]', '', cpu)} {cores}c".lower()).strip("-"),
    }


# ---- any shape -------------------------------------------------------------

SHAPES = HERE.parent / "target/release/examples/cpu_shapes"
ROUNDS_OF_SHAPES = 5


class Answering:
    """A process that answers each case with the seconds of a call."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(
            command, env={**os.environ, **(environment or {})}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def seconds(self, case):
        print(case.line(), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            print(f"{case}: {answer or 'the process ended'}", file=sys.stderr)
            return None

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def shapes_run(options, seed, count):
    """Cases drawn at random, ours and NumPy in turn on one thread, ours on two; prints and records how they compare."""
    drawn = shapes.cases(seed, count, 1 << 10, options.most << 20, shapes.HOST)
    if options.matching:
        drawn = [case for case in drawn if re.search(options.matching, str(case))]
    one, two = Answering([options.shapes_program, "1"]), Answering([options.shapes_program, "2"])
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    numpy = Answering([PYTHON, str(HERE / "numpy_shapes.py")], threads)
    deadline = time.monotonic() + options.seconds if options.seconds else None
    rows, pairs = [], []
    for done, case in enumerate(drawn):
        if deadline and time.monotonic() > deadline:
            print(f"stopped after {done} of {len(drawn)} cases", file=sys.stderr)
            break
        ours, theirs = [], []
        for _ in range(ROUNDS_OF_SHAPES):
            ours.append(one.seconds(case))
            theirs.append(numpy.seconds(case))
            if None in (ours[-1], theirs[-1]):
                break
        if theirs[-1] is None:
            continue
        rows.append((case, None if ours[-1] is None else min(ours), min(theirs)))
        if options.two_threads and ours[-1] is not None:
            pairs.append((case, min(ours), min(two.seconds(case) for _ in range(3))))
    for program in (one, two, numpy):
        program.close()
    here = machine()
    text = f"seed {seed}, {count} cases asked for, {len(rows)} run\n" + shapes.report(rows, "numpy", options.read_rate)
    if pairs:
        gains = [single / double for case, single, double in pairs if case.bytes >= 4 << 20]
        if gains:
            text += f"\n{len(gains)} of 4 MiB and more on two threads, times as fast as on one: worst {min(gains):.2f}, median {statistics.median(gains):.2f}"
    print(here["cpu"])
    print(text)
    folder = Path(options.records)
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f"{datetime.date.today().isoformat()}-{here['slug']}-shapes-{seed}"
    fields = [{**shapes.dataclasses.asdict(case), "ours": ours, "numpy": theirs} for case, ours, theirs in rows]
    rows_of_records.write(stem.with_suffix(".json"), fields)
    found = versions(options)
    title = f"# {datetime.date.today().isoformat()}, shapes drawn at random on {here['cpu'].split(' (')[0]}"
    about = (
        f"{here['cpu']}, {here['cores']} cores, {here['memory_gib']} GiB, {here['kernel']}, load at the start {here['load'][0]}, numpy {found.get('numpy', '?')}. "
        f"`benches/peers.py --shapes {seed} {count} --most {options.most}`: processor time of one thread, the least of {ROUNDS_OF_SHAPES} rounds in turn, NumPy's Python call included."
    )
    stem.with_suffix(".md").write_text(f"{title}\n\n{about}\n\n```text\n{text}\n```\n")
    print(f"written: {stem}.md, {stem}.json", file=sys.stderr)


TABLES = {"memory": memory_table, "npy": contest_table, "csv": contest_table, "parquet": contest_table, "rss": rss_table}


def write_record(options, record):
    here = record["machine"]
    stem = f"{record['date']}-{here['slug']}"
    folder = Path(options.records)
    folder.mkdir(parents=True, exist_ok=True)
    count = 1
    while (folder / f"{stem}.md").exists():
        count += 1
        stem = f"{record['date']}-{here['slug']}-{count}"
    lines = [
        f"# {record['date']}, {here['cpu'].split(' (')[0]}, {here['cores']} cores",
        "",
        f"{here['cpu']}, {here['cores']} cores, {here['memory_gib']} GiB, {here['kernel']}, "
        f"load at the start {here['load'][0]}. "
        + ", ".join(f"{name} {version}" for name, version in record["versions"].items())
        + f". Medians of {record['rounds']} rounds, contestants in turn, page cache warm"
        + (f"; **sizes scaled by {record['scale']}**" if record["scale"] != 1 else "")
        + f". Every sample is in `{stem}.json`.",
        "",
        "*off by* is the distance from the exact sum in units of the last place. *warpfold is* gives how many times as",
        "fast as that contestant warpfold was.",
        "",
    ]
    for part, result in record["parts"].items():
        lines += TABLES[part](result)
    (folder / f"{stem}.md").write_text("\n".join(lines).rstrip() + "\n")
    rows_of_records.write(folder / f"{stem}.json", record)
    print("\n".join(lines))
    print(f"written: {stem}.md and {stem}.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--warpfold", metavar="BINARY", help="left out: the peers alone")
    parser.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds (default 5)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of everything; other than 1 is for trying out")
    parser.add_argument("--dir", help="where the files go; 5 GiB are needed")
    parser.add_argument("--records", default=str(HERE / "records"), help="where the record goes")
    parser.add_argument("--shapes", nargs=2, type=int, metavar=("SEED", "COUNT"), help="times COUNT cases drawn by SEED, of any shape, beside NumPy, and nothing else")
    parser.add_argument("--shapes-program", default=str(SHAPES), help="of --shapes: our side (cargo build --release -p warpfold-cpu --example cpu_shapes)")
    parser.add_argument("--matching", metavar="REGEX", help="of --shapes: the drawn cases whose text matches")
    parser.add_argument("--most", type=int, default=512, metavar="MIB", help="of --shapes: the size of the largest arrays")
    parser.add_argument("--seconds", type=float, help="of --shapes: stop after so long")
    parser.add_argument("--two-threads", action="store_true", help="of --shapes: ours on two threads, too")
    parser.add_argument("--read-rate", type=float, help="of --shapes: GB/s at which a whole array is read, to tell shares of it")
    options = parser.parse_args()
    if options.shapes:
        if options.warpfold is not None:
            options.warpfold = str(Path(options.warpfold).resolve())
        return shapes_run(options, *options.shapes)
    chosen = options.only.split(",")
    if unknown := [part for part in chosen if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if options.warpfold is not None:
        options.warpfold = str(Path(options.warpfold).resolve())
    record = {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": versions(options),
        "rounds": options.rounds,
        "scale": options.scale,
        "parts": {},
    }
    for part in PARTS:
        if part in chosen:
            print(f"{part}:", flush=True)
            with tempfile.TemporaryDirectory(prefix="warpfold-bench-", dir=options.dir) as folder:
                record["parts"][part] = globals()[f"part_{part}"](options, Path(folder))
    write_record(options, record)


if __name__ == "__main__":
    main()
