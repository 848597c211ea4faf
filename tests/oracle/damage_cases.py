"""Damaged files: an error, or the answer as it was; never another answer, never a crash.

A byte is changed where the container has a checksum over it. Files are cut short where their end can be
told: text that is not compressed and streams of text have none.
"""

import bz2
import gzip
import json
import lzma
import struct
import zipfile

from array_files import Array, in_npy, zipped
from asking import Fault, Input, ask, crashed, why
from elements import TYPES, draw, rng_for

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None

OPERATIONS = ("sum", "sumsq", "count", "argmax", "argmin", "xor", "count-nonzero")


def numbers(array):
    return ("x\n" + "".join(f"{array.type.whole(e)}\n" for e in array.elements)).encode()


def arrow_table(array):
    return pyarrow.table({"x": pyarrow.array([array.type.whole(e) for e in array.elements], pyarrow.int64())})


def arrow(new):
    def make(array, rng):
        table, out = arrow_table(array), pyarrow.BufferOutputStream()
        with new(out, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=rng.choice((10, 10**6))):
                writer.write_batch(batch)
        return out.getvalue().to_pybytes()

    return make


def parquet(array, rng):
    out = pyarrow.BufferOutputStream()
    options = {"compression": rng.choice(("none", "snappy", "zstd")), "use_dictionary": rng.random() < 0.5}
    options["data_page_version"] = rng.choice(("1.0", "2.0"))
    pyarrow.parquet.write_table(arrow_table(array), out, write_page_checksum=True, **options)
    return out.getvalue().to_pybytes()


def safetensors(array, _rng):
    raw = array.type.pack(array.elements)
    text = json.dumps({"x": {"dtype": "I64", "shape": list(array.shape), "data_offsets": [0, len(raw)]}}).encode()
    return struct.pack("<Q", len(text)) + text + raw


def anywhere(content):
    return range(len(content))


def page_data(content):
    """Where the last page of the only column holds its values, behind its header."""
    meta = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(content)).metadata.row_group(0).column(0)
    start = meta.dictionary_page_offset or meta.data_page_offset
    end = start + meta.total_compressed_size
    return range(max((meta.data_page_offset + end) // 2, end - 16), end)


class Format:
    """How the file is made, the flags that read it, and which of its bytes a checksum covers."""

    def __init__(self, name, make, flags=(), covered=None, package=None):
        self.name, self.make, self.flags, self.covered, self.package = name, make, flags, covered, package


FORMATS = [
    Format("x.npy", lambda a, _: in_npy(a)),
    Format("x.safetensors", safetensors),
    Format("stored.npz", lambda a, _: zipped([("x.npy", in_npy(a))], zipfile.ZIP_STORED), (), anywhere),
    Format("deflated.npz", lambda a, _: zipped([("x.npy", in_npy(a))], zipfile.ZIP_DEFLATED), (), anywhere),
    Format("x.npy.gz", lambda a, _: gzip.compress(in_npy(a), mtime=0), (), anywhere),
    Format("x.csv.gz", lambda a, _: gzip.compress(numbers(a), mtime=0), ("-c", "x"), anywhere),
    Format("x.csv.bz2", lambda a, _: bz2.compress(numbers(a)), ("-c", "x"), anywhere),
    Format("x.csv.xz", lambda a, _: lzma.compress(numbers(a)), ("-c", "x"), anywhere),
    Format("x.csv.zst", lambda a, _: pyarrow.compress(numbers(a), "zstd", asbytes=True), ("-c", "x"), None, "pyarrow"),
    Format("x.parquet", parquet, ("-c", "x"), page_data, "pyarrow"),
    Format("x.arrow", arrow(lambda *a: pyarrow.ipc.new_file(*a)), ("-c", "x"), None, "pyarrow"),
    Format("x.arrows", arrow(lambda *a: pyarrow.ipc.new_stream(*a)), ("-c", "x"), None, "pyarrow"),
    Format("x.state", None, (), anywhere),
]


class Damaged:
    """One file, whole and damaged."""

    def __init__(self, array, format_, how, piped, seed):
        self.array, self.format, self.how, self.piped, self.seed = array, format_, how, piped, seed
        self.label = f"{format_.name}, {how}{', a pipe' * piped}"

    def smaller(self):
        n = len(self.array.elements)
        for k in (n // 2, n - 1):
            if k > 0:
                yield Damaged(
                    Array(self.array.type, (k,), self.array.elements[:k]), self.format, self.how, self.piped, self.seed
                )

    def check(self, warpfold, folder):
        rng = rng_for(self.seed)
        path = folder / self.format.name
        content = self.content(warpfold, folder, rng)
        path.write_bytes(content)
        if self.how == "cut":
            # Ends that only just miss something are told least easily.
            least = len(content) - 16 if rng.random() < 0.3 else 1
            damaged = content[: rng.randrange(max(1, least), len(content))]
            place = f"{len(damaged)} of {len(content)} bytes"
        elif self.how == "followed":
            damaged = content + rng.randbytes(rng.choice((1, 8, 40)))
            place = f"{len(damaged) - len(content)} bytes follow"
        else:
            at = rng.choice(self.format.covered(content))
            damaged = bytearray(content)
            damaged[at] ^= 1 << rng.randrange(8)
            place = f"byte {at} of {len(content)} changed"
        (folder / f"damaged-{self.format.name}").write_bytes(damaged)
        good, _ = self.ask(warpfold, folder, self.format.name)
        if good.status != 0:
            return []  # the other families tell why
        outcome, command = self.ask(warpfold, folder, f"damaged-{self.format.name}")
        data = f"damaged {self.format.name}, {self.how}"
        crash = crashed(outcome)
        if crash:
            return [Fault(f"{data}: the process crashes", self.label, command, "an error", f"{crash}; {place}")]
        if outcome.status == 1 or outcome.status == 0 and outcome.out == good.out:
            return []
        found = outcome.out.strip().replace("\n", "") if outcome.status == 0 else why(outcome)
        return [Fault(f"{data}: another answer", self.label, command, f"an error, as {place}", found)]

    def content(self, warpfold, folder, rng):
        if self.format.make:
            return self.format.make(self.array, rng)
        (folder / "x.npy").write_bytes(in_npy(self.array))
        made = warpfold.ask(["partial", ",".join(OPERATIONS), "x.npy", "-o", "whole.state"], folder=folder)
        assert made.status == 0, made.err
        return (folder / "whole.state").read_bytes()

    def ask(self, warpfold, folder, name):
        command = (
            ["merge"] if self.format.make is None else ["reduce", "--op", ",".join(OPERATIONS), *self.format.flags]
        )
        if self.piped and self.format.make is not None:
            kind = ["--format", "csv"] if ".csv" in name else []
            return ask(warpfold, folder, [*command, *kind, "--hex", "-f", "json"], Input(["-"], piped=name))
        return ask(warpfold, folder, [*command, "--hex", "-f", "json"], Input([name]))


def cases(rng, skipped):
    """Every format, damaged."""
    n = rng.choice((2, 10, 60, 400))
    small = rng.random() < 0.5
    elements = [rng.randint(0, 9) for _ in range(n)] if small else draw(TYPES["i32"], n, rng)
    elements = [TYPES["i64"].bits(TYPES["i32"].whole(e)) for e in elements]
    array = Array(TYPES["i64"], (n,), elements)
    for format_ in FORMATS:
        if format_.package and pyarrow is None:
            skipped[f"damaged {format_.name} (no {format_.package})"] += 1
            continue
        sequential = format_.name not in (
            "stored.npz",
            "deflated.npz",
            "x.parquet",
            "x.arrow",
            "x.state",
            "x.safetensors",
        )
        piped = sequential and rng.random() < 0.3
        for how in ("cut", "flipped", "followed") if format_.covered else ("cut",):
            yield Damaged(array, format_, how, piped, rng.random())
