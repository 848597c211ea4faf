"""A table as text, by every program that writes it; compressed at times.

Each writer gives a `Text`, or None where it cannot write the table as meant.
"""

import bz2
import csv
import gzip
import io
import lzma
import math
from decimal import Decimal

try:
    import pandas
except ImportError:
    pandas = None
try:
    import polars
except ImportError:
    polars = None
try:
    import duckdb
except ImportError:
    duckdb = None
try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    pyarrow = None


class Text:
    """The bytes of a table, and what a reader has to know of it."""

    def __init__(self, content, token, writer, header=True, index=False, suffix="csv", flags=()):
        self.content, self.token, self.writer = content, token, writer
        self.header, self.index, self.suffix, self.flags = header, index, suffix, list(flags)


def cell_text(value, rng):
    """A cell as people and programs write it."""
    if isinstance(value, bool):
        return rng.choice((str(value), str(value).lower()))
    if isinstance(value, Decimal):
        plain = format(value, "f")
        if value != value.to_integral_value():
            return rng.choice((plain, plain, plain + "0", ("+" + plain).replace("+-", "-"), format(value, "e")))
        return plain
    if isinstance(value, float):
        return repr(value)
    return str(value)


def by_csv(table, rng):
    """Python's csv module, with its dialects."""
    token = rng.choice(("", "", "NA", "N/A", "NULL", "null", "NaN"))
    delimiter = rng.choice((",", ",", ",", ";", "\t", "|"))
    header = rng.random() < 0.85 or not may_lack_header(table)
    out = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL))
    writer = csv.writer(out, delimiter=delimiter, lineterminator=rng.choice(("\n", "\r\n")), quoting=quoting)
    if header:
        writer.writerow([c.name for c in table.columns])
    for row in zip(*(c.cells for c in table.columns)):
        writer.writerow([token if v is None else cell_text(v, rng) for v in row])
    text = out.getvalue()
    if rng.random() < 0.2 and not blank(table, token):
        text = text.rstrip("\r\n")
    content = (b"\xef\xbb\xbf" if rng.random() < 0.2 else b"") + text.encode()
    suffix = "tsv" if delimiter == "\t" else "csv"
    flags = ["--delimiter", delimiter] if delimiter in ";|" else []
    return Text(content, token, "csv module", header, False, suffix, flags)


def may_lack_header(table):
    """Whether the first row cannot be taken for names, and no row is blank."""
    first = [c.cells[0] for c in table.columns]
    return all(c.is_numeric() for c in table.columns) and not (
        any(v is None or isinstance(v, float) and not math.isfinite(v) for v in first)
        or len(table.columns) == 1
        and table.columns[0].missing()
    )


def blank(table, token):
    """Whether the text has blank lines that are rows."""
    return token == "" and len(table.columns) == 1 and table.columns[0].missing() > 0


def by_join(table, rng):
    """Cells joined by commas: a column alone has blank lines for missing cells."""
    if any(isinstance(v, str) for c in table.columns for v in c.cells):
        return None
    token = rng.choice(("", "", "NA"))
    header = rng.random() < 0.6 or not may_lack_header(table)
    end = rng.choice(("\n", "\n", "\r\n"))
    lines = [",".join(c.name for c in table.columns)] if header else []
    for row in zip(*(c.cells for c in table.columns)):
        lines.append(",".join(token if v is None else cell_text(v, rng) for v in row))
    return Text((end.join(lines) + end).encode(), token, "joined cells", header, suffix=rng.choice(("csv", "txt")))


def by_pandas(table, rng):
    """pandas writes an index without a name unless told not to."""
    data = {}
    for c in table.columns:
        if c.kind in ("int", "big", "unsigned"):
            data[c.name] = pandas.array(c.cells, dtype="UInt64" if c.kind == "unsigned" else "Int64")
        else:
            data[c.name] = pandas.Series(c.cells, dtype=object)
    index = rng.random() < 0.6
    token = rng.choice(("", "", "NA", "NaN", "NULL"))
    frame = pandas.DataFrame(data)
    if any(c.kind == "nan" for c in table.columns):
        token = "NaN"
    text = frame.to_csv(index=index, na_rep=token)
    return Text(text.encode(), token, f"pandas{' with its index' * index}", True, index)


def by_polars(table, rng):
    """Polars writes nulls as empty cells, and a blank line where there is one column."""
    frame = polars_frame(table)
    token = rng.choice(("", "", "NA", "NULL", "null"))
    separator = rng.choice((",", ",", ";", "\t"))
    text = frame.write_csv(
        null_value=token or None,
        separator=separator,
        include_bom=rng.random() < 0.15,
        line_terminator=rng.choice(("\n", "\n", "\r\n")),
        quote_style=rng.choice(("necessary", "necessary", "non_numeric", "always")),
    )
    flags = ["--delimiter", ";"] if separator == ";" else []
    return Text(text.encode(), token, "Polars", suffix="tsv" if separator == "\t" else "csv", flags=flags)


def polars_frame(table):
    kinds = {
        "int": polars.Int64,
        "big": polars.Int64,
        "unsigned": polars.UInt64,
        "float": polars.Float64,
        "nan": polars.Float64,
        "decimal": polars.Decimal(12, 2),
        "bool": polars.Boolean,
        "text": polars.String,
        "date": polars.String,
    }
    return polars.DataFrame([polars.Series(c.name, c.cells, dtype=kinds[c.kind]) for c in table.columns])


def by_duckdb(table, rng, folder):
    """DuckDB's COPY."""
    if pyarrow is None:
        return None
    data = arrow_table(table)
    token = rng.choice(("", "", "NA", "NULL"))
    path = folder / "duckdb.csv"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("data", data)
        quoted = rng.choice(("", "", ", FORCE_QUOTE *"))
        connection.execute(f"COPY data TO '{path}' (FORMAT csv, HEADER, NULLSTR '{token}'{quoted})")
    content = path.read_bytes()
    path.unlink()
    return Text(content, token, "DuckDB")


def by_pyarrow(table, rng):
    out = io.BytesIO()
    style = rng.choice(("needed", "all_valid"))
    pyarrow.csv.write_csv(arrow_table(table), out, pyarrow.csv.WriteOptions(quoting_style=style))
    return Text(out.getvalue(), "", "PyArrow")


def arrow_table(table):
    kinds = {
        "int": pyarrow.int64(),
        "big": pyarrow.int64(),
        "unsigned": pyarrow.uint64(),
        "float": pyarrow.float64(),
        "nan": pyarrow.float64(),
        "decimal": pyarrow.decimal128(12, 2),
        "bool": pyarrow.bool_(),
        "text": pyarrow.string(),
        "date": pyarrow.string(),
    }
    return pyarrow.table({c.name: pyarrow.array(c.cells, kinds[c.kind], from_pandas=False) for c in table.columns})


WRITERS = {
    "csv module": (by_csv, None),
    "joined cells": (by_join, None),
    "pandas": (by_pandas, "pandas"),
    "Polars": (by_polars, "polars"),
    "DuckDB": (by_duckdb, "duckdb"),
    "PyArrow": (by_pyarrow, "pyarrow"),
}


def compress(content, how, rng):
    """The bytes compressed, at times in two members, which decompress to one text."""
    middle = rng.randint(0, len(content)) if rng.random() < 0.3 else len(content)
    parts = [content[:middle], content[middle:]] if middle < len(content) else [content]
    return b"".join(COMPRESS[how](part) for part in parts)


COMPRESS = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    **({"zst": lambda content: pyarrow.compress(content, "zstd", asbytes=True)} if pyarrow else {}),
}
