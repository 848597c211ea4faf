"""Which objects are arrays, whatever their shape, strides and type."""

import array
import math
from fractions import Fraction

import numpy as np
import pytest
import warpfold as wf

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


def numbers(dtype, n=24):
    return (np.arange(n) % 7 - (0 if dtype == "bool" or dtype.startswith("u") else 3)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "shaped",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: x.reshape(2, 3, 4),
        lambda x: np.asfortranarray(x.reshape(4, 6)),
        lambda x: x.reshape(4, 6)[::-2, ::3],
        lambda x: x.reshape(2, 3, 4).transpose(2, 0, 1),
        lambda x: np.broadcast_to(x[:3], (5, 3)),
        lambda x: x[:0],
        lambda x: x[:0].reshape(0, 3),
        lambda x: x[5],
        lambda x: x[5:6].reshape(()),
        lambda x: np.frombuffer(x.tobytes(), x.dtype),
        lambda x: np.frombuffer(b"x" + x.tobytes(), np.uint8)[1:].view(x.dtype),
    ],
)
def test_any_layout_of_any_type_has_the_sum_of_its_elements(dtype, shaped):
    x = shaped(numbers(dtype))
    got = wf.sum(x)
    assert type(got) is type(np.sum(x))
    assert got == np.sum(x.astype("int64"))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, (0, 2), (2, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_axes_have_numpys_shapes_and_types(dtype, axis, keepdims):
    x = numbers(dtype).reshape(2, 3, 4)[:, ::-1]
    for ours, theirs in [(wf.sum, np.sum), (wf.max, np.max), (wf.any, np.any), (wf.count_nonzero, np.count_nonzero)]:
        got, expected = ours(x, axis=axis, keepdims=keepdims), theirs(x, axis=axis, keepdims=keepdims)
        assert np.array_equal(got, expected)
        assert got.dtype == expected.dtype and got.shape == expected.shape and type(got) is type(expected)


def test_read_only_arrays_are_read():
    x = np.arange(5.0)
    x.flags.writeable = False
    assert wf.sum(x) == 10


@pytest.mark.parametrize("x", [array.array("d", [1, 2, 4]), memoryview(array.array("d", [1, 2, 4])), (1.0, 2.0, 4.0), [1.0, 2, 4], iter([1.0, 2, 4])])
def test_what_is_not_numpys_answers_in_pythons_own_numbers(x):
    assert wf.sum(x) == 7.0
    assert type(wf.sum([1.0, 2])) is float


def test_numbers_of_python_keep_their_kind():
    assert (wf.sum([1, 2]), type(wf.sum([1, 2]))) == (3, int)
    assert (wf.max([True, False]), type(wf.max([True, False]))) == (True, bool)
    assert wf.sum([2**63, 1]) == 2**63 + 1
    assert wf.sum(3.5) == 3.5
    assert wf.sum([]) == 0.0
    assert wf.sum([[1, 2], [3, 4]], axis=0) == [4, 6]
    assert wf.sum([np.float32(0.1), np.float32(0.2)]) == float(np.float32(0.1)) + float(np.float32(0.2))
    assert wf.sum(np.float32(2)) == 2 and type(wf.sum(np.float32(2))) is np.float32


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_bfloat16_of_ml_dtypes(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1.5, -2.25, 3.0, 0.125], ml_dtypes.bfloat16)
    got = wf.sum(x[::-1])
    assert type(got) is ml_dtypes.bfloat16 and float(got) == 2.375
    rows = wf.sum(x.reshape(2, 2), axis=1)
    assert rows.dtype == ml_dtypes.bfloat16 and rows.tolist() == [-0.75, 3.125]


REFUSED = [
    (np.ones(3, ">f8"), "newbyteorder"),
    (np.ones(3, ">i2"), "newbyteorder"),
    (np.ones(3, ">c8"), "complex128"),
    (np.ones(3, np.clongdouble), "complex128"),
    (np.array([1, "a"], object), "astype"),
    (np.array(["a", "b"]), "astype"),
    (np.array([b"a", b"b"]), "astype"),
    (np.array(["2020-01-01"], "datetime64[D]"), "int64"),
    (np.array([1], "timedelta64[s]"), "int64"),
    (np.zeros(2, [("a", "f4"), ("b", "i4")]), 'x["name"]'),
    (np.ones(3, np.longdouble), "float64"),
    (np.ma.masked_array([1.0, 2.0], [True, False]), "where"),
    ("text", "warpfold.open"),
    (["1", "2"], "float()"),
    ([None, 1.0], "nan"),
    ([Fraction(1, 3)], "float()"),
    (object(), "give an array"),
    (None, "nan"),
    ({"a": 1.0}, "float()"),
]


@pytest.mark.parametrize(("x", "says"), REFUSED, ids=lambda x: str(getattr(x, "dtype", x)))
def test_what_is_not_a_number_is_a_type_error_that_says_what_to_do(x, says):
    with pytest.raises(TypeError, match="(?s)hint: ") as error:
        wf.sum(x)
    assert says in str(error.value)


def test_lists_of_different_lengths_and_integers_that_no_type_holds():
    for ragged in [[[1], [2, 3]], [[1], 2], [1, [2]], [[], [1]], [[[1]], [1]]]:
        with pytest.raises(ValueError, match="equal lengths"):
            wf.sum(ragged)
    for large in [[2**64], [2**63, -1], [-(2**63) - 1], [2**53 + 1, 0.5]]:
        with pytest.raises(OverflowError, match="hint"):
            wf.sum(large)


def test_an_iterator_that_fails_says_so_itself():
    def broken():
        yield 1.0
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        wf.sum(broken())


def test_wrappers_of_numpys_arrays_have_numpys_types():
    pandas = pytest.importorskip("pandas")
    x = pandas.Series([1.0, math.nan, 3.0])
    assert math.isnan(wf.sum(x)) and wf.nansum(x) == 4 and type(wf.nansum(x)) is np.float64
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    assert wf.sum(frame, axis=0) == {"a": 3.0, "b": 7}
    assert wf.sum(frame["b"]) == 7
    with pytest.raises(TypeError, match="keepdims"):
        wf.sum(frame, keepdims=True)
    assert frame.agg(wf.sum).tolist() == [3.0, 7.0]
    if int(pandas.__version__.split(".")[0]) >= 3:
        # Before, a function is tried on each element first.
        assert frame["a"].agg(wf.mean) == 1.5
    nullable = pandas.Series([1, None, 5], dtype="Int64")
    if wf_has_pyarrow():
        assert wf.sum(nullable) == 6


def wf_has_pyarrow():
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    return True


def test_xarray_reduces_by_our_functions():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.arange(6.0).reshape(2, 3), dims=["row", "column"])
    assert wf.sum(x) == 15
    assert x.reduce(wf.sum, dim="row").values.tolist() == [3, 5, 7]


def test_an_exporter_that_fails_is_heard():
    class Broken:
        def __dlpack_device__(self):
            raise RuntimeError("mine")

        def __dlpack__(self, **words):
            raise AssertionError("not asked for")

    with pytest.raises(RuntimeError, match="mine"):
        wf.sum(Broken())
