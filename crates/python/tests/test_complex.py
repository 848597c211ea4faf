"""Complex numbers by their parts."""

import array
import math

import numpy as np
import pytest
import warpfold as wf

Z = np.array([[3 + 4j, -1j, 0], [1e16 + 1j, 1 - 1e16j, -1e16 + 2j]])
LAYOUTS = [lambda z: z, lambda z: z[::-1], lambda z: np.asfortranarray(z), lambda z: z[:, ::2], lambda z: z.T, lambda z: np.broadcast_to(z[0], (4, 3)), lambda z: z[:0], lambda z: z[1, 1], lambda z: z[1:2, 1].reshape(())]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
@pytest.mark.parametrize("shaped", LAYOUTS)
@pytest.mark.parametrize("keepdims", [False, True])
def test_answers_are_those_of_the_parts(kind, shaped, keepdims):
    z = shaped(Z.astype(kind))
    for axis in [None, *range(z.ndim), (), tuple(range(z.ndim))]:
        words = {"axis": axis, "keepdims": keepdims}
        for name in ["sum", "mean"]:
            got = getattr(wf, name)(z, **words)
            real, imag = (getattr(wf, name)(part, **words) for part in (z.real, z.imag))
            assert got.dtype == kind and got.shape == real.shape and type(got) is type(np.sum(z, **words))
            assert np.array_equal(got.real, real, equal_nan=True) and np.array_equal(got.imag, imag, equal_nan=True)
        for name in ["any", "all", "count_nonzero"]:
            got, expected = getattr(wf, name)(z, **words), getattr(np, name)(z, **words)
            assert np.array_equal(got, expected) and got.dtype == expected.dtype
        both = np.stack([z.real, z.imag], axis=-1)
        axes = (*range(z.ndim), -1) if axis is None else (*(a % z.ndim for a in np.atleast_1d(axis).astype(int).tolist()), -1)
        for name in ["sumsq", "norm2"]:
            got, expected = getattr(wf, name)(z, **words), getattr(wf, name)(both, axis=axes)
            assert got.dtype == z.real.dtype and np.array_equal(np.ravel(got), np.ravel(expected))
        assert np.array_equal(wf.count(z, **words), np.sum(np.ones(z.shape, int), **words))


def test_norms():
    z = np.array([3 + 4j, 5 - 12j, 0])
    assert wf.norm2(z) == math.sqrt(25 + 169) and wf.sumsq(z) == 194 and wf.norm1(z) == 18 and wf.norm_inf(z) == 13
    assert wf.norm_inf(z.astype("complex64")).dtype == np.float32
    table = np.stack([z, 2 * z])
    assert wf.norm1(table, axis=1).tolist() == [18, 36] and wf.norm_inf(table, axis=0, keepdims=True).tolist() == [[10, 26, 0]]
    nothing = np.zeros((0, 2), complex)
    for name in ["sum", "sumsq", "norm1", "norm2", "norm_inf"]:
        assert getattr(wf, name)(nothing) == 0 and getattr(wf, name)(nothing, axis=0).tolist() == [0, 0]
    # Exact: squares that round away in NumPy's.
    tiny = np.full(10_000, 1e-10 + 1e-10j)
    exact = wf.norm2(np.concatenate([tiny.real, tiny.imag, [1.0]]))
    assert wf.norm2(np.append(tiny, 1.0)) == exact
    # Means and norms of huge numbers do not overflow on the way.
    huge = np.array([1e308 + 1e308j, 1e308 - 1e308j])
    assert wf.mean(huge) == 1e308 and wf.norm_inf(huge) == math.hypot(1e308, 1e308)


def test_a_nan_in_either_part_makes_a_number_none():
    z = np.array([1 + 1j, complex(math.nan, 5), complex(7, math.nan), 2])
    got = wf.sum(z)
    assert math.isnan(got.real) and math.isnan(got.imag)
    assert wf.nansum(z) == wf.sum(z, nan="omit") == 3 + 1j and wf.nanmean(z) == 1.5 + 0.5j
    assert wf.count_nan(z) == 2 and wf.norm1(z, nan="omit") == pytest.approx(2 + math.sqrt(2)) and wf.sumsq(z, nan="omit") == 6
    assert wf.sum(np.stack([z, z]), axis=0, nan="omit").tolist() == [2 + 2j, 0, 0, 4]
    with pytest.raises(ValueError, match="NaN"):
        wf.sum(z, nan="raise")
    with pytest.raises(ValueError, match="NaN"):
        wf.norm1(z, nan="raise")


def test_words():
    z = np.arange(6).reshape(2, 3) * (1 + 2j)
    mask = np.array([True, False, True])
    assert np.array_equal(wf.sum(z, axis=0, where=mask), np.sum(z, axis=0, where=mask))
    assert wf.sum(z, where=mask) == np.sum(z, where=mask) and wf.count_nonzero(z, where=mask) == 3
    for initial in [1, 2.5, 3j, np.complex64(1 + 1j)]:
        assert np.array_equal(wf.sum(z, axis=1, initial=initial), np.sum(z, axis=1, initial=initial))
    assert wf.sum(z, dtype="complex64").dtype == np.complex64 and wf.sum(z.astype("complex64"), dtype=complex).dtype == np.complex128
    assert wf.norm2(z, dtype="float32").dtype == np.float32
    out = np.zeros(3, complex)
    assert wf.sum(z, axis=0, out=out) is out and np.array_equal(out, z.sum(0))
    strided = np.zeros((3, 2), complex)[:, 1]
    assert np.array_equal(wf.mean(z, axis=0, out=strided), z.mean(0))
    assert np.array_equal(wf.sumsq(z, axis=0, out=np.zeros(3)), (np.abs(z) ** 2).sum(0).round(9))
    for wrong in [{"dtype": "float64"}, {"out": np.zeros(())}, {"initial": "1"}]:
        with pytest.raises(TypeError):
            wf.sum(z, **wrong)
    with pytest.raises(ValueError, match="broadcast"):
        wf.sum(z, where=np.ones(2, bool))
    with pytest.raises(np.exceptions.AxisError):
        wf.sum(z, axis=2)
    got = wf.reduce(z, ["sum", "norm2", "any"], axis=0)
    assert got["sum"].dtype == complex and got["norm2"].dtype == float and got["any"].dtype == bool


@pytest.mark.parametrize("name", ["prod", "min", "max", "argmin", "argmax", "minmax", "range", "argminmax", "var", "std", "logsumexp"])
def test_what_complex_numbers_do_not_have_says_so(name):
    with pytest.raises(TypeError, match="(?s)hint:.*x.real"):
        getattr(wf, name)(Z)


def test_elsewhere_too():
    for call in [lambda: wf.dot(Z, Z), lambda: wf.segments(Z[0], "sum", length=3), lambda: wf.groupby([1, 1, 2], Z[0], "sum"), lambda: wf.groupby(Z[0], [1, 1, 2], "sum"), lambda: wf.Partial("sum").absorb(Z)]:
        with pytest.raises(TypeError, match="(?s)complex.*hint"):
            call()


def test_complex_numbers_of_python_and_of_buffers():
    assert wf.sum([1j, 2, 0.5]) == 2.5 + 1j and type(wf.sum([1j])) is complex
    assert wf.sum([[1j, 1], [2, 3]], axis=0) == [2 + 1j, 4 + 0j] and wf.norm2([3j, 4]) == 5.0
    assert wf.any([0j]) is False and wf.sum(1j) == 1j
    with pytest.raises(OverflowError):
        wf.sum([1j, 2**53 + 1])
    view = memoryview(Z)
    assert wf.sum(view) == wf.sum(Z)
    rows = wf.sum(view, axis=0)
    assert isinstance(rows, wf.Array) and rows.dtype == "complex128" and rows.shape == (3,)
    assert rows.tolist() == wf.sum(Z, axis=0).tolist() == list(rows) and rows[0] == rows.tolist()[0]
    assert np.asarray(rows).dtype == complex and np.array_equal(np.from_dlpack(rows), rows.tolist())
    assert wf.sum(rows) == wf.sum(wf.sum(Z, axis=0)) and rows[::-2].tolist() == rows.tolist()[::-2]
    with pytest.raises(TypeError, match="complex128"):
        wf.sum(np.ones(3, ">c16"))


def test_jax():
    jnp = pytest.importorskip("jax.numpy")
    z = jnp.asarray(Z[0].astype("complex64"))
    got = wf.sum(z)
    assert type(got) is type(z) and got.dtype == jnp.complex64 and complex(got) == complex(wf.sum(Z[0].astype("complex64")))
