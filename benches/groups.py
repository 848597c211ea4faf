#!/usr/bin/env python3
"""Times sums of groups beside Polars and DuckDB, in turn, at one number of threads.

    cargo build --release -p warpfold --example group_sums
    cargo build --release -p warpfold-cli
    python3 benches/groups.py --rows 10000000 --groups 10,10000,10000000 --parquet

Needs numpy, polars, duckdb and pyarrow. Prints seconds, minimum and median over the
rounds, and how many times as fast as each peer warpfold is (of the minima). Peers hold
the same arrays in memory; their answers are not sorted, warpfold's are.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "target" / "release"


def data(rows, groups):
    """The arrays that the example program makes."""
    import numpy as np

    def mix(i):
        with np.errstate(over="ignore"):
            x = (i ^ (i >> np.uint64(31))) * np.uint64(0x7FB5D329728EA185)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x81DADEF4BC2DD44D)
            return x ^ (x >> np.uint64(33))

    index = np.arange(rows, dtype=np.uint64)
    keys = (mix(index) % np.uint64(groups)).astype(np.int64)
    values = (mix(~index) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return keys, values


class Ours:
    def __init__(self, rows, groups, threads):
        words = [TARGET / "examples" / "group_sums", str(rows), str(groups), str(threads)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        seconds, groups = self.process.stdout.readline().split()
        return float(seconds), int(groups)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def timed(work):
    start = time.perf_counter()
    groups = work()
    return time.perf_counter() - start, groups


def contest(name, contestants, rounds):
    """Lets the contestants take turns, and prints what they took."""
    times = {who: [] for who in contestants}
    counts = {}
    for _ in range(rounds):
        for who, work in contestants.items():
            seconds, counts[who] = work()
            times[who].append(seconds)
    assert len(set(counts.values())) == 1, counts
    ours = min(times["warpfold"])
    for who, taken in times.items():
        ratio = "" if who == "warpfold" else f"  {min(taken) / ours:5.2f} x"
        print(f"{name:34} {who:9} min {min(taken):8.4f} s  median {statistics.median(taken):8.4f} s{ratio}", flush=True)


def memory(rows, groups, threads, rounds):
    import duckdb
    import polars
    import pyarrow

    keys, values = data(rows, groups)
    frame = polars.DataFrame({"k": keys, "v": values})
    table = pyarrow.table({"k": keys, "v": values})
    connection = duckdb.connect(config={"threads": threads})
    connection.register("arrow_t", table)
    # A table of its own, so that no conversion is timed.
    connection.execute("create table t as select * from arrow_t")
    ours = Ours(rows, groups, threads)
    contestants = {
        "warpfold": ours,
        "polars": lambda: timed(lambda: frame.group_by("k").agg(polars.col("v").sum()).height),
        "duckdb": lambda: timed(
            lambda: connection.sql("select k, sum(v) s from t group by k").to_arrow_table().num_rows
        ),
    }
    contest(f"memory, {rows} rows, {groups} groups", contestants, rounds)
    ours.close()


def parquet(rows, groups, threads, rounds):
    import duckdb
    import polars
    import pyarrow
    import pyarrow.parquet

    keys, values = data(rows, groups)
    texts = pyarrow.array([f"key {i}" for i in range(groups)])
    table = pyarrow.table({"k": texts.take(pyarrow.array(keys)), "v": values})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "t.parquet")
        pyarrow.parquet.write_table(table, path, row_group_size=1 << 18)
        connection = duckdb.connect(config={"threads": threads})
        out = str(Path(folder) / "out.csv")
        words = [TARGET / "warpfold", "sum", "-q", "-j", str(threads), "-c", "v", "--by", "k", path, "-o", out]

        def ours():
            subprocess.run(words, check=True)
            return sum(1 for _ in open(out)) - 1

        contestants = {
            "warpfold": lambda: timed(ours),
            "duckdb": lambda: timed(
                lambda: connection.sql(f"select k, sum(v) s from '{path}' group by k").to_arrow_table().num_rows
            ),
            "polars": lambda: timed(
                lambda: polars.scan_parquet(path).group_by("k").agg(polars.col("v").sum()).collect().height
            ),
        }
        contest(f"parquet, text, {rows} rows, {groups} groups", contestants, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--groups", type=numbers, default=[10, 10_000, 10_000_000])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parquet", action="store_true")
    args = parser.parse_args()
    # Before it is imported.
    os.environ["POLARS_MAX_THREADS"] = str(args.threads)
    for groups in args.groups:
        memory(args.rows, groups, args.threads, args.rounds)
    for groups in args.groups if args.parquet else []:
        if groups <= 1_000_000:
            parquet(args.rows, groups, args.threads, args.rounds)


if __name__ == "__main__":
    sys.exit(main())
