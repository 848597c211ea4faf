#!/usr/bin/env python3
"""Runs CuPy's own tests, on a machine with a GPU, with our functions in the place of its reductions.

    python crates/python/tests/suites/cupy_suite.py [FOLDER]            all of it; exits 1 where it differs from the list
    python crates/python/tests/suites/cupy_suite.py [FOLDER] --list     prints what fails, as lines for the list
    python crates/python/tests/suites/cupy_suite.py [FOLDER] -k NAME    some tests, with their tracebacks

CuPy's tests are not in its wheel. FOLDER has a clone of CuPy of the installed version; without one it is cloned
from GitHub into a temporary folder. Both the functions of `cupy` and the methods of its arrays are ours while a
test runs. Only tests that call one of them count. `cupy_exceptions.txt` names those that fail, and why.

What is not ours goes to CuPy's, call by call: complex numbers, and `out=` and `where=`, which on a device we do not have.
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile

import cupy
import exceptions
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


class Plugin:
    def __init__(self):
        self.count, self.inside = 0, False
        self.passed, self.failed = [], {}
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

    def pytest_runtest_logreport(self, report):
        if report.when != "call" or not self.count:
            return
        name = report.nodeid.split("cupy_tests/")[-1]
        if report.passed:
            self.passed.append(name)
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            self.failed[name] = " ".join(crash.message.split())[:240] if crash else "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder
        if folder is None:
            folder = pathlib.Path(temporary, "cupy")
            clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", f"v{cupy.__version__}", "https://github.com/cupy/cupy", folder]
            subprocess.run(clone, check=True)
        files = [folder / "tests" / "cupy_tests" / name for name in FILES]
        missing = [path for path in files if not path.exists()]
        if missing:
            sys.exit(f"{missing[0]} is not there\nhint: FOLDER is a clone of CuPy {cupy.__version__}")
        plugin = Plugin()
        exceptions.run_tests(plugin, files, folder, given.k)
    return exceptions.outcome(f"CuPy {cupy.__version__}", plugin.passed, plugin.failed, LIST, given.list, bool(given.k))


if __name__ == "__main__":
    sys.exit(main())
