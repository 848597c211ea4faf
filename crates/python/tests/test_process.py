"""What a process does beside reducing: imports, signals, threads, forks, interpreters."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import warpfold as wf


def run(script, timeout=120, **words):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=timeout, **words)
    assert done.returncode == 0, done
    return done.stdout


def interrupted(before, call):
    """A script that prints how long a call goes on after Ctrl-C."""
    return textwrap.dedent(f"""
        import os, signal, threading, time
        import numpy as np, warpfold
        {before}
        began = []
        def interrupt():
            time.sleep(0.5)
            began.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {call}
        except KeyboardInterrupt:
            print("ended", time.monotonic() - began[0])
    """)


def test_importing_imports_nobody():
    script = """
        import sys
        before = set(sys.modules)
        import warpfold
        others = {name.split(".")[0] for name in set(sys.modules) - before} - {"warpfold"}
        assert not others & {"numpy", "torch", "cupy", "pandas", "pyarrow"}, others
        print("alone")
    """
    assert run(script) == "alone\n"


def test_numpy_is_not_needed():
    script = """
        import sys, array
        sys.modules["numpy"] = None
        import warpfold as wf
        assert wf.sum([1.0, 2.0]) == 3.0
        assert wf.sum(array.array("f", [1, 2])) == 3.0
        assert wf.sum([[1, 2], [3, 4]], axis=0) == [4, 6]
        try:
            wf.sum([1.0], axis=1)
        except wf.AxisError as error:
            assert isinstance(error, ValueError) and isinstance(error, IndexError)
            print(error)
    """
    assert "axis 1 is out of range" in run(script)


def test_other_threads_run_while_one_reduces():
    x = np.zeros(8_000_000)
    ran, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            ran[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    time.sleep(0.05)
    before = ran[0]
    for _ in range(5):
        wf.var(x, threads=1)
    during = ran[0] - before
    stop.set()
    thread.join()
    assert during > 100


def test_sixteen_threads_at_once_have_the_same_bits():
    rows = [np.random.default_rng(i).standard_normal((50, 2000)) for i in range(16)]
    expected = [(wf.sum(x), wf.var(x, axis=0).tobytes(), wf.argmax(x)) for x in rows]
    failed = []

    def work(i):
        for _ in range(20):
            if (wf.sum(rows[i]), wf.var(rows[i], axis=0).tobytes(), wf.argmax(rows[i])) != expected[i]:
                failed.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed


def test_control_c_ends_a_long_reduction():
    script = """
        import os, signal, threading, time
        import numpy as np, warpfold
        x = np.broadcast_to(np.float32(1), (1 << 12, 1 << 12, 1 << 10))
        def interrupt():
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        for axis in (None, 0, (0, 2)):
            began = time.monotonic()
            try:
                warpfold.logsumexp(x, axis=axis)
            except KeyboardInterrupt:
                print("ended", time.monotonic() - began)
                break
    """
    words = run(script, timeout=300).split()
    assert words[0] == "ended" and float(words[1]) < 30


@pytest.mark.parametrize(
    "call",
    [
        # Windows that overlap: a terabyte is read.
        "warpfold.segments(x, 'logsumexp', starts=[0] * 20_000, stops=[x.size] * 20_000, threads=1)",
        "warpfold.segments(x, 'logsumexp', starts=range(0, 20_000), stops=range(x.size - 20_000, x.size), threads=1)",
        # One segment that is long.
        "warpfold.segments(np.broadcast_to(np.float32(1), 1 << 34), 'logsumexp', offsets=[0, 1 << 34], threads=1)",
        "warpfold.segments(np.broadcast_to(np.float32(1), 1 << 34), 'logsumexp', length=1 << 12, threads=1)",
        "warpfold.segments(np.broadcast_to(np.float32(1), 1 << 34), 'logsumexp', lengths=[1 << 20] * (1 << 14), threads=1)",
    ],
)
def test_control_c_ends_segments(call):
    words = run(interrupted("x = np.ones(1 << 24, np.float32)", call), timeout=60).split()
    assert words[0] == "ended" and float(words[1]) < 10


@pytest.mark.parametrize(
    "call",
    [
        # Rows that lie at one place: a hundred gigabytes are read.
        "warpfold.groupby(np.broadcast_to(np.uint32(7), 1 << 35), np.broadcast_to(np.float32(1), 1 << 35), ['sum', 'max'])",
        "warpfold.groupby(np.broadcast_to(np.uint32(7), 1 << 35), np.broadcast_to(np.float32(1), 1 << 35), 'sum', order='first')",
        "warpfold.GroupPartial('sum').absorb(np.broadcast_to(np.uint32(7), 1 << 35), np.broadcast_to(np.float32(1), 1 << 35))",
    ],
)
def test_control_c_ends_groups(call):
    after = """
        # What comes after works.
        keys, sums = warpfold.groupby([1, 2, 1], [1, 2, 4], "sum")
        assert (keys, sums) == ([1, 2], [5, 2])
    """
    words = run(interrupted("", call) + textwrap.dedent(after), timeout=60).split()
    assert words[0] == "ended" and float(words[1]) < 5


def test_other_signals_leave_groups_alone():
    script = """
        import os, signal, threading, time
        import numpy as np, warpfold
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
        keys, values = np.arange(1 << 23) % 1000, np.ones(1 << 23, "f4")
        stop = threading.Event()
        def disturb():
            while not stop.wait(0.01):
                os.kill(os.getpid(), signal.SIGUSR1)
        thread = threading.Thread(target=disturb)
        thread.start()
        for _ in range(5):
            found, counts = warpfold.groupby(keys, values, "count")
            assert found.tolist() == list(range(1000)) and counts.sum() == 1 << 23
        stop.set()
        thread.join()
        print(len(seen) > 0)
    """
    assert run(script) == "True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_reduces_on():
    script = """
        import os, warnings
        import numpy as np, warpfold
        warnings.simplefilter("ignore")
        x = np.random.default_rng(1).standard_normal(3_000_000)
        expected = warpfold.sum(x)
        child = os.fork()
        if child == 0:
            os._exit(0 if warpfold.sum(x) == expected and warpfold.var(x, axis=0) > 0 else 3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(script).strip() == "0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_fork_of_a_process_that_asked_for_cuda_has_none_and_does_not_hang():
    script = """
        import os, warnings
        import numpy as np, warpfold as wf
        warnings.simplefilter("ignore")
        def asked():
            try:
                wf.sum(np.ones(9), device="cuda:99")
            except RuntimeError as error:
                return str(error)
        assert "forked" not in asked()
        child = os.fork()
        if child == 0:
            x = np.ones(3_000_000)
            # What may choose a device chooses the CPU.
            right = "forked" in asked() and wf.sum(x) == 3_000_000 and 14.9 < wf.logsumexp(x * 0) < 15
            os._exit(0 if right else 3)
        assert "forked" not in asked()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    assert run(script).strip() == "0"


def test_other_interpreters_are_refused():
    names = {11: "_xxsubinterpreters", 12: "_xxsubinterpreters"}
    name = names.get(sys.version_info.minor, "_interpreters")
    script = f"""
        import {name} as interpreters
        import sys
        import warpfold
        other = interpreters.create()
        code = "import sys\\nsys.path[:] = {{!r}}\\ntry:\\n    import warpfold\\nexcept ImportError as error:\\n    print('refused')\\nelse:\\n    assert warpfold.sum([1.0]) == 1.0\\n    print('right')"
        error = interpreters.run_string(other, code.format(sys.path))
        assert error is None, error
        interpreters.destroy(other)
    """
    assert run(script).strip() in ("refused", "right")


def test_long_arrays_have_the_bits_of_one_pass():
    """Arrays are cut into pieces of 64 MiB between which signals are heard."""
    x = np.random.default_rng(3).standard_normal((3, 5_000_000)).astype("f4").reshape(3, 2500, 2000)
    wide = np.concatenate([x, x, x], axis=0)
    assert wide.nbytes > 2 * (64 << 20)
    parts = wf.Partial(["sum", "argmax", "var", "prod"])
    for row in wide:
        parts.absorb(row)
    expected = parts.finish()
    for view in [wide, wide.reshape(-1)]:
        got = wf.reduce(view, ["sum", "argmax", "var", "prod"])
        assert got == expected
    for view, axis in [(wide, 0), (wide, (0, 1)), (wide, 2), (wide.transpose(2, 0, 1), (1, 2)), (wide[::-1], 1)]:
        got, one = wf.sum(view, axis=axis), np.sum(view.astype("f8"), axis=axis)
        assert got.shape == one.shape and np.allclose(got, one, atol=0.05)
        assert np.array_equal(wf.argmax(view, axis=axis), np.argmax(view, axis=axis)) if not isinstance(axis, tuple) else True
    assert wf.argmin(wide.transpose(1, 2, 0)) == np.argmin(np.ascontiguousarray(wide.transpose(1, 2, 0)))
    assert wf.dot(wide, wide) == wf.sumsq(wide)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in KiB on Linux")
@pytest.mark.parametrize(
    "call",
    [
        "wf.reduce(x, ['var', 'argmax', 'sum', 'prod', 'logsumexp'])",
        "wf.sum(table, axis=0), wf.var(table, axis=1), wf.argmax(table.T, axis=0), wf.logsumexp(table, axis=0)",
        "wf.reduce(x[::-2], ['mean', 'norm2']), wf.nanmean(x)",
        "wf.dot(x, x[::-1])",
        "wf.segments(x, ['sum', 'max'], length=1000)",
        "p.absorb(x), p.absorb(x), p.finish()",
        "wf.count_nonzero(x == 1)",
    ],
)
def test_memory_beyond_the_array_is_small(call):
    """At most 64 MiB, of an array of 400 MB and what the expression itself makes."""
    script = f"""
        import resource, numpy as np, warpfold as wf
        x = np.ones(50_000_000)
        table, p = x.reshape(5000, -1), wf.Partial(["sum", "argmax"])
        made = 52 << 10 if "x == 1" in {call!r} else 0
        wf.sum(x[:10])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        {call}
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before - made)
    """
    assert int(run(script)) <= 64 << 10


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to such limits")
@pytest.mark.parametrize("call", ["wf.minmax(x, axis=1)", "wf.reduce(x, ['sum', 'max'], axis=1)", "wf.sum(memoryview(x), axis=1)", "wf.var(x, axis=1)"])
def test_answers_that_do_not_fit_are_memory_errors(call):
    run(f"""
        import resource
        import numpy as np
        import warpfold as wf
        x = np.broadcast_to(np.int8(1), (1 << 27, 2))
        wf.sum(x[:1 << 20], axis=1)
        held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + (600 << 20),) * 2)
        try:
            {call}
        except MemoryError:
            pass
        else:
            raise SystemExit("a gigabyte was within the limit")
    """)
