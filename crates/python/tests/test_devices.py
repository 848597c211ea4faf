"""Columns, pairs and pieces in a device's memory: segments, groups, dot products and partials, beside the same on the CPU.

What is said before a device is opened is tested everywhere, the rest where torch or CuPy have a CUDA device.
"""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
import warpfold as wf
from test_cuda_interface import Fake


def cuda_libraries():
    """The libraries with arrays on a device: how each takes an array of NumPy there, and gives it back."""
    try:
        import torch

        if torch.cuda.is_available():
            yield "torch", lambda x: torch.from_numpy(x).cuda(), lambda x: x.cpu().numpy()
    except ImportError:
        pass
    try:
        import cupy

        if cupy.cuda.runtime.getDeviceCount():
            yield "cupy", cupy.asarray, cupy.asnumpy
    except Exception:
        pass


LIBRARIES = list(cuda_libraries())
on_devices = pytest.mark.skipif(not LIBRARIES, reason="neither torch nor CuPy has a CUDA device")
each_library = pytest.mark.parametrize(("to", "back"), [library[1:] for library in LIBRARIES], ids=[library[0] for library in LIBRARIES])

KINDS = ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"]
OPS = ["sum", "mean", "var", "norm2", "min", "max", "minmax", "argmax", "count", "count_nonzero", "any", "logsumexp", "range"]


def drawn(kind, n, seed=1):
    random = np.random.default_rng(seed)
    if kind == "bool":
        return random.random(n) < 0.5
    if kind.startswith("float"):
        return (random.standard_normal(n) * 2.0 ** random.integers(-8, 8, n)).astype(kind)
    return random.integers(0 if kind.startswith("u") else -100, 100, n).astype(kind)


def said(call):
    """What a call answers, or the error that it raises."""
    try:
        return call()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


def same(got, want, back):
    """Whether answers on a device have type, shape and bits of those of NumPy, and lie there."""
    if isinstance(want, type):
        return got is want
    if isinstance(want, (tuple, list)):
        return len(got) == len(want) and all(same(a, b, back) for a, b in zip(got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(same(got[name], want[name], back) for name in want)
    assert not isinstance(got, (np.ndarray, np.generic, type)) and got.__dlpack_device__()[0] == 2, type(got)
    got = back(got)
    return got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: wf.segments(Fake(), "sum", length=3, device="cpu"), TypeError, "cannot read it"),
        (lambda: wf.segments(Fake(), "sum", length=3, device="sim"), TypeError, "cannot read it"),
        (lambda: wf.segments(Fake(shape=(3, 2)), "sum", length=3), ValueError, "one axis"),
        (lambda: wf.segments(Fake(), "sum", length=3, offsets=[0, 3]), TypeError, "one way"),
        (lambda: wf.segments(np.ones(3), "sum", offsets=Fake()), TypeError, "offsets must be integers in one axis, not float32"),
        (lambda: wf.segments(np.ones(3), "sum", lengths=Fake(typestr="|b1")), TypeError, "not bool"),
        (lambda: wf.segments(np.ones(3), "sum", starts=Fake(typestr="<i4", shape=(2, 2)), stops=[1]), TypeError, "of shape"),
        (lambda: wf.segments(Fake(typestr="<c8"), "sum", length=3), TypeError, "x.real"),
        (lambda: wf.groupby(Fake(), Fake(), "sum", device="cpu"), TypeError, "cannot read it"),
        (lambda: wf.groupby(Fake(), np.ones(3), "sum"), ValueError, "one place"),
        (lambda: wf.groupby([1, 2, 3], Fake(), "sum"), ValueError, "one place"),
        (lambda: wf.groupby((Fake(), [1, 2, 3]), Fake(), "sum"), ValueError, "one place"),
        (lambda: wf.groupby(Fake(), Fake(), "dot", y=np.ones(3)), ValueError, "one place"),
        (lambda: wf.groupby(Fake(), Fake(shape=(4,)), "sum"), ValueError, "4 rows.*3"),
        (lambda: wf.groupby(Fake(shape=(3, 1)), Fake(), "sum"), ValueError, "one axis"),
        (lambda: wf.GroupPartial("sum").absorb(Fake(), Fake()), TypeError, "no states on a device"),
        (lambda: wf.dot(Fake(), np.ones(3, "f4")), TypeError, "same place"),
        (lambda: wf.dot(Fake(), Fake(), device="cpu"), TypeError, "cannot read it"),
        (lambda: wf.dot(Fake(), Fake(), out=np.zeros(())), TypeError, "leave out out="),
        (lambda: wf.Partial("sum", device="cpu").absorb(Fake()), TypeError, "cannot read it"),
        (lambda: wf.Partial("sum", axis=1).absorb(Fake()), IndexError, "axis 1"),
        (lambda: wf.Partial("dot").absorb(Fake(), np.ones(3)), TypeError, "one place"),
    ],
)
def test_what_a_device_is_not_needed_for_is_said_without_one(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.skipif(bool(LIBRARIES), reason="there is a device")
@pytest.mark.parametrize(
    "call",
    [
        lambda x: wf.segments(x, "sum", length=1),
        lambda x: wf.segments(np.ones(3), "sum", offsets=x),
        lambda x: wf.groupby(x, x, "sum"),
        lambda x: wf.groupby(x, {"a": x, "b": x}, ["sum", "max"], dropna=True),
        lambda x: wf.dot(x, x),
        lambda x: wf.Partial("sum").absorb(x),
    ],
)
def test_without_a_device_that_is_the_error(call):
    with pytest.raises(RuntimeError, match="\nhint: "):
        call(Fake(shape=(0,), typestr="<i8"))


@on_devices
@each_library
@pytest.mark.parametrize("kind", KINDS)
def test_segments_have_the_bits_of_the_cpu(to, back, kind):
    x = drawn(kind, 3000)
    cuts = np.sort(np.concatenate([[0, 7, 7, 3000], np.random.default_rng(2).integers(0, 3000, 40)]))
    forms = [{"offsets": cuts}, {"offsets": cuts.astype("i4")}, {"starts": cuts[:-1], "stops": cuts[1:]}, {"length": 30}]
    forms.append({"lengths": np.diff(cuts)})
    for form in forms:
        there = {word: to(value) if isinstance(value, np.ndarray) else value for word, value in form.items()}
        for op in OPS:
            want = said(lambda: wf.segments(x, op, **form))
            # What tells the segments may lie in either memory.
            for words in [form, there]:
                got = said(lambda: wf.segments(to(x), op, **words))
                assert same(got, want, back), (op, kind, list(form))
    want = wf.segments(x, ["sum", "count"], length=30)
    assert same(wf.segments(to(x), ["sum", "count"], length=30), want, back)
    # Of an array on the host the segments may be told from a device: the answers are the array's.
    assert isinstance(wf.segments(x, "count", offsets=to(cuts)), np.ndarray)


@on_devices
@each_library
def test_the_words_of_segments(to, back):
    x = drawn("float32", 1000)
    x[::97] = np.nan
    calls = [
        dict(ops="max", offsets=[0, 10, 10, 1000], initial=0.5),
        dict(ops="sum", length=100, nan="omit"),
        dict(ops="sum", length=100, nan="raise"),
        dict(ops="var", length=100, ddof=1),
        dict(ops="mean", length=100, dtype="float64"),
        dict(ops="min", offsets=[0, 10, 10]),
        dict(ops="sum", offsets=[0, 2000]),
        dict(ops="sum", offsets=[0]),
        dict(ops="sum", lengths=[]),
    ]
    for words in calls:
        op = words.pop("ops")
        want = said(lambda: wf.segments(x, op, **words))
        assert same(said(lambda: wf.segments(to(x), op, **words)), want, back), words
    y = drawn("float32", 1000, 5)
    assert same(wf.segments(to(x), "dot", y=to(y), length=100), wf.segments(x, "dot", y=y, length=100), back)
    with pytest.raises(ValueError, match="host"):
        wf.segments(to(x), "dot", y=y, length=100)
    cuts = np.arange(0, 1001, 20)
    assert same(wf.segments(to(x), "sum", offsets=to(cuts)[::2]), wf.segments(x, "sum", offsets=cuts[::2]), back)
    large = np.full(8, 2**62)
    with pytest.raises(OverflowError, match="^segment 1: sum"):
        wf.segments(to(large), "sum", offsets=to(np.array([0, 1, 8])))
    with pytest.raises(ValueError, match="^segment 1"):
        wf.segments(to(x), "sum", offsets=to(np.array([0, 1, 1001])))
    # Views that kernels do not walk.
    assert same(wf.segments(to(x)[::3], "sum", length=2), wf.segments(x[::3], "sum", length=2), back)
    with pytest.raises(ValueError, match="^segment 1: min of no elements"):
        wf.segments(to(x[1:97]), "min", offsets=[0, 10, 10])


@on_devices
@each_library
@pytest.mark.parametrize("key_kind", ["int8", "int32", "int64", "uint8", "bool", "float32"])
def test_groups_have_the_bits_of_the_cpu(to, back, key_kind):
    keys = drawn(key_kind, 5000, 3)
    if key_kind == "float32":
        keys = np.round(keys)
    for kind in ["int32", "float16", "float32", "float64"]:
        x = drawn(kind, 5000)
        for op in [*OPS, ["sum", "argmin", "prod"]]:
            for order in ["key", "first"]:
                want = said(lambda: wf.groupby(keys, x, op, order=order))
                assert same(said(lambda: wf.groupby(to(keys), to(x), op, order=order)), want, back), (op, kind, order)


@on_devices
@each_library
def test_the_forms_of_groups(to, back):
    keys, other, x, y = drawn("int16", 2000), drawn("int8", 2000, 4) % 3, drawn("float32", 2000, 5), drawn("float32", 2000, 6)
    forms = [
        (lambda to: wf.groupby((to(keys), to(other)), to(x), "sum")),
        (lambda to: wf.groupby({"a": to(keys), "b": to(other)}, {"x": to(x), "y": to(y)}, ["max", "count"])),
        (lambda to: wf.groupby(to(keys), to(x), "dot", y=to(y))),
        (lambda to: wf.groupby(to(keys), to(x), "sum", dropna=True)),
        (lambda to: wf.groupby(to(y), to(x), "sum", dropna=True)),
        (lambda to: wf.groupby(to(keys)[::2], to(x)[::2], "mean", nan="omit")),
        (lambda to: wf.groupby(to(keys[:0]), to(x[:0]), "sum")),
    ]
    for form in forms:
        assert same(form(to), form(lambda x: x), back)
    hole = y.copy()
    hole[5] = np.nan
    assert same(wf.groupby(to(hole), to(x), "sum"), wf.groupby(hole, x, "sum"), back)
    with pytest.raises(ValueError, match="some keys on a device are NaN"):
        wf.groupby(to(hole), to(x), "sum", dropna=True)
    with pytest.raises(OverflowError, match="^group "):
        wf.groupby(to(keys), to(np.full(2000, 2**62)), "sum")


@on_devices
@each_library
def test_dot_products_and_partials(to, back):
    x, y = drawn("float32", 5000), drawn("float32", 5000, 7)
    assert same(wf.dot(to(x), to(y)), np.asarray(wf.dot(x, y)), back)
    table, other = x.reshape(50, 100), y.reshape(50, 100)
    assert same(wf.dot(to(table), to(other), axis=1), wf.dot(table, other, axis=1), back)
    here, there = wf.Partial(["sum", "argmax", "var"]), wf.Partial(["sum", "argmax", "var"])
    for part in [x[:1000], x[1000:]]:
        here.absorb(part)
        there.absorb(to(part))
    assert here.to_bytes() == there.to_bytes()
    # States of both memories merge.
    mixed = wf.Partial(["sum", "argmax", "var"])
    mixed.absorb(to(x[:1000]))
    mixed.absorb(x[1000:])
    assert mixed == here
    pair = wf.Partial("dot")
    pair.absorb(to(x), to(y))
    assert pair.finish() == wf.dot(x, y)


@on_devices
@each_library
def test_columns_are_read_behind_the_work_that_makes_them(to, back):
    """On a stream of the library's own, and with memory that is given back at once."""
    want = wf.segments(np.arange(1 << 20, dtype="f4") * 3, "sum", length=1 << 10)
    for _ in range(20):
        if to.__module__ == __name__:
            import torch

            with torch.cuda.stream(torch.cuda.Stream()):
                got = wf.segments(torch.arange(1 << 20, device="cuda", dtype=torch.float32) * 3, "sum", length=1 << 10)
        else:
            import cupy

            with cupy.cuda.Stream(non_blocking=True):
                got = wf.segments(cupy.arange(1 << 20, dtype="f4") * 3, "sum", length=1 << 10)
        assert same(got, want, back)


@on_devices
@each_library
def test_sixteen_threads_on_one_device(to, back):
    x, keys = drawn("float64", 1 << 16), drawn("int16", 1 << 16)
    there, at = to(x), to(keys)
    expected = wf.segments(x, "sum", length=64).tobytes(), wf.groupby(keys, x, "sum")[1].tobytes(), wf.var(x)
    failed = []

    def work():
        for _ in range(5):
            got = back(wf.segments(there, "sum", length=64)).tobytes(), back(wf.groupby(at, there, "sum")[1]).tobytes(), float(back(wf.var(there)))
            if got != expected:
                failed.append(got)

    threads = [threading.Thread(target=work) for _ in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed


@on_devices
def test_a_fork_after_the_use_of_a_device_is_an_error():
    script = """
        import os, warnings
        import numpy as np, warpfold as wf
        from test_devices import LIBRARIES
        warnings.simplefilter("ignore")
        x = LIBRARIES[0][1](np.ones(1 << 16))
        wf.sum(x)
        child = os.fork()
        if child == 0:
            for call in [lambda: wf.sum(x), lambda: wf.segments(x, "sum", length=2), lambda: wf.sum(np.ones(9), device="cuda")]:
                try:
                    call()
                except RuntimeError as error:
                    assert "forked" in str(error)
                else:
                    os._exit(3)
            os._exit(0 if wf.sum(np.ones(9)) == 9 else 4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120, cwd=__file__.rsplit("/", 1)[0])
    assert done.stdout == "0\n", done
