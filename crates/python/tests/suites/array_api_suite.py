#!/usr/bin/env python3
"""Runs the array API's own suite on `warpfold.array_api`: what is ours of it.

    python crates/python/tests/suites/array_api_suite.py [--examples 1000] [FOLDER]

The suite is not on PyPI. FOLDER has a clone of it, with its submodule; without one it is cloned from
GitHub into a temporary folder. It needs `pytest hypothesis pytest-json-report ndindex`.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SUITE = "https://github.com/data-apis/array-api-tests"
FILES = ["test_statistical_functions.py", "test_searching_functions.py", "test_utility_functions.py"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--examples", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder
        if folder is None:
            folder = pathlib.Path(temporary, "suite")
            subprocess.run(["git", "clone", "--quiet", "--depth", "1", "--recurse-submodules", SUITE, folder], check=True)
        environment = os.environ | {"ARRAY_API_TESTS_MODULE": "warpfold.array_api"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--max-examples={given.examples}"]
        return subprocess.run([*command, *(f"array_api_tests/{name}" for name in FILES)], cwd=folder, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
