#!/usr/bin/env python3
"""Runs CuPy's own tests, on a machine with a GPU, with our functions in the place of its reductions.

    python crates/python/tests/suites/cupy_suite.py [FOLDER]            all of it; exits 1 where it differs from the list
    python crates/python/tests/suites/cupy_suite.py [FOLDER] --list     prints what fails, as lines for the list
    python crates/python/tests/suites/cupy_suite.py [FOLDER] -k NAME    some tests, with their tracebacks
    ... --only test_search --each 20 --whole 200                        one file; seconds for a test and for the file

CuPy's tests are not in its wheel. FOLDER has a clone of CuPy of the installed version; without one it is cloned
from GitHub into a temporary folder. Both the functions of `cupy` and the methods of its arrays are ours while a
test runs. Only tests that call one of them count, and classes that name none are not run. `cupy_exceptions.txt` names those that
fail, and why. A file's tests run in a process of their own: one that takes too long or ends its process has failed, and the others
go on. Those that CuPy calls slow run with `--slow`.

What is not ours goes to CuPy's, call by call: complex numbers, and `out=` and `where=`, which on a device we do not have.
"""

import argparse
import ast
import functools
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import cupy
import exceptions
import parts
import pytest
import warpfold

FILES = ["math_tests/test_sumprod.py", "sorting_tests/test_search.py", "statistics_tests/test_meanvar.py", "statistics_tests/test_order.py"]
OURS = [
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "nanargmax", "nanargmin", "nanmax", "nanmean",
    "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
]
ALIASES = {"amax": "max", "amin": "min"}
METHODS = ["all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"]
LIST = pathlib.Path(__file__).with_name("cupy_exceptions.txt")


def naming(path):
    """The classes and functions of a file of tests whose text names one of ours, with their decorators."""
    names = re.compile(rf"\b(?:{'|'.join([*OURS, *ALIASES])})\b")
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if names.search("\n".join(lines[first - 1 : node.end_lineno])):
                yield node.name


class Plugin:
    def __init__(self):
        self.count, self.inside = 0, False
        names = [*((name, name) for name in OURS), *ALIASES.items()]
        self.functions = {name: self.of(getattr(cupy, name), getattr(warpfold, ours), self.words_of(ours)) for name, ours in names if hasattr(cupy, name)}
        self.methods = {name: self.of(getattr(cupy.ndarray, name), getattr(warpfold, name), self.words_of(name)) for name in METHODS}

    @staticmethod
    def words_of(name):
        """The parameters of CuPy's function after the array, in their order."""
        if name in ("var", "std", "nanvar", "nanstd"):
            return ["axis", "dtype", "out", "ddof", "keepdims"]
        if name in ("sum", "prod", "mean", "nansum", "nanprod", "nanmean"):
            return ["axis", "dtype", "out", "keepdims"]
        if name in ("argmax", "argmin", "nanargmax", "nanargmin"):
            return ["axis", "dtype", "out", "keepdims"]
        return ["axis"] if name == "count_nonzero" else ["axis", "out", "keepdims"]

    def of(self, theirs, ours, names):
        @functools.wraps(ours)
        def called(*args, **words):
            rest = {**dict(zip(names, args[1:])), **words}
            array = args[0] if args else rest.get("a")
            kind = getattr(getattr(array, "dtype", None), "kind", "O")
            wanted = rest.get("dtype")
            foreign = kind not in "biuf" or (wanted is not None and cupy.dtype(wanted).kind == "c")
            # What CuPy calls itself while it answers is its own.
            if self.inside or foreign or not isinstance(array, cupy.ndarray) or rest.get("out") is not None or rest.get("where") is not None:
                return theirs(*args, **words)
            self.count += 1
            self.inside = True
            try:
                rest.pop("a", None)
                return ours(array, **{name: word for name, word in rest.items() if word is not None})
            finally:
                self.inside = False

        return called

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.count = 0
        kept = {name: getattr(cupy, name) for name in self.functions}, {name: getattr(cupy.ndarray, name) for name in self.methods}
        for where, replaced in [(cupy, self.functions), (cupy.ndarray, self.methods)]:
            for name, function in replaced.items():
                setattr(where, name, function)
        try:
            return (yield)
        finally:
            for where, theirs in zip([cupy, cupy.ndarray], kept):
                for name, function in theirs.items():
                    setattr(where, name, function)

    def pytest_collection_modifyitems(self, items):
        named = {path: set(naming(path)) for path in {item.path for item in items}}
        # Classes that CuPy makes of one for each set of parameters have names of their own.
        items[:] = [item for item in items if (item.cls or item.function).__name__.split("_param_")[0] in named[item.path]]

    def why(self, report):
        """Why a test failed: nothing if it passed, None if it did not run or did not call us."""
        if report.when != "call" or not self.count or report.skipped:
            return None
        if report.passed:
            return ""
        crash = getattr(report.longrepr, "reprcrash", None)
        return " ".join(crash.message.split())[:240] if crash else "?"


def one_process(folder, path, before, descriptor, slow):
    """Runs a file's tests in this process, and tells of them."""
    plugin = Plugin()
    told = parts.Told(descriptor, json.loads(before.read_text()), plugin.why)
    return exceptions.run_tests([plugin, told], [path], folder, marked=None if slow else "not slow")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", default=None)
    parser.add_argument("--only", help="files whose names have this text")
    parser.add_argument("--each", type=float, default=60, help="seconds for a test; 60")
    parser.add_argument("--whole", type=float, default=600, help="seconds for a file; 600")
    parser.add_argument("--slow", action="store_true", help="the tests, too, that CuPy calls slow")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.process:
        path, before, descriptor = given.process
        return one_process(given.folder, path, pathlib.Path(before), int(descriptor), given.slow)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder
        if folder is None:
            folder = pathlib.Path(temporary, "cupy")
            clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", f"v{cupy.__version__}", "https://github.com/cupy/cupy", folder]
            subprocess.run(clone, check=True)
        tests = folder.resolve() / "tests" / "cupy_tests"
        files = [tests / name for name in FILES if (given.only or "") in name]
        missing = [path for path in files if not path.exists()]
        if missing:
            sys.exit(f"{missing[0]} is not there\nhint: FOLDER is a clone of CuPy {cupy.__version__}")
        if given.k:
            return exceptions.run_tests([Plugin()], files, folder, given.k)

        def command(path, before, descriptor):
            words = [folder, "--process", path, before, descriptor, *(["--slow"] if given.slow else [])]
            return [sys.executable, __file__, *map(str, words)]

        outcome = parts.Outcome()
        for path in files:
            parts.run(command, path, outcome, given.each, given.whole)
    some = bool(given.only)
    return parts.judge(f"CuPy {cupy.__version__}", outcome.named(lambda test: test.split("cupy_tests/")[-1]), LIST, given.list, some)


if __name__ == "__main__":
    sys.exit(main())
