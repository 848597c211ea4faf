#!/usr/bin/env python3
"""Answers that warpfold writes as Parquet, Arrow and npz files, read by others' libraries.

    python3 tests/oracle/answer_files.py target/debug/warpfold             40 tables and 40 arrays
    python3 tests/oracle/answer_files.py --cases 500 target/debug/warpfold
    python3 tests/oracle/answer_files.py --only 17 target/debug/warpfold   one of them again

Each question is asked with `-f json`, whose answers other tests check, and with each kind of file; polars,
pyarrow, pandas and NumPy must find the same names, types and values in it, and the same values missing. What is not
installed is skipped, aloud. Exit status 3 if anything differs.
"""

import argparse
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import groups

# Types by the name that each library has for them.
DTYPES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8"}
# Answers of other types than the elements'.
OPS = ("sum", "mean", "min", "max", "minmax", "argmin", "argminmax", "count", "count-nan", "any", "norm2", "var")


def readers():
    """Functions from a path to names and lists, by the kind of file."""
    found = {"parquet": {}, "arrow": {}, "npz": {}}
    try:
        import pyarrow.feather
        import pyarrow.parquet

        def table(read):
            return lambda path: {name: column.to_pylist() for name, column in zip(read(path).column_names, read(path).columns)}

        found["parquet"]["pyarrow"] = table(pyarrow.parquet.read_table)
        found["arrow"]["pyarrow"] = table(pyarrow.feather.read_table)
    except ImportError:
        print("skipped: pyarrow is not installed")
    try:
        import polars

        found["parquet"]["polars"] = lambda path: polars.read_parquet(path).to_dict(as_series=False)
        found["arrow"]["polars"] = lambda path: polars.read_ipc(path).to_dict(as_series=False)
    except ImportError:
        print("skipped: polars is not installed")
    try:
        import duckdb

        def duck(path):
            relation = duckdb.sql(f"select * from read_parquet('{path}')")
            rows = relation.fetchall()
            return {name: [row[i] for row in rows] for i, name in enumerate(relation.columns)}

        found["parquet"]["duckdb"] = duck
    except ImportError:
        print("skipped: duckdb is not installed")
    try:
        import numpy

        def archive(path):
            with numpy.load(path) as members:
                names = [name for name in members if not name.endswith(".missing")]
                lists = {}
                for name in names:
                    values = members[name].reshape(-1).tolist()
                    gone = members[f"{name}.missing"].reshape(-1).tolist() if f"{name}.missing" in members else []
                    lists[name] = [None if none else value for value, none in zip(values, gone + [False] * len(values))]
                return lists

        found["npz"]["numpy"] = archive
    except ImportError:
        print("skipped: numpy is not installed")
    return found


def run(binary, folder, *words):
    result = subprocess.run([binary, *words, "-q"], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: exit {result.returncode}: {result.stderr}")
    return result.stdout


def parsed(text):
    """The answers of `-f json`, whose `-0` is a float."""
    return json.loads(text, parse_int=lambda digits: -0.0 if digits == "-0" else int(digits))


def number(value):
    """A value of JSON as Python has it."""
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value) if isinstance(value, str) else value


def same(found, expected):
    if found is None or expected is None:
        return found is expected
    if isinstance(expected, str):
        return (found.decode("utf-8", "replace") if isinstance(found, bytes) else found) == expected
    if isinstance(found, bool) != isinstance(expected, bool):
        return False
    if isinstance(expected, float) and math.isnan(expected):
        return math.isnan(found)
    return found == expected and math.copysign(1, found) == math.copysign(1, expected)


def compare(what, found, expected):
    """The first difference between two tables, as a text."""
    if list(found) != list(expected):
        return f"{what}: columns {list(found)}, not {list(expected)}"
    for name, values in expected.items():
        if len(found[name]) != len(values):
            return f"{what}: {name} has {len(found[name])} rows, not {len(values)}"
        for row, (got, wanted) in enumerate(zip(found[name], values)):
            if not same(got, wanted):
                return f"{what}: {name}, row {row}: {got!r}, not {wanted!r}"
    return None


def columns_of_groups(records):
    """JSON's objects as columns of one row for each group."""
    names = list(dict.fromkeys(record.get("name") for record in records))
    columns = {}
    for record in (record for record in records if record.get("name") == names[0]):
        for key, value in record["by"].items():
            columns.setdefault(key, []).append(value)
    for record in records:
        prefix = f"{record['name']}_" if len(names) > 1 else ""
        for op, value in record.items():
            if op not in ("name", "by"):
                columns.setdefault(prefix + op, []).append(number(value))
    return columns


def table_case(rng, binary, folder, found):
    """Groups of a table."""
    width, rows = groups.draw(rng)
    second = rng.random() < 0.4
    if second:
        rows = [[*row, str(rng.randint(-9, 9)) if rng.random() < 0.8 else ""] for row in rows]
    names = [f"k{i}" for i in range(width)] + ["x"] + ["y"] * second
    lines = [names, *rows]
    (folder / "t.csv").write_text("".join(",".join('"' + cell.replace('"', '""') + '"' for cell in line) + "\n" for line in lines))
    ops = ",".join(rng.sample(groups.OPS, rng.randint(1, 4)))
    values = "x,y" if second else "x"
    words = ["reduce", "--op", ops, "-c", values, "--by", ",".join(names[:width]), "t.csv"]
    expected = columns_of_groups(parsed(run(binary, folder, *words, "-f", "json")))
    return words, lambda kind: expected


def nested(value):
    return [number(value)] if not isinstance(value, list) else [x for part in value for x in nested(part)]


def indices(shape):
    if not shape:
        return [[]]
    return [[i, *rest] for i in range(shape[0]) for rest in indices(shape[1:])]


def array_case(rng, binary, folder, found):
    """Answers along axes, with their indices in files of columns."""
    import numpy

    dtype = rng.choice(list(DTYPES))
    shape = [rng.choice((1, 2, 3, 7, 40)) for _ in range(rng.randint(1, 3))]
    seed = numpy.random.default_rng(rng.getrandbits(32))
    raw = seed.integers(0, 100, shape)
    array = (raw < 50) if dtype == "bool" else raw.astype(DTYPES[dtype])
    if dtype.startswith("f"):
        array = array / 8
        array[seed.random(shape) < 0.02] = math.nan
    numpy.save(folder / "a.npy", array.astype(DTYPES[dtype]))
    kept = rng.random() < 0.7 and len(shape) > 1
    ops = rng.sample(("min", "max", "count", "argmax", "minmax") if dtype == "bool" else OPS, rng.randint(1, 4))
    if "minmax" in ops:
        ops = [op for op in ops if op not in ("min", "max")]
    if "argminmax" in ops:
        ops = [op for op in ops if op not in ("argmin", "argmax")]
    axis = ["-a", str(rng.randrange(len(shape)))] if kept else []
    words = ["reduce", "--op", ",".join(ops), *axis, "a.npy"]
    answers = parsed(run(binary, folder, *words, "-f", "json"))
    answers = answers if isinstance(answers, list) else [answers]
    left = answers[0]["shape"]
    expected = {}
    for answer in answers:
        op, value = answer["op"], answer["value"]
        # Decimals are the shortest of the answer's own type.
        of = numpy.dtype(DTYPES[answer["dtype"]]).type
        exact = lambda values, of=of: [None if x is None else of(x).item() for x in values]
        if op in ("minmax", "argminmax"):
            both = ("min", "max") if op == "minmax" else ("argmin", "argmax")
            for name in both:
                expected[name] = exact(nested(value[name]))
        else:
            expected[op] = exact(nested(value))
    places = {f"i{axis}": [place[axis] for place in indices(left)] for axis in range(len(left))}
    return words, lambda kind: expected if kind == "npz" else places | expected


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--only", type=int)
    arguments = parser.parse_args()
    binary, found = arguments.binary.resolve(), readers()
    makers = [table_case, *([array_case] if found["npz"] else [])]
    bad = compared = 0
    for case in range(arguments.cases) if arguments.only is None else [arguments.only]:
        for make in makers:
            with tempfile.TemporaryDirectory() as folder:
                folder = Path(folder)
                words, expected = make(random.Random(f"{make.__name__} {case}"), binary, folder, found)
                for kind, libraries in found.items():
                    run(binary, folder, *words, "-o", f"out.{kind}")
                    for library, read in libraries.items():
                        compared += 1
                        difference = compare(f"{library}, {kind}", read(folder / f"out.{kind}"), expected(kind))
                        if difference:
                            bad += 1
                            print(f"case {case}: {' '.join(words)}: {difference}")
    print(f"{compared} files read, {bad} differ")
    return 3 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
