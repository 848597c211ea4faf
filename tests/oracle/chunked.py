#!/usr/bin/env python3
"""Arrays in Zarr and HDF5 have the answers that they have as npy, bit for bit; what is damaged is told.

    python tests/oracle/chunked.py BINARY

The files are written by zarr-python and h5py. BINARY has the features `zarr` and `hdf5`. Exit status 1 if anything differs.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import h5py
import hdf5plugin
import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

BINARY = pathlib.Path(sys.argv[1]).resolve()

# Whole arrays and all axes, with and without positions, answers and states, little memory and one thread.
QUESTIONS = [
    "sum --hex",
    "reduce --op sum,var,argmax,min,count-nan --hex",
    "argmin --hex -j1",
    "reduce --op mean,argmax --hex --axis 0",
    "reduce --op sum,max,argmin --hex --axis -1",
    "var --hex --axis 0 -j1 --memory-limit 256K",
    "argmax --axis 0 --memory-limit 256K",
    "sum --hex --axis 0 --keepdims",
]
OF_THREE_AXES = ["argmax --axis 0,2", "reduce --op sum,argmin --axis 0,1", "reduce --op max,argmax --axis 1,2 --memory-limit 64K", "sum --axis 1"]
OF_NO_AXIS = ["sum --hex", "reduce --op max,argmax --hex"]


def run(line, *files):
    words = [BINARY, *line.split(), *map(str, files)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


class Check:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def note(self, good, what):
        self.passed += bool(good)
        if not good:
            self.failed += 1
            print(f"differs: {what}")

    def same(self, array, name):
        """The answers of the array, whatever it is kept in."""
        np.save("x.npy", np.ascontiguousarray(array))
        questions = QUESTIONS if array.ndim == 2 else OF_THREE_AXES + QUESTIONS[:3] if array.ndim == 3 else OF_NO_AXIS
        for question in questions:
            expected, found = run(question, "x.npy"), run(question, name)
            good = (found.returncode, found.stdout) == (expected.returncode, expected.stdout)
            if expected.returncode:
                # Errors differ in the name of the file alone.
                good = found.returncode == expected.returncode and found.stderr.replace(name, "x.npy") == expected.stderr
            self.note(good, f"{question} {name}: {found.stdout[:200]}{found.stderr} instead of {expected.stdout[:200]}{expected.stderr}")

    def told(self, line, name, *texts):
        """A run that fails with nothing but these words."""
        found = run(line, name)
        good = found.returncode == 1 and not found.stdout and all(text in found.stderr for text in texts)
        self.note(good, f"{line} {name}: {found.stdout}{found.stderr} instead of {texts}")


def stored(name, array, **how):
    kept = zarr.create_array(name, shape=array.shape, dtype=array.dtype, **how)
    kept[...] = array


def in_zarr(check, x, small):
    cases = {
        "zstd": (x, {"chunks": (100, 90), "compressors": [ZstdCodec()]}),
        "gzip": (x.astype("f4"), {"chunks": (613, 50), "compressors": [GzipCodec()]}),
        "blosc": (small, {"chunks": (17, 16, 3), "compressors": [BloscCodec()]}),
        "shards": (x, {"chunks": (50, 30), "shards": (200, 90)}),
        "big": (x, {"chunks": (100, 90), "serializer": BytesCodec(endian="big"), "compressors": None}),
        "transposed": (x, {"chunks": (100, 90), "filters": [TransposeCodec(order=(1, 0))]}),
        "crc": (x, {"chunks": (100, 90), "compressors": [Crc32cCodec()]}),
        "half": (x.astype("f2"), {"chunks": (64, 64)}),
        "truth": (x > 0, {"chunks": (100, 407)}),
        "bytes": ((small % 100).astype("u1"), {"chunks": (50, 60, 1)}),
        "one": (x, {"chunks": (613, 407)}),
        "row": (x[0], {"chunks": (50,)}),
        "scalar": (np.array(3.5), {}),
        "empty": (np.zeros((0, 4)), {}),
        "two": (x, {"chunks": (100, 90), "zarr_format": 2}),
        "two-blosc": (x.astype("f4"), {"chunks": (100, 90), "zarr_format": 2, "compressors": numcodecs.Blosc(cname="lz4")}),
        "two-fortran": (x.astype(">f8"), {"chunks": (100, 90), "zarr_format": 2, "order": "F"}),
    }
    for name, (array, how) in cases.items():
        stored(f"{name}.zarr", array, **how)
        check.same(array, f"{name}.zarr")
    # Chunks that were never written.
    part = zarr.create_array("part.zarr", shape=(100, 100), chunks=(30, 30), dtype="f8", fill_value=0.5)
    part[30:60, 30:60] = x[:30, :30]
    check.same(part[...], "part.zarr")
    group = zarr.open_group("group.zarr", mode="w")
    group.create_array("a", shape=(10,), dtype="i4")[:] = np.arange(10)
    group.create_array("inner/b", shape=small.shape, chunks=(7, 60, 7), dtype="i2")[...] = small
    group.create_array("c", shape=(3,), dtype="complex128")
    check.same(small, "group.zarr:inner/b")
    check.same(small, "group.zarr/inner/b")
    check.told("sum", "group.zarr", "which array? There are 3: a, c, inner/b", "name it after a colon: group.zarr:a")
    check.told("sum", "group.zarr:d", 'there is no array "d"; there are a, c, inner/b')
    check.told("sum", "group.zarr:c", "elements of type complex128 are not read")
    told = run("inspect", "group.zarr").stdout
    check.note("group.zarr:inner/b\tzarr\ti16" in told, told)
    # Several files and pairs.
    check.note(run("sum --hex", "zstd.zarr", "x2.npy").stdout == run("sum --hex", "x2.npy", "x2.npy").stdout, "joined")
    for other in ["zstd.zarr", "x2.npy", "shards.zarr"]:
        check.note(run("dot --hex", "two.zarr", other).stdout == run("dot --hex", "x2.npy", "x2.npy").stdout, f"dot {other}")
    check.note(run("partial --op sum,argmax --axis 0 -o part.wfp", "zstd.zarr").returncode == 0, "partial")
    check.note(run("merge --hex", "part.wfp").stdout == run("reduce --op sum,argmax --axis 0 --hex", "x2.npy").stdout, "merge")


def damaged_zarr(check):
    chunk = pathlib.Path("zstd.zarr/c/2/1")
    bytes_ = chunk.read_bytes()
    for what, damage in {"short": bytes_[: len(bytes_) // 2], "odd": b"no zstd", "nothing": b""}.items():
        chunk.write_bytes(damage)
        for line in ["sum", "mean --axis 0", "argmax", "sum -o out.npy"]:
            check.told(line, "zstd.zarr", "error: zstd.zarr: chunk (2, 1): ")
            check.note(not pathlib.Path("out.npy").exists(), f"{what}: half an answer")
    chunk.write_bytes(bytes_)
    chunk = pathlib.Path("crc.zarr/c/0/0")
    bytes_ = bytearray(chunk.read_bytes())
    bytes_[100] ^= 1
    chunk.write_bytes(bytes_)
    check.told("sum", "crc.zarr", "error: crc.zarr: chunk (0, 0): ")
    metadata = pathlib.Path("gzip.zarr/zarr.json")
    text = metadata.read_text()
    for old, new, words in [('"gzip"', '"unheard"', "unheard"), ('"shape"', '"form"', "shape"), ("{", "", "gzip.zarr: "), ("[", "[9999999999,", "gzip.zarr: ")]:
        metadata.write_text(text.replace(old, new, 1))
        check.told("sum", "gzip.zarr", words)
    metadata.write_text(text)
    check.told("sum --format zarr", "x.npy", "zarr data are a folder, and this is a file")


def in_hdf5(check, x, small):
    arrays = {
        "plain": (x, {}),
        "big": (x.astype(">f4"), {}),
        "scalar": (np.array(2.25), {}),
        "gzip": (x, {"chunks": (100, 90), "compression": "gzip", "shuffle": True, "fletcher32": True}),
        "lzf": (x.astype("f4"), {"chunks": (100, 90), "compression": "lzf"}),
        "lzf-ints": (small, {"chunks": (50, 10, 7), "compression": "lzf"}),
        "zstd": (x, {"chunks": (100, 90), **hdf5plugin.Zstd()}),
        "szip": (small, {"chunks": (50, 10, 7), "compression": "szip"}),
        "offset": (small, {"chunks": (50, 10, 7), "scaleoffset": 0}),
        "g/half": (x.astype("f2"), {"chunks": (64, 64)}),
        "g/half-big": (x.astype(">f2"), {"chunks": (64, 64)}),
        "g/truth": (x > 0, {"chunks": (100, 90), "compression": "gzip"}),
        "grow": (x, {"chunks": (100, 90), "maxshape": (None, None)}),
        "grow-rows": (x, {"chunks": (10, 407), "maxshape": (None, 407)}),
        "one": (x, {"chunks": x.shape, "compression": "gzip"}),
        "row": (x[0], {"chunks": (50,)}),
        "empty": (np.zeros((0, 4)), {"chunks": (5, 4), "maxshape": (None, 4)}),
    }
    for file, how in {"old.h5": {}, "new.h5": {"libver": "latest", "userblock_size": 512}}.items():
        with h5py.File(file, "w", **how) as kept:
            for name, (array, options) in arrays.items():
                try:
                    kept.create_dataset(name, data=array, **options)
                except ValueError as missing:
                    print(f"{name}: not written: {missing}")
            part = kept.create_dataset("part", shape=(100, 100), chunks=(30, 30), dtype="f8", fillvalue=0.5)
            part[30:60, 30:60] = x[:30, :30]
            parts = part[...]
            kept.create_dataset("unwritten", shape=(10, 10), dtype="f4", fillvalue=1.5)
            kept["text"] = "words"
            kept.create_dataset("blosc", data=x, chunks=(100, 90), **hdf5plugin.Blosc())
            kept["g/up"] = kept["/"]
            names = set(kept) | {f"g/{name}" for name in kept["g"]}
        for name, (array, _) in arrays.items():
            if name in names:
                check.same(array, f"{file}:{name}")
        check.same(parts, f"{file}:part")
        check.same(np.full((10, 10), 1.5, "f4"), f"{file}:unwritten")
        check.told("sum", file, "which array? There are ", f"name it after a colon: {file}:")
        check.told("sum", f"{file}:text", "elements of type H5T_VLEN are not read")
        check.told("sum", f"{file}:none", 'there is no array "none"')
        check.told("sum", f"{file}:blosc", "chunk (0, 0): ", "32001")
        told = run("inspect", file).stdout
        check.note(f"{file}:gzip\thdf5\tf64\tH5T_IEEE_F64LE\t613 x 407\t-\tshuffle, deflate, fletcher32" in told, told)


def damaged_hdf5(check):
    whole = pathlib.Path("old.h5").read_bytes()
    with h5py.File("old.h5") as kept:
        chunk = kept["gzip"].id.get_chunk_info_by_coord((200, 90))
        plain = kept["plain"].id.get_offset()
    damage = bytearray(whole)
    damage[chunk.byte_offset + chunk.size // 2] ^= 0xFF
    pathlib.Path("bad.h5").write_bytes(damage)
    for line in ["sum", "mean --axis 1", "argmax"]:
        check.told(line, "bad.h5:gzip", "error: bad.h5:gzip: chunk (2, 1): ")
    for cut in [9, 100, plain + 1000, len(whole) - 1]:
        pathlib.Path("cut.h5").write_bytes(whole[:cut])
        found = run("sum", "cut.h5:plain")
        check.note(found.returncode in (0, 1) and "panic" not in found.stderr and (found.returncode == 1) == (cut < len(whole) - 1), f"cut at {cut}: {found.stderr}")


def main():
    check, random = Check(), np.random.default_rng(1)
    x = random.standard_normal((613, 407)) * np.exp(random.standard_normal((613, 407)))
    x[3, 5] = x[600, 400] = x.max() + 1
    small = random.integers(-900, 900, (50, 60, 7)).astype("i2")
    with tempfile.TemporaryDirectory() as folder:

        os.chdir(folder)
        np.save("x2.npy", x)
        in_zarr(check, x, small)
        damaged_zarr(check)
        in_hdf5(check, x, small)
        damaged_hdf5(check)
        os.chdir("/")
    print(f"Zarr and HDF5: {check.passed} passed, {check.failed} failed")
    return check.failed > 0


if __name__ == "__main__":
    sys.exit(main())
