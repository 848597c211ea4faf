"""Partials: absorbed in any pieces, merged in any order, written down and pickled."""

import copy
import pickle
import sys

import numpy as np
import pytest
import warpfold as wf

X = np.random.default_rng(5).standard_normal(1000) * 10.0 ** np.arange(1000).repeat(1)[::-1].clip(0, 200)


@pytest.mark.parametrize("ops", ["sum", ["mean", "std", "argmax"], ["prod", "logsumexp"], "minmax"])
def test_any_split_has_the_bits_of_the_whole(ops):
    x = np.random.default_rng(5).standard_normal(10_000)
    whole = wf.Partial(ops)
    whole.absorb(x)
    for cuts in [[0], [1, 5000], [4096, 8192], list(range(0, 10_000, 777))]:
        pieces = np.split(x, cuts)
        merged = wf.Partial(ops)
        for piece in pieces:
            merged.absorb(piece)
        assert merged == whole and merged.position == 10_000
        starts = np.cumsum([0] + [len(p) for p in pieces])
        parts = []
        for start, piece in reversed(list(zip(starts, pieces))):
            part = wf.Partial(ops)
            part.absorb(piece, start=int(start))
            parts.append(pickle.loads(pickle.dumps(part)))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        assert total == whole
        assert total.finish() == whole.finish()
    names = [ops] if isinstance(ops, str) else ops
    for name in names:
        got = whole.finish() if isinstance(ops, str) else whole.finish()[name]
        assert got == getattr(wf, name)(x)


def test_rules_can_be_said_when_finishing():
    partial = wf.Partial("var", ddof=1)
    partial.absorb(np.array([1.0, 2.0, 4.0, np.nan]))
    assert np.isnan(partial.finish())
    assert partial.finish(nan="omit") == 7 / 3 and partial.finish(nan="omit", ddof=0) == 14 / 9
    assert partial.finish(nan="omit", dtype="float32").dtype == np.float32
    again = pickle.loads(pickle.dumps(partial))
    assert again.finish(nan="omit") == 7 / 3 and type(again.finish()) is np.float64


def test_axes():
    x = np.arange(12.0).reshape(4, 3)
    partial = wf.Partial(["sum", "argmax"], axis=0)
    partial.absorb(x[:2])
    partial.absorb(x[2:])
    assert partial.shape == (3,) and partial.dtype == "float64" and partial.ops == ["sum", "argmax"]
    assert partial.finish()["sum"].tolist() == x.sum(0).tolist()
    assert partial.finish()["argmax"].tolist() == [3, 3, 3]
    with pytest.raises(ValueError, match="shape"):
        partial.absorb(np.ones((1, 4)))
    assert pickle.loads(pickle.dumps(partial)) == partial == copy.deepcopy(partial)


def test_bytes():
    partial = wf.Partial("sum")
    with pytest.raises(ValueError, match="absorbed nothing"):
        partial.to_bytes()
    with pytest.raises(ValueError, match="absorbed nothing"):
        partial.finish()
    partial.absorb([0.1] * 10)
    data = partial.to_bytes()
    assert wf.Partial.from_bytes(data).finish() == 1.0
    for damaged in [b"", data[:-1], data + b"x", bytes([data[0] ^ 1]) + data[1:], data[:60] + bytes([data[60] ^ 4]) + data[61:]]:
        with pytest.raises(ValueError, match="state"):
            wf.Partial.from_bytes(damaged)
    with pytest.raises(TypeError):
        wf.Partial.from_bytes("text")


def test_after_an_error_nothing_has_changed():
    partial = wf.Partial("argmax")
    partial.absorb([1.0, 5.0])
    before = partial.to_bytes()
    for wrong in [lambda: partial.absorb([1, 2]), lambda: partial.absorb([7.0], start=1), lambda: partial.merge(other), lambda: partial.absorb("text"), lambda: partial.absorb([1.0], start=2**64 - 1)]:
        other = wf.Partial("sum")
        other.absorb([1.0])
        with pytest.raises((ValueError, TypeError)):
            wrong()
        assert partial.to_bytes() == before and partial.position == 2
    with pytest.raises(TypeError):
        partial + 1
    with pytest.raises(ValueError):
        wf.Partial([])
    with pytest.raises(ValueError, match="other operations"):
        partial.__class__("sum").__setstate__(partial.__reduce__()[2])


def test_dot_and_columns():
    partial = wf.Partial("dot")
    partial.absorb([1.0, 2.0], [3.0, 4.0])
    partial.absorb([1.0], [10.0])
    assert partial.finish() == 21
    pa = pytest.importorskip("pyarrow")
    partial = wf.Partial(["sum", "argmax"])
    partial.absorb(pa.chunked_array([[1, None], [5]]))
    partial.absorb(pa.array([9, None]))
    assert partial.finish() == {"sum": 15, "argmax": 3} and partial.missing == 2


@pytest.mark.parametrize("op", ["sum", "mean", "norm1", "norm2", "sumsq", "var", "std", "count", "count_nan", "any", "all"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
def test_vectors_add_up_to_the_merged_partial(op, dtype):
    x = (np.random.default_rng(3).standard_normal((90, 4)) * 50).astype(dtype)
    whole = wf.Partial(op, axis=0)
    whole.absorb(x)
    parts = []
    for rows in np.split(x, [0, 13, 57]):
        parts.append(wf.Partial(op, axis=0))
        parts[-1].absorb(rows)
    vector = sum(np.asarray(part.to_vector()) for part in parts)
    assert vector.dtype == np.int64
    total = parts[1].from_vector(vector)
    assert total == whole and np.array_equal(total.finish(), whole.finish())
    assert parts[1].from_vector(memoryview(vector)) == whole
    assert parts[1].from_vector(np.zeros_like(vector)) == parts[0] == whole.empty()


def test_vectors_have_the_sizes_that_are_told():
    sizes = {}
    for dtype in ["float64", "float32"]:
        part = wf.Partial("sum")
        part.absorb(np.ones(3, dtype))
        sizes[dtype] = memoryview(part.to_vector()).nbytes
    assert sizes == {"float64": 400, "float32": 96}


def test_what_is_no_vector():
    part = wf.Partial("sum")
    with pytest.raises(ValueError, match="absorbed nothing"):
        part.to_vector()
    part.absorb([1.0])
    for wrong in [np.ones(1, "i8"), np.zeros(0, "i8"), np.zeros(49, "i8")]:
        with pytest.raises(ValueError, match="another length"):
            part.from_vector(wrong)
    for wrong in [np.zeros(50), np.zeros((5, 10), "i8"), np.zeros(100, "i8")[::2], "x"]:
        with pytest.raises(TypeError):
            part.from_vector(wrong)
    with pytest.raises(ValueError, match="contradict"):
        part.from_vector(-np.asarray(part.to_vector()))
    for op in ["max", "argmin", "prod", "logsumexp"]:
        other = wf.Partial(op)
        other.absorb([1.0])
        assert other.to_vector() is None


def test_empty_partials_ask_the_same():
    part = wf.Partial(["mean", "argmax"], nan="omit", axis=-1)
    part.absorb(np.ones((3, 5)), start=4)
    empty = part.empty()
    assert (empty.ops, empty.shape, empty.dtype, empty.position) == (part.ops, (3,), "float64", 0)
    assert empty + part == part and wf.Partial("sum").empty().dtype is None
    assert empty != part


def test_sums_of_arrays_of_partials_begin_with_nothing():
    parts = np.empty(3, dtype=object)
    for i in range(3):
        parts[i] = wf.Partial("sum")
        parts[i].absorb([0.1 * i])
    assert parts.sum().finish() == wf.sum([0.0, 0.1, 0.2])
    assert parts[0] + 0 == 0 + parts[0] == parts[0]
    with pytest.raises(TypeError):
        parts[0] + 1


def test_partials_tell_their_size():
    sizes = []
    for columns in [1, 100]:
        part = wf.Partial("sum", axis=0)
        part.absorb(np.ones((3, columns)))
        sizes.append(sys.getsizeof(part))
    assert sizes[0] > 500 and sizes[1] > 50 * sizes[0]
