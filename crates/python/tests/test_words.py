"""The words of a call: `where`, `initial`, `out`, `dtype`, `ddof`, `nan`, and what is wrong with them."""

import math
import pickle
import warnings
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import test_oracle as oracle
import warpfold as wf

X = np.arange(12.0).reshape(3, 4)
MASK = (np.arange(12).reshape(3, 4) % 3) == 0


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_where_and_initial_choose_elements(axis, keepdims):
    words = dict(axis=axis, keepdims=keepdims)
    assert np.array_equal(wf.sum(X, where=MASK, **words), np.sum(X, where=MASK, **words))
    assert np.array_equal(wf.sum(X, where=MASK, initial=2.5, **words), np.sum(X, where=MASK, initial=2.5, **words))
    assert np.array_equal(wf.max(X, where=MASK, initial=-1, **words), np.max(X, where=MASK, initial=-1, **words))
    assert np.array_equal(wf.any(X, where=MASK, **words), np.any(X, where=MASK, **words))
    assert np.array_equal(wf.sum(X, where=MASK[:, :1], **words), np.sum(X, where=MASK[:, :1], **words))
    assert np.array_equal(wf.sum(X, where=True, **words), np.sum(X, **words))


def test_long_arrays_with_a_mask_are_put_together_in_blocks():
    x = np.arange(300_000, dtype="int32")
    mask = x % 3 == 1
    assert wf.sum(x, where=mask) == x[mask].sum(dtype="int64")
    assert wf.prod(np.full(200_000, 2.0), where=np.arange(200_000) < 100) == 2.0**100
    assert wf.mean(x[::-2], where=mask[::2]) == pytest.approx(x[::-2][mask[::2]].mean())


def test_masks_that_do_not_fit():
    for mask in [np.ones(5, bool), np.ones((2, 3, 4), bool)]:
        with pytest.raises(ValueError, match="broadcast"):
            wf.sum(X, where=mask)
    with pytest.raises(TypeError, match="truth values"):
        wf.sum(X, where=np.ones((3, 4)))
    with pytest.raises(ValueError, match="no value"):
        wf.max(X, where=np.zeros((3, 4), bool))
    with pytest.raises(TypeError, match="initial"):
        wf.max(np.ones(3, "int8"), initial=1000)
    with pytest.raises(TypeError, match="initial"):
        wf.sum(X, initial="1")


def test_out_takes_the_answers_rounded_once():
    out = np.zeros(4)
    assert wf.sum(X, axis=0, out=out) is out and out.tolist() == X.sum(0).tolist()
    small = np.zeros(4, "float32")
    wf.sum(np.full((3, 4), 0.1), axis=0, out=small)
    assert small.tolist() == [float(np.float32(0.30000000000000004))] * 4
    strided = np.zeros((4, 3))[:, 1]
    wf.max(X, axis=0, out=strided)
    assert strided.tolist() == [8, 9, 10, 11]
    backwards = np.zeros(4)[::-1]
    assert wf.sum(X, axis=0, out=backwards).tolist() == X.sum(0).tolist()
    whole = np.zeros(())
    assert wf.sum(X, out=whole) is whole and whole == 66
    places = np.zeros(4, "int64")
    assert wf.argmax(X, axis=0, out=places).tolist() == [2] * 4


def test_an_out_that_cannot_be_written_stays_as_it_is():
    for out, error in [(np.zeros(3), ValueError), (np.zeros((4, 1)), ValueError), (np.zeros(4, "int32"), TypeError), (np.zeros(4, complex), TypeError), ([0] * 4, TypeError)]:
        before = np.copy(out)
        with pytest.raises(error):
            wf.sum(X, axis=0, out=out)
        assert np.array_equal(before, out)
    with pytest.raises(TypeError, match="out must be an array.*not list\nhint"):
        wf.sum(X, axis=0, out=[0, 0, 0])
    # Of as many bytes, and of others: the types are named.
    for kind in ["int64", "float32"]:
        out = np.full(4, 7, kind)
        with pytest.raises(TypeError, match=f"out has elements of type {kind}, but the answer is of type float64"):
            wf.sum(X, axis=0, dtype="float64", out=out)
        assert out.tolist() == [7] * 4
    with pytest.raises(ValueError, match=r"out has shape \[3\], but the answer has shape \[4\]"):
        wf.sum(X, axis=0, out=np.zeros(3))
    for kind in ["uint64", "int64"]:
        assert wf.argmax(X, axis=0, out=np.zeros(4, kind)).tolist() == [2] * 4
    fixed = np.zeros(4)
    fixed.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        wf.sum(X, axis=0, out=fixed)
    with pytest.raises(ValueError, match="two answers"):
        wf.minmax(X, axis=0, out=np.zeros(4))


@pytest.mark.parametrize("dtype", ["float32", "f4", np.float32, np.dtype("float32"), "<f4"])
def test_types_of_answers_by_any_name(dtype):
    assert wf.sum(X, dtype=dtype).dtype == np.float32
    assert wf.sum(X, axis=0, dtype=dtype).dtype == np.float32


def test_types_of_python_and_what_is_no_type():
    assert wf.sum([1, 2], dtype=float) == 3.0 and type(wf.sum([1, 2], dtype=float)) is float
    assert wf.sum(np.ones(3, bool), dtype=int) == 3
    for dtype in ["i8", "u8", "f16"]:
        with pytest.raises(TypeError, match="two meanings"):
            wf.sum(X, dtype=dtype)
    for dtype in ["complex64", complex, "no", ">f4", object, 5]:
        with pytest.raises(TypeError, match="hint"):
            wf.sum(X, dtype=dtype)
    with pytest.raises(TypeError):
        wf.sum(X, dtype="int32")
    with pytest.raises(OverflowError, match="1000"):
        wf.sum(np.array([1000]), dtype="int8")


def test_divisors():
    x = [1.0, 2.0, 4.0]
    assert wf.var(x) == wf.var(x, ddof=0) == wf.var(x, correction=0.0)
    assert wf.var(x, ddof=1) == wf.var(x, correction=1) == 7 / 3
    for bad in [float("nan"), float("inf"), -float("inf"), "1"]:
        with pytest.raises(ValueError, match="ddof must be"):
            wf.var(x, ddof=bad)
    assert wf.var(x, correction=0.5) == 28 / 15 and wf.std([0.0, 2.0], ddof=1.5) == 2.0
    assert wf.var(x, correction=5e-324) == wf.var(x) and math.isnan(wf.var(x, correction=1e300))
    for words in [{"ddof": 1, "correction": 2}, {"ddof": 0, "correction": 1}, {"ddof": 0, "correction": 0}, {"ddof": 1, "correction": 1}]:
        for call in [lambda: wf.var(x, **words), lambda: wf.reduce(x, ["std"], **words), lambda: wf.Partial("var", **words), lambda: wf.GroupPartial("var", **words), lambda: wf.segments(x, "var", length=3, **words), lambda: wf.groupby([1, 1, 1], x, "var", **words)]:
            with pytest.raises(ValueError, match="two names"):
                call()
    for ddof in [np.int64(1), np.array(1), True, np.float32(1.0)]:
        assert wf.var(x, ddof=ddof) == 7 / 3
    assert math.isnan(wf.var(x, correction=3.0)) and math.isnan(wf.var(x, correction=3.5))
    partial = wf.Partial("var", correction=0.5)
    partial.absorb(x)
    for one in [partial, pickle.loads(pickle.dumps(partial))]:
        assert one.finish() == 28 / 15 and one.finish(ddof=1) == 7 / 3 and one.finish(correction=0.25) == wf.var(x, ddof=0.25)
    groups = wf.GroupPartial("var", correction=0.5)
    groups.absorb([1, 1, 1], x)
    assert pickle.loads(pickle.dumps(groups)).finish()[1] == [28 / 15] == wf.groupby([1, 1, 1], x, "var", correction=0.5)[1]
    assert wf.segments(x, "var", length=3, correction=0.5) == [28 / 15]


@pytest.mark.parametrize("ddof", [-1, -2.5, np.int64(-3), -(2**62), -1e300, -5e-324])
def test_a_negative_ddof_divides_by_more_as_numpy_does(ddof):
    x = np.array([1.0, 2.0, 5.0, 4.0])
    # NumPy rounds on its way.
    assert math.isclose(wf.var(x, ddof=ddof), np.var(x, ddof=ddof), rel_tol=1e-14)
    assert math.isclose(wf.std(x, ddof=ddof), np.std(x, ddof=ddof), rel_tol=1e-14)
    assert wf.std(x, correction=ddof) == wf.std(x, ddof=ddof) == wf.nanstd(x, ddof=ddof) == wf.std(x, ddof=ddof, device="sim")
    assert wf.var([7.0], ddof=ddof) == 0 and math.isnan(wf.var([], ddof=ddof))
    partial = wf.Partial("var", ddof=ddof)
    partial.absorb(x)
    assert pickle.loads(pickle.dumps(partial)).finish() == wf.var(x, ddof=ddof)


@hypothesis.given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=40), st.floats(-45, 45, width=16) | st.floats(-45, 45), st.sampled_from(["float32", "float64", "int16"]), st.booleans()
)
def test_a_correction_need_not_be_an_integer(numbers, correction, kind, root):
    x = np.array(numbers).astype(kind) if kind != "int16" else (np.array(numbers) / 100).astype(kind)
    op = "std" if root else "var"
    exact = [Fraction(float(v)) for v in x]
    mean = sum(exact) / len(exact)
    rest = len(exact) - Fraction(correction)
    got = getattr(wf, op)(x, correction=correction)
    if rest <= 0:
        assert math.isnan(got)
    else:
        exact = sum((v - mean) ** 2 for v in exact) / rest
        out = "float32" if kind == "float32" else "float64"
        assert float(got) == (oracle.root if root else oracle.rounded)(exact, out)
    # Whatever answers it.
    table = np.stack([x, x], axis=1)
    assert getattr(wf, op)(table, axis=0, correction=correction).tobytes() == np.array([got, got]).tobytes()
    assert wf.segments(x, op, lengths=[len(x)], correction=correction).tobytes() == np.array([got]).tobytes()
    assert wf.groupby(np.zeros(len(x), int), x, op, correction=correction)[1].tobytes() == np.array([got]).tobytes()
    with pytest.raises(ValueError, match="two names"):
        wf.std(x, ddof=1, correction=1)


def test_nans():
    x = np.array([1.0, math.nan, 3.0])
    assert math.isnan(wf.sum(x)) and wf.sum(x, nan="omit") == wf.nansum(x) == 4
    assert wf.nanmean(x) == 2 and wf.nanmin(x) == 1 and wf.nanargmax(x) == 2 and wf.nanvar(x) == 1 and wf.nanstd(x) == 1
    assert wf.nanprod(x) == 3 and wf.count_nan(x) == 1 and wf.nanmax(x) == 3 and wf.nanargmin(x) == 0
    assert wf.argmax(x) == 1
    with pytest.raises(ValueError, match="index 1"):
        wf.max(x, nan="raise") if False else wf.argmax(x, nan="raise")
    with pytest.raises(ValueError, match="policy"):
        wf.sum(x, nan="ignore")
    with pytest.raises(ValueError, match="no value"):
        wf.nanmin(np.array([math.nan]))


@pytest.mark.parametrize("axis", [2, -3, 2**70, 10**30, -(10**30), (0, 2**64)])
def test_axes_that_are_not_there(axis):
    with pytest.raises(np.exceptions.AxisError, match=str(axis[1] if isinstance(axis, tuple) else axis)):
        wf.sum(X, axis=axis)


def test_numbers_that_must_not_be_negative_are_named():
    partial, groups = wf.Partial("sum"), wf.GroupPartial("sum")
    for name, call in [
        ("length", lambda: wf.segments([1.0], "sum", length=-1)),
        ("start", lambda: partial.absorb([1.0], start=-1)),
        ("start", lambda: groups.absorb([1], [1.0], start=-1)),
        ("offset", lambda: wf.open("x.raw", offset=-1)),
        ("memory_limit", lambda: wf.open("x.raw", memory_limit=-1)),
        ("shape", lambda: wf.open("x.raw", shape=[2, -1])),
        ("ddof", lambda: wf.stats("x.raw", ddof=-1)),
    ]:
        with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
            call()


def test_axes_that_are_none():
    with pytest.raises(ValueError, match="twice"):
        wf.sum(X, axis=(0, -2))
    for axis in [1.0, "0", None and 0, (0, 1.5), object()]:
        if axis is not None:
            with pytest.raises(TypeError):
                wf.sum(X, axis=axis)


@pytest.mark.parametrize("function", [wf.min, wf.max, wf.argmin, wf.argmax, wf.minmax, wf.range, wf.argminmax])
def test_nothing_has_no_smallest_element(function):
    for x in [[], np.array([]), np.zeros((0, 3))]:
        with pytest.raises(ValueError, match="no value"):
            function(x)
    with pytest.raises(ValueError, match="no value"):
        function(np.zeros((0, 3)), axis=0)


def test_totals_that_do_not_fit_are_named():
    with pytest.raises(OverflowError, match="18446744073709551614"):
        wf.sum(np.array([2**63 - 1, 2**63 - 1]))
    assert wf.sum(np.array([2**63 - 1, 2**63 - 1]), dtype=float) == 2.0**64
    with pytest.raises(OverflowError, match="dtype=float"):
        wf.prod(np.full(100, 3))


def test_devices_and_threads():
    assert wf.sum(X, device="cpu", threads=1) == wf.sum(X, device="auto", threads=3) == 66
    assert wf.sum(X, device="sim") == 66
    for device in ["cuda:99", "tpu"]:
        with pytest.raises((RuntimeError, ValueError), match="hint"):
            wf.sum(X, device=device)
    for threads in [0, -1, -(2**70), 2**70]:
        with pytest.raises(ValueError, match=f"threads must be at least 1.*not {threads}"):
            wf.sum(X, threads=threads)
    with pytest.raises(TypeError, match="threads must be an integer, not 1.5"):
        wf.sum(X, threads=1.5)


def test_several_operations_in_one_pass():
    got = wf.reduce(X, ["mean", "std", "argmax", "minmax"], axis=0, ddof=1)
    assert list(got) == ["mean", "std", "argmax", "minmax"]
    assert got["mean"].tolist() == X.mean(0).tolist() and got["argmax"].dtype == np.int64
    assert [a.tolist() for a in got["minmax"]] == [X.min(0).tolist(), X.max(0).tolist()]
    assert wf.reduce([1, 2], ["sum"]) == {"sum": 3} and wf.reduce([1, 2], "sum") == 3
    for ops in [[], ["summ"], ["sum", "sum"]]:
        with pytest.raises(ValueError):
            wf.reduce(X, ops)
    for ops in [5, [5], None]:
        with pytest.raises(TypeError):
            wf.reduce(X, ops)


def test_ours():
    x = np.array([[3.0, -4.0], [1.0, 2.0]])
    assert wf.norm1(x) == 10 and wf.norm2(x[0]) == 5 and wf.norm_inf(x) == 4 and wf.sumsq(x) == 30
    assert wf.dot(x, x) == 30 and wf.dot(x, x, axis=1).tolist() == [25, 5]
    assert wf.minmax(x) == (-4, 3) and wf.range(x) == 7 and wf.argminmax(x) == (1, 0) and wf.count(x) == 4
    assert wf.logsumexp([0.0, 0.0]) == math.log(2)
    assert wf.dot([1, 2], [3, 4]) == 11
    with pytest.raises(ValueError, match="differ"):
        wf.dot([1, 2], [1, 2, 3])


def test_one_operation_that_is_named_alone_answers_alone():
    """One rule: a name answers an array, a list of names a dictionary."""
    x, one = np.array([[1.0, 3.0], [5.0, 7.0]]), [0.0, 1.0]
    assert wf.reduce(x, "mean") == 4.0 and isinstance(wf.reduce(x, "mean"), np.float64)
    assert wf.reduce(x, "mean", axis=0).tolist() == [3.0, 5.0]
    assert wf.reduce(x, "minmax") == (1.0, 7.0)
    assert wf.reduce(x, ["mean"]) == {"mean": 4.0} and wf.reduce(x, ("mean",)) == {"mean": 4.0}
    assert isinstance(wf.segments(one, "sum", length=1), list) and isinstance(wf.segments(one, ["sum"], length=1), dict)
    assert isinstance(wf.groupby(one, one, "sum")[1], list) and isinstance(wf.groupby(one, one, ["sum"])[1], dict)
    for ops, kind in [("sum", float), (["sum"], dict)]:
        partial = wf.Partial(ops)
        partial.absorb(one)
        assert isinstance(partial.finish(), kind)
    frame = pytest.importorskip("pandas").DataFrame({"a": one})
    assert wf.reduce(frame, "mean", axis=0) == {"a": 0.5} and wf.reduce(frame, ["mean"], axis=0) == {"mean": {"a": 0.5}}


@pytest.mark.parametrize("name", ["uint64", "int64", "longlong", "ulonglong", "float32"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "u8"])
def test_answers_have_the_type_that_is_asked_for(name, dtype):
    """The sum of truth values, too, which is signed where nothing is asked."""
    x = np.array([[1, 0, 1], [1, 1, 0]], dtype)
    wanted = getattr(np, name)
    for asked in [wanted, np.dtype(wanted)]:
        for axis in [None, 0]:
            for ours, theirs in [(wf.sum, np.sum), (wf.prod, np.prod)]:
                got, expected = ours(x, axis=axis, dtype=asked), theirs(x, axis=axis, dtype=wanted)
                assert got.dtype.kind == expected.dtype.kind and got.dtype.itemsize == expected.dtype.itemsize
                assert np.array_equal(got, expected)
        assert wf.reduce(x, ["sum"], dtype=asked)["sum"].dtype.itemsize == np.dtype(wanted).itemsize
        part = wf.Partial(["sum"])
        part.absorb(x)
        assert part.finish(dtype=asked)["sum"].dtype.kind == np.dtype(wanted).kind
    assert wf.sum(x).dtype == (np.uint64 if dtype[0] == "u" else np.int64)


@hypothesis.given(st.data())
def test_words_together_mean_what_they_do_in_numpy(data):
    """`where`, `initial`, `out`, `axis`, `keepdims` and `dtype`, of numbers whose answers NumPy has exactly, too."""
    draw = data.draw
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    kind = draw(st.sampled_from(["int8", "uint16", "int64", "float32", "float64", "bool"]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = random.integers(0, 2 if kind == "bool" else 3, shape).astype(kind)
    x = np.asfortranarray(x) if draw(st.booleans()) else x[..., ::-1] if x.ndim else x
    name = draw(st.sampled_from(["sum", "prod", "min", "max", "any", "all", "mean"]))
    words = {}
    if draw(st.booleans()):
        words["axis"] = draw(st.sampled_from([None, *range(-x.ndim, x.ndim)])) if draw(st.booleans()) else tuple(draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else None
    if draw(st.booleans()):
        words["keepdims"] = draw(st.booleans())
    if name in ("sum", "prod", "min", "max") and draw(st.booleans()) and kind != "bool":
        words["initial"] = draw(st.sampled_from([1, np.int8(2), np.array(3)[()]]))
    if draw(st.booleans()) and (name not in ("min", "max") or "initial" in words):
        mask = random.random([n if draw(st.booleans()) else 1 for n in shape][draw(st.integers(0, x.ndim)) :]) < 0.6
        words["where"] = draw(st.sampled_from([mask, mask.tolist() if mask.size else mask, True, False, np.True_]))
    if name in ("sum", "prod") and draw(st.booleans()):
        words["dtype"] = draw(st.sampled_from(["float64", float] if kind.startswith("float") else ["float64", "int64", float, np.int64]))
    theirs = lambda **more: getattr(np, name)(x, **words, **more)
    ours = lambda **more: getattr(wf, name)(x, **words, **more)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = np.asarray(theirs())
        except ValueError:
            # The least of nothing.
            with pytest.raises(ValueError):
                ours()
            return
    got = ours()
    assert np.shape(got) == want.shape and np.asarray(got).dtype == want.dtype and np.array_equal(got, want, equal_nan=True), (name, words)
    out = np.full(want.shape, 77, want.dtype)
    assert ours(out=out) is out and np.array_equal(out, want, equal_nan=True), (name, words)
    if want.ndim:
        # In another order, and with gaps.
        wide = np.full((2 * want.shape[0], *want.shape[1:]), 77, want.dtype, order="F")
        untouched = wide[1::2].copy()
        assert ours(out=wide[::2]).base is wide and np.array_equal(wide[::2], want, equal_nan=True) and np.array_equal(wide[1::2], untouched)
