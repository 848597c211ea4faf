"""What every operation must answer, on elements of any type.

An answer is a list of `Exactly` or `Within`, one or, for pairs, two; or `FAILS`, where there is no
answer and the binary must say why.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import prod

import oracle
from elements import F64, I64, TYPES, U64
from rounding import is_inf, is_nan, round_to

SUMS = ("sum", "mean", "norm1", "norm2", "sumsq", "var", "std")
EXTREMA = ("min", "max", "minmax", "range", "norm-inf")
POSITIONS = ("argmin", "argmax", "argminmax")
COUNTS = ("any", "all", "count", "count-nonzero", "count-nan")
BITS = ("and", "or", "xor")
GROUPS = {
    **{op: "sums" for op in SUMS},
    **{op: "extrema" for op in EXTREMA},
    **{op: "positions" for op in POSITIONS},
    **{op: "counts" for op in COUNTS},
    **{op: "bits" for op in BITS},
    "prod": "prod",
    "logsumexp": "logsumexp",
    "dot": "dot",
}
FAILS = "fails"
# Beyond this many elements, exponentials with many digits take too long.
LOGSUMEXP_AT_MOST = 400


class Exactly:
    """These bits of this type."""

    def __init__(self, type_, bits):
        self.type = type_
        self.bits = bits

    def accepts(self, dtype, text):
        return dtype == self.type.name and text == self.type.hex(self.bits)

    def equals(self, dtype, text):
        """Whether it is the same number, in whichever type."""
        try:
            value = TYPES[dtype].exact(int(text, 16))
        except (KeyError, ValueError, TypeError):
            return False
        return value is not None and value == self.type.exact(self.bits)

    def __str__(self):
        return f"{self.type.hex(self.bits)} ({self.type})"


class Loose:
    """An answer that is not known to the bit."""

    def equals(self, _dtype, _text):
        return False


class Within(Loose):
    """A float between two, both included: the bound of an operation that rounds on the way."""

    def __init__(self, type_, low, high):
        self.type = type_
        self.low = low
        self.high = high

    def accepts(self, dtype, text):
        try:
            bits = int(text, 16)
        except ValueError:
            return False
        place = order_of(self.type, bits)
        return dtype == self.type.name and order_of(self.type, self.low) <= place <= order_of(self.type, self.high)

    def __str__(self):
        return f"{self.type.hex(self.low)} to {self.type.hex(self.high)} ({self.type})"


class Unjudged(Loose):
    """Anything of this type: only compared among containers."""

    def __init__(self, type_):
        self.type = type_

    def accepts(self, dtype, _text):
        return dtype == self.type.name

    def __str__(self):
        return f"any {self.type}"


def operations(type_):
    """Every operation on one array that the type has."""
    return [op for op in GROUPS if op != "dot" and not (op in BITS and type_.kind == "float")]


def order_of(type_, bits):
    """Where the element stands: -0 before +0."""
    if type_.kind != "float":
        return type_.whole(bits)
    return ~bits & ((1 << 8 * type_.size) - 1) if bits & type_.fmt.sign else bits | type_.fmt.sign


def answers(type_, elements, places=None, nan="propagate", ddof=0):
    """{operation: answer} of `elements`, found at `places` (by default 0, 1, ...)."""
    pairs = list(zip(range(len(elements)) if places is None else places, elements))
    nans = [at for at, b in pairs if type_.kind == "float" and is_nan(type_.fmt, b)]
    if nans and nan == "error":
        wanted = {op: FAILS for op in operations(type_)}
    else:
        if nan == "omit":
            pairs = [(at, b) for at, b in pairs if not (type_.kind == "float" and is_nan(type_.fmt, b))]
            nans_left = []
        else:
            nans_left = nans
        elements = [b for _, b in pairs]
        wanted = {
            **(_float_sums if type_.kind == "float" else _integer_sums)(type_, elements, ddof),
            **_extrema(type_, pairs, nans_left),
            **_counts(type_, elements),
            **({} if type_.kind == "float" else _bits(type_, elements)),
            "prod": _float_prod(type_, elements) if type_.kind == "float" else _integer_prod(type_, elements),
            "logsumexp": _logsumexp(type_, elements),
        }
    wanted["count-nan"] = [Exactly(U64, len(nans))]
    return wanted


def dot(type_, xs, ys):
    """The answer to `dot` of two arrays of finite values."""
    if type_.kind == "float":
        return [Exactly(type_, oracle.dot(type_.fmt, type_.fmt, xs, ys))]
    return _total(type_, sum(type_.whole(x) * type_.whole(y) for x, y in zip(xs, ys)))


def _float_sums(type_, elements, ddof):
    return {op: [Exactly(type_, b)] for op, b in oracle.sums(type_.fmt, type_.fmt, elements, ddof).items()}


def _integer_sums(type_, elements, ddof):
    xs = [type_.whole(b) for b in elements]
    wanted = {op: [Exactly(F64, b)] for op, b in oracle.sums_of_units(F64.fmt, xs, 0, ddof).items()}
    wanted["sum"] = _total(type_, sum(xs))
    wanted["norm1"] = _total(type_, sum(map(abs, xs)))
    wanted["sumsq"] = _total(type_, sum(x * x for x in xs))
    return wanted


def _total(type_, value):
    out = I64 if type_.kind == "int" else U64
    return _integer(out, value)


def _integer(out, value):
    least, greatest = out.limits()
    return [Exactly(out, out.bits(value))] if least <= value <= greatest else FAILS


def _extrema(type_, pairs, nans):
    float_ = type_.kind == "float"
    if nans:
        nan = Exactly(type_, type_.fmt.nan)
        first = Exactly(U64, nans[0])
        wanted = {op: [nan] for op in EXTREMA} | {op: [first] for op in POSITIONS}
        return wanted | {"minmax": [nan, nan], "argminmax": [first, first]}
    if not pairs:
        wanted = {op: FAILS for op in EXTREMA + POSITIONS}
        return wanted | {"norm-inf": [Exactly(type_ if float_ else U64, 0)]}
    ordered = sorted((order_of(type_, b), b) for _, b in pairs)
    least, greatest = ordered[0][1], ordered[-1][1]
    # Zeros of either sign are equal where a position is asked for.
    value = lambda b: order_of(type_, 0 if float_ and b == type_.fmt.sign else b)
    at_least = min(pairs, key=lambda p: (value(p[1]), p[0]))[0]
    at_greatest = min(pairs, key=lambda p: (-value(p[1]), p[0]))[0]
    low, high = Exactly(type_, least), Exactly(type_, greatest)
    argmin, argmax = Exactly(U64, at_least), Exactly(U64, at_greatest)
    if float_:
        fmt = type_.fmt
        size = max(least & ~fmt.sign, greatest & ~fmt.sign)
        if not is_inf(fmt, least) and not is_inf(fmt, greatest):
            range_ = round_to(fmt, type_.exact(greatest) - type_.exact(least))
        else:
            range_ = fmt.nan if least == greatest else fmt.inf
        spread, norm = [Exactly(type_, range_)], [Exactly(type_, size)]
    else:
        low_value, high_value = type_.whole(least), type_.whole(greatest)
        spread, norm = _integer(U64, high_value - low_value), _integer(U64, max(-low_value, high_value))
    return {
        "min": [low],
        "max": [high],
        "minmax": [low, high],
        "range": spread,
        "norm-inf": norm,
        "argmin": [argmin],
        "argmax": [argmax],
        "argminmax": [argmin, argmax],
    }


def _counts(type_, elements):
    sign = type_.fmt.sign if type_.kind == "float" else 0
    nonzero = sum(1 for b in elements if b & ~sign)
    truth = TYPES["bool"]
    return {
        "any": [Exactly(truth, int(nonzero > 0))],
        "all": [Exactly(truth, int(nonzero == len(elements)))],
        "count": [Exactly(U64, len(elements))],
        "count-nonzero": [Exactly(U64, nonzero)],
    }


def _bits(type_, elements):
    every = 1 if type_.kind == "bool" else type_.bits(-1)
    some = odd = 0
    for b in elements:
        every, some, odd = every & b, some | b, odd ^ b
    return {"and": [Exactly(type_, every)], "or": [Exactly(type_, some)], "xor": [Exactly(type_, odd)]}


def _integer_prod(type_, elements):
    return _total(type_, prod(type_.whole(b) for b in elements))


def _float_prod(type_, elements):
    """Relative error before the last rounding as docs/exactness.md says."""
    fmt = type_.fmt
    infinite = any(is_inf(fmt, b) for b in elements)
    zero = any(not b & ~fmt.sign for b in elements)
    if any(is_nan(fmt, b) for b in elements) or infinite and zero:
        return [Exactly(type_, fmt.nan)]
    sign = fmt.sign if sum(1 for b in elements if b & fmt.sign) % 2 else 0
    if infinite or zero:
        return [Exactly(type_, sign | (fmt.inf if infinite else 0))]
    if len(elements) > 4 * LOGSUMEXP_AT_MOST:
        return [Unjudged(type_)]
    size = prod((abs(type_.exact(b)) for b in elements), start=Fraction(1))
    n = len(elements)
    # 2^-74.8 and 2^-73.2, 2^-57.7 and 2^-56.2, a little more each.
    long = type_.name == "f64"
    error = Fraction(9 * n, 2**78) + Fraction(7 * min(n, 34), 2**76) if long else Fraction(10 * n, 2**61) + Fraction(7 * min(n, 16), 2**59)
    ends = [sign | round_to(fmt, size * (1 - error)), sign | round_to(fmt, size * (1 + error))]
    return [Within(type_, *sorted(ends, key=lambda b: order_of(type_, b)))]


def _logsumexp(type_, elements):
    out = type_ if type_.kind == "float" else F64
    fmt = out.fmt
    if type_.kind == "float":
        if any(is_nan(fmt, b) for b in elements):
            return [Exactly(out, fmt.nan)]
        if fmt.inf in elements:
            return [Exactly(out, fmt.inf)]
        elements = [b for b in elements if not is_inf(fmt, b)]
    if not elements:
        return [Exactly(out, fmt.sign | fmt.inf)]
    if len(elements) > LOGSUMEXP_AT_MOST:
        return [Unjudged(out)]
    values = [Fraction(type_.exact(b)) for b in elements]
    top = max(values)
    with localcontext() as context:
        context.prec = 60
        total = Decimal(0)
        for value in values:
            below = value - top
            # What is smaller than e^-200 matters to no type.
            if below > -200:
                total += (Decimal(below.numerator) / Decimal(below.denominator)).exp()
        exact = top + Fraction(total.ln())
    error = Fraction(1, {"f64": 2**94, "f32": 2**47, "f16": 2**47, "bf16": 2**47}.get(type_.name, 2**93))
    return [Within(out, round_to(fmt, exact - error), round_to(fmt, exact + error))]
