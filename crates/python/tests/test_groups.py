"""Groups, against a call for the rows of each key, and against pandas and Polars."""

import decimal
import fractions
import math
import pickle
import random as plain_random
import statistics
from decimal import Decimal

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import warpfold as wf

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
OPS = ["sum", "mean", "var", "norm1", "norm2", "count", "count_nan", "min", "max", "minmax", "prod", "any", "argmax"]


def bits(x):
    return np.asarray(x).dtype, np.asarray(x).tobytes()


def naive(keys, x, op, order, **words):
    """Keys and answers, a call for each; positions are those of the whole."""
    canonical = [None if k is None else "nan" if k != k else k + 0 if isinstance(k, float) else k for k in keys]
    groups = {}
    for row, key in enumerate(canonical):
        groups.setdefault(key, []).append(row)
    rank = lambda k: (2, 0) if k is None else (1, 0) if k == "nan" else (0, k)
    found = sorted(groups, key=rank) if order == "key" else list(groups)
    answers = []
    for key in found:
        rows = groups[key]
        answer = getattr(wf, op)(x[rows], **words)
        answers.append(np.int64(rows[int(answer)]) if op == "argmax" else answer)
    return [math.nan if k == "nan" else k for k in found], answers


@hypothesis.given(st.data())
def test_any_groups_have_the_bits_of_their_rows_alone(data):
    key_kind, kind = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from(KINDS))
    op, order = data.draw(st.sampled_from(OPS)), data.draw(st.sampled_from(["key", "first"]))
    if kind == "bool" and op in ("var", "norm1", "norm2", "prod"):
        op = "sum"
    n = data.draw(st.integers(1, 200))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    draw = lambda kind: random.random(n) < 0.5 if kind == "bool" else random.integers(0, 256, n * np.dtype(kind).itemsize, "uint8").view(kind)
    keys = draw(key_kind)
    if data.draw(st.booleans()):
        # Few keys, with NaNs and zeros of both signs.
        few = keys[: data.draw(st.integers(1, 5))].copy()
        if key_kind.startswith("float"):
            few = np.concatenate([few, np.array([np.nan, 0.0, -0.0], key_kind)])
        keys = few[random.integers(0, len(few), n)]
    x = draw(kind)
    if not kind.startswith("float") and op == "prod":
        x = x % 2
    if kind.startswith(("int", "uint")) and op in ("sum", "norm1") and kind.endswith("64"):
        x = x // 1000
    step = data.draw(st.sampled_from([1, 2, -1]))
    keys, x = keys[::step], x[::step]
    want_keys, want = naive(keys.tolist(), x, op, order)
    got_keys, got = wf.groupby(keys, x, op, order=order)
    assert got_keys.dtype == keys.dtype
    assert bits(got_keys) == bits(np.array(want_keys, keys.dtype)) or np.array_equal(got_keys, np.array(want_keys, keys.dtype), equal_nan=True)
    if op == "minmax":
        assert bits(got[0]) == bits([a for a, _ in want]) and bits(got[1]) == bits([b for _, b in want])
    else:
        assert bits(got) == bits(np.array(want))


def test_texts_are_keys_however_they_come():
    texts = ["b", "", "a", None, "b", "ä", None]
    x = np.arange(7.0) + 0.5
    want = {"": 1.5, "a": 2.5, "b": 5.0, "ä": 5.5, None: 10.0}
    columns = [texts, tuple(texts), np.array(texts, object)]
    pd, pl, pa = (pytest.importorskip(name) for name in ["pandas", "polars", "pyarrow"])
    columns += [pd.Series(texts), pd.Series(texts, dtype=object), pd.Series(texts, dtype="category")]
    columns += [pl.Series(texts), pl.Series(texts, dtype=pl.Categorical)]
    arrow = pa.array(texts)
    columns += [arrow, arrow.cast(pa.large_string()), pa.array(texts, pa.string_view()), arrow.dictionary_encode()]
    columns += [pa.chunked_array([arrow[:2], arrow[2:2], arrow[2:]]), pa.chunked_array([arrow.dictionary_encode()])]
    for column in columns:
        keys, sums = wf.groupby(column, x, "sum")
        as_list = keys if isinstance(keys, list) else keys.to_pylist() if isinstance(keys, pa.Array) else keys.to_list() if isinstance(keys, pl.Series) else keys.tolist()
        assert dict(zip(as_list, sums.tolist())) == want and as_list == list(want), type(column)
        keys, sums = wf.groupby(column, x, "sum", dropna=True)
        assert len(keys) == 4 and sums.tolist() == list(want.values())[:4]
        assert isinstance(keys, {list: list, tuple: list}.get(type(column), pl.Series if isinstance(column, pl.Series) else pa.Array if type(column).__module__.startswith("pyarrow") else np.ndarray))
    for column in [np.array(["b", "a", "b"]), pd.Series(["b", "a", "b"]).astype("string")]:
        keys, counts = wf.groupby(column, [1, 1, 1], "count")
        assert list(keys) == ["a", "b"] and counts == [1, 2]


def test_texts_that_are_whole_numbers_come_by_value():
    keys, _ = wf.groupby(["10", "9", "x", "-1"], [1, 2, 3, 4], "sum")
    assert keys == ["-1", "9", "10", "x"]


def test_nan_keys_are_one_group_or_none():
    keys = np.array([1.0, np.nan, -np.nan, 1.0, 0.0, -0.0], "float32")
    x = np.arange(6)
    got, sums = wf.groupby(keys, x, "sum")
    assert np.array_equal(got, np.array([0.0, 1.0, np.nan], "float32"), equal_nan=True) and sums.tolist() == [9, 3, 3]
    assert not np.signbit(got[0])
    got, sums = wf.groupby(keys, x, "sum", dropna=True)
    assert got.tolist() == [0.0, 1.0] and sums.tolist() == [9, 3]
    # Rows that are left out cannot fail.
    values = np.array([1.0, np.nan, np.nan, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="^group NaN|^group nan"):
        wf.groupby(keys, values, "sum", nan="raise")
    assert wf.groupby(keys, values, "sum", nan="raise", dropna=True)[1].tolist() == [7.0, 3.0]
    # Of several columns, one NaN leaves a row out.
    got, sums = wf.groupby((keys, [1, 1, 1, 2, 2, 2]), x, "sum", dropna=True)
    assert [k.tolist() if isinstance(k, np.ndarray) else k for k in got] == [[0.0, 1.0, 1.0], [2, 1, 2]] and sums.tolist() == [9, 0, 3]


def test_missing_keys_are_none_in_lists_and_null_in_arrow():
    keys, sums = wf.groupby([2, None, 1, None], [1, 2, 3, 4], "sum")
    assert keys == [1, 2, None] and sums == [3, 1, 6]
    assert wf.groupby([2, None, 1, None], [1, 2, 3, 4], "sum", dropna=True) == ([1, 2], [3, 1])
    assert wf.groupby([None, None], [1, 2], "sum") == ([None], [3])
    pa = pytest.importorskip("pyarrow")
    keys, sums = wf.groupby(pa.array([2, None, 1], pa.int16()), pa.array([1.0, None, 2.0]), ["sum", "min"])
    assert keys.type == pa.int16() and keys.to_pylist() == [1, 2, None]
    # No smallest of no values.
    assert sums["sum"].to_pylist() == [2.0, 1.0, 0.0] and sums["min"].to_pylist() == [2.0, 1.0, None]


def test_groups_without_an_answer():
    keys, x = [1, 1, 2], np.array([1.0, 3.0, np.nan])
    got = wf.groupby(keys, x, ["min", "argmin"], nan="omit")[1]
    assert got["min"][0] == 1.0 and np.isnan(got["min"][1])
    assert got["argmin"].dtype == object and got["argmin"].tolist() == [0, None]
    assert wf.groupby(keys, x.tolist(), "argmin", nan="omit")[1] == [0, None]


def test_several_columns_of_keys_and_of_values():
    region, year = ["n", "s", "n", "s"], np.array([1, 1, 2, 1])
    x, y = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 2, 3, 4])
    (regions, years), sums = wf.groupby((region, year), x, "sum")
    assert regions == ["n", "n", "s"] and years.tolist() == [1, 2, 1] and sums.tolist() == [1.0, 4.0, 10.0]
    keys, sums = wf.groupby({"region": region, "year": year}, {"x": x, "y": y}, ["sum", "max"])
    assert list(keys) == ["region", "year"] and sums["y"]["max"].tolist() == [1, 3, 4] and sums["x"]["sum"].tolist() == [1.0, 4.0, 10.0]
    for library in ["pandas", "polars", "pyarrow"]:
        module = pytest.importorskip(library)
        frame = (module.table if library == "pyarrow" else module.DataFrame)({"region": region, "year": year})
        keys, sums = wf.groupby(frame, x, "sum")
        assert list(keys["region"]) == ["n", "n", "s"] or keys["region"].to_pylist() == ["n", "n", "s"]
        assert sums.tolist() == [1.0, 4.0, 10.0]
        values = (module.table if library == "pyarrow" else module.DataFrame)({"x": x, "y": y})
        sums = wf.groupby(year, values, "sum")[1]
        assert list(sums) == ["x", "y"] and np.asarray(sums["x"]).tolist() == [11.0, 4.0]


def test_pandas_and_polars_have_the_same_groups():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    random = np.random.default_rng(8)
    keys, x = random.integers(-50, 50, 5000), random.integers(0, 1000, 5000).astype(float)
    got, found = wf.groupby(keys, x, ["sum", "mean", "min", "max", "count", "var"], ddof=1)
    want = pd.Series(x).groupby(keys).agg(["sum", "mean", "min", "max", "count", "var"])
    assert got.tolist() == want.index.tolist()
    for op in ["sum", "min", "max", "count"]:
        assert found[op].tolist() == want[op].tolist(), op
    assert np.allclose(found["mean"], want["mean"], rtol=1e-14) and np.allclose(found["var"], want["var"], rtol=1e-12)
    frame = pl.DataFrame({"k": keys, "x": x}).group_by("k", maintain_order=True).agg(pl.col("x").sum())
    got, sums = wf.groupby(pl.Series(keys), pl.Series(x), "sum", order="first")
    assert isinstance(got, pl.Series) and got.to_list() == frame["k"].to_list() and sums.to_list() == frame["x"].to_list()


def test_seams_of_columns_do_not_matter():
    pa = pytest.importorskip("pyarrow")
    draw = plain_random.Random(3)
    n = 1000
    keys = [draw.choice(["a", "b", None, "c"]) for _ in range(n)]
    x = [draw.choice([None, draw.random() * 10.0 ** draw.randrange(-200, 200)]) for _ in range(n)]

    def cut(items, kind):
        cuts = sorted(draw.randrange(n + 1) for _ in range(7))
        whole = pa.array(items, kind)
        return pa.chunked_array([whole[a:b] for a, b in zip([0, *cuts], [*cuts, n])], kind)

    ops = ["sum", "var", "argmax", "prod", "count"]
    want_keys, want = wf.groupby(pa.array(keys), pa.array(x), ops)
    for _ in range(20):
        got_keys, got = wf.groupby(cut(keys, pa.string()), cut(x, pa.float64()), ops)
        assert got_keys.equals(want_keys) and all(got[op].equals(want[op]) for op in ops)
        got_keys, got = wf.groupby(cut(keys, pa.string()), np.array([np.nan if v is None else v for v in x]), ops, nan="omit")
        assert all(np.array_equal(np.asarray(got[op]), np.asarray(want[op])) for op in ["sum", "argmax"])


def test_partials_of_any_split_have_the_bits_of_the_whole():
    random = np.random.default_rng(4)
    keys, x = random.choice(["a", "b", "c", "d"], 5000), random.standard_normal(5000) * 10.0 ** random.integers(-300, 300, 5000)
    ops = ["sum", "var", "argmax", "logsumexp"]
    want_keys, want = wf.groupby(keys, x, ops)
    whole = wf.GroupPartial(ops)
    whole.absorb(keys, x)
    parts = []
    for start in range(0, 5000, 777):
        part = wf.GroupPartial(ops)
        part.absorb(keys[start : start + 777], x[start : start + 777], start=start)
        parts.append(wf.GroupPartial.from_bytes(part.to_bytes()) if start % 2 else pickle.loads(pickle.dumps(part)))
    random.shuffle(parts)
    total = parts[0] + parts[1]
    for part in parts[2:-1]:
        total += part
    total.merge(parts[-1])
    assert total == whole and total.to_bytes() == whole.to_bytes() and len(total) == 4 and total.rows == 5000
    in_turn = wf.GroupPartial(ops)
    for start in range(0, 5000, 777):
        in_turn.absorb(keys[start : start + 777], x[start : start + 777])
    assert in_turn == whole
    got_keys, got = whole.finish()
    assert list(got_keys) == list(want_keys) and all(bits(got[op]) == bits(want[op]) for op in ops)
    again = pickle.loads(pickle.dumps(total))
    assert all(bits(again.finish()[1][op]) == bits(want[op]) for op in ops)


def test_partials_keep_what_was_asked():
    partial = wf.GroupPartial("var", order="first", dropna=True, nan="omit", ddof=1)
    assert len(partial) == 0 and partial.ops == ["var"] and "0 groups" in repr(partial)
    with pytest.raises(ValueError, match="absorbed nothing"):
        partial.finish()
    with pytest.raises(ValueError, match="absorbed nothing"):
        partial.to_bytes()
    partial.absorb(np.array([2.0, np.nan, 1.0, 2.0]), np.array([1.0, 5.0, 3.0, 2.0]))
    for one in [partial, pickle.loads(pickle.dumps(partial))]:
        keys, answers = one.finish()
        assert keys.tolist() == [2.0, 1.0] and answers[0] == 0.5 and np.isnan(answers[1])
    other = wf.GroupPartial("var")
    other.absorb(np.array([2.0]), np.array([1.0]))
    before = partial.to_bytes()
    for wrong in [other, wf.GroupPartial.from_bytes(other.to_bytes())]:
        with pytest.raises(ValueError, match="differ|operation"):
            partial.merge(wrong)
    with pytest.raises(ValueError, match="element type"):
        partial.absorb(np.array([2.0]), np.array([1], "int32"))
    with pytest.raises(ValueError, match="other columns"):
        partial.absorb((np.array([2.0]), [1]), np.array([1.0]))
    assert partial.to_bytes() == before
    with pytest.raises(ValueError):
        wf.GroupPartial.from_bytes(b"WARPFOLD" + before[8:40])
    with pytest.raises(ValueError):
        wf.GroupPartial.from_bytes(b"")


def test_no_rows_are_no_groups():
    keys, answers = wf.groupby(np.array([], "int32"), np.array([], "float32"), ["sum", "argmin"])
    assert keys.dtype == np.int32 and keys.shape == (0,) and answers["sum"].dtype == np.float32 and answers["argmin"].dtype == np.int64
    assert wf.groupby([], [], "sum") == ([], [])
    pa = pytest.importorskip("pyarrow")
    keys, answers = wf.groupby(pa.array([], pa.string()), pa.array([], pa.float64()), "sum")
    assert len(keys) == 0 and len(answers) == 0
    keys, answers = wf.groupby(pa.chunked_array([], pa.string()), pa.array([], pa.float64()), "sum")
    assert len(keys) == 0


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: wf.groupby([1, 2], [1.0], "sum"), ValueError, "1 row,.*2"),
        (lambda: wf.groupby(([1, 2], ["a"]), [1.0, 2.0], "sum"), ValueError, "1 row,.*2"),
        (lambda: wf.groupby(["a", 1], [1, 2], "sum"), TypeError, "among texts"),
        (lambda: wf.groupby([b"a"], [1], "sum"), TypeError, "decode"),
        (lambda: wf.groupby([1], ["a"], "sum"), TypeError, "str"),
        (lambda: wf.groupby(np.ones((2, 2)), [1, 2], "sum"), ValueError, "one axis"),
        (lambda: wf.groupby([1j], [1], "sum"), TypeError, "hint"),
        (lambda: wf.groupby("abc", [1], "sum"), TypeError, "path"),
        (lambda: wf.groupby(5, [1], "sum"), ValueError, "one axis"),
        (lambda: wf.groupby([1], [1], "sum", order="sorted"), ValueError, "order="),
        (lambda: wf.groupby([1], [1], "dot"), TypeError, "dot"),
        (lambda: wf.groupby([1], [1], "median"), ValueError, "there are sum"),
        (lambda: wf.groupby([1], [1], []), ValueError, "operation"),
        (lambda: wf.groupby([1], [1], "sum", device="cuda:99"), RuntimeError, "device"),
        (lambda: wf.groupby([1], ([1], [2]), "sum"), TypeError, "names"),
        (lambda: wf.groupby({}, [1], "sum"), ValueError, "column of keys"),
        (lambda: wf.groupby([1, 1], [2**63 - 1, 1], "sum"), OverflowError, "^group 1: sum is"),
    ],
)
def test_what_cannot_be_grouped_is_said(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_an_error_in_one_of_several_columns_names_it():
    with pytest.raises(OverflowError) as error:
        wf.groupby([1, 1], {"a": [1, 2], "b": [2**63 - 1, 1]}, "sum")
    assert any("'b'" in note or '"b"' in note for note in error.value.__notes__)


def test_dot_products_of_groups():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    assert wf.groupby([1, 2, 1], x, "dot", y=y)[1].tolist() == [22.0, 10.0]
    partial = wf.GroupPartial("dot")
    partial.absorb([1, 2, 1], x, y)
    assert partial.finish()[1].tolist() == [22.0, 10.0]


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    keys, sums = wf.groupby(torch.tensor([2, 1, 2]), torch.tensor([1.0, 2.0, 4.0]), "sum")
    assert isinstance(keys, torch.Tensor) and keys.tolist() == [1, 2] and sums.tolist() == [2.0, 5.0]


def sums(keys, **words):
    """Keys, as a list, and the sums of 1, 2, 4, ..."""
    found, answers = wf.groupby(keys, 2 ** np.arange(len(keys)), "sum", **words)
    return found, answers.tolist()


STEPS = ["D", "h", "m", "s", "ms", "us", "ns", "25s"]


@pytest.mark.parametrize("kind", ["datetime64", "timedelta64"])
@pytest.mark.parametrize("step", STEPS)
def test_times_of_numpy_are_keys(kind, step):
    keys = np.array([5, -3, 5, "NaT"], f"{kind}[{step}]")
    found, answers = sums(keys)
    assert found.dtype.kind == keys.dtype.kind
    assert (found[:2] == np.array([-3, 5], keys.dtype)).all() and np.isnat(found[2])
    assert answers == [2, 5, 8]
    assert sums(keys, dropna=True)[1] == [2, 5]
    assert sums(keys[::-1][1:])[1] == [2, 5]


def test_steps_that_no_key_has_are_an_error():
    for keys in (np.array([1], "datetime64[ps]"), np.array([1], "timedelta64[M]")):
        with pytest.raises(TypeError, match="hint: cast the keys"):
            sums(keys)
    with pytest.raises(TypeError, match="hint: reduce the integers"):
        wf.groupby([1], np.array([1], "datetime64[us]"), "max")


def test_times_of_python_are_keys():
    import datetime as dt

    tokyo = dt.timezone(dt.timedelta(hours=9))
    for keys in (
        [dt.date(2024, 1, 1), dt.date(1969, 12, 31), dt.date(2024, 1, 1)],
        [dt.datetime(2024, 1, 1, 12, 0, 0, 7), dt.datetime(1600, 1, 1), dt.datetime(2024, 1, 1, 12, 0, 0, 7)],
        [dt.datetime(2024, 1, 1, tzinfo=tokyo), dt.datetime(1960, 1, 1, tzinfo=dt.timezone.utc), dt.datetime(2023, 12, 31, 15, tzinfo=dt.timezone.utc)],
        [dt.time(23, 59, 59, 999999), dt.time(), dt.time(23, 59, 59, 999999)],
        [dt.timedelta(1, 2, 3), dt.timedelta(-1), dt.timedelta(1, 2, 3)],
    ):
        assert sums(keys) == ([keys[1], keys[0]], [2, 5])
        assert sums(keys + [None]) == ([keys[1], keys[0], None], [2, 5, 8])
        found, answers = sums(np.array(keys + [None], object))
        assert answers == [2, 5, 8]
    with pytest.raises(TypeError, match="stands beside"):
        sums([dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)])
    with pytest.raises(TypeError, match="time zone"):
        sums([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=tokyo)])
    assert sums([np.datetime64("2024-01-01"), np.datetime64("2024-01-01T00:00:00"), None])[1] == [3, 4]


def test_times_of_pandas_are_keys():
    pd = pytest.importorskip("pandas")
    keys = pd.Series(pd.to_datetime(["2024-01-01 12:00", None, "2024-01-01 12:00", "1969-12-31 00:00"]))
    for unit in ("s", "us", "ns"):
        found, answers = sums(keys.dt.as_unit(unit))
        assert found.dtype == f"datetime64[{unit}]" and answers == [8, 5, 2]
        assert (found[:2] == np.array(["1969-12-31", "2024-01-01T12:00"], "datetime64[us]")).all()
    zoned = keys.dt.tz_localize("Europe/Berlin")
    found, answers = sums(zoned)
    assert found[1] == np.datetime64("2024-01-01T11:00") and answers == [8, 5, 2]
    assert sums(keys - keys[0])[1] == [8, 5, 2]
    assert sums(list(keys))[1] == [8, 5, 2]
    found, _ = sums(pd.DataFrame({"t": keys, "k": [1, 1, 1, 1]}))
    assert found["t"].dtype.kind == "M"


def test_times_of_arrow_and_polars_keep_their_types():
    import datetime as dt

    pa = pytest.importorskip("pyarrow")
    for of in (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.timestamp("us"), pa.timestamp("ns", "Asia/Tokyo"), pa.duration("ms")):
        keys = pa.array([86400000, None, 86400000, 0], pa.int64())
        keys = keys if of not in (pa.date32(), pa.time32("s")) else pa.array([7, None, 7, 0], pa.int32())
        keys = keys.cast(of)
        found, answers = wf.groupby(keys, pa.array([1, 2, 4, 8]), "sum")
        assert found.type == of and found.to_pylist() == [keys[3].as_py(), keys[0].as_py(), None]
        assert answers.to_pylist() == [8, 5, 2]
    pl = pytest.importorskip("polars")
    for of in (pl.Date, pl.Datetime("us"), pl.Datetime("ns", "Europe/Berlin"), pl.Time, pl.Duration("ms")):
        keys = pl.Series([7, None, 7, 0]).cast(pl.Int32 if of == pl.Date else pl.Int64).cast(of)
        found, answers = wf.groupby(keys, pl.Series([1, 2, 4, 8]), "sum")
        assert found.dtype == of and found.to_list() == [keys[3], keys[0], None]
        assert answers.to_list() == [8, 5, 2]
    day = pl.DataFrame({"day": [dt.date(2024, 1, 1)] * 2, "k": [1, 2]})
    found, _ = wf.groupby(day, [1.0, 2.0], "sum")
    assert found["day"].to_list() == [dt.date(2024, 1, 1)] * 2


def test_partials_of_times_merge_in_the_finer_unit():
    import datetime as dt

    coarse, fine = wf.GroupPartial("sum"), wf.GroupPartial("sum")
    coarse.absorb(np.array(["2024-01-01", "NaT"], "datetime64[s]"), np.array([1, 2]))
    fine.absorb(np.array(["2024-01-01", "2024-01-01T00:00:00.000000001"], "datetime64[ns]"), np.array([4, 8]), start=2)
    merged = wf.GroupPartial.from_bytes((coarse + fine).to_bytes()) + pickle.loads(pickle.dumps(wf.GroupPartial("sum")))
    keys, answers = (coarse + fine).finish()
    assert keys.dtype == "datetime64[ns]" and answers.tolist() == [5, 8, 2]
    # Without NumPy, ISO 8601 where Python has no nanoseconds.
    keys, answers = merged.finish()
    assert keys == ["2024-01-01T00:00:00", "2024-01-01T00:00:00.000000001", None]
    plain = wf.GroupPartial("sum")
    plain.absorb([1], [1])
    with pytest.raises(ValueError, match="different units.*\nhint"):
        coarse + plain
    days = wf.GroupPartial("sum")
    days.absorb([dt.date(2024, 1, 1)], [1])
    assert days.finish() == ([dt.date(2024, 1, 1)], [1])


def test_what_is_no_key_is_told_what_keys_are():
    pa = pytest.importorskip("pyarrow")
    for keys in ([object()], [1j], [b"x", 3], pa.array([[1]])):
        with pytest.raises(TypeError, match="hint: .*(keys are|decode the keys)"):
            wf.groupby(keys, [1], "sum")


@hypothesis.given(st.lists(st.none() | st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 6)), min_size=1, max_size=20))
def test_decimals_are_keys(rows):
    """By value, as Python's dictionaries have them, whatever their digits."""
    keys = [None if row is None else Decimal(row[0]).scaleb(-row[1]) for row in rows]
    expected = {}
    for row, key in enumerate(keys):
        expected[key] = expected.get(key, 0) + 2**row
    found, sums = wf.groupby(keys, [2**row for row in range(len(keys))], "sum")
    assert dict(zip(found, sums)) == expected and len(found) == len(expected)
    numbers = [key for key in found if key is not None]
    assert numbers == sorted(numbers)
    pa = pytest.importorskip("pyarrow")
    arrays = [pa.array(keys, pa.decimal128(28, 6)), pa.chunked_array([pa.array(keys[:3], pa.decimal128(30, 7)), pa.array(keys[3:], pa.decimal128(30, 7))])]
    for column in arrays:
        again, same = wf.groupby(column, [2**row for row in range(len(keys))], "sum")
        assert isinstance(again, pa.Array) and (again.to_pylist(), same) == (found, sums)
        assert again.type.scale == column.type.scale
    table, _ = wf.groupby(pa.table({"k": arrays[0]}), [0] * len(keys), "count")
    assert table["k"].to_pylist() == found


@hypothesis.given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1) | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 0, 7]), min_size=1, max_size=20), st.integers(0, 38), st.integers(0, 20))
def test_decimals_beyond_64_bits_are_values_and_keys(integers, digits, cut):
    """By integers and fractions of any size."""
    pa = pytest.importorskip("pyarrow")
    with decimal.localcontext(prec=100):
        rows = [None if i is None else Decimal(i).scaleb(-digits) for i in integers]
        column, here = pa.array(rows, pa.decimal128(38, digits)), [row for row in rows if row is not None]
        pieces = pa.chunked_array([column[:cut], column[cut:]])
        exact = [fractions.Fraction(row) for row in here]
        for x in [column, pieces]:
            assert wf.sum(x) == sum(here) and wf.norm1(x) == sum(map(abs, here)) and wf.count(x) == len(here)
            if here:
                assert wf.minmax(x) == (min(here), max(here)) and wf.argmin(x) == rows.index(min(here)) and wf.argmax(x) == rows.index(max(here))
                assert wf.mean(x) == float(statistics.mean(exact)) and wf.var(x) == float(statistics.pvariance(exact))
        partial = wf.Partial("sum")
        for piece in pieces.chunks:
            partial.absorb(piece)
        assert pickle.loads(pickle.dumps(partial)).finish() == sum(here)
        # As keys: of a list, of Arrow, in pieces.
        expected = {}
        for i, row in enumerate(rows):
            expected[row] = expected.get(row, 0) + 2**i
        for keys in [rows, column, pieces]:
            found, sums = wf.groupby(keys, [2**i for i in range(len(rows))], "sum")
            found = found.to_pylist() if isinstance(found, pa.Array) else found
            assert dict(zip(found, sums)) == expected and len(found) == len(expected)
            assert [key for key in found if key is not None] == sorted(set(here))


def test_decimal_keys_that_do_not_fit_say_so():
    pa = pytest.importorskip("pyarrow")
    for keys, told in [([Decimal(10) ** 40], "beyond 128 bits"), ([Decimal("1e-39")], "more than 38 digits"), ([Decimal(2) ** 90, Decimal("1e-20")], "beyond")]:
        with pytest.raises(ValueError, match=f"(?s){told}.*hint"):
            wf.groupby(keys, [1] * len(keys), "sum")
    with pytest.raises(TypeError, match="is no key"):
        wf.groupby([Decimal("NaN")], [1], "sum")
