"""What the suites share: lists of tests that fail, and why, and what a run says of them."""

import pathlib
import re
import sys


def read(path: pathlib.Path) -> dict[str, str]:
    """Why each exception is one, by its name. A `*` in a name stands for any text, so that a line may name a class of tests."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, why = line.partition("  ")
            found[name] = why.strip()
    return found


def matches(key, name):
    return re.fullmatch(".*".join(map(re.escape, key.split("*"))), name, re.DOTALL) is not None


def judge(suite, passed, failed, exceptions, some=False):
    """Prints what fails and is not listed, and what is listed and does not fail; 1 if there is such."""
    unlisted = [name for name in failed if not any(matches(key, name) for key in exceptions)]
    idle = [] if some else [key for key in exceptions if not any(matches(key, name) for name in failed)]
    for name in unlisted:
        print(f"fails and is not listed: {name}: {failed[name]}")
    for key in idle:
        print(f"is listed and does not fail: {key}")
    print(f"{suite}: {len(passed)} of its tests pass with our functions, {len(failed)} are exceptions")
    return 1 if unlisted or idle else 0


def outcome(suite, passed, failed, listed: pathlib.Path, as_list, some=False):
    """The exit status: of `judge`, beside the exceptions in a file; or prints all that fails, to make such a file of it."""
    if not as_list:
        return judge(suite, passed, failed, read(listed), some)
    for name, why in sorted(failed.items()):
        print(f"{name}  {why}")
    print(f"{len(passed)} passed, {len(failed)} failed", file=sys.stderr)
    return 0


def run_tests(plugins, files, root, only=None, marked=None):
    """Runs files of tests with plugins that keep what came out, and gives pytest's status; with `only`, those that pytest's `-k`
    chooses, aloud; with `marked`, those that its `-m` chooses."""
    # torch's samples are no tests of pytest's.
    import pytest

    words = ["-q", "-p", "no:cacheprovider", "--tb=short" if only else "--tb=line", "-W", "ignore", "--no-header", "-c", "/dev/null", "--rootdir", str(root)]
    words += ["-k", only] if only else ["-p", "no:terminalreporter"]
    words += ["-m", marked] if marked else []
    return pytest.main([*words, *map(str, files)], plugins=plugins)
