"""Few numbers in an array of NumPy go a short way: the answers are those of the general way, which naming a device takes."""

import numpy as np
import pytest
import warpfold as wf

FUNCTIONS = [
    "sum", "prod", "mean", "var", "std", "min", "max", "argmin", "argmax", "any", "all", "count_nonzero", "norm1", "norm2", "norm_inf", "sumsq",
    "range", "count", "count_nan", "logsumexp", "minmax", "argminmax",
    "nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nanargmin", "nanargmax",
]
DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "q", "Q", "l", "i"]


def outcome(call):
    try:
        made = call()
    except Exception as error:
        return type(error), str(error)
    return [(type(part), np.asarray(part).dtype, np.asarray(part).tobytes()) for part in (made if isinstance(made, tuple) else (made,))]


def arrays(rng, dtype):
    """Arrays of many layouts, some of whose elements are hard."""
    size = int(rng.choice([0, 1, 2, 10, 100, 1025, 2000]))
    x = rng.integers(0, 256, size * np.dtype(dtype).itemsize, dtype="u1").view(dtype) if dtype != "?" else rng.integers(0, 2, size).astype("?")
    if rng.random() < 0.5:
        x = rng.integers(0, 3, size).astype(dtype)
    yield x
    yield x[::-1]
    yield x[::3]
    yield x[1:]
    yield x.reshape(-1, 1)
    yield np.array(x[0] if size else 1, dtype)
    if size % 2 == 0:
        yield x.reshape(2, -1)
        yield x.reshape(2, -1).T
        yield x.reshape(2, -1)[::-1, ::2]
    unaligned = np.zeros(x.nbytes + 1, "u1")[1:].view(x.dtype) if x.dtype.itemsize > 1 else x
    unaligned[...] = x
    yield unaligned
    if x.dtype == bool:
        # Truth values by another name: any byte but zero.
        yield rng.integers(0, 256, size, dtype="u1").view("?")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_short_way_has_the_answers_of_the_general_way(dtype):
    rng = np.random.default_rng(sum(map(ord, dtype)))
    with np.errstate(all="ignore"):
        for _ in range(12):
            for x in arrays(rng, dtype):
                for name in FUNCTIONS:
                    function = getattr(wf, name)
                    assert outcome(lambda: function(x)) == outcome(lambda: function(x, device="cpu")), (name, x)
                    if x.ndim == 1:
                        axis = int(rng.choice([0, -1]))
                        assert outcome(lambda: function(x, axis=axis)) == outcome(lambda: function(x, axis=axis, device="cpu")), (name, x)
                    if not name.startswith("nan") and x.dtype.kind in "iub" and name in ("sum", "min", "argmax", "minmax"):
                        nan = str(rng.choice(["omit", "raise", "propagate"]))
                        assert outcome(lambda: function(x, nan=nan)) == outcome(lambda: function(x, device="cpu")), (name, nan, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_short_way_along_an_axis_has_the_answers_of_the_general_way(dtype):
    rng = np.random.default_rng(sum(map(ord, dtype)) + 1)
    shapes = [(1, 1), (3, 4), (2, 256), (256, 2), (2, 257), (9, 8), (8, 9), (2, 3, 4), (5, 1, 7), (2, 2, 2, 3), (0, 3), (3, 0), (512, 1), (1, 512), (513, 1), (10,), (130, 7), (32, 30), (33, 20), (40, 200)]
    with np.errstate(all="ignore"):
        for shape in shapes:
            count = int(np.prod(shape))
            x = rng.integers(0, 256, count * np.dtype(dtype).itemsize, dtype="u1").view(dtype) if dtype != "?" else rng.integers(0, 2, count).astype("?")
            if rng.random() < 0.5:
                x = rng.integers(0, 3, count).astype(dtype)
            x = x.reshape(shape)
            for laid in [x, np.asfortranarray(x), x.T, np.repeat(x, 2, axis=-1)[..., ::2]]:
                for name in FUNCTIONS:
                    function, axis = getattr(wf, name), int(rng.integers(-laid.ndim - 1, laid.ndim + 1))
                    words = {"keepdims": True} if rng.random() < 0.3 else {}
                    got, want = (outcome(lambda: function(laid, axis=axis, **words, **more)) for more in ({}, {"device": "cpu"}))
                    assert got == want, (name, laid.shape, axis, words)
                    if got and isinstance(got[0], tuple):
                        assert np.shape(function(laid, axis=axis, **words)) == np.shape(function(laid, axis=axis, device="cpu", **words))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "f2"])
def test_dot_products_of_the_short_way(dtype):
    rng = np.random.default_rng(5)
    for size in [0, 1, 2, 10, 1025, 70_000]:
        x, y = (rng.standard_normal(size) * 100).astype(dtype), (rng.standard_normal(size) * 100).astype(dtype)
        for left, right in [(x, y), (x[::-1], y), (x, y[::2]), (x.reshape(1, -1), y), (x.reshape(1, -1), y.reshape(1, -1)), (x, y.astype("f4"))]:
            assert outcome(lambda: wf.dot(left, right)) == outcome(lambda: wf.dot(left, right, device="cpu"))


@pytest.mark.parametrize("words", [{"axis": 1}, {"axis": -2}, {"axis": True}, {"axis": 0.0}, {"nan": "no policy"}, {"axis": 2**70}])
def test_wrong_words_are_refused_on_the_short_way(words):
    for x in [np.ones(3), np.ones(3, "i4")]:
        assert outcome(lambda: wf.sum(x, **words)) == outcome(lambda: wf.sum(x, device="cpu", **words))
        if words != {"axis": True}:
            with pytest.raises((TypeError, ValueError)):
                wf.sum(x, **words)


def test_types_that_have_no_short_way():
    with pytest.raises(TypeError, match="byte order"):
        wf.sum(np.ones(3, ">f8"))
    assert wf.sum(np.ones(3, complex)) == 3 and type(wf.sum(np.ones(3, complex))) is np.complex128
    with pytest.raises(TypeError, match="datetime64"):
        wf.sum(np.zeros(3, "M8[s]"))
    with pytest.raises(TypeError):
        wf.sum(np.zeros(3, [("a", "f8")]))
    with pytest.raises(TypeError):
        wf.sum(np.array(["a"], object))

    class Sub(np.ndarray):
        pass

    assert wf.sum(np.ones(3).view(Sub)) == 3.0


def test_counts_that_are_made_once_are_as_others():
    x = np.zeros(300, "u1")
    for at in [0, 1, 255, 256, 299]:
        x[:] = 0
        x[at] = 1
        place = wf.argmax(x)
        assert type(place) is np.int64 and place == at and hash(place) == hash(at)
        place += 1
        assert wf.argmax(x) == at


def test_an_array_is_kept_while_it_is_reduced():
    """NumPy does not resize an array to which we hold a reference; it is given back afterwards."""
    import sys

    x = np.ones(10)
    before = sys.getrefcount(x)
    for _ in range(10):
        wf.sum(x), wf.var(x, axis=0, keepdims=True), wf.reduce(x, ["sum", "max"])
    assert sys.getrefcount(x) == before
    x.resize(20)
    assert wf.sum(x) == 10.0
