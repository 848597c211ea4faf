"""Tables as they were meant: columns of cells, drawn by hazards of text and typed files."""

import struct
from decimal import Decimal
from fractions import Fraction

from elements import F64, I64, TYPES, U64, draw
from rounding import round_to

# What stands for a missing cell in text, by what programs write.
TOKENS = ("", "NA", "N/A", "NULL", "null", "NaN")
NAMES = ("x", "y", "price", "a b", "é", "Größe", "x_1", "TOTAL", "id", "n.o")
WORDS = ("red", "a,b", 'say "hi"', "two\nlines", "", "NA x", "1 2", "=1+1", "é", "12abc", "e5", "-")


class Column:
    """A name, what kind of data, and the cells; None is missing.

    Cells are integers, floats, `Decimal`s, bools or texts; of a column with a `type`, bits of it.
    """

    def __init__(self, name, kind, cells, type_=None):
        self.name, self.kind, self.cells, self.type = name, kind, cells, type_

    def rows(self, start, end):
        return Column(self.name, self.kind, self.cells[start:end], self.type)

    def missing(self):
        return sum(1 for c in self.cells if c is None)

    def is_numeric(self):
        return self.kind not in ("text", "bool", "date")


class Table:
    def __init__(self, columns):
        self.columns = columns

    def __len__(self):
        return len(self.columns[0].cells)

    def rows(self, start, end):
        return Table([c.rows(start, end) for c in self.columns])


class Reading:
    """One way to understand a column: elements of a type, found at rows; and how many are missing."""

    def __init__(self, type_, elements, places, missing):
        self.type, self.elements, self.places, self.missing = type_, elements, places, missing


def typed_reading(column):
    """A column of a typed file: the bits that were put in."""
    present = [(row, c) for row, c in enumerate(column.cells) if c is not None]
    return Reading(column.type, [c for _, c in present], [row for row, _ in present], column.missing())


def text_readings(column, token):
    """How a column of text may be read; none if it must be refused.

    Whole columns of integers are integers of 64 bits; one cell with a fraction makes floats of all. NaN
    stands for a missing cell where pandas writes and for a number where Polars does: either is right.
    """
    present = [(row, c) for row, c in enumerate(column.cells) if c is not None]
    missing = column.missing()
    if column.kind == "nan":
        numbers = [(row, c) for row, c in present if c == c]
        absent = Reading(
            F64, [float_bits(c) for _, c in numbers], [row for row, _ in numbers], len(column.cells) - len(numbers)
        )
        if token == "NaN":
            cells = [F64.fmt.nan if c is None else float_bits(c) for c in column.cells]
            return [absent, Reading(F64, cells, list(range(len(cells))), 0)]
        return [absent, Reading(F64, [float_bits(c) for _, c in present], [row for row, _ in present], missing)]
    places, values = [row for row, _ in present], [c for _, c in present]
    readings = []
    if all(isinstance(v, int) for v in values):
        low, high = min(values, default=0), max(values, default=0)
        if I64.limits()[0] <= low and high <= I64.limits()[1]:
            readings.append(Reading(I64, [I64.bits(v) for v in values], places, missing))
        elif 0 <= low and high <= U64.limits()[1]:
            readings.append(Reading(U64, values, places, missing))
    else:
        readings.append(Reading(F64, [float_bits(v) for v in values], places, missing))
    if token == "NaN" and missing:
        cells = [F64.fmt.nan if c is None else float_bits(c) for c in column.cells]
        readings.append(Reading(F64, cells, list(range(len(cells))), 0))
    return readings


def float_bits(value):
    """The f64 nearest to an integer, a float or a decimal."""
    if isinstance(value, float):
        if value != value:
            return F64.fmt.nan
        if value in (float("inf"), float("-inf")):
            return F64.fmt.inf | (F64.fmt.sign if value < 0 else 0)
        if value == 0 and str(value).startswith("-"):
            return F64.fmt.sign
    if isinstance(value, Decimal) and value.is_zero() and value.is_signed():
        return F64.fmt.sign
    return round_to(F64.fmt, Fraction(value))


def float_of(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def draw_text_column(name, n, rng, others):
    """A column for a text file."""
    kind = rng.choice(
        ("int", "int", "big", "unsigned", "decimal", "decimal", "float", "text", "bool", "date", "nan", *others)
    )
    make = {
        "int": lambda: rng.randint(-100, 100),
        "big": lambda: rng.choice((2**53, 2**53, 2**62, -(2**53), -(2**63))) + rng.randint(0, 3),
        "unsigned": lambda: 2**63 + rng.randint(-3, 2**40),
        "huge": lambda: rng.choice((-5, 2**64 + 1, 2**70)),
        "decimal": lambda: Decimal(rng.randint(-(10**6), 10**6)).scaleb(-2),
        "bool": lambda: rng.random() < 0.5,
        "text": lambda: rng.choice(WORDS),
        "date": lambda: f"{rng.randint(1990, 2030)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    }.get(kind)
    if kind in ("float", "nan"):
        cells = [float_of(b) for b in draw(F64, n, rng)]
        if kind == "float":
            cells = [c if c == c else 0.5 for c in cells]
            # At least one with a fraction, or writers differ over what the column is.
            cells[:1] = [0.5]
    else:
        cells = [make() for _ in range(n)]
    if kind == "decimal":
        cells[:1] = [Decimal("0.25")]
    if kind == "text":
        # A column of empty cells alone is nobody's.
        cells[:1] = ["red"]
    if kind == "huge":
        cells[:1] = [2**70]
    return with_holes(Column(name, kind, cells), rng)


def draw_typed_column(name, n, rng):
    """A column for a typed file: all types, dictionaries, decimals, times, text."""
    kind = rng.choice(("number",) * 8 + ("dictionary", "dictionary", "decimal", "timestamp", "text"))
    if kind == "decimal":
        cells = [rng.randint(-(10**9), 10**9) for _ in range(n)]
        return with_holes(Column(name, kind, cells), rng)
    if kind == "timestamp":
        return with_holes(Column(name, kind, [rng.randint(0, 2**40) for _ in range(n)], I64), rng)
    if kind == "text":
        return with_holes(Column(name, kind, [rng.choice(WORDS) for _ in range(n)]), rng)
    type_ = TYPES[rng.choice([t for t in TYPES if t != "bf16" and not (kind == "dictionary" and t in ("bool", "f16"))])]
    cells = draw(type_, n, rng)
    if kind == "dictionary":
        few = cells[:5]
        cells = [rng.choice(few) for _ in range(n)]
    return with_holes(Column(name, kind, cells, type_), rng)


def with_holes(column, rng):
    """Some cells missing, the first one among them at times; never all."""
    way = rng.randrange(5)
    n, first = len(column.cells), column.cells[0] if column.cells else None
    if n < 2 or way > 2:
        return column
    holes = {rng.randrange(1, n) for _ in range(rng.choice((1, 1, 2, n // 3)))}
    if way == 0:
        holes = {0} | {h for h in holes if h < n - 1}
    keep = next(i for i in range(n) if i not in holes) if len(holes) < n else 0
    column.cells = [None if i in holes and i != keep else c for i, c in enumerate(column.cells)]
    # What makes the column what it is stays.
    if column.cells[0] is None and column.type is None:
        column.cells[keep] = first
    return column


def draw_table(rng, draw_column):
    size = rng.random()
    n = rng.choice((1, 2, 3, 5, 8, 20, 60, 200)) if size < 0.95 else 3000 if size < 0.996 else 40_000
    names = rng.sample(NAMES, rng.choice((1, 1, 2, 3, 4)))
    return Table([draw_column(name, n, rng) for name in names])
