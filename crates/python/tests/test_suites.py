"""How the suites of others are run and judged."""

import pathlib
import sys
import textwrap

import pytest

SUITES = pathlib.Path(__file__).with_name("suites")
sys.path.insert(0, str(SUITES))

import exceptions  # noqa: E402
import parts  # noqa: E402

CHILD = """
    import json, pathlib, sys
    sys.path.insert(0, sys.argv[1])
    import exceptions, parts
    def why(report):
        return None if report.when != "call" or report.skipped else "" if report.passed else report.longrepr.reprcrash.message
    told = parts.Told(int(sys.argv[4]), json.loads(pathlib.Path(sys.argv[3]).read_text()), why)
    sys.exit(exceptions.run_tests([told], [sys.argv[2]], "/", marked="not slow"))
"""


def outcome_of(tmp_path, tests, each=20.0, whole=200.0):
    child, path = tmp_path / "child.py", tmp_path / "test_of_others.py"
    child.write_text(textwrap.dedent(CHILD))
    path.write_text(textwrap.dedent(tests))
    outcome = parts.Outcome()
    parts.run(lambda part, before, writer: [sys.executable, *map(str, [child, SUITES, part, before, writer])], path, outcome, each, whole, start=100.0)
    assert set(outcome.unfinished) <= {path}
    return outcome.named(lambda test: test.split("::")[-1])


def test_one_test_ends_nothing_but_itself(tmp_path):
    outcome = outcome_of(
        tmp_path,
        """
        import os, signal, time, pytest
        def test_first(): pass
        def test_sleeps(): time.sleep(1000)
        def test_between(): assert 1 == 2
        def test_dies(): os.kill(os.getpid(), signal.SIGKILL)
        def test_leaves(): os._exit(0)
        @pytest.mark.slow
        def test_long(): time.sleep(1000)
        def test_skipped(): pytest.skip()
        @pytest.mark.parametrize("n", [1, 2])
        def test_last(n): pass
        """,
        each=5.0,
    )
    assert outcome.passed == ["test_first", "test_last[1]", "test_last[2]"]
    assert not outcome.unfinished
    assert {name: why.splitlines()[0] for name, why in outcome.failed.items()} == {
        "test_sleeps": "took more than 5 s, and was ended",
        "test_between": "assert 1 == 2",
        "test_dies": "its process ended with signal 9",
        "test_leaves": "its process ended with status 0",
    }


def test_a_part_that_is_not_run_to_its_end_is_told(tmp_path, capsys):
    outcome = outcome_of(tmp_path, "import time\ndef test_a(): pass\ndef test_b(): time.sleep(1000)\ndef test_c(): pass", each=1000.0, whole=25.0)
    assert outcome.passed == ["test_a"] and list(outcome.failed) == ["test_b"]
    assert "test_b" in str(outcome.unfinished)
    listed = tmp_path / "listed.txt"
    listed.write_text("test_b  too slow\n")
    assert parts.judge("a suite", outcome, listed, False, False) == 1
    assert "not run to its end" in capsys.readouterr().err
    assert parts.judge("a suite", parts.Outcome(["test_a"], {"test_b": "?"}), listed, False, False) == 0


@pytest.mark.parametrize("text", ["import nothing_of_this_name", "def test_a(: pass", "import os\nos._exit(3)"])
def test_a_part_without_tests_is_told(tmp_path, text):
    outcome = outcome_of(tmp_path, text)
    assert not outcome.passed and not outcome.failed and outcome.unfinished


def test_an_exception_names_a_class_of_tests(tmp_path, capsys):
    names = ["a.py::T::test_cub[_param_0_{order='C'}]", "a.py::T::test_cub[_param_1_{order='F'}]", "a.py::T::test_x[1]"]
    assert exceptions.matches("a.py::T::test_*[_param_*order='F'}]", names[1])
    assert not exceptions.matches("a.py::T::test_*[_param_*order='F'}]", names[0])
    assert not exceptions.matches("a.py::T::test_x[12]", names[2]) and not exceptions.matches("a.py::T::test_x", names[2])
    listed = tmp_path / "listed.txt"
    listed.write_text("# a comment\na.py::T::test_cub*  asks for a routine\n")
    failed = dict.fromkeys(names[:2], "?")
    assert exceptions.outcome("s", [names[2]], failed, listed, False) == 0
    # A class that has no failure, and a failure that no line names.
    assert exceptions.outcome("s", names, {}, listed, False) == 1
    assert exceptions.outcome("s", [], dict.fromkeys(names, "?"), listed, False) == 1
    assert "fails and is not listed: a.py::T::test_x[1]" in capsys.readouterr().out
