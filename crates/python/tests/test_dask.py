"""Arrays of Dask: lazy, with the bits of an array in memory, whatever the chunks and the scheduler."""

import os
import pickle
import sys

import numpy as np
import pytest
import warpfold as wf

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
wd = pytest.importorskip("warpfold.dask")

WHOLE = ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax", "count", "count_nonzero", "count_nan", "norm1", "norm2", "norm_inf", "sumsq", "range", "logsumexp", "minmax", "argminmax"]
CHUNKS = [(60, 50), (7, 50), (60, 9), (7, 11)]


def numbers(shape=(60, 50), dtype="float64"):
    """Numbers whose rounded sums differ with the order."""
    random = np.random.default_rng(5)
    x = random.standard_normal(shape) * np.exp(20 * random.standard_normal(shape))
    return x.astype(dtype) if np.dtype(dtype).kind == "f" else random.integers(0, 100, shape).astype(dtype)


def same(lazy, expected):
    if isinstance(expected, tuple):
        return len(lazy) == len(expected) and all(map(same, lazy, expected))
    expected, answer = np.asarray(expected), np.asarray(lazy.compute())
    types = lazy.dtype == answer.dtype == expected.dtype
    return types and lazy.shape == answer.shape == expected.shape and answer.tobytes() == expected.tobytes()


@pytest.fixture(params=["threads", "processes", "synchronous"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


@pytest.mark.parametrize("op", WHOLE)
@pytest.mark.parametrize("chunks", CHUNKS)
def test_answers_are_those_of_the_array_in_memory(op, chunks):
    x = numbers()
    lazy = da.from_array(x, chunks=chunks)
    for axis in [None, 0, -1, (0, 1)]:
        for keepdims in [False, True]:
            answer = wf.reduce(lazy, op, axis=axis, keepdims=keepdims)
            assert same(answer, wf.reduce(x, op, axis=axis, keepdims=keepdims)), (axis, keepdims)
            assert same(getattr(wd, op)(lazy, axis=axis, keepdims=keepdims, split_every=2), wf.reduce(x, op, axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool"])
def test_types(dtype):
    x = numbers(dtype=dtype) if dtype != "float16" else numbers(dtype="float32").clip(-9, 9).astype("float16")
    lazy = da.from_array(x, chunks=(7, 11))
    for op in ["sum", "mean", "max", "argmin", "count_nonzero"]:
        assert same(getattr(wf, op)(lazy, axis=0), getattr(wf, op)(x, axis=0)), op
    assert same(wf.sum(lazy, dtype="float64"), wf.sum(x, dtype="float64"))


def test_schedulers(scheduler):
    x = numbers()
    found = wf.reduce(da.from_array(x, chunks=(7, 11)), ["sum", "var", "argmax"], ddof=1)
    assert all(map(same, found.values(), wf.reduce(x, ["sum", "var", "argmax"], ddof=1).values()))


def test_nothing_is_computed_before_it_is_asked_for():
    def failing(block):
        raise AssertionError("computed")

    x = da.ones((8, 8), chunks=4).map_blocks(failing, dtype=float, meta=np.empty((0, 0)))
    for lazy in [wf.sum(x), wf.nanmean(x, axis=0), wf.dot(x, x), wf.argmax(x), *wf.reduce(x, ["min", "std"]).values()]:
        assert isinstance(lazy, da.Array)
        with pytest.raises(AssertionError, match="computed"):
            lazy.compute()


def test_several_operations_share_a_pass():
    seen = []

    def counted(block):
        seen.append(block.shape)
        return block

    x = da.ones((8, 8), chunks=4).map_blocks(counted, dtype=float, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"):
        dask.compute(wf.reduce(x, ["sum", "mean", "var"]))
    assert len(seen) == 4


def test_dot():
    x, y = numbers(), numbers()[0]
    a, b = da.from_array(x, chunks=(7, 11)), da.from_array(y, chunks=13)
    assert same(wf.dot(a, b, axis=1), wf.dot(x, y, axis=1)) and same(wf.dot(a, a), wf.dot(x, x))
    assert same(wf.dot(x, a), wf.dot(x, x))
    with pytest.raises(TypeError, match="one type"):
        wf.dot(a, b.astype("float32"))


def test_nans():
    x = numbers()
    x[3, 4] = np.nan
    lazy = da.from_array(x, chunks=(7, 11))
    assert same(wf.nansum(lazy), wf.nansum(x)) and np.isnan(wf.sum(lazy).compute())
    with pytest.raises(ValueError, match="NaN"):
        wf.sum(lazy, nan="raise").compute()


def test_lengths_that_are_not_known():
    x = numbers().ravel()
    lazy = da.from_array(x, chunks=700)
    some = lazy[lazy > 0]
    assert wf.sum(some).compute() == wf.sum(x[x > 0])
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        wf.argmax(some)
    assert wf.argmax(some.compute_chunk_sizes()).compute() == wf.argmax(x[x > 0])


def test_what_cannot_be():
    lazy = da.ones((4, 4, 4), chunks=2)
    for call, error, text in [
        (lambda: wf.sum(lazy, axis=3), ValueError, "Axis 3"),
        (lambda: wf.reduce(lazy, "median"), ValueError, "median"),
        (lambda: wf.argmax(lazy, axis=(0, 1)), ValueError, "one axis"),
        (lambda: wf.sum(lazy.astype(complex)), TypeError, "x.real"),
        (lambda: wf.sum(lazy, where=np.ones((4, 4, 4), bool)), TypeError, "dask.array.where"),
        (lambda: wf.sum(lazy, nan="perhaps"), ValueError, "perhaps"),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_the_scheduler_hears_of_sizes():
    sizeof = pytest.importorskip("dask.sizeof").sizeof
    part = wf.Partial("sum", axis=0)
    part.absorb(np.ones((3, 1000)))
    assert sizeof(part) == sys.getsizeof(part) > 500_000


def test_arrays_of_xarray():
    xr = pytest.importorskip("xarray")
    x = numbers()
    lazy = xr.DataArray(da.from_array(x, chunks=(7, 11)), dims=["row", "column"])
    reduced = lazy.reduce(wf.sum, dim="row")
    assert isinstance(reduced.data, da.Array) and same(reduced.data, wf.sum(x, axis=0))
    assert isinstance(wf.sum(lazy), da.Array) and same(wf.sum(lazy), wf.sum(x))
    # One that is not lazy is not.
    assert wf.sum(lazy.compute()) == wf.sum(x)


@pytest.mark.parametrize("partitions", [1, 4, 13])
def test_groups_of_data_frames(partitions):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pd.DataFrame({"key": np.random.default_rng(0).integers(0, 5, 3000), "price": numbers().ravel()})
    frame = dd.from_pandas(table, npartitions=partitions)
    assert wf.sum(frame.price).compute() == wf.sum(table.price)
    for op, words in [("sum", {}), ("var", {"ddof": 1}), ("max", {})]:
        groups = frame.groupby("key").price.agg(wd.aggregation(op, **words)).compute().sort_index()
        expected = [wf.reduce(table.price[table.key == key], op, **words) for key in range(5)]
        assert groups.index.tolist() == list(range(5)) and groups.tolist() == expected
    shuffled = frame.groupby("key").agg({"price": wd.aggregation("mean")}, split_out=2).compute().sort_index()
    assert shuffled.price.tolist() == list(wf.groupby(table.key, table.price, "mean")[1])
    with pytest.raises(ValueError, match="argmax"):
        wd.aggregation("argmax")


@pytest.mark.parametrize("op", ["sum", "mean", "var", "max", "count_nonzero"])
def test_groups_of_flox(op):
    flox, wx = pytest.importorskip("flox"), pytest.importorskip("warpfold.flox")
    x, by = numbers((3, 100)), np.random.default_rng(0).integers(0, 4, 100)
    expected = [[wf.reduce(row[by == group], op) for group in range(4)] for row in x]
    answers, _ = flox.groupby_reduce(x, by, func=wx.aggregation(op))
    assert np.array_equal(answers, expected)
    for method in ["map-reduce", "cohorts", None]:
        lazy, _ = flox.groupby_reduce(da.from_array(x, chunks=(2, 13)), by, func=wx.aggregation(op), method=method)
        assert isinstance(lazy, da.Array) and np.array_equal(lazy.compute(), expected), method


def lost(block, mark):
    """A worker that is lost with the first block that has this mark."""
    if block[0, 0] == mark[0] and not os.path.exists(mark[1]):
        open(mark[1], "w").close()
        os._exit(1)
    return block


def test_two_workers_and_one_that_is_lost(tmp_path):
    distributed = pytest.importorskip("distributed")
    x = numbers()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, distributed.Client(cluster):
        lazy = da.from_array(x, chunks=(7, 11))
        for op in ["sum", "var", "argmax", "prod"]:
            assert same(wf.reduce(lazy, op), wf.reduce(x, op)), op
        assert same(wf.mean(lazy, axis=1), wf.mean(x, axis=1))
        mark = (x[28, 22], str(tmp_path / "lost"))
        halting = lazy.map_blocks(lost, mark, dtype=float, meta=np.empty((0, 0)))
        assert same(wf.sum(halting), wf.sum(x))
        assert os.path.exists(mark[1])


def test_functions_travel():
    assert pickle.loads(pickle.dumps(wd.sum)) is wd.sum
