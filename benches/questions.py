#!/usr/bin/env python3
"""Drawn data and drawn questions from Python, beside NumPy: one to four operations a call, NaN policies, masks, initial values.

Shapes and views are those of `shapes.py`. Each case is timed three times over: ours on the drawn data, ours on uniform data, and
NumPy's calls on the drawn data, one for each operation. Figures are the processor time of one thread, the least of some rounds in
turn. The same seed draws the same cases. With `--device cuda` the arrays are torch's on a device, and torch stands where NumPy does:
see `on_torch.py`.
"""

import argparse
import dataclasses
import datetime
import functools
import json
import math
import platform
import random
import time
import warnings
from pathlib import Path

import numpy as np
import warpfold as wf

import shapes

TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u8": "u1", "bool": "?"} | {"u64": "u8", "u32": "u4", "u16": "u2"}
PIECE = 4 << 20
ROUNDS = 3
ROUND = 2e-3

# Kinds of floats, and of integers. Sums of random bits of 64 overflow, and are dropped.
DATA = (
    ("uniform", "normal", "whole", "zero or one", "constant", "one differs", "sorted", "40 decades", "600 decades", "random bits", "subnormal")
    + ("NaN 1e-6", "NaN 1 %", "NaN 50 %", "NaN", "infinite 1e-6", "infinite 1 %", "infinite 50 %", "-0")
)
WHOLE = ("uniform", "small", "zero or one", "constant", "one differs", "sorted", "random bits")
REALS = ("sum", "mean", "min", "max", "var", "std", "norm1", "norm2", "norm-inf", "prod")
PAIRS = ("minmax", "range", "count-nan", "logsumexp")
POSITIONS = ("argmin", "argmax", "argminmax")
MASKED = ("sum", "mean", "min", "max", "var", "std", "prod", "norm1", "norm2")
OFTEN = ("sum", "mean", "max", "min", "var", "std")


@dataclasses.dataclass(frozen=True)
class Question(shapes.Case):
    """A case with its data and the rest of its question; `op` names all operations."""

    data: str = "uniform"
    nan: str | None = None
    ddof: int | None = None
    out: str | None = None
    where: bool = False
    initial: bool = False
    keepdims: bool = False
    segments: str | None = None
    groups: str | None = None

    @property
    def ops(self):
        return self.op.split("+")

    def __str__(self):
        words = [self.nan, f"ddof={self.ddof}" if self.ddof else None, self.out, self.segments and f"segments {self.segments}", self.groups and f"groups {self.groups}"]
        words += [name for name in ("where", "initial", "keepdims") if getattr(self, name)]
        return " ".join([super().__str__().strip(), f"[{self.data}]", *filter(None, words)])


def usual(rng, case):
    """As many elements in the layouts that most arrays have: all of one, or a table of 16 to 4,096 columns over either axis."""
    count = math.prod(case.shape)
    columns = min(count, round(math.exp(rng.uniform(math.log(16), math.log(4096)))))
    shape, axes = rng.choice((((count,), (0,)), ((count // columns, columns), (0,)), ((count // columns, columns), (1,))))
    return dataclasses.replace(case, layout="", shape=shape, strides=(*shape[1:], 1), offset=0, axes=axes)


def one_run(rng, case, ops, **more):
    """As many elements of one axis, of which one or two operations of some are asked."""
    ops = list(dict.fromkeys(rng.choice(ops) for _ in range(rng.choice((1, 1, 1, 2)))))
    plain = {"nan": None, "ddof": None, "out": None, "where": False, "initial": False, "keepdims": False}
    run = {"layout": "", "shape": (math.prod(case.shape),), "strides": (1,), "offset": rng.choice((0, 0, 1, 3)), "axes": (0,)}
    return dataclasses.replace(case, op="+".join(ops), **run, **plain, **more)


def segmented(rng, case):
    """Segments: all of a length, of any up to twice as long, or of Pareto's law."""
    mean = round(math.exp(rng.uniform(0, math.log(min(math.prod(case.shape), 1 << 20)))))
    return one_run(rng, case, ("sum", "mean", "min", "max"), segments=f"{rng.choice(('equal', 'even', 'skewed'))} {mean}")


def grouped(rng, case):
    """Groups by keys: all as often, a few often, or in order; of numbers that follow each other or are far apart, in one column or two."""
    count = round(math.exp(rng.uniform(0, math.log(math.prod(case.shape)))))
    law, kind = rng.choice(("uniform", "uniform", "skewed", "sorted")), rng.choice(("i32", "i64", "far", "far", "pairs"))
    found = one_run(rng, case, ("sum", "mean", "min", "max", "var"), groups=f"{law} {kind} {count}")
    return dataclasses.replace(found, ddof=rng.choice((None, 1)) if "var" in found.ops else None)


@functools.lru_cache(1)
def keys(law, rows):
    """A key for each row, in columns."""
    law, kind, count = law.split()
    count, rng = int(count), np.random.default_rng(6)
    drawn = rng.integers(0, count, rows) if law != "skewed" else np.minimum(np.exp(rng.random(rows) * np.log(count + 1)).astype(np.int64) - 1, count - 1)
    drawn = np.sort(drawn) if law == "sorted" else drawn
    if kind == "pairs":
        return [drawn // 100, drawn % 100]
    return [drawn.astype(np.int32) - 5] if kind == "i32" else [drawn * 0x0000_0012_3456_789A + 3 if kind == "far" else drawn]


def beside(columns, x):
    """Columns where an array's elements are."""
    if isinstance(x, np.ndarray):
        return columns
    import torch

    return [torch.from_numpy(column).to(x.device) for column in columns]


@functools.lru_cache(1)
def offsets(law, count):
    """Where the segments of an array of so many elements begin, and the last one ends; each has an element at least."""
    law, mean = law.split()
    mean, rng = int(mean), np.random.default_rng(5)
    lengths = {
        "equal": lambda n: np.full(n, mean),
        "even": lambda n: rng.integers(1, 2 * mean, n),
        "skewed": lambda n: np.minimum(rng.pareto(1.2, n) * mean / 5 + 1, count),
    }[law]
    ends = np.zeros(1, dtype=np.int64)
    while ends[-1] < count:
        ends = np.concatenate([ends, ends[-1] + np.cumsum(lengths(2 * count // mean + 1).astype(np.int64))])
    return np.append(ends[: np.searchsorted(ends, count)], count)


def told(case, x):
    """The offsets of a case's segments or the keys of its groups, where its elements are."""
    return beside([offsets(case.segments, case.shape[0])] if case.segments else keys(case.groups, case.shape[0]), x)


def draw(rng, most, types, common=0.0, segments=0.0, groups=0.0):
    """One case, of these shares of usual layouts, of segments and of groups; operations and their options are drawn after the shape."""
    positional = rng.random() < 0.1
    menu = shapes.Menu({"argmin" if positional else "sum": types}, types, ("argmin",), 8)
    shape = shapes.draw(rng, 1 << 10, most, menu)
    if common and rng.random() < common:
        shape = usual(rng, shape)
    floats = shape.dtype in shapes.FLOATS
    whole = len(shape.axes) == len(shape.shape)
    if positional:
        ops = [rng.choice(POSITIONS)]
    else:
        known = [op for op in (*OFTEN, *REALS, *PAIRS, "count-nonzero") if floats or op not in ("prod", "count-nan", "logsumexp")]
        if shape.dtype in ("f16", "bf16"):
            known = [op for op in known if op not in ("prod", "logsumexp")]
        ops = [rng.choice(known)]
        if rng.random() < 0.35:
            ops = list(dict.fromkeys(rng.choice(OFTEN if rng.random() < 0.7 else known) for _ in range(rng.choice((2, 2, 3, 4)))))
    nan = "omit" if floats and "count-nan" not in ops and rng.random() < 0.2 else None
    real = all(op in MASKED for op in ops)
    where = nan is None and real and rng.random() < 0.12
    question = Question(
        **{**dataclasses.asdict(shape), "op": "+".join(ops)},
        data=rng.choice(DATA if floats else WHOLE) if rng.random() < 0.75 else "uniform",
        nan=nan,
        ddof=1 if {"var", "std"} & set(ops) and rng.random() < 0.5 else None,
        out="f64" if shape.dtype == "f32" and all(op in ("sum", "mean", "var", "std") for op in ops) and rng.random() < 0.15 else None,
        where=where,
        initial=nan is None and not where and len(ops) == 1 and ops[0] in ("sum", "min", "max") and rng.random() < 0.2,
        keepdims=not whole and rng.random() < 0.15,
    )
    if segments + groups and (share := rng.random()) < segments + groups:
        return (segmented if share < segments else grouped)(rng, question)
    return question


def piece(dtype, data, rng):
    """Elements of a kind, to be repeated."""
    kind = np.dtype(TYPES[dtype])
    count = PIECE // kind.itemsize
    if kind.kind != "f":
        low, high = np.iinfo(kind).min, np.iinfo(kind).max + 1
        if data in ("small", "zero or one", "constant"):
            low, high = {"small": (0, 100), "zero or one": (0, 2), "constant": (7, 8)}[data]
        elif kind.itemsize == 8 and data != "random bits":
            low, high = 0, 1 << 32
        drawn = rng.integers(low, high, count, dtype=kind)
        if data == "one differs":
            return np.where(np.arange(count) == count // 3, kind.type(9), kind.type(7))
        return np.sort(drawn) if data == "sorted" else drawn
    finfo = np.finfo(kind)
    signs = rng.choice((-1.0, 1.0), count)
    span = min(150, np.log10(float(finfo.max)) - 1) if data == "600 decades" else min(20, np.log10(float(finfo.max)) - 1)
    share = {"1e-6": 1e-6, "1 %": 0.01, "50 %": 0.5}.get(data.split(" ", 1)[-1], 1)
    plain = rng.random(count)
    if data.startswith(("NaN", "infinite")):
        # At least one where some are asked for.
        odd = rng.random(count) < share
        odd[rng.integers(count)] = True
        plain[odd] = np.nan if data.startswith("NaN") else np.inf
    found = {
        "normal": lambda: rng.standard_normal(count),
        "whole": lambda: rng.integers(-100, 100, count),
        "zero or one": lambda: rng.integers(0, 2, count),
        "constant": lambda: np.full(count, 1.1),
        "one differs": lambda: np.where(np.arange(count) == count // 3, 2.3, 1.1),
        "sorted": lambda: np.sort(plain),
        "40 decades": lambda: signs * 10 ** rng.uniform(-span, span, count),
        "600 decades": lambda: signs * 10 ** rng.uniform(-span, span, count),
        "subnormal": lambda: signs * plain * float(finfo.smallest_normal),
        "-0": lambda: np.where(plain < 0.5, -0.0, plain),
    }.get(data, lambda: plain)
    if data == "random bits":
        return rng.integers(0, 256, count * kind.itemsize, dtype="u1").view(kind)
    return found().astype(kind)


def view(case, base):
    """The case's view of a buffer whose elements repeat `base`."""
    buffer = np.resize(base, case.span)
    return np.lib.stride_tricks.as_strided(buffer[case.offset :], case.shape, [s * buffer.itemsize for s in case.strides])


def axes_of(case):
    return None if len(case.axes) == len(case.shape) else case.axes


def ours(case, mask, **options):
    """Our call, as a function of the array."""
    if case.segments or case.groups:
        ops, at = case.ops if len(case.ops) > 1 else case.op, {}
        options |= {"ddof": case.ddof} if case.ddof else {}

        def call(x):
            where = str(getattr(x, "device", "cpu"))
            if where not in at:
                at[where] = told(case, x)
            if case.segments:
                return wf.segments(x, ops, offsets=at[where][0], **options)
            return wf.groupby(at[where][0] if len(at[where]) == 1 else tuple(at[where]), x, ops, **options)

        return call
    axis = axes_of(case)
    if axis and len(axis) == 1:
        axis = axis[0]
    options |= {"axis": axis, "keepdims": case.keepdims}
    # NaNs count as elements that are not zero, for NumPy too.
    options |= {"nan": case.nan} if case.nan and case.ops != ["count-nonzero"] else {}
    options |= {"ddof": case.ddof} if case.ddof and {"var", "std"} & set(case.ops) else {}
    options |= {"dtype": "f8"} if case.out else {}
    options |= {"where": mask} if case.where else {}
    options |= {"initial": 1} if case.initial else {}
    if len(case.ops) > 1:
        return lambda x: wf.reduce(x, case.ops, **options)
    call = getattr(wf, case.op.replace("-", "_"))
    return lambda x: call(x, **options)


def alone(case):
    """A case for each of several operations."""
    return [dataclasses.replace(case, op=op) for op in case.ops] if len(case.ops) > 1 else []


def by_groups(case, x, columns):
    """NumPy's calls about groups: those of distinct keys, and runs of rows in their order where no count by bins is of use."""
    # Two columns as one, as nobody has to find out here which ones can be.
    distinct, group, lengths = np.unique(columns[0] if len(columns) == 1 else columns[0] * 100 + columns[1], return_inverse=True, return_counts=True)
    by_bins = lambda values: np.bincount(group, values, len(distinct))
    mean = lambda: by_bins(x) / lengths
    known = {"sum": lambda: by_bins(x), "mean": mean, "var": lambda: by_bins((x - mean()[group]) ** 2) / (lengths - (case.ddof or 0))}
    if {"min", "max"} & set(case.ops):
        runs, at = x[np.argsort(group, kind="stable")], np.concatenate([[0], np.cumsum(lengths[:-1])])
        known |= {"min": lambda: np.minimum.reduceat(runs, at), "max": lambda: np.maximum.reduceat(runs, at)}
    return [distinct, *(known[op]() for op in case.ops)]


def theirs(case, x, mask):
    """NumPy's calls, one for each operation."""
    if case.segments:
        [at] = told(case, x)
        total = functools.partial(np.add.reduceat, x, at[:-1], dtype=np.sum(x[:1]).dtype)
        lengths = np.diff(at)
        known = {"sum": total, "mean": lambda: total() / lengths}
        known |= {"min": lambda: np.minimum.reduceat(x, at[:-1]), "max": lambda: np.maximum.reduceat(x, at[:-1])}
        return lambda: [known[op]() for op in case.ops]
    if case.groups:
        return lambda: by_groups(case, x, told(case, x))
    axis, omit = axes_of(case), case.nan == "omit"
    one = axis if axis is None else axis[0]
    common = {"axis": axis, "keepdims": case.keepdims}
    where = {"where": mask} if case.where else {}
    out = {"dtype": "f8"} if case.out else {}
    ends = common | where | ({"initial": 1 if x.dtype.kind != "f" else np.inf} if where else {"initial": 1} if case.initial else {})
    sums = common | where | out
    start = {"initial": 1} if case.initial else {}
    square = {} if x.dtype.kind == "f" else {"dtype": "f8"}
    spread = {"ddof": case.ddof or 0}
    total = np.nansum if omit else np.sum
    low, high = (np.nanmin, np.nanmax) if omit else (np.min, np.max)

    def logsumexp():
        m = high(x, **(common | {"keepdims": True}))
        return np.log(total(np.exp(x - m), axis=axis))

    known = {
        "sum": lambda: total(x, **sums, **start),
        "mean": lambda: (np.nanmean if omit else np.mean)(x, **sums),
        "var": lambda: (np.nanvar if omit else np.var)(x, **sums, **spread),
        "std": lambda: (np.nanstd if omit else np.std)(x, **sums, **spread),
        "min": lambda: low(x, **ends),
        "max": lambda: high(x, **ends),
        "norm1": lambda: total(np.abs(x), **common, **where),
        "norm2": lambda: np.sqrt(total(np.square(x, **square), **common, **where)),
        "norm-inf": lambda: high(np.abs(x), **common),
        "prod": lambda: (np.nanprod if omit else np.prod)(x, **common, **where),
        "minmax": lambda: (low(x, **common), high(x, **common)),
        "range": lambda: high(x, **common) - low(x, **common),
        "count-nan": lambda: np.count_nonzero(np.isnan(x), axis),
        "count-nonzero": lambda: np.count_nonzero(x, axis),
        "logsumexp": logsumexp,
        "argmin": lambda: (np.nanargmin if omit else np.argmin)(x, one),
        "argmax": lambda: (np.nanargmax if omit else np.argmax)(x, one),
        "argminmax": lambda: ((np.nanargmin if omit else np.argmin)(x, one), (np.nanargmax if omit else np.argmax)(x, one)),
    }
    calls = [known[op] for op in case.ops]
    return lambda: [call() for call in calls]


def seconds(run):
    """Processor seconds of a call, as the mean over a few milliseconds."""
    calls, batch, begin = 0, 1, time.thread_time()
    while True:
        for _ in range(batch):
            run()
        calls += batch
        batch = calls
        passed = time.thread_time() - begin
        if passed >= ROUND:
            return passed / calls


def timed(case, rng):
    """Seconds of ours, of ours on uniform data, of NumPy, and of ours one operation at a time; nothing more is known of it."""
    x = view(case, piece(case.dtype, case.data, rng))
    usual = x if case.data == "uniform" else view(case, piece(case.dtype, "uniform", rng))
    mask = np.random.default_rng(2).random(case.shape) < 0.5 if case.where else None
    mine = lambda case, x: functools.partial(ours(case, mask, threads=1), x)
    runs = [mine(case, x), mine(case, usual), theirs(case, x, mask), *(mine(one, x) for one in alone(case))]
    least = [min(times) for times in zip(*([seconds(run) for run in runs] for _ in range(ROUNDS)))]
    return (*least[:3], least[3:], {})


def on_device(engine, case, number):
    """The same on a device."""
    return engine.timed(case, number, piece, lambda case, mask: (ours(case, mask), [ours(one, mask) for one in alone(case)]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--most", type=int, default=64, metavar="MIB", help="the size of the largest arrays")
    parser.add_argument("--common", type=float, default=0.0, metavar="SHARE", help="of the cases, so many whole arrays and tables in C order")
    parser.add_argument("--segments", type=float, default=0.0, metavar="SHARE", help="of the cases, so many reductions of segments")
    parser.add_argument("--groups", type=float, default=0.0, metavar="SHARE", help="of the cases, so many reductions of groups by key")
    parser.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--share", default="0/1", metavar="I/N", help="every N-th case from the I-th on, for runs side by side")
    parser.add_argument("--device", default="cpu", help="cpu, beside NumPy; or cuda, beside torch")
    parser.add_argument("--out", type=Path, help="a file for the times, a line of JSON for each case")
    parser.add_argument("--merge", type=Path, nargs="+", help="report on the files of shares; time nothing")
    options = parser.parse_args()
    if options.merge:
        rows = [json.loads(line) for path in options.merge for line in path.read_text().splitlines()]
        return report([(Question(**{k: tuple(v) if isinstance(v, list) else v for k, v in row[0].items()}), *row[1:]) for row in rows])
    engine = None
    if options.device != "cpu":
        from on_torch import Torch

        engine = Torch(options.device)
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    rng = random.Random(options.seed)
    types = tuple(t for t in (shapes.DEVICE if engine else shapes.HOST).types if t != "bool")
    drawn = [draw(rng, options.most << 20, types, options.common, options.segments, options.groups) for _ in range(options.count)]
    first, step = map(int, options.share.split("/"))
    deadline = time.monotonic() + options.seconds if options.seconds else None
    rows = []
    with options.out.open("w") if options.out else open("/dev/null", "w") as out:
        for number, case in list(enumerate(drawn))[first::step]:
            if deadline and time.monotonic() > deadline:
                break
            try:
                row = (case, *(on_device(engine, case, number) if engine else timed(case, np.random.default_rng(number))))
            except (ValueError, TypeError, RuntimeError, OverflowError) as error:
                # Positions of nothing but NaNs: NumPy has none either. Sums that do not fit.
                print(f"# {case}: {str(error).splitlines()[0][:150]}")
                continue
            rows.append(row)
            print(json.dumps([dataclasses.asdict(case), *row[1:]]), file=out, flush=True)
    report(rows, engine)


def report(rows, engine=None):
    machine = engine.machine() if engine else f"{platform.processor() or platform.machine()}, NumPy {np.__version__}, one thread"
    peer = engine.name if engine else "numpy"
    print(f"{datetime.date.today().isoformat()}, {machine}")
    wrong = [(case, more["wrong"]) for case, *_, more in rows if more.get("wrong")]
    if engine:
        print(f"{len(wrong)} of {len(rows)} have other answers than the CPU")
    for case, what in wrong:
        print(f"  WRONG {case}: {what}")
    rows = [(case, *times) for case, *times, _ in rows]
    print(shapes.report([(case, mine, theirs) for case, mine, _, theirs, _ in rows], peer))
    odd = [(mine / usual, case) for case, mine, usual, _, _ in rows if case.data != "uniform"]
    kinds = {}
    for ratio, case in odd:
        kinds.setdefault(case.data, []).append(ratio)
    print("time of the data, of uniform data (median, 95 %, worst):")
    for kind, ratios in sorted(kinds.items()):
        print(f"  {kind:14}{shapes.quantile(ratios, 0.5):8.2f}{shapes.quantile(ratios, 0.95):8.2f}{max(ratios):8.2f}")
    for ratio, case in sorted(odd, key=lambda row: -row[0])[:15]:
        print(f"  {ratio:7.2f}  {case}")
    several = [(mine / sum(alone), mine / max(alone), case) for case, mine, _, _, alone in rows if alone]
    if several:
        print("several operations, of the sum of them alone (median, worst): " + ", ".join(f"{shapes.quantile([row[0] for row in several], q):.2f}" for q in (0.5, 1)))
        for share, of_slowest, case in sorted(several, key=lambda row: -row[0])[:10]:
            print(f"  {share:7.2f} {of_slowest:7.2f}  {case}")
    for name in ("where", "initial", "out", "nan", "ddof", "keepdims", "segments", "groups"):
        ratios = [theirs / mine for case, mine, _, theirs, _ in rows if getattr(case, name)]
        if ratios:
            print(f"with {name}: worst {min(ratios):.2f}, median {shapes.quantile(ratios, 0.5):.2f} of {peer}")


if __name__ == "__main__":
    main()
