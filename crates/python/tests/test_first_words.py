"""What people write before they have read the guide."""

import math
import pickle
from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import warpfold as wf


def frame_of(library, columns):
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


FRAMES = ["pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_of_numbers_is_reduced_whole_by_rows_and_by_columns(library):
    frame = frame_of(library, {"a": [1.5, 2.5, -4.0], "b": [3, 4, 5], "c": [True, False, True]})
    table = np.array([[1.5, 3, 1], [2.5, 4, 0], [-4.0, 5, 1]])
    assert wf.sum(frame) == wf.sum(frame, axis=(0, 1)) == 14
    assert type(wf.sum(frame)) is (np.float64 if library == "pandas" else float)
    assert wf.argmax(frame) == 7 and wf.mean(frame) == wf.mean(table) and wf.any(frame) and not wf.all(frame)
    for name in ["sum", "max", "argmin", "norm2", "any", "var"]:
        for axis in [1, -1]:
            rows = getattr(wf, name)(frame, axis=axis)
            assert type(rows).__module__.split(".")[0] == ("numpy" if library == "pandas" else library)
            assert np.array_equal(np.asarray(rows), getattr(wf, name)(table, axis=1))
        assert list(getattr(wf, name)(frame, axis=0)) == list(getattr(wf, name)(frame, axis=-2)) == ["a", "b", "c"]
    assert [np.asarray(a).tolist() for a in wf.minmax(frame, axis=1)] == [[1.0, 0.0, -4.0], [3.0, 4.0, 5.0]]
    found = wf.reduce(frame, ["sum", "std"], axis=1, ddof=1)
    assert np.array_equal(np.asarray(found["std"]), wf.std(table, axis=1, ddof=1))
    with pytest.raises((ValueError, IndexError)):
        wf.sum(frame, axis=2)
    for words in [{"keepdims": True}, {"out": np.zeros(3)}, {"axis": ()}]:
        with pytest.raises(TypeError, match="hint"):
            wf.sum(frame, **{"axis": 1, **words})


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_a_missing_number_of_a_frame_is_in_no_answer(library):
    frame = frame_of(library, {"a": [1.0, None, 3.0], "b": [1, 2, None]})
    assert wf.sum(frame) == 7 and wf.count(frame) == 4 and wf.mean(frame) == 1.75
    assert np.asarray(wf.sum(frame, axis=1)).tolist() == [2, 2, 3] and np.asarray(wf.count(frame, axis=1)).tolist() == [2, 1, 1]
    with pytest.raises(TypeError, match="missing"):
        wf.argmax(frame, axis=1)
    empty = frame_of(library, {"a": [None, 1.0], "b": [None, 2]})
    with pytest.raises(ValueError, match="no value"):
        wf.max(empty, axis=1)


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_says_which_column_is_in_the_way(library):
    for columns, error, name in [({"a": [1.0], "text": ["x"]}, TypeError, "text"), ({"f": [0.5], "large": [2**53 + 1]}, OverflowError, "large"), ({"u": np.array([2**63], "u8"), "i": [1]}, OverflowError, "u")]:
        frame = frame_of(library, columns)
        for axis in [None, 1]:
            with pytest.raises(error) as said:
                wf.sum(frame, axis=axis)
            assert any(repr(name)[1:-1] in note for note in said.value.__notes__)
    assert wf.sum(frame_of(library, {"a": [2**53 + 1], "b": [1]})) == 2**53 + 2


def test_a_frame_that_is_yet_to_be_computed():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"(?s)LazyFrame.*hint: .*collect\(\)"):
        wf.sum(polars.DataFrame({"a": [1]}).lazy())
    with pytest.raises(TypeError, match=r"(?s)Expr.*hint: .*select"):
        wf.sum(polars.col("a"))


def test_errors_have_pythons_names():
    with pytest.raises(TypeError, match="mean of int64 elements cannot answer in int64"):
        wf.mean([1, 2], dtype=int)
    with pytest.raises(OverflowError, match="does not fit int64"):
        wf.sum([2**63 - 1, 1])
    with pytest.raises(ValueError, match="count_nonzero, count_nan"):
        wf.reduce([1], "summ")
    with pytest.raises(ValueError, match="a column has 1 row, and"):
        wf.groupby([1, 2], [1], "sum")


def test_columns_of_nothing():
    polars = pytest.importorskip("polars")
    for column in [polars.Series([None, None]), polars.DataFrame({"a": [None, None]})["a"]]:
        with pytest.raises(TypeError, match="(?s)Null.*hint"):
            wf.sum(column)
    with pytest.raises(TypeError, match='(?s)"b" of type Null.*hint'):
        wf.sum(polars.DataFrame({"a": [1, 2], "b": [None, None]}), axis=0)
    keys, sums = wf.groupby(polars.Series([None, None]), [1.0, 2.0], "sum")
    assert keys.to_list() == [None] and sums == [3.0]
    pa = pytest.importorskip("pyarrow")
    assert wf.groupby(pa.array([None, None]), [1.0, 2.0], "sum")[0].to_pylist() == [None]
    with pytest.raises(TypeError, match="(?s)Null.*hint"):
        wf.groupby([1, 1], pa.array([None, None]), "sum")


def test_keys_that_are_missing_come_back_as_none():
    objects = np.array([None, None], object)
    keys, sums = wf.groupby(objects, [1.0, 2.0], "sum")
    assert keys.tolist() == [None] and list(sums) == [3.0]
    for missing, expected in [([None, 1.5, None], [1.5, None]), ([None, 2], [2, None]), ([1.5, math.nan, None], [1.5, math.nan, None]), (["a", None], ["a", None])]:
        keys, _ = wf.groupby(np.array(missing, object), [1.0] * len(missing), "sum")
        assert keys.dtype == object and list(map(repr, keys.tolist())) == list(map(repr, expected))
        assert list(map(repr, wf.groupby(missing, [1.0] * len(missing), "sum")[0])) == list(map(repr, expected))
    assert wf.groupby([None, None], [1.0, 2.0], "sum")[0] == [None]
    partial = wf.GroupPartial("sum")
    partial.absorb(objects, np.array([1.0, 2.0]))
    assert list(partial.finish()[0]) == [None]
    pandas = pytest.importorskip("pandas")
    keys, _ = wf.groupby(pandas.Series([None, None], dtype=object), pandas.Series([1.0, 2.0]), "sum")
    assert list(keys) == [None]
    polars = pytest.importorskip("polars")
    keys, _ = wf.groupby(polars.Series([None, 1.5]), [1.0, 2.0], "sum")
    assert keys.to_list() == [1.5, None]


@pytest.mark.parametrize("kind", ["Partial", "GroupPartial"])
def test_partials_are_merged_with_themselves_and_added_up(kind):
    def part(*numbers):
        made = getattr(wf, kind)("sum")
        made.absorb(*([[1] * len(numbers)] if kind == "GroupPartial" else []), list(numbers))
        return made

    p, q = part(1.0, 2.0), part(4.0)
    before = q.to_bytes()
    whole = sum([p, q])
    assert whole.finish() == part(1.0, 2.0, 4.0).finish() and (p + q).finish() == whole.finish()
    assert sum([q]) == q and sum([q]) is not q and q.to_bytes() == before
    p.merge(p)
    assert p.finish() == part(1.0, 2.0, 1.0, 2.0).finish()
    q += q
    assert q.finish() == part(8.0).finish()
    for wrong in [1, "", None, 0.0]:
        with pytest.raises(TypeError):
            wrong + p
    with pytest.raises(TypeError):
        p.merge(3)
    empty = getattr(wf, kind)("sum")
    empty.merge(empty)
    assert pickle.loads(pickle.dumps(sum([empty, p]))).finish() == p.finish()


KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@hypothesis.given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.data())
def test_dot_is_the_sum_of_products_of_any_types_and_shapes(left, right, data):
    """Of what NumPy broadcasts, in the type that NumPy has: but integers with and without a sign meet in int64."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))

    def drawn(kind):
        own = [1 if data.draw(st.booleans()) and data.draw(st.booleans()) else n for n in shape][data.draw(st.integers(0, len(shape) - 1)) :]
        return np.asarray(random.integers(0, 2 if kind == "bool" else 5, own)).astype(kind)[..., ::-1]

    x, y = drawn(left), drawn(right)
    wide = np.broadcast_shapes(x.shape, y.shape)
    axis = data.draw(st.sampled_from([None, *range(-len(wide), len(wide))]))
    keepdims = data.draw(st.booleans())
    common = np.result_type(left, right)
    if {common.kind, np.dtype(left).kind, np.dtype(right).kind} == {"f", "i", "u"}:
        common = np.dtype("int64")
    got = wf.dot(x, y, axis=axis, keepdims=keepdims)
    expected = np.sum(x.astype("int64") * y.astype("int64"), axis=axis, keepdims=keepdims)
    assert np.array_equal(got, expected) and np.shape(got) == expected.shape
    assert np.asarray(got).dtype == (np.sum(np.ones(1, common)).dtype if common.kind in "biu" else common)


def test_dot_loses_no_digit_on_the_way_to_one_type():
    x = np.array([0.1, 0.2, 0.3], "float32")
    y = np.array([0.3, 1e16, -1.0])
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y))
    assert wf.dot(x, y) == float(exact) and wf.dot(y, x) == float(exact)
    assert wf.dot(np.array([[1.0], [2.0]]), [1.0, 10.0], axis=1).tolist() == [11.0, 22.0]
    assert wf.dot([1, 2, 3], 2) == 12 and wf.dot([1, 2], [0.5, 0.25]) == 1.0
    with pytest.raises(OverflowError, match="9007199254740993.*\nhint"):
        wf.dot(np.array([2**53 + 1]), np.array([1.0]))
    with pytest.raises(OverflowError, match="18446744073709551615"):
        wf.dot(np.array([2**64 - 1], "uint64"), np.array([1]))
    for other in [[1, 2, 3], [[1, 2, 3]]]:
        with pytest.raises(ValueError, match="differ"):
            wf.dot([1, 2], other)
    out = np.zeros(2, "float32")
    assert wf.dot(np.ones((2, 2)), np.array([1, 2]), axis=1, out=out).tolist() == [3, 3]


def test_dot_of_columns_with_other_types():
    polars, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    assert wf.dot(polars.Series([1, None, 3]), polars.Series([0.5, 1.0, 2.0])) == 6.5
    assert wf.dot(polars.Series([1.0, 2.0]), np.array([3, 4])) == 11 and wf.dot(np.array([3, 4]), pa.array([1.0, 2.0])) == 11
    assert wf.dot(pa.chunked_array([[1], [2, 3]]), pa.chunked_array([[1.0, 2.0], [3.0]])) == 14
    with pytest.raises(ValueError, match="differ"):
        wf.dot(pa.array([1.0]), np.array([1.0, 2.0]))
    with pytest.raises(TypeError):
        wf.dot(pa.array([1.0]), np.ones((1, 1)))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_ptp_average_and_variances_with_means(axis, keepdims):
    x, words = np.arange(12.0).reshape(3, 4) ** 2, {"axis": axis, "keepdims": keepdims}
    assert np.array_equal(wf.ptp(x, **words), np.ptp(x, **words)) and np.array_equal(wf.average(x, **words), np.average(x, **words))
    w = np.arange(12).reshape(3, 4) + 1
    for got, expected in zip(wf.average(x, weights=w, returned=True, **words), np.average(x, weights=w, returned=True, **words)):
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-15)
    for both, one in [(wf.var_mean, wf.var), (wf.std_mean, wf.std)]:
        spread, mean = both(x, ddof=1, **words)
        assert np.array_equal(spread, one(x, ddof=1, **words)) and np.array_equal(mean, wf.mean(x, **words))


def test_ptp_of_integers_does_not_wrap():
    assert wf.ptp(np.array([-128, 127], "int8")) == 255 and wf.ptp(np.array([3, 1])).dtype == np.int64
    with pytest.raises(OverflowError):
        wf.ptp(np.array([-(2**63), 2**63 - 1]))
    assert wf.ptp([3, 1]) == 2 and wf.ptp([[1, 5], [2, 9]], axis=1) == [4, 7]
    assert wf.ptp(np.array([1.0, math.nan, 3.0]), nan="omit") == 2


def test_averages_of_all_kinds():
    x = np.arange(24.0).reshape(2, 3, 4)
    for axis in [0, 1, 2, -2]:
        w = np.arange(x.shape[axis]) + 1.0
        for kept in [False, True]:
            np.testing.assert_allclose(wf.average(x, axis=axis, weights=w, keepdims=kept), np.average(x, axis=axis, weights=w, keepdims=kept), rtol=1e-15)
    assert wf.average([1, 2, 4], weights=[1, 1, 2]) == 2.75 and wf.average(iter([1.0, 3.0])) == 2
    assert wf.average([[1, 2], [3, 4]], axis=0, weights=[1, 3]) == [2.5, 3.5] and wf.average([[1, 2], [3, 4]], axis=1, weights=(1, 3)) == [1.75, 3.75]
    assert wf.average(np.full(3, 2**62), weights=np.full(3, 2**62)) == 2.0**62
    assert wf.average(np.array([1e16, 1.0, -1e16]), weights=[1, 1, 1]) == 1 / 3
    with pytest.raises(ZeroDivisionError):
        wf.average([1.0, 2.0], weights=[1, -1])
    with pytest.raises(TypeError, match="axis"):
        wf.average(x, weights=[1, 2])
    with pytest.raises(ValueError, match="length 3"):
        wf.average(x, axis=1, weights=[1, 2])
    with pytest.raises(TypeError, match="one axis"):
        wf.average(x, axis=1, weights=[[1, 2, 3]])


def test_initial_is_counted_once_in_long_arrays():
    # Arrays beyond 64 MiB are reduced in pieces, along an axis that is kept or reduced.
    x = np.arange(70 << 20, dtype="uint8").reshape(70, 1024, 1024)
    for name, initial in [("sum", 7), ("max", 255), ("min", 0)]:
        for axis in [None, 0, (0, 2), (1, 2)]:
            got, expected = getattr(wf, name)(x, axis=axis, initial=initial), getattr(np, name)(x, axis=axis, initial=initial)
            assert np.array_equal(got, expected), (name, axis)
    with pytest.raises((TypeError, ValueError)):
        wf.sum(x, initial=0.5)


def test_initial_is_what_numpy_takes():
    for x, name, initial in [
        (np.ones(3, "int8"), "sum", 1000),
        (np.ones(3, bool), "sum", 5),
        (np.ones(3, "uint8"), "prod", 300),
        (np.ones(3, "uint32"), "sum", 2**63),
        (np.ones(3), "sum", True),
        (np.ones(3), "sum", np.array(5)),
        (np.ones(3, "float32"), "sum", np.float64(0.1)),
        (np.ones(3, "int32"), "sum", 2.0),
        (np.ones(3, "int32"), "max", 2.0),
        (np.ones(3, "int32"), "max", np.int64(7)),
        (np.array([True]), "max", 0),
        (np.zeros((2, 3), "int16"), "sum", -70_000),
    ]:
        got, expected = getattr(wf, name)(x, initial=initial), getattr(np, name)(x, initial=initial)
        assert got == expected and got.dtype == expected.dtype, (x, name, initial)
    for x, name, initial in [(np.ones(3, int), "sum", 0.5), (np.ones(3, int), "max", -math.inf), (np.ones(3, "uint8"), "max", -1), (np.ones(3, "uint8"), "sum", -1), (np.ones(3, int), "sum", 2**70), (np.ones(3), "sum", "1"), (np.ones(3), "sum", 1j), (np.ones(3), "sum", [1, 2])]:
        with pytest.raises(TypeError, match="(?s)initial must be.*hint"):
            getattr(wf, name)(x, initial=initial)


def test_arrays_of_ours_are_indexed_and_walked_through():
    theirs = np.arange(24.0).reshape(2, 3, 4)
    ours = wf.sum(memoryview(theirs.reshape(2, 3, 4, 1)), axis=3)
    assert isinstance(ours, wf.Array)
    for key in [0, -1, np.int64(1), (0, 1), (1, 2, 3), slice(None), slice(None, None, -1), (slice(0, 1), 2), (..., 0), (0, ...), (slice(1, None), slice(None, None, 2), -1), ..., (0, slice(5, 9)), (1, ..., slice(None, None, -2))]:
        got, expected = ours[key], theirs[key]
        assert np.shape(got) == expected.shape and np.array_equal(got, expected), key
        assert isinstance(got, float if expected.shape == () else wf.Array)
    assert [row.tolist() for row in ours] == theirs.tolist() and list(ours[0][0]) == [0.0, 1.0, 2.0, 3.0]
    assert 3.0 in ours[0, 0] and len(ours) == 2 and wf.sum(ours[1]) == theirs[1].sum()
    first, second = ours
    assert max(second[0]) == 15.0
    for key in [2, -3, (0, 3), (0, 0, 0, 0), (..., ...), 2**70]:
        with pytest.raises(IndexError):
            ours[key]
    for key in [1.0, "a", None, [0], np.array([0, 1])]:
        with pytest.raises(TypeError, match="hint"):
            ours[key]


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = jnp.arange(6.0).reshape(2, 3)
    for got, expected in [(wf.sum(x), 15.0), (wf.sum(x, axis=0), [3.0, 5.0, 7.0]), (wf.argmax(x, axis=1), [2, 2])]:
        assert isinstance(got, jax.Array) and got.tolist() == expected
    for kind in ["bfloat16", "float16", "int8", "uint32", "bool"]:
        small = jnp.asarray([1, 0, 1]).astype(kind)
        assert isinstance(wf.max(small), jax.Array) and wf.max(small).dtype == small.dtype and float(wf.sum(small)) == 2
    keys, sums = wf.groupby(jnp.asarray([1, 2, 1]), jnp.asarray([1.0, 2.0, 4.0]), "sum")
    assert isinstance(sums, jax.Array) and (keys.tolist(), sums.tolist()) == ([1, 2], [5.0, 2.0])
    with pytest.raises(TypeError, match="(?s)traces.*hint: .*pure_callback"):
        jax.jit(wf.sum)(x)
    with pytest.raises(TypeError, match="traces"):
        jax.grad(wf.sum)(x)
    called = jax.jit(lambda x: jax.pure_callback(wf.sum, jax.ShapeDtypeStruct((), x.dtype), x))
    assert float(called(x)) == 15.0


def test_a_library_with_a_buffer_and_dlpack_gets_its_own_arrays():
    class Both:
        """Its `from_dlpack` stands for that of its library."""

        def __init__(self, x, refuses=False):
            self.x, self.refuses = x, refuses

        def __array_namespace__(self, api_version=None):
            return Both

        @staticmethod
        def from_dlpack(x):
            return Both(np.from_dlpack(x))

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

        def __dlpack__(self, **words):
            if self.refuses:
                raise BufferError("not by DLPack")
            return self.x.__dlpack__(**words)

        def __buffer__(self, flags):
            return self.x.__buffer__(flags)

    got = wf.sum(Both(np.ones((2, 3))), axis=0)
    assert isinstance(got, Both) and got.x.tolist() == [2, 2, 2]
    with pytest.raises(BufferError, match="not by DLPack"):
        # Before Python 3.12 a class of Python lends no buffer.
        got = wf.sum(Both(np.ones(3), refuses=True))
        assert got.x == 3
        raise BufferError("not by DLPack")
