"""Columns by Arrow's C interface: nulls are missing values."""

import numpy as np
import pytest
import warpfold as wf

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"])
def test_nulls_of_every_type_are_left_out(kind):
    values = np.array([5, 1, 4], kind)
    column = pa.array([values[0], None, values[1], values[2], None], getattr(pa, kind)())
    assert wf.sum(column) == 10
    assert wf.mean(column) == pytest.approx(10 / 3, rel=1e-3)
    assert wf.argmax(column) == 0
    assert wf.argmin(column) == 2
    assert wf.count(column) == 3
    assert wf.sum(column[1:4]) == 5


def test_truth_values_and_columns_in_pieces():
    assert wf.sum(pa.array([True, None, True])) == 2
    pieces = pa.chunked_array([[1.0, 2.0], [], [None, 7.0], [3.0]])
    assert wf.sum(pieces) == 13
    assert wf.argmax(pieces) == 3
    assert wf.max(pieces, keepdims=True) == [7.0]
    assert wf.sum(pa.chunked_array([], pa.int32())) == 0
    assert np.isnan(wf.mean(pa.array([], pa.float32())))
    with pytest.raises(ValueError, match="no value"):
        wf.min(pa.array([None], pa.int8()))


def test_tables_are_reduced_column_by_column():
    table = pa.table({"a": [1, 2, None], "b": [0.5, 0.25, 1.0]})
    assert wf.sum(table, axis=0) == {"a": 3, "b": 1.75}
    assert wf.reduce(table, ["sum", "max"], axis=0) == {"sum": {"a": 3, "b": 1.75}, "max": {"a": 2, "b": 1.0}}
    with pytest.raises(TypeError, match="hint: say axis=0"):
        wf.sum(table, axis=())
    assert wf.sum(table.select(["b"])) == 1.75
    with pytest.raises(TypeError) as error:
        wf.sum(pa.table({"a": [1], "text": ["x"]}), axis=0)
    assert any("text" in note for note in error.value.__notes__)


@pytest.mark.parametrize("column", [pa.array(["a"]), pa.array([None]), pa.array([[1], [2]]), pa.array([1, 2], pa.timestamp("s"))], ids=lambda c: str(c.type))
def test_what_holds_no_numbers_is_a_type_error(column):
    with pytest.raises(TypeError, match="hint"):
        wf.sum(column)


def test_dot_leaves_incomplete_pairs_out():
    assert wf.dot(pa.array([1.0, None, 3.0]), pa.array([2.0, 5.0, 4.0])) == 14
    with pytest.raises(ValueError, match="differ"):
        wf.dot(pa.array([1.0]), pa.array([2.0, 5.0]))


def test_polars():
    polars = pytest.importorskip("polars")
    assert wf.sum(polars.Series([1, None, 3])) == 4
    frame = polars.DataFrame({"a": [1.5, 2.5], "b": [1, None]})
    assert wf.mean(frame, axis=0) == {"a": 2.0, "b": 1.0}


def test_a_producer_that_fails_or_lies():
    class Fails:
        def __arrow_c_array__(self):
            raise LookupError("mine")

    class Lies:
        def __init__(self, gives):
            self.gives = gives

        def __arrow_c_stream__(self):
            return self.gives

    with pytest.raises(LookupError, match="mine"):
        wf.sum(Fails())
    for gives in [None, 3, pa.array([1]).__arrow_c_array__()[0]]:
        with pytest.raises((TypeError, ValueError)):
            wf.sum(Lies(gives))
    stream = pa.chunked_array([[1, 2]]).__arrow_c_stream__()
    assert wf.sum(Lies(stream)) == 3
    with pytest.raises(ValueError, match="used up"):
        wf.sum(Lies(stream))


def test_a_stream_that_fails_midway():
    def batches():
        yield pa.record_batch({"a": [1.0]})
        raise OSError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.float64())]), batches())
    with pytest.raises(ValueError, match="the disk is gone"):
        wf.sum(reader)


def test_nothing_of_what_came_is_kept():
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    for _ in range(50):
        column = pa.array(np.arange(10_000.0))
        wf.sum(column)
        try:
            wf.sum(column, axis=4)
        except (ValueError, IndexError):
            pass
        del column
    assert pool.bytes_allocated() <= before
