"""Any shape, strides, type and axes against rational arithmetic, bit for bit.

WARPFOLD_PYTHON_CASES=all draws 10,000 cases of each property instead of 200.
"""

import math
from fractions import Fraction

import numpy as np
import warpfold as wf
from hypothesis import given
from hypothesis import strategies as st

FLOATS = {"float16": (11, -24, 16), "float32": (24, -149, 128), "float64": (53, -1074, 1024)}
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def rounded(exact, dtype):
    """A rational number in a float type, to nearest even."""
    digits, lowest, limit = FLOATS[dtype]
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    # The exponent of the leading bit.
    top = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** top > magnitude:
        top -= 1
    unit = Fraction(2) ** max(top - digits + 1, lowest)
    steps = round(magnitude / unit)
    value = steps * unit
    if value >= Fraction(2) ** limit:
        return -math.inf if exact < 0 else math.inf
    return -float(value) if exact < 0 else float(value)


def root(exact, dtype):
    """The square root of a rational number in a float type, to nearest even."""
    if exact == 0:
        return 0.0
    # An integer square root of so many bits that only a tie could fool it, and a sticky bit below.
    shift = max(0, 2 * 70 - (exact.numerator.bit_length() - exact.denominator.bit_length()))
    shift += shift % 2
    scaled = (exact.numerator << shift) // exact.denominator
    whole = math.isqrt(scaled)
    sticky = whole * whole != scaled or (exact.numerator << shift) % exact.denominator != 0
    return rounded(Fraction(2 * whole + sticky, 1 << (shift // 2 + 1)), dtype)


def expected(op, elements, dtype):
    """What an operation answers of elements of one output."""
    out = dtype if dtype in FLOATS else "float64"
    if dtype in FLOATS:
        nans = [x for x in elements if x != x]
        if op in ("min", "max"):
            if nans:
                return math.nan
            key = lambda x: (x, math.copysign(1, x))
            return (min if op == "min" else max)(elements, key=key)
        if op in ("argmin", "argmax"):
            if nans:
                return next(i for i, x in enumerate(elements) if x != x)
            # The two zeros are equal.
            return elements.index((min if op == "argmin" else max)(elements))
        infinite = {x for x in elements if math.isinf(x)}
        if op in ("sum", "mean"):
            if nans or len(infinite) == 2 or not elements and op == "mean":
                return math.nan
            if infinite:
                return infinite.pop()
        elif op == "norm2":
            if nans:
                return math.nan
            if infinite:
                return math.inf
        elif nans or infinite or not elements:
            return math.nan
        if op == "sum" and elements and all(x == 0 and math.copysign(1, x) < 0 for x in elements):
            return None  # Either zero: the sign of a sum of zeros is another test's.
    exact = [Fraction(x) for x in elements]
    if op == "sum":
        return rounded(sum(exact), out) if dtype in FLOATS else int(sum(exact))
    if op in ("min", "max"):
        return (min if op == "min" else max)(elements)
    if op in ("argmin", "argmax"):
        return elements.index((min if op == "argmin" else max)(elements))
    if op == "norm2":
        return root(sum(x * x for x in exact), out)
    if not exact:
        return math.nan
    mean = sum(exact) / len(exact)
    if op == "mean":
        return rounded(mean, out)
    variance = sum((x - mean) ** 2 for x in exact) / len(exact)
    return rounded(variance, out) if op == "var" else root(variance, out)


@st.composite
def arrays(draw):
    """An array of any bits, and as odd a view of it as there is."""
    dtype = draw(st.sampled_from([*FLOATS, *INTEGERS]))
    shape = draw(st.lists(st.integers(0, 5), max_size=4))
    size = np.dtype(dtype).itemsize
    count = max(1, math.prod(n or 1 for n in shape))
    odd = draw(st.integers(0, 1))
    if dtype == "bool":
        flat = np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    elif draw(st.booleans()):
        flat = np.frombuffer(draw(st.binary(min_size=count * size + odd, max_size=count * size + odd))[odd:], dtype)
    elif dtype in FLOATS:
        values = st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.1, 3.0, 1e4, -1e4, math.inf, -math.inf, math.nan, 6e-8, 65504.0])
        flat = np.array(draw(st.lists(values, min_size=count, max_size=count)), dtype)
    else:
        flat = np.array(draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))).astype(dtype)
    x = flat[: math.prod(shape)].reshape(shape)
    if x.ndim:
        x = x.transpose(draw(st.permutations(range(x.ndim))))
        steps = tuple(slice(None, None, draw(st.sampled_from([1, 1, -1, 2, -2]))) for _ in range(x.ndim))
        x = x[steps]
        if draw(st.integers(0, 9)) == 0:
            x = np.broadcast_to(x, (draw(st.integers(0, 3)), *x.shape))
    return x


@st.composite
def questions(draw):
    x = draw(arrays())
    axis = None
    if x.ndim and draw(st.booleans()):
        axes = draw(st.sets(st.integers(0, x.ndim - 1)))
        axis = tuple(a - draw(st.sampled_from([0, x.ndim])) for a in axes)
    return x, axis, draw(st.booleans())


def same(got, wanted):
    if wanted is None:
        return float(got) == 0
    if isinstance(wanted, int):
        return int(got) == wanted
    got = float(got)
    return (got != got and wanted != wanted) or (got == wanted and math.copysign(1, got) == math.copysign(1, wanted))


@given(questions(), st.sampled_from(["sum", "mean", "var", "std", "min", "max", "argmin", "argmax", "norm2"]))
def test_every_answer_is_the_exact_one_rounded_once(question, op):
    x, axis, keepdims = question
    dtype = x.dtype.name
    axes = set(range(x.ndim)) if axis is None else {a % x.ndim for a in axis}
    kept = [a for a in range(x.ndim) if a not in axes]
    shape = tuple((1 if a in axes else n) for a, n in enumerate(x.shape) if keepdims or a not in axes)
    rows = x.transpose(kept + sorted(axes)).reshape([math.prod(x.shape[a] for a in kept), math.prod(x.shape[a] for a in axes)])
    elements = [[v.item() for v in row] for row in rows]
    try:
        got = getattr(wf, op)(x, axis=axis, keepdims=keepdims)
    except ValueError as error:
        assert "no value" in str(error) and op in ("min", "max", "argmin", "argmax") and any(not row for row in elements)
        return
    except OverflowError:
        assert op == "sum" and any(not -(2**63) <= sum(row) < (2**64 if dtype.startswith("u") else 2**63) for row in elements)
        return
    assert np.shape(got) == shape
    for value, row in zip(np.asarray(got).reshape(-1).tolist(), elements, strict=True):
        wanted = expected(op, row, dtype)
        assert same(value, wanted), (op, dtype, row, value, wanted)


@given(questions())
def test_types_and_shapes_are_numpys(question):
    x, axis, keepdims = question
    for name in ["sum", "any", "all", "count_nonzero", "mean"]:
        with np.errstate(all="ignore"):
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                theirs = getattr(np, name)(x, axis=axis, keepdims=keepdims)
        try:
            ours = getattr(wf, name)(x, axis=axis, keepdims=keepdims)
        except OverflowError:
            assert name == "sum"
            continue
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name
        assert np.shape(ours) == np.shape(theirs), name
        if name in ("any", "all", "count_nonzero"):
            assert np.array_equal(ours, theirs)


@given(st.data())
def test_products_of_integers_are_exact_or_an_error(data):
    kind = data.draw(st.sampled_from(INTEGERS))
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 7, 40, 70]), min_size=1, max_size=3)))
    while math.prod(shape) > 3000:
        shape = shape[1:]
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    factors = data.draw(st.sampled_from([[2, -2, 1, 1], [3, -1, 1, 1, 1], [0, 7, 1], [-(2**63), 2**63 - 1, -1, 1, 1, 1, 1, 1], [2**32, -(2**31), 2**16, 0, 1, 1, 1, 1]]))
    # A few factors that are not 1, however long the axis is.
    picked = random.choice(np.array(factors).astype("int64"), shape)
    x = np.where(random.random(shape) < min(1, 12 / max(shape)), picked, 1).astype(kind)
    x = x.transpose(data.draw(st.permutations(range(x.ndim))))[..., :: data.draw(st.sampled_from([1, -1, 2]))]
    axis = data.draw(st.sampled_from([None, *range(x.ndim)]))
    rows = [x.reshape(-1)] if axis is None else np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    exact = [math.prod(map(int, row)) for row in rows]
    low, high = (0, 2**64) if kind.startswith("u") else (-(2**63), 2**63)
    try:
        got = wf.prod(x, axis=axis)
    except OverflowError:
        assert not all(low <= product < high for product in exact)
        return
    assert [int(product) for product in np.asarray(got).reshape(-1)] == exact
    if axis is not None:
        lengths = np.full(len(rows), x.shape[axis])
        assert wf.segments(np.concatenate(rows), "prod", lengths=lengths).tolist() == exact
