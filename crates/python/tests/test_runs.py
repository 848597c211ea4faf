"""Drawn questions about segments and about groups by key, of any types, boundaries, keys and operations together: a device that is interpreted, beside the
CPU, whose answers and errors are the same to the bit. `WARPFOLD_SEED` draws others, and `WARPFOLD_THOROUGH` more.
"""

import os
import random

import numpy as np
import pytest
import warpfold as wf

SEED = int(os.environ.get("WARPFOLD_SEED", 7))
COUNT = 3000 if os.environ.get("WARPFOLD_THOROUGH") else 200

WHOLE = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
OPS = ["sum", "mean", "min", "max", "var", "std", "norm1", "norm2", "norm_inf", "prod", "minmax", "range", "count", "count_nan", "count_nonzero", "logsumexp"]
OPS += ["argmin", "argmax", "argminmax", "any", "all", "sumsq"]


def values(draw, rng, n):
    kind = np.dtype(draw.choice([*WHOLE, "?", *FLOATS, *FLOATS]))
    if kind.kind == "b":
        return rng.random(n) < 0.5
    if kind.kind != "f":
        least, greatest = np.iinfo(kind).min, np.iinfo(kind).max
        return rng.integers(max(least, -(2**40)), min(greatest, 2**40), n, kind, endpoint=True)
    some = rng.standard_normal(n) * 2.0 ** rng.integers(-14, 14, n)
    if draw.random() < 0.3:
        some[rng.random(n) < 0.1] = draw.choice([np.nan, np.inf, -np.inf, -0.0])
    return some.astype(kind)


def keys(draw, rng, n):
    """A column of few keys or many, near each other, far apart, or at both ends of the type."""
    kind = np.dtype(draw.choice([*WHOLE, *WHOLE, *WHOLE, "?", "f8"]))
    some = rng.integers(0, draw.choice([1, 2, 5, 40, 700, 10**6]), n)
    if kind.kind not in "iu":
        return some.astype(kind)
    ends = np.iinfo(kind)
    how = draw.random()
    if how < 0.3:
        return rng.integers(ends.min, ends.max, n, kind, endpoint=True)
    if how < 0.5:
        return np.where(some % 2 == 0, ends.min, ends.max).astype(kind)
    return (some * draw.choice([1, 3, 12345, 0x12345678901]) + draw.choice([0, 5, -7])).astype(kind)


def boundaries(draw, rng, n):
    """Ascending, with empty segments among them; now and then some that cannot be."""
    found = np.sort(rng.integers(0, n + 1, draw.choice([1, 2, 7, 100, 900]) + 1)).astype(draw.choice(["i4", "i8", "u4", "u8"]))
    if draw.random() < 0.05:
        found = found[::-1].copy() if draw.random() < 0.5 else found + found.dtype.type(2)
    return {"starts": found[:-1], "stops": found[1:]} if draw.random() < 0.2 else {"offsets": found}


def question(draw):
    ops = draw.choice(OPS) if draw.random() < 0.5 else draw.sample(OPS, draw.choice([2, 3]))
    words = {"ddof": draw.choice([1, 2, 10**9])} if draw.random() < 0.25 else {}
    return ops, words | ({"nan": draw.choice(["omit", "raise"])} if draw.random() < 0.15 else {})


def said(call):
    try:
        return call()
    except (TypeError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, str):
        return a == b
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


@pytest.mark.parametrize("kind", ["segments", "groups"])
def test_the_interpreter_says_what_the_cpu_says(kind):
    draw, rng = random.Random(f"{kind} {SEED}"), np.random.default_rng(SEED)
    answered = 0
    for _ in range(COUNT):
        n = draw.choice([0, 1, 2, 17, 300, 2500])
        x, (ops, words) = values(draw, rng, n), question(draw)
        if kind == "segments":
            words |= boundaries(draw, rng, n)
            ask = lambda device, x=x, ops=ops, words=words: wf.segments(x, ops, device=device, **words)
        else:
            columns = tuple(keys(draw, rng, n) for _ in range(draw.choice([1, 1, 1, 2, 3])))
            ask = lambda device, columns=columns, x=x, ops=ops, words=words: wf.groupby(columns, x, ops, device=device, **words)
        there, here = said(lambda: ask("sim")), said(lambda: ask("cpu"))
        assert same(there, here), (x.dtype, n, ops, words, there, here)
        answered += not isinstance(here, str)
    assert answered > COUNT / 3
