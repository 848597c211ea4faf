"""A table as Parquet or Arrow, by every program that writes them."""

from decimal import Decimal

from asking import Input

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    pyarrow = None
try:
    import polars
except ImportError:
    polars = None
try:
    import duckdb
except ImportError:
    duckdb = None

NAMES = {"bool": "bool_", "f16": "float16", "f32": "float32", "f64": "float64"}


def arrow_type(type_):
    name = NAMES.get(type_.name) or type_.name.replace("u", "uint").replace("i", "int").replace("uintnt", "uint")
    return getattr(pyarrow, name)()


def arrow_array(column):
    """The column with every bit as it was drawn."""
    if column.kind == "decimal":
        cells = [None if c is None else Decimal(c).scaleb(-3) for c in column.cells]
        return pyarrow.array(cells, pyarrow.decimal128(14, 3))
    if column.kind == "timestamp":
        return pyarrow.array(column.cells, pyarrow.int64()).cast(pyarrow.timestamp("us"))
    if column.kind == "text":
        return pyarrow.array(column.cells, pyarrow.string())
    if column.type.name == "bool":
        return pyarrow.array([None if c is None else bool(c) for c in column.cells], pyarrow.bool_())
    values = pyarrow.py_buffer(column.type.pack([c or 0 for c in column.cells]))
    present = None
    if column.missing():
        n = len(column.cells)
        mask = sum(1 << i for i, c in enumerate(column.cells) if c is not None)
        present = pyarrow.py_buffer(mask.to_bytes((n + 7) // 8, "little"))
    array = pyarrow.Array.from_buffers(arrow_type(column.type), len(column.cells), [present, values])
    return array.dictionary_encode() if column.kind == "dictionary" else array


def arrow_table(table, rng, dictionaries=True):
    """The table in PyArrow, in several chunks or a slice of a longer one at times."""
    arrays = [arrow_array(c) for c in table.columns]
    if not dictionaries:
        arrays = [a.dictionary_decode() if isinstance(a, pyarrow.DictionaryArray) else a for a in arrays]
    whole = pyarrow.table(arrays, names=[c.name for c in table.columns])
    if rng.random() < 0.3 and len(table) > 1 and not any(c.kind == "dictionary" for c in table.columns):
        # A slice does not begin at a byte of its bitmap.
        before = rng.randint(1, min(9, len(table)))
        return pyarrow.concat_tables([whole.slice(0, before), whole]).combine_chunks().slice(before)
    return whole


def batches(table, rng):
    """The rows in one or several batches."""
    return table.to_batches(max_chunksize=rng.choice((1, 3, 7, 64, 10**6)) if len(table) < 300 else 1000)


def arrow_file(table, folder, rng, stem="t"):
    return _ipc(table, folder, rng, stem, pyarrow.ipc.new_file, "arrow", False)


def arrow_stream(table, folder, rng, stem="t"):
    return _ipc(table, folder, rng, stem, pyarrow.ipc.new_stream, "arrows", rng.random() < 0.4)


def _ipc(table, folder, rng, stem, new, suffix, piped):
    data = arrow_table(table, rng)
    options = pyarrow.ipc.IpcWriteOptions(
        compression=rng.choice((None, None, "lz4", "zstd")), emit_dictionary_deltas=False, unify_dictionaries=True
    )
    path = folder / f"{stem}.{suffix}"
    with pyarrow.OSFile(str(path), "wb") as out, new(out, data.schema, options=options) as writer:
        for batch in batches(data, rng):
            writer.write_batch(batch)
    return Input(["-"], piped=path.name) if piped else Input([path.name])


def polars_ipc(table, folder, rng, stem="t"):
    frame = polars.from_arrow(arrow_table(table, rng))
    stream = rng.random() < 0.4
    path = folder / (f"{stem}.arrows" if stream else f"{stem}.arrow")
    write = frame.write_ipc_stream if stream else frame.write_ipc
    write(path, compression=rng.choice(("uncompressed", "lz4", "zstd")))
    return Input([path.name])


def parquet(table, folder, rng, stem="t"):
    """PyArrow's Parquet: encodings, codecs, page versions and sizes, checksums."""
    data = arrow_table(table, rng)
    options = {
        "compression": rng.choice(("none", "snappy", "gzip", "zstd", "lz4", "brotli")),
        "use_dictionary": rng.random() < 0.5,
        "data_page_version": rng.choice(("1.0", "2.0")),
        "write_page_checksum": rng.random() < 0.5,
        "row_group_size": rng.choice((1, 5, 64, 10**6)) if len(table) < 300 else 700,
        "data_page_size": rng.choice((64, 1 << 20)),
        "write_batch_size": rng.choice((3, 1024)),
        # Version 1.0 stores u32 as i64.
        "version": rng.choice(
            ("2.4", "2.6") if any(c.type and c.type.name == "u32" for c in table.columns) else ("1.0", "2.4", "2.6")
        ),
    }
    if not options["use_dictionary"] and rng.random() < 0.6:
        encodings = {c.name: encoding(c, rng) for c in table.columns}
        options["column_encoding"] = {name: e for name, e in encodings.items() if e}
    pyarrow.parquet.write_table(data, folder / f"{stem}.parquet", **options)
    return Input([f"{stem}.parquet"])


def encoding(column, rng):
    """An encoding that the column's type has."""
    if column.kind != "number" or column.type.name in ("bool", "f16"):
        return None
    if column.type.kind == "float":
        return rng.choice(("PLAIN", "BYTE_STREAM_SPLIT"))
    return rng.choice(("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"))


def polars_parquet(table, folder, rng, stem="t"):
    frame = polars.from_arrow(arrow_table(table, rng))
    frame.write_parquet(
        folder / f"{stem}.parquet",
        compression=rng.choice(("uncompressed", "snappy", "gzip", "zstd", "lz4")),
        statistics=rng.random() < 0.5,
        row_group_size=rng.choice((None, 5, 100)),
        data_page_size=rng.choice((None, 64)),
    )
    return Input([f"{stem}.parquet"])


def duckdb_parquet(table, folder, rng, stem="t"):
    """DuckDB's Parquet; it has no f16."""
    if any(c.type is not None and c.type.name == "f16" for c in table.columns):
        return None
    data = arrow_table(table, rng, dictionaries=False)
    codec = rng.choice(("uncompressed", "snappy", "zstd", "gzip", "lz4_raw"))
    # Its second version writes deltas of 32-bit integers that PyArrow refuses, as the differences need 33 bits.
    narrow = any(c.type is not None and c.type.name in ("i32", "u32") for c in table.columns)
    version = "V1" if narrow else rng.choice(("V1", "V2"))
    path = folder / f"{stem}.parquet"
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("data", data)
        connection.execute(f"COPY data TO '{path}' (FORMAT parquet, CODEC '{codec}', PARQUET_VERSION {version})")
    return Input([path.name])


WRITERS = {
    "Arrow file by PyArrow": (arrow_file, ("pyarrow",)),
    "Arrow stream by PyArrow": (arrow_stream, ("pyarrow",)),
    "Arrow by Polars": (polars_ipc, ("pyarrow", "polars")),
    "Parquet by PyArrow": (parquet, ("pyarrow",)),
    "Parquet by Polars": (polars_parquet, ("pyarrow", "polars")),
    "Parquet by DuckDB": (duckdb_parquet, ("pyarrow", "duckdb")),
}
