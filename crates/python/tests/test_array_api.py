"""What the array API's standard asks of statistical, searching and utility functions, of `warpfold.array_api`.

The standard's own suite is not on PyPI (`suites/array_api_suite.py` runs a clone of it). These are its rules in our words: for
drawn arrays of every type, axes and words, each output is that of a loop in Python over the elements that the standard names.

Not tested, since they are NumPy's in that namespace: `cumulative_sum`, `cumulative_prod`, `nonzero`, `searchsorted`, `where`, `diff`,
and `prod` of complex numbers, of which only the presence is.
"""

import itertools
import math
import operator
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import warpfold.array_api as xp

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
REAL = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMERIC = [*SIGNED, *UNSIGNED, *REAL, *COMPLEX]
ALL = ["bool", *NUMERIC]
NOT_OURS = ["cumulative_prod", "cumulative_sum", "diff", "nonzero", "searchsorted", "where"]
OURS = ["all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var"]


def test_the_namespace_has_all_of_the_functions():
    for name in [*OURS, *NOT_OURS, "asarray", "float32", "__array_namespace_info__"]:
        assert getattr(xp, name) is not None, name
        assert name in dir(xp), name
    for name in OURS:
        assert getattr(xp, name) is not getattr(np, name), name
    for name in NOT_OURS:
        assert getattr(xp, name) is getattr(np, name), name
    assert not hasattr(xp, "no_such_function")


@st.composite
def questions(draw, kinds, *, least=0, several=True):
    """An array, axes, and whether they are kept."""
    shape = tuple(draw(st.lists(st.integers(least, 4), max_size=3)))
    kind = draw(st.sampled_from(kinds))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    specials = draw(st.booleans())

    def reals(dtype):
        x = random.choice([0.0, -0.0, 1.0, -1.5, 2.0**40, 3e-5, 7.25], shape).astype(dtype)
        if specials:
            x = np.where(random.random(shape) < 0.2, random.choice([math.nan, math.inf, -math.inf], shape), x).astype(dtype)
        return x

    if kind == "bool":
        x = random.random(shape) < 0.7
    elif kind in REAL:
        x = reals(kind)
    elif kind in COMPLEX:
        x = (reals("float64") + 1j * reals("float64")).astype(kind) if not specials else np.empty(shape, kind)
        if specials:
            part = "float32" if kind == "complex64" else "float64"
            x.real, x.imag = reals(part), reals(part)
    else:
        x = random.integers(0 if kind in UNSIGNED else -9, 10, shape).astype(kind)
    x = np.asarray(x)
    if x.ndim and draw(st.booleans()):
        x = x[..., ::-1] if draw(st.booleans()) else np.asfortranarray(x)
    ndim = x.ndim
    choices = [st.none()]
    if ndim:
        choices.append(st.integers(-ndim, ndim - 1))
        if several:
            choices.append(st.sets(st.integers(0, ndim - 1)).map(lambda axes: tuple(a - ndim if a % 2 else a for a in sorted(axes))))
    axis = draw(st.one_of(choices))
    return x, axis, draw(st.booleans())


def outputs(x, axis, keepdims):
    """The shape of the answer, and for each of its elements those that it is of, in C order."""
    names = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    reduced = {a % x.ndim for a in names}
    shape = tuple(1 if i in reduced else n for i, n in enumerate(x.shape) if keepdims or i not in reduced)
    kept = [range(n) if i not in reduced else [slice(None)] for i, n in enumerate(x.shape)]
    return shape, [x[place].ravel().tolist() for place in itertools.product(*kept)] if x.ndim else [[x[()].item()]]


def rounded(x, dtype):
    """An exact number as one of a type of floats."""
    if isinstance(x, float):
        return float(np.dtype(dtype).type(x))
    if x == 0:
        return 0.0
    if dtype == "float64":
        return x.numerator / x.denominator
    # Halfway between two floats of 32 bits a float of 64 bits may lie: which side it was on is kept.
    near = x.numerator / x.denominator
    single = np.float32(near)
    if Fraction(near) != x and not math.isinf(near):
        for other in [np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))]:
            if not np.isinf(other) and abs(Fraction(float(other)) - x) < abs(Fraction(float(single)) - x):
                single = other
    return float(single)


def total(numbers):
    """The sum of floats: an exact number, or one that is none."""
    if any(map(math.isnan, numbers)) or {math.inf, -math.inf} <= set(numbers):
        return math.nan
    infinite = [x for x in numbers if math.isinf(x)]
    return infinite[0] if infinite else sum(map(Fraction, numbers), Fraction(0))


def same(got, shape, dtype, expected):
    assert np.asarray(got).dtype == dtype and np.shape(got) == shape
    for mine, wanted in zip(np.asarray(got).ravel().tolist(), expected, strict=True):
        for part in [operator.attrgetter("real"), operator.attrgetter("imag")]:
            assert part(mine) == part(wanted) or (math.isnan(part(mine)) and math.isnan(part(wanted))), (mine, wanted)


def parts(kind):
    return {"complex64": "float32", "complex128": "float64"}.get(kind, kind)


@hypothesis.given(questions(NUMERIC))
def test_sum(question):
    x, axis, keepdims = question
    kind = x.dtype.name
    shape, runs = outputs(x, axis, keepdims)
    out = "int64" if kind in SIGNED else "uint64" if kind in UNSIGNED else kind
    if kind in SIGNED + UNSIGNED:
        expected = [sum(run) for run in runs]
    elif kind in REAL:
        expected = [rounded(total(run), kind) for run in runs]
    else:
        expected = [complex(*(rounded(total([getattr(z, part) for z in run]), parts(kind)) for part in ["real", "imag"])) for run in runs]
    same(xp.sum(x, axis=axis, keepdims=keepdims), shape, out, expected)
    wide = "complex128" if kind in COMPLEX else "float64"
    assert np.asarray(xp.sum(x, axis=axis, keepdims=keepdims, dtype=getattr(xp, wide))).dtype == wide


@hypothesis.given(questions(NUMERIC))
def test_prod(question):
    x, axis, keepdims = question
    kind = x.dtype.name
    shape, runs = outputs(x, axis, keepdims)
    out = "int64" if kind in SIGNED else "uint64" if kind in UNSIGNED else kind
    if kind in SIGNED + UNSIGNED:
        expected = [math.prod(run) for run in runs]
        if max(map(abs, expected), default=0) >= 2**63:
            with pytest.raises(OverflowError):
                xp.prod(x, axis=axis, keepdims=keepdims)
            return
        same(xp.prod(x, axis=axis, keepdims=keepdims), shape, out, expected)
        return
    with np.errstate(all="ignore"):
        got, wanted = xp.prod(x, axis=axis, keepdims=keepdims), np.prod(x, axis=axis, keepdims=keepdims)
    assert np.shape(got) == shape and np.asarray(got).dtype == kind
    np.testing.assert_allclose(got, wanted, rtol=1e-4 if parts(kind) == "float32" else 1e-12)


@hypothesis.given(questions([*REAL, *COMPLEX], least=1))
def test_mean(question):
    x, axis, keepdims = question
    kind = x.dtype.name
    shape, runs = outputs(x, axis, keepdims)

    def mean(run):
        whole = total(run)
        return rounded(whole if isinstance(whole, float) else whole / len(run), parts(kind))

    if kind in REAL:
        expected = [mean(run) for run in runs]
    else:
        expected = [complex(mean([z.real for z in run]), mean([z.imag for z in run])) for run in runs]
    same(xp.mean(x, axis=axis, keepdims=keepdims), shape, kind, expected)


@hypothesis.given(questions(REAL, least=1), st.sampled_from([0, 0.0, 1, 1.0, 0.5, 2]))
def test_var_and_std(question, correction):
    x, axis, keepdims = question
    kind = x.dtype.name
    shape, runs = outputs(x, axis, keepdims)

    def var(run):
        whole, rest = total(run), len(run) - Fraction(correction)
        if isinstance(whole, float) or rest <= 0:
            return math.nan
        mean = whole / len(run)
        return sum((Fraction(v) - mean) ** 2 for v in run) / rest

    exact = [var(run) for run in runs]
    words = {"axis": axis, "keepdims": keepdims, "correction": correction}
    same(xp.var(x, **words), shape, kind, [rounded(v, kind) for v in exact])
    got = xp.std(x, **words)
    assert np.shape(got) == shape and np.asarray(got).dtype == kind
    np.testing.assert_allclose(np.ravel(got), [math.sqrt(float(v)) if v == v else v for v in exact], rtol=1e-6 if kind == "float32" else 1e-15)


@hypothesis.given(questions([*SIGNED, *UNSIGNED, *REAL], least=1))
def test_min_and_max(question):
    x, axis, keepdims = question
    shape, runs = outputs(x, axis, keepdims)
    for ours, theirs in [(xp.min, min), (xp.max, max)]:
        expected = [math.nan if any(v != v for v in run) else theirs(run) for run in runs]
        same(ours(x, axis=axis, keepdims=keepdims), shape, x.dtype, expected)


@hypothesis.given(questions([*SIGNED, *UNSIGNED, *REAL], least=1, several=False))
def test_argmin_and_argmax(question):
    """The first occurrence; among NaNs the standard leaves it open, and it is the first of them."""
    x, axis, keepdims = question
    shape, runs = outputs(x, axis, keepdims)
    for ours, theirs in [(xp.argmin, min), (xp.argmax, max)]:
        places = [next((i for i, v in enumerate(run) if v != v), None) for run in runs]
        expected = [run.index(theirs(run)) if place is None else place for run, place in zip(runs, places)]
        got = np.asarray(ours(x, axis=axis, keepdims=keepdims))
        assert got.dtype == np.int64 and got.shape == shape
        for run, mine, wanted in zip(runs, got.ravel().tolist(), expected):
            # Zeros of both signs are equal.
            assert mine == wanted or run[mine] == run[wanted] == 0


@hypothesis.given(questions(ALL))
def test_any_all_and_count_nonzero(question):
    """NaN is not zero, and a complex number is zero if both parts are."""
    x, axis, keepdims = question
    shape, runs = outputs(x, axis, keepdims)
    words = {"axis": axis, "keepdims": keepdims}
    same(xp.any(x, **words), shape, "bool", [any(v != 0 for v in run) for run in runs])
    same(xp.all(x, **words), shape, "bool", [all(v != 0 for v in run) for run in runs])
    same(xp.count_nonzero(x, **words), shape, "int64", [sum(v != 0 for v in run) for run in runs])


@pytest.mark.parametrize("name", OURS)
def test_axes_that_are_not_there_are_errors(name):
    for axis in [2, -3]:
        with pytest.raises((ValueError, IndexError)):
            getattr(xp, name)(xp.ones((2, 3)), axis=axis)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "std", "var"])
@pytest.mark.parametrize("kind", COMPLEX)
def test_what_the_standard_has_for_real_numbers_alone(name, kind):
    with pytest.raises(TypeError, match="x.real"):
        getattr(xp, name)(xp.ones(3, dtype=kind))
