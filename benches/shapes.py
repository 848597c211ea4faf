"""Reductions of any shape, drawn at random: what users bring, where a list of targets names a sample.

A case is an operation, an element type, a view (shape, strides and offset in elements of a flat buffer) and the axes that are
reduced. The same seed draws the same cases everywhere, so that a figure can be looked at again.
"""

import dataclasses
import math
import random
import statistics

SIZE = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "u8": 1, "bool": 1, "u64": 8, "u32": 4, "u16": 2}
FLOATS = ("f32", "f64", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
NUMBERS = FLOATS + INTEGERS
# NumPy has them; torch has few operations on them.
UNSIGNED = ("u64", "u32", "u16")

# The operations that peers have, and for which types.
OPS = {
    "sum": NUMBERS,
    "mean": FLOATS,
    "min": NUMBERS,
    "max": NUMBERS,
    "argmin": NUMBERS,
    "argmax": NUMBERS,
    "var": FLOATS,
    "std": FLOATS,
    "norm1": FLOATS,
    "norm2": FLOATS,
    "norm-inf": FLOATS,
    "prod": ("f32", "f64"),
    "logsumexp": FLOATS,
    "any": ("bool",),
    "all": ("bool",),
    "count-nonzero": NUMBERS + ("bool",),
}
# Peers reduce one axis or all of them with these.
ONE_AXIS = ("argmin", "argmax", "prod")
# Sums are asked for most.
OFTEN = ("sum", "sum", "mean", "max", "var")
# Types weigh as users have them.
TYPES = ("f32", "f32", "f32", "f64", "f64", "f16", "bf16", "i32", "i64", "u8", "i8", "i16", "bool")


@dataclasses.dataclass(frozen=True)
class Menu:
    """What cases are drawn from."""

    ops: dict
    types: tuple
    # Operations over one axis or all of them.
    one_axis: tuple
    # Out of a hundred cases, those in Fortran order.
    fortran: int = 0


DEVICE = Menu(OPS, TYPES, ONE_AXIS)
# What NumPy has; means and the like of integers, too, and products of pairs.
_NUMBERS = ("f32", "f64", "f16", *INTEGERS, *UNSIGNED)
HOST = Menu(
    {op: _NUMBERS if types == NUMBERS else tuple(t for t in types if t != "bf16") for op, types in OPS.items() if op != "logsumexp"}
    | {"mean": _NUMBERS, "var": _NUMBERS, "std": _NUMBERS, "count-nonzero": (*_NUMBERS, "bool"), "dot": ("f32", "f64")},
    (*(t for t in TYPES if t != "bf16"), *UNSIGNED),
    (*ONE_AXIS, "dot"),
    fortran=8,
)

# Bytes of a case's answers at the most.
ANSWERS = 4 << 30


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    dtype: str
    layout: str
    shape: tuple
    strides: tuple
    offset: int
    axes: tuple

    @property
    def elements(self):
        return math.prod(self.shape)

    @property
    def outputs(self):
        return math.prod(n for axis, n in enumerate(self.shape) if axis not in self.axes)

    @property
    def bytes(self):
        return self.elements * SIZE[self.dtype]

    @property
    def span(self):
        """Elements of the buffer from its first to the last that the view has."""
        return self.offset + 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))

    def __str__(self):
        axes = "all" if len(self.axes) == len(self.shape) else ",".join(map(str, self.axes))
        return f"{self.op} {self.dtype} {'x'.join(map(str, self.shape))} axes {axes} {self.layout}"

    def line(self):
        """The case as `examples/shapes` of the engine reads it."""
        words = (self.span, self.offset, ",".join(map(str, self.shape)), ",".join(map(str, self.strides)), ",".join(map(str, self.axes)))
        return " ".join(map(str, (self.op, self.dtype, *words)))


def sizes(rng, elements, rank):
    """The lengths of `rank` axes whose product is near `elements`: log-uniform, odd ones as often as powers of two."""
    cuts = sorted(rng.random() for _ in range(rank - 1))
    logs = [b - a for a, b in zip([0.0, *cuts], [*cuts, 1.0])]
    shape = []
    for log in logs:
        n = max(1, round(elements**log))
        if rng.random() < 0.4:
            n = 1 << round(math.log2(n))
        shape.append(n)
    return shape


def draw(rng, least, most, menu):
    """One case whose array takes between `least` and `most` bytes, more or less."""
    while True:
        dtype = rng.choice(menu.types)
        ops = [op for op, types in menu.ops.items() if dtype in types]
        op = rng.choice(ops + [op for op in OFTEN if op in ops])
        elements = math.exp(rng.uniform(math.log(least), math.log(most))) / SIZE[dtype]
        rank = rng.choice((1, 2, 2, 2, 3, 3, 4, 5, 6))
        shape = sizes(rng, elements, rank)
        strides = [math.prod(shape[i + 1 :]) for i in range(rank)]
        layout, offset = "", 0
        kind = rng.random()
        if kind >= 0.85:
            # An inner window of a larger array.
            outer = [n + rng.choice((0, 1, 2, 7, n // 8)) for n in shape]
            strides = [math.prod(outer[i + 1 :]) for i in range(rank)]
            offset = sum((o - n) // 2 * s for n, o, s in zip(shape, outer, strides))
            layout = "window"
        elif kind >= 0.7:
            axis = rng.randrange(rank)
            strides = [s * 2 if i <= axis else s for i, s in enumerate(strides)]
            layout = f"step 2 on {axis}"
        elif kind >= 0.5 and rank > 1:
            order = list(range(rank))
            rng.shuffle(order)
            shape, strides = [shape[i] for i in order], [strides[i] for i in order]
            layout = "transposed " + "".join(map(str, order))
        elif rank > 1 and menu.fortran and rng.random() * 50 < menu.fortran:
            strides = [math.prod(shape[:i]) for i in range(rank)]
            layout = "fortran"
        if op in menu.one_axis:
            axes = [rng.randrange(rank)] if rng.random() < 0.8 else range(rank)
        else:
            axes = [i for i in range(rank) if rng.random() < 0.5] or [rng.randrange(rank)]
        case = Case(op, dtype, layout, tuple(shape), tuple(strides), offset, tuple(axes))
        within = case.span * SIZE[dtype] <= 2 * most and case.outputs * 8 <= ANSWERS
        if least / 4 <= case.bytes <= most and within:
            return case


def cases(seed, count, least, most, menu=DEVICE):
    """Cases in the order of their types, so that a buffer is filled once for each."""
    rng = random.Random(seed)
    return sorted((draw(rng, least, most, menu) for _ in range(count)), key=lambda case: list(SIZE).index(case.dtype))


def quantile(values, q):
    values = sorted(values)
    return values[min(int(q * len(values)), len(values) - 1)]


def report(rows, peer, read_rate=None):
    """The text of a run: rows are (case, our seconds or None, the peer's seconds); `read_rate` in GB/s."""
    out = []
    made = [(case, ours, theirs) for case, ours, theirs in rows if ours]
    for case, ours, _ in rows:
        if not ours:
            out.append(f"not made: {case}")
    ratios = [theirs / ours for _, ours, theirs in made]
    if not ratios:
        return "\n".join([*out, "no case was made"])
    slower = sum(ratio < 1 for ratio in ratios)
    shown = ", ".join(f"{name} {quantile(ratios, q):.2f}" for name, q in (("worst", 0), ("1 %", 0.01), ("5 %", 0.05), ("25 %", 0.25), ("median", 0.5), ("75 %", 0.75)))
    out.append(f"{len(made)} cases, times as fast as {peer}: {shown}; {slower} slower than {peer}")
    groups = {}
    for case, ours, theirs in made:
        groups.setdefault(case.op, []).append(theirs / ours)
    out.append("by operation (worst, median): " + ", ".join(f"{op} {min(r):.2f} {statistics.median(r):.2f}" for op, r in sorted(groups.items())))
    groups = {}
    for case, ours, theirs in made:
        groups.setdefault(case.layout.split(" ")[0] or "contiguous", []).append(theirs / ours)
    out.append("by layout (worst, median): " + ", ".join(f"{layout} {min(r):.2f} {statistics.median(r):.2f}" for layout, r in sorted(groups.items())))
    if read_rate:
        large = [(case, case.bytes / ours / 1e9 / read_rate) for case, ours, _ in made if case.bytes >= 64 << 20 and case.outputs * 16 <= case.elements]
        if large:
            shares = [share for _, share in large]
            out.append(f"{len(large)} of 64 MiB and more, at most n/16 outputs, of the read rate: worst {min(shares):.2f}, 5 % {quantile(shares, 0.05):.2f}, median {statistics.median(shares):.2f}")
    out.append(f"{'the worst':72}{'us':>10}{peer + ' us':>12}{'GB/s':>8}{'ratio':>7}")
    for case, ours, theirs in sorted(made, key=lambda row: row[2] / row[1])[:20]:
        out.append(f"{str(case):72}{ours * 1e6:10.1f}{theirs * 1e6:12.1f}{case.bytes / ours / 1e9:8.1f}{theirs / ours:7.2f}")
    return "\n".join(out)
