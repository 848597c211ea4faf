"""Writes the benchmark's files, and prints the exact answers as JSON.

Its own process, so that the one that measures stays small: a child's peak
memory, as the kernel reports it, is never below its parent's at the fork.

NumPy draws multiples of 2^-53 from [0, 1), so the exact sum is an integer sum.
"""

import argparse
import json
import sys

import numpy as np

CHUNK = 1 << 22


class ExactSum:
    """The exact sum of draws from `Generator.random`, in units of 2^-53."""

    def __init__(self):
        self.units = 0

    def add(self, x):
        u = (x * 2.0**53).astype(np.int64)
        # Two halves, so that the 64-bit sums of a chunk cannot overflow.
        self.units += (int((u >> 32).sum()) << 32) + int((u & 0xFFFFFFFF).sum())

    def value(self):
        return self.units / 2**53  # the division of integers rounds once


def chunks(n, seed):
    rng = np.random.default_rng(seed)
    for start in range(0, n, CHUNK):
        yield rng.random(min(CHUNK, n - start))


def npy(path, n):
    total = ExactSum()
    header = {"descr": "<f8", "fortran_order": False, "shape": (n,)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for x in chunks(n, 1):
            total.add(x)
            x.tofile(file)
    return total.value()


def raw(path, n):
    """One random block over and over: only its size matters."""
    block = next(chunks(min(CHUNK, n), 2))
    total = ExactSum()
    with open(path, "wb") as file:
        for start in range(0, n, CHUNK):
            x = block[: min(CHUNK, n - start)]
            total.add(x)
            x.tofile(file)
    return total.value()


def csv(path, n):
    """Decimals of six places, without a header. The sum of what they parse to, rounded once."""
    import math

    rng = np.random.default_rng(3)
    parsed = []
    with open(path, "w") as file:
        for start in range(0, n, CHUNK):
            lines = [f"{x:.6f}" for x in rng.normal(100.0, 15.0, min(CHUNK, n - start)).tolist()]
            file.write("\n".join(lines) + "\n")
            parsed.append(np.array(lines, dtype="f8"))
    return math.fsum(x for part in parsed for x in part.tolist())


def parquet(path, n):
    """One column `x`, plain and uncompressed, a million rows to a row group."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    total = ExactSum()
    schema = pa.schema([("x", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for x in chunks(n, 4):
            total.add(x)
            writer.write_table(pa.table({"x": x}, schema=schema), row_group_size=1 << 20)
    return total.value()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["npy", "raw", "csv", "parquet"])
    parser.add_argument("path")
    parser.add_argument("elements", type=int)
    options = parser.parse_args()
    answer = globals()[options.kind](options.path, options.elements)
    json.dump({"sum": answer.hex()}, sys.stdout)


if __name__ == "__main__":
    main()
