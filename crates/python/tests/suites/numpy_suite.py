#!/usr/bin/env python3
"""Runs NumPy's own tests, from its wheel, with our functions in the place of its reductions.

    python crates/python/tests/suites/numpy_suite.py            all of it; exits 1 where it differs from the list
    python crates/python/tests/suites/numpy_suite.py --list     prints what fails, as lines for the list
    python crates/python/tests/suites/numpy_suite.py -k NAME    some tests, with their tracebacks

Only tests that call one of our functions count. `numpy_exceptions.txt` names those that fail, and
why: what is not in it must pass, and what is in it must fail.
"""

import argparse
import importlib
import pathlib
import re
import sys
import types

import exceptions
import numpy
import pytest
import warpfold

MODULES = [
    "numpy._core.tests.test_umath",
    "numpy._core.tests.test_ufunc",
    "numpy._core.tests.test_multiarray",
    "numpy._core.tests.test_numeric",
    "numpy.lib.tests.test_nanfunctions",
]
OURS = [
    "all", "any", "argmax", "argmin", "count_nonzero", "max", "mean", "min", "nanargmax", "nanargmin", "nanmax", "nanmean",
    "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "prod", "std", "sum", "var",
]
ALIASES = {"amax": "max", "amin": "min"}
LIST = pathlib.Path(__file__).with_name("numpy_exceptions.txt")


class Calls:
    """Counts the calls of our functions by the test that runs."""

    count = 0

    def of(self, function):
        def called(*args, **words):
            self.count += 1
            # NumPy's name for what is positional here, and its word for "left out".
            if "a" in words and not args:
                args = (words.pop("a"),)
            words = {name: word for name, word in words.items() if word is not numpy._NoValue}
            return function(*args, **words)

        called.__name__ = function.__name__
        return called


class Plugin:
    def __init__(self):
        self.calls = Calls()
        self.ours = {name: self.calls.of(getattr(warpfold, name)) for name in OURS}
        self.ours |= {alias: self.ours[name] for alias, name in ALIASES.items()}
        self.passed, self.failed = [], {}

    def pytest_collection_modifyitems(self, items):
        """Gives the modules of tests a NumPy with our functions; all other code keeps its own."""
        # Most tests name none of them, and take minutes.
        names = re.compile(rf"\b(?:np|numpy)\.(?:{'|'.join(self.ours)})\b")
        named = {}
        for module in {item.module for item in items}:
            # A class or function of the module, with its text up to the next one.
            parts = re.split(r"(?m)^(?:class|def) (\w+)", pathlib.Path(module.__file__).read_text())
            for name, text in zip(parts[1::2], parts[2::2]):
                named[module, name] = bool(names.search(text))
        items[:] = [item for item in items if named.get((item.module, (item.cls or item.function).__name__), True)]
        proxy = types.ModuleType("numpy")
        proxy.__dict__.update({name: getattr(numpy, name) for name in dir(numpy)})
        proxy.__dict__.update(self.ours)
        proxy.__getattr__ = lambda name: getattr(numpy, name)
        for module in {item.module for item in items}:
            for name, value in list(vars(module).items()):
                if value is numpy:
                    setattr(module, name, proxy)
                elif name in self.ours and value is getattr(numpy, name):
                    setattr(module, name, self.ours[name])
        # Lists of functions that a class of tests made when it was imported.
        theirs = {getattr(numpy, name): name for name in self.ours}
        for cls in {item.cls for item in items if item.cls is not None}:
            for name, value in list(vars(cls).items()):
                if isinstance(value, list) and value and all(isinstance(v, types.FunctionType) or callable(v) for v in value):
                    setattr(cls, name, [self.ours[theirs[v]] if v in theirs else v for v in value])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.calls.count = 0
        return (yield)

    def pytest_runtest_logreport(self, report):
        if report.when != "call" or not self.calls.count:
            return
        name = report.nodeid.split("site-packages/")[-1].split("numpy/", 1)[-1]
        if report.passed:
            self.passed.append(name)
        elif report.failed:
            self.failed[name] = report.longrepr.reprcrash.message.splitlines()[0][:150] if hasattr(report.longrepr, "reprcrash") and report.longrepr.reprcrash else "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("-k", default=None)
    given = parser.parse_args()
    files = []
    for module in MODULES:
        try:
            files.append(importlib.import_module(module).__file__)
        except ImportError as error:
            sys.exit(f"NumPy {numpy.__version__} has no tests that can be run here: {error}\nhint: pip install pytest hypothesis")
    plugin = Plugin()
    exceptions.run_tests([plugin], files, "/", given.k)
    return exceptions.outcome(f"NumPy {numpy.__version__}", plugin.passed, plugin.failed, LIST, given.list, bool(given.k))


if __name__ == "__main__":
    sys.exit(main())
