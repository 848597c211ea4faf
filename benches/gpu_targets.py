"""What the engine promises itself on an H200, held against the rows of one run of `gpu.py`.

A row is a dict: peer, op, dtype, seconds, and elements (with data for ours: uniform, bits or binades; with shape and axis for
reductions over an axis), or bytes (from host memory). A target is a line: the case, what is asked, what was found.
"""

SIZE = {"f64": 8, "i64": 8, "u64": 8, "f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2, "i8": 1, "u8": 1, "bool": 1}
LARGE = 4 << 30
FLOATS = ("f32", "f64", "f16", "bf16")
SHAPES = ([1 << 24, 16], [1 << 20, 256], [1 << 14, 1 << 14], [256, 1 << 20], [16, 1 << 24])


class Rows:
    """The rows of a run, asked for by what they are."""

    def __init__(self, rows):
        self.rows = rows

    def seconds(self, peer, op, dtype=None, **rest):
        """The time of the one row that is all of this, or None."""
        wanted = {"peer": peer, "op": op, **({"dtype": dtype} if dtype else {}), **rest}
        for row in self.rows:
            if all(row.get(name) == value for name, value in wanted.items()):
                return row["seconds"]
        return None

    def ours(self, op, dtype, elements, data=None):
        data = data or ("uniform" if dtype in FLOATS else "bits")
        return self.seconds("warpfold", op, dtype, elements=elements, data=data)

    def rate(self, op, dtype, data=None):
        """GB/s over 4 GiB."""
        seconds = self.ours(op, dtype, LARGE // SIZE[dtype], data)
        return seconds and LARGE / seconds / 1e9

    def read_rate(self):
        """The fastest that anything of ours read 4 GiB."""
        rates = [LARGE / r["seconds"] / 1e9 for r in self.rows if r["peer"] == "warpfold" and r.get("elements") == LARGE // SIZE.get(r.get("dtype"), 1)]
        return max(rates, default=None)


def ratio(found, against):
    return found / against if found and against else None


def cases(rows):
    """(case, what is asked, found, at least) of every target; found is None where a row is missing."""
    for op in ("sum", "min"):
        for dtype in ("f32", "f64", "i32", "i64"):
            theirs = rows.seconds("CUB", op, dtype, elements=LARGE // SIZE[dtype])
            yield f"{op} {dtype}, 4 GiB", "of CUB's rate", ratio(theirs, rows.ours(op, dtype, LARGE // SIZE[dtype])), 1.0
    for op, dtypes in (("sum", ("i8", "u8", "i16", "f16", "bf16")), ("argmin", SIZE), ("min", ("i8", "i16", "f16", "bf16"))):
        for dtype in dtypes:
            yield f"{op} {dtype}, 4 GiB", "GB/s", rows.rate(op, dtype), 4500
    for dtype in ("f32", "f64", "i32", "i64", "i8"):
        for log in (10, 16, 20):
            theirs = rows.seconds("CUB", "sum", dtype, elements=1 << log)
            yield f"sum {dtype}, 2^{log} back to back", "times as fast as CUB", ratio(theirs, rows.ours("sum", dtype, 1 << log)), 2.0
    theirs = rows.seconds("CUB", "call to value", "f32")
    ours = rows.seconds("warpfold", "call to value", "f32")
    yield "call to value, 2^16 f32", "times as fast as CUB, copy and wait", ratio(theirs, ours), round(1 / 0.6, 3)
    for dtype in FLOATS:
        ordinary = rows.rate("sum", dtype)
        for data in ("bits", "binades"):
            yield f"exact sum {dtype}, {data}", "of ordinary data", ratio(rows.rate("sum", dtype, data), ordinary), 0.70
    for op in ("norm2", "dot"):
        yield f"{op} f32, 4 GiB", "of the read rate", ratio(rows.rate(op, "f32"), rows.read_rate()), 0.95
    for op in ("var", "logsumexp"):
        yield f"{op} f32, 4 GiB", "GB/s", rows.rate(op, "f32"), 3500
    for shape in SHAPES:
        for axis in (0, 1):
            seconds = rows.seconds("warpfold", "sum", "f32", shape=shape, axis=axis)
            yield f"sum f32 of {shape[0]} x {shape[1]} over axis {axis}", "GB/s", seconds and shape[0] * shape[1] * 4 / seconds / 1e9, 4000
    copy = next((r["bytes"] / r["seconds"] for r in rows.rows if r["op"] == "copy"), None)
    for memory, least in (("pinned", 0.95), ("pageable", 0.8)):
        rates = [r["bytes"] / r["seconds"] for r in rows.rows if r.get("memory") == memory and r["op"] == "sum f32"]
        yield f"sum f32 of {memory} host memory", "of the copy rate", ratio(max(rates, default=None), copy), least
    seconds = rows.seconds("warpfold", "first call")
    yield "first call of a process, beyond opening the device", "calls in 250 ms", seconds and 0.25 / seconds, 1.0


def text(rows):
    """A table of every target; those not reached say so."""
    out = [f"{'case':52}{'found':>9}{'aim':>8}"]
    for case, asked, found, least in cases(Rows(rows)):
        shown = "-" if found is None else f"{found:.0f}" if least > 100 else f"{found:.3f}"
        word = "" if found is None or found >= least else "  short"
        out.append(f"{case:52}{shown:>9}{least:>8g} {asked}{word}")
    return "\n".join(out)
