"""Drawn data and drawn questions: the same bits from any number of threads, and the exact answers.

Cases are those of `benches/questions.py`, whose arrays are large enough here that threads share outputs. Half of the arrays change
their kind of data on the way, so that what a reduction learns of its first elements is wrong of later ones. `WARPFOLD_SEED` draws
others, `WARPFOLD_QUESTIONS` more.
"""

import dataclasses
import os
import random
import sys
import warnings

import numpy as np
import pytest
import warpfold as wf
from conftest import REPOSITORY
from test_oracle import expected, same

sys.path.insert(0, str(REPOSITORY / "benches"))
questions = pytest.importorskip("questions")

SEED = int(os.environ.get("WARPFOLD_SEED", 11))
COUNT = int(os.environ.get("WARPFOLD_QUESTIONS", 1000))
SHARES = 8
MOST = int(os.environ.get("WARPFOLD_QUESTIONS_MIB", 8)) << 20
# Outputs of so many elements at the most are reduced in rational numbers.
RATIONAL = 3000
TYPES = tuple(t for t in questions.shapes.HOST.types if t != "bool")


def harder(case, rng):
    """The case, or more often one that leaves NaNs out, beside marks as well."""
    floats = case.dtype in questions.shapes.FLOATS
    masked = all(op in questions.MASKED for op in case.ops)
    where = case.where or masked and not case.initial and rng.random() < 0.2
    omit = "omit" if floats and not case.initial and case.op != "count-nan" and rng.random() < 0.35 else case.nan
    # What is left out by one operation and counted by another.
    plain = omit and not (where or case.ddof or case.out or case.keepdims or set(case.ops) & set(questions.POSITIONS))
    op = f"{case.op}+count-nan" if plain and rng.random() < 0.5 else case.op
    return dataclasses.replace(case, op=op, nan=omit, where=where)


def array(case, rng):
    """The array of a case; of several kinds of data, one after another, if the generator says so."""
    kinds = [case.data]
    if case.dtype in questions.shapes.FLOATS and rng.random() < 0.5:
        kinds += [questions.DATA[rng.integers(len(questions.DATA))] for _ in range(rng.integers(1, 4))]
    parts = [questions.piece(case.dtype, kind, rng) for kind in kinds]
    # Parts of any lengths, up to what the view has.
    cuts = np.sort(rng.integers(0, case.span + 1, len(parts) - 1))
    lengths = np.diff([0, *cuts, case.span])
    return questions.view(case, np.concatenate([np.resize(part, length) for part, length in zip(parts, lengths)]))


def flat(found):
    """All answers of a call as arrays; pairs are two."""
    if isinstance(found, dict):
        return flat(tuple(found.values()))
    return [a for each in found for a in flat(each)] if isinstance(found, tuple) else [np.asarray(found)]


def asked(call, x):
    """The bits of all answers of a call, or its error."""
    try:
        return [(a.dtype.str, a.shape, a.tobytes()) for a in flat(call(x))]
    except (ValueError, OverflowError) as error:
        return str(error)


def is_rational(case, op):
    """Whether rational numbers say what an operation answers."""
    return op == "count-nan" or op in ("sum", "mean", "min", "max", "norm2", "var", "std") and not case.initial and not case.ddof


def exact(case, op, elements):
    """What one operation answers of one output's elements, in rational numbers."""
    if op == "count-nan":
        return sum(x != x for x in elements)
    return expected(op, elements, "float64" if case.out else np.dtype(questions.TYPES[case.dtype]).name)


def check(case, rng):
    x = array(case, rng)
    mask = rng.random(case.shape) < rng.choice((0.5, 0.001, 0.999)) if case.where else None
    call = lambda case, threads: questions.ours(case, mask, threads=threads)
    found = asked(call(case, 1), x)
    for threads in (2, int(rng.choice((3, 5, 8)))):
        assert asked(call(case, threads), x) == found, f"{threads} threads"
    if isinstance(found, str):
        return
    if len(case.ops) > 1:
        # Alone, what is counted is counted with all NaNs.
        each = [one for one in questions.alone(case) if not (case.nan and one.op.startswith("count"))]
        each = {one.op: asked(call(one, int(rng.integers(1, 4))), x) for one in each}
        together = call(case, int(rng.integers(1, 4)))(x)
        assert each == {op: asked(lambda _: together[op], x) for op in each}, "several operations"
    if case.elements // max(1, case.outputs) > RATIONAL or case.outputs == 0:
        return
    answers = call(case, 2)(x)
    answers = list(answers.values()) if len(case.ops) > 1 else [answers]
    for op, answer in zip(case.ops, answers):
        if not is_rational(case, op):
            continue
        if case.keepdims:
            answer = np.squeeze(np.asarray(answer), questions.axes_of(case))
        kept = [n for axis, n in enumerate(case.shape) if axis not in case.axes]
        for _ in range(8):
            at = [int(rng.integers(n)) for n in kept]
            index, places = [], iter(at)
            for axis in range(len(case.shape)):
                index.append(slice(None) if axis in case.axes else next(places))
            elements = x[tuple(index)].reshape(-1)
            if mask is not None:
                elements = elements[mask[tuple(index)].reshape(-1)]
            elements = elements.tolist()
            if case.nan == "omit" and op != "count-nan":
                elements = [e for e in elements if e == e]
            got, wanted = np.asarray(answer)[tuple(at)].item(), exact(case, op, elements)
            assert same(got, wanted), (op, at, got, wanted)


@pytest.mark.parametrize("share", range(SHARES))
def test_answers_are_the_same_bits_from_any_number_of_threads(share):
    draws = random.Random(SEED)
    cases = [questions.draw(draws, MOST, TYPES) for _ in range(COUNT)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")
        for number, case in list(enumerate(cases))[share::SHARES]:
            rng = np.random.default_rng((SEED, number))
            case = harder(case, rng)
            try:
                check(case, rng)
            except AssertionError as error:
                raise AssertionError(f"case {number} of WARPFOLD_SEED={SEED}: {case}: {error}") from None
