"""Files: opened lazily, streamed, and with errors that name them."""

import datetime
import fractions
import os
import pathlib
import pickle
import statistics
import subprocess
import sys
import textwrap
from decimal import Decimal as D

import numpy as np
import pytest
import warpfold as wf


@pytest.fixture
def npy(tmp_path):
    x = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "x.npy", x)
    return tmp_path / "x.npy"


def test_arrays_of_files(npy):
    for path in [npy, str(npy)]:
        opened = wf.open(path)
        assert wf.sum(opened) == 66 and type(wf.sum(opened)) is float
        assert wf.sum(opened, axis=0).tolist() == [12, 15, 18, 21]
        assert wf.reduce(opened, ["min", "argmax"]) == {"min": 0, "argmax": 11}
        assert wf.max(opened, axis=1, keepdims=True).shape == (3, 1)
    assert repr(wf.open(npy)) == f'warpfold.open("{npy}")'
    with open(npy, "rb") as file:
        assert wf.sum(wf.open(file)) == 66
        file.read(3)
        with pytest.raises(ValueError, match="seek"):
            wf.open(file)
    partial = wf.Partial("sum")
    partial.absorb(wf.open(npy))
    assert partial.finish() == 66


def test_answers_about_decimals_dates_and_times_are_what_they_count(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    prices, days = [D("0.05"), D("-7.10"), D("99.99"), None], [datetime.date(2024, 1, day) for day in (3, 1, 2, 9)]
    table = pa.table({"price": pa.array(prices, pa.decimal128(12, 2)), "day": pa.array(days), "at": pa.array([5, 7, 6, 8], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t.parquet")
    price, day, at = (wf.open(tmp_path / "t.parquet", columns=name) for name in ["price", "day", "at"])
    assert wf.sum(price) == D("92.94") and type(wf.sum(price)) is D
    assert wf.minmax(price) == (D("-7.10"), D("99.99")) and wf.norm1(price) == D("107.14") and wf.range(price) == D("107.09")
    assert wf.mean(price) == 92.94 / 3 and wf.sum(price, dtype="float64") == 92.94
    assert wf.argmax(price) == 2 and wf.count(price) == 3
    assert wf.reduce(price, ["sum", "max"]) == {"sum": D("92.94"), "max": D("99.99")}
    out = np.zeros((), "float32")
    assert wf.sum(price, dtype="float32", out=out) is out and out == np.float32(92.94)
    with pytest.raises(TypeError, match="(?s)decimals are no integers.*float64"):
        wf.sum(price, out=np.zeros((), "int64"))
    assert wf.min(day) == datetime.date(2024, 1, 1) and wf.max(at) == datetime.datetime(1970, 1, 1, 0, 0, 0, 8)
    stats = wf.stats(tmp_path / "t.parquet", columns=["price", "day"])
    assert (stats["price"]["sum"], stats["price"]["min"]) == (D("92.94"), D("-7.10"))
    assert stats["price"]["std"] == statistics.pstdev(map(fractions.Fraction, prices[:3]))
    assert stats["day"]["max"] == datetime.date(2024, 1, 9)
    partial = wf.Partial("sum")
    partial.absorb(price)
    assert partial.finish() == D("92.94") == pickle.loads(pickle.dumps(partial + partial)).finish() / 2


def test_columns_of_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,text\n1,0.5,x\n2,,y\n3,1.5,z\n")
    assert wf.sum(wf.open(path, columns="a")) == 6
    assert wf.sum(wf.open(path, columns=2)) == 2
    assert wf.sum(wf.open(path, columns=["a", "b"])) == {"a": 6, "b": 2}
    assert wf.open(path, columns=["a", "b"]).names == ["a", "b"]
    with pytest.raises(OSError, match='columns="NAME"') as error:
        wf.open(path)
    assert isinstance(error.value, wf.FileError) and isinstance(error.value, ValueError)
    with pytest.raises(wf.FileError, match="there is no column"):
        wf.open(path, columns="c")
    for columns in [0, -1, 1.5, [None]]:
        with pytest.raises((ValueError, TypeError)):
            wf.open(path, columns=columns)


def test_statistics_of_files(npy, tmp_path):
    assert wf.stats(npy) == {
        "count": 12, "sum": 66.0, "mean": 5.5, "std": wf.std(np.arange(12.0)), "min": 0.0, "max": 11.0,
        "argmin": 0, "argmax": 11, "count_nan": 0, "missing": 0,
    }
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,0.5\n2,\n")
    got = wf.stats(path)
    assert list(got) == ["a", "b"] and got["a"]["sum"] == 3 and got["b"]["missing"] == 1
    np.savez(tmp_path / "z.npz", u=np.arange(3), v=np.array([]))
    got = wf.stats(tmp_path / "z.npz")
    assert got["u"]["max"] == 2 and got["v"]["min"] is None
    assert wf.sum(wf.open(f"{tmp_path / 'z.npz'}:u")) == 3


def test_raw_bytes(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(np.arange(6, dtype=">i2").tobytes())
    assert wf.sum(wf.open(path, dtype="int16", endian="big")) == 15
    assert wf.sum(wf.open(path, dtype="int16", endian="big", shape=(2, 3)), axis=1).tolist() == [3, 12]
    for words in [dict(format="no"), dict(endian="middle"), dict(delimiter="::")]:
        with pytest.raises(ValueError):
            wf.open(path, **words)


def test_files_that_cannot_be_read(tmp_path, npy):
    with pytest.raises(FileNotFoundError) as error:
        wf.open(tmp_path / "none.npy")
    assert error.value.filename == str(tmp_path / "none.npy")
    with pytest.raises(OSError):
        wf.open(tmp_path)
    npy.write_bytes(npy.read_bytes()[:-4])
    with pytest.raises(OSError, match="x.npy"):
        wf.sum(wf.open(npy))
    for path in [5, None, object(), b"\0"]:
        with pytest.raises((TypeError, ValueError, OSError)):
            wf.open(path)
    (tmp_path / "e.csv").write_text("a\n1\nx\n")
    with pytest.raises(OSError, match="e.csv"):
        wf.sum(wf.open(tmp_path / "e.csv", columns="a", na=[]))


def test_errors_of_reductions_name_the_file(npy):
    with pytest.raises(np.exceptions.AxisError):
        wf.sum(wf.open(npy), axis=5)
    np.save(npy, np.array([]))
    with pytest.raises(ValueError, match="x.npy: min of no elements"):
        wf.min(wf.open(npy))
    with pytest.raises(TypeError, match="where and initial"):
        wf.sum(wf.open(npy), initial=1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names")
def test_control_c_ends_a_reduction_of_a_file(tmp_path):
    path = tmp_path / "large.bin"
    with open(path, "wb") as file:
        file.truncate(40 << 30)
    script = textwrap.dedent(f"""
        import os, signal, threading, time, warpfold
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        began = time.monotonic()
        try:
            warpfold.logsumexp(warpfold.open({str(path)!r}, dtype="float32"))
        except KeyboardInterrupt:
            print("ended", time.monotonic() - began)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("ended"), done
    assert float(done.stdout.split()[1]) < 20


def test_memory_stays_small(tmp_path):
    resource = pytest.importorskip("resource")
    path = pathlib.Path(tmp_path / "large.bin")
    with open(path, "wb") as file:
        file.truncate(512 << 20)
    script = f"import resource, warpfold; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; warpfold.sum(warpfold.open({str(path)!r}, dtype='float64')); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert resource and int(done.stdout) < 64 << 10, done
