"""Segments of arrays, against a call for each segment."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import warpfold as wf

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
OPS = ["sum", "mean", "var", "std", "norm1", "norm2", "count", "argmin", "min", "max", "minmax", "prod", "logsumexp", "any"]


def same(a, b):
    return np.asarray(a).tobytes() == np.asarray(b).tobytes() and np.asarray(a).dtype == np.asarray(b).dtype


def alone(x, op, **words):
    """The answers to one operation, or why there is none."""
    try:
        return wf.reduce(x, [op], **words)[op]
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


@hypothesis.given(st.data())
def test_any_segments_have_the_bits_of_their_elements_alone(data):
    kind, op = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(OPS))
    n = data.draw(st.integers(0, 300))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = random.integers(0, 256, n * np.dtype(kind).itemsize, "uint8").view(kind) if kind != "bool" else random.random(n) < 0.5
    step = data.draw(st.sampled_from([1, 1, 2, -1, -3]))
    x = x[::step]
    n = len(x)
    form = data.draw(st.sampled_from(["offsets", "lengths", "windows", "length"]))
    width = data.draw(st.sampled_from(["int32", "int64", "uint32", "uint64", "int16", "uint16"]))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=12)))
    if form == "offsets":
        words = {"offsets": np.array(cuts or [0], width)}
        spans = list(zip(cuts, cuts[1:]))
    elif form == "lengths":
        cuts = [0, *cuts, n]
        words = {"lengths": np.diff(cuts).astype(width)}
        spans = list(zip(cuts, cuts[1:]))
    elif form == "windows":
        pairs = data.draw(st.lists(st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted), max_size=8))
        words = {"starts": [a for a, _ in pairs], "stops": [b for _, b in pairs]}
        spans = [tuple(pair) for pair in pairs]
    else:
        length = data.draw(st.sampled_from([k for k in range(1, n + 1) if n % k == 0] or [1]))
        words = {"length": length}
        spans = [(i, i + length) for i in range(0, n, length)]
    nan = data.draw(st.sampled_from([None, "omit", "raise"])) if kind.startswith("float") else None
    expected = [alone(x[a:b], op, nan=nan) for a, b in spans]
    refused = [answer for answer in expected if isinstance(answer, type)]
    if refused and issubclass(refused[0], TypeError):
        # A refusal of the operation.
        with pytest.raises(refused[0]):
            wf.segments(x, op, nan=nan, **words)
        return
    if refused:
        first = next(i for i, answer in enumerate(expected) if isinstance(answer, type))
        with pytest.raises(refused[0], match=f"^segment {first}: "):
            wf.segments(x, op, nan=nan, **words)
        return
    got = wf.segments(x, op, nan=nan, **words)
    if not spans:
        assert len(got[0] if op == "minmax" else got) == 0
    elif op == "minmax":
        assert same(got[0], np.array([a for a, _ in expected])) and same(got[1], np.array([b for _, b in expected]))
    else:
        assert isinstance(got, np.ndarray) and same(got, np.array(expected))


def test_several_operations_share_a_pass_and_come_by_name():
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    got = wf.segments(x, ["sum", "argmax"], offsets=[0, 3, 5])
    assert got["sum"].tolist() == [8.0, 6.0] and got["argmax"].tolist() == [2, 1]
    assert got["argmax"].dtype == np.int64
    with pytest.raises(ValueError, match="twice"):
        wf.segments(x, ["sum", "sum"], length=5)


def test_a_dot_product_takes_a_second_array():
    x, y = np.arange(6.0), np.arange(6.0)[::-1]
    assert wf.segments(x, "dot", y=y, length=2).tolist() == [wf.dot(x[i : i + 2], y[i : i + 2]) for i in (0, 2, 4)]
    with pytest.raises(ValueError):
        wf.segments(x, "dot", y=y[:4], length=2)
    with pytest.raises(TypeError):
        wf.segments(x, "dot", length=2)
    with pytest.raises(TypeError):
        wf.segments(x, "sum", y=y, length=2)


def test_an_initial_value_takes_part_in_each_segment():
    x = np.array([5, 7], "int32")
    with pytest.raises(ValueError, match="^segment 1: max of no elements"):
        wf.segments(x, "max", offsets=[0, 2, 2])
    assert wf.segments(x, "max", offsets=[0, 2, 2], initial=-1).tolist() == [7, -1]
    assert wf.segments(x, "sum", offsets=[0, 2, 2], initial=100).tolist() == [112, 100]
    assert wf.segments(x.astype("float32"), "min", offsets=[0, 0], initial=0.1)[0] == np.float32(0.1)
    with pytest.raises(TypeError, match="initial"):
        wf.segments(x, "sum", offsets=[0, 2], initial=0.5)
    with pytest.raises(ValueError, match="initial"):
        wf.segments(x, "mean", offsets=[0, 2], initial=1)


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        ({"offsets": [0, 3, 2]}, ValueError, "segment 1"),
        ({"offsets": [0, 6]}, ValueError, "segment 0"),
        ({"offsets": [-1, 2]}, ValueError, "segment 0"),
        ({"offsets": []}, ValueError, "offset"),
        ({"offsets": [0.0, 5.0]}, TypeError, "offsets must be integers"),
        ({"offsets": np.zeros((2, 2), int)}, TypeError, "shape"),
        ({"offsets": [True, False]}, TypeError, "bool"),
        ({"offsets": ["a"]}, TypeError, "str"),
        ({"lengths": [2, 2]}, ValueError, "5"),
        ({"lengths": [6, -1]}, ValueError, "segment"),
        ({"starts": [0], "stops": [1, 2]}, ValueError, "stops"),
        ({"starts": [3], "stops": [2]}, ValueError, "segment 0"),
        ({"starts": [0]}, TypeError, "one way"),
        ({"length": 2}, ValueError, "5"),
        ({"length": 0}, ValueError, "0"),
        ({"length": -1}, ValueError, "length must be at least 0"),
        ({}, TypeError, "one way"),
        ({"length": 5, "offsets": [0, 5]}, TypeError, "one way"),
        ({"length": 5, "device": "cuda:63"}, RuntimeError, "hint: "),
        ({"length": 5, "nan": "no"}, ValueError, "policy"),
    ],
)
def test_what_does_not_fit_is_said(words, error, text):
    with pytest.raises(error, match=text):
        wf.segments(np.arange(5.0), "sum", **words)


def test_what_holds_no_column_is_refused():
    with pytest.raises(ValueError, match="one axis"):
        wf.segments(np.ones((2, 2)), "sum", length=1)
    with pytest.raises(TypeError):
        wf.segments(["a"], "sum", length=1)
    with pytest.raises(ValueError, match="there are sum"):
        wf.segments([1], "summ", length=1)


def test_totals_that_do_not_fit_are_overflow_errors():
    with pytest.raises(OverflowError, match="^segment 1: sum is 9223372036854775808"):
        wf.segments(np.array([1, 2**63 - 1, 1]), "sum", lengths=[1, 2])
    assert wf.segments(np.array([1, 2**63 - 1, 1]), "sum", lengths=[1, 2], dtype=float).tolist() == [1.0, 2.0**63]


def test_answers_are_of_the_callers_library():
    assert wf.segments([1, 2, 3], "sum", lengths=[1, 2]) == [1, 5]
    pa = pytest.importorskip("pyarrow")
    column = pa.array([1.0, None, 3.0, 4.0])
    for x in [column, pa.chunked_array([column[:1], column[1:3], column[3:]])]:
        got = wf.segments(x, ["sum", "argmax", "count"], offsets=pa.array([0, 2, 4], pa.uint32()))
        assert isinstance(got["sum"], pa.Array) and got["sum"].to_pylist() == [1.0, 7.0]
        # Rows without a value count as positions.
        assert got["argmax"].to_pylist() == [0, 1] and got["count"].to_pylist() == [1, 2]
    with pytest.raises(ValueError, match="no value"):
        wf.segments(column, "sum", offsets=pa.array([0, None]))
    pl = pytest.importorskip("polars")
    got = wf.segments(pl.Series([1, 2, None], dtype=pl.Int8), "sum", length=3)
    assert isinstance(got, pl.Series) and got.to_list() == [3]
    pd = pytest.importorskip("pandas")
    got = wf.segments(pd.Series([1.0, 2.0]), "mean", length=1)
    assert isinstance(got, np.ndarray) and got.tolist() == [1.0, 2.0]
    torch = pytest.importorskip("torch")
    got = wf.segments(torch.arange(4.0), "sum", offsets=torch.tensor([0, 1, 4]))
    assert isinstance(got, torch.Tensor) and got.tolist() == [0.0, 6.0]


LONG = 80_000_000


@pytest.fixture(scope="module")
def long():
    """More bytes than are reduced between two looks for signals."""
    x = np.zeros(LONG, "int8")
    x[::7919] = 3
    x[LONG - 5 :] = -100
    return x


@pytest.mark.parametrize("width", ["uint16", "int32", "uint32", "int64", "uint64"])
def test_long_arrays_have_the_bits_of_one_pass(long, width):
    cuts = np.array([0, 5, 5, 70_000_000, 70_000_001, 70_400_000, LONG]) if width != "uint16" else np.array([0, 9, 9, 60_000])
    random = np.random.default_rng(1)
    cuts = np.sort(np.concatenate([cuts, random.integers(0, cuts[-1], 1000)]))
    expected = [(int(long[a:b].sum(dtype="i8")), int(b - a)) for a, b in zip(cuts, cuts[1:])]
    forms = [{"offsets": cuts.astype(width)}, {"starts": cuts[:-1].astype(width), "stops": cuts[1:].astype(width)}]
    if cuts[-1] == LONG:
        forms.append({"lengths": np.diff(cuts).astype(width)})
        forms.append({"offsets": np.repeat(cuts, 2).astype(width)[::2]})
    for words in forms:
        got = wf.segments(long, ["sum", "count"], **words)
        assert list(zip(got["sum"].tolist(), got["count"].tolist())) == expected
    full = wf.segments(long, ["max", "argmax"], lengths=[LONG]), wf.reduce(long, ["max", "argmax"])
    assert {name: int(x[0]) for name, x in full[0].items()} == {name: int(x) for name, x in full[1].items()}


def test_long_arrays_in_segments_of_one_length(long):
    for length in [16, 1000, LONG // 2, LONG]:
        got = wf.segments(long, "sum", length=length)
        assert np.array_equal(got, long.reshape(-1, length).sum(axis=1, dtype="i8"))
    for length in [1000, LONG]:
        products = wf.segments(long, "dot", y=long, length=length)
        assert np.array_equal(products, [wf.sumsq(row) for row in long.reshape(-1, length)])


def test_errors_of_long_arrays_name_the_segment_of_all(long):
    half = LONG // 2
    with pytest.raises(ValueError, match="^segment 3: max of no elements"):
        wf.segments(long, "max", offsets=[0, half, LONG - 20, LONG, LONG])
    with pytest.raises(ValueError, match="^segment 2 "):
        wf.segments(long, "sum", offsets=[0, half, LONG - 20, LONG + 1])
    with pytest.raises(ValueError, match="^segment 3 "):
        wf.segments(long, "sum", offsets=[0, half, LONG - 5, LONG, LONG - 7])
    with pytest.raises(ValueError, match="^segment 1 "):
        wf.segments(long, "sum", offsets=np.array([0, LONG, 2**64 - 1], "uint64"))
    with pytest.raises(ValueError):
        wf.segments(long, "sum", lengths=[half, half + 1])
    with pytest.raises(ValueError):
        wf.segments(long, "sum", lengths=[half, half - 1])
    with pytest.raises(ValueError, match="^segment 0 "):
        wf.segments(long, "sum", lengths=[LONG + 5, -5])
    with pytest.raises(ValueError, match="^segment 2 "):
        wf.segments(long, "sum", starts=[0, 0, 7], stops=[LONG, LONG, 3])
    with pytest.raises(ValueError):
        wf.segments(long, "sum", length=LONG - 1)
    with pytest.raises(ValueError, match="^segment 1: "):
        x = np.ones(40_000_000, "f4")
        x[-1] = np.nan
        wf.segments(x, "sum", offsets=[0, 1, 40_000_000], nan="raise")
    with pytest.raises(OverflowError, match="^segment 1: sum is"):
        x = np.full(20_000_000, 2**62)
        wf.segments(x, "sum", offsets=[0, 1, 20_000_000])
    assert wf.segments(long, "max", offsets=[0, half, half, LONG], initial=-7).tolist() == [3, -7, 3]
