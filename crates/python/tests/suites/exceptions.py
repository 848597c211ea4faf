"""What the suites share: lists of tests that fail, and why, and what a run says of them."""

import pathlib
import sys


def read(path: pathlib.Path) -> dict[str, str]:
    """The exceptions: by their names, why. A line may end in `*`."""
    found = {}
    for line in path.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, why = line.partition("  ")
            found[name] = why.strip()
    return found


def matches(key, name):
    return name == key or key.endswith("*") and name.startswith(key[:-1])


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


def run_tests(plugin, files, root, only=None):
    """Runs files of tests with a plugin that keeps what came out; with `only`, those that pytest's `-k` chooses, aloud."""
    # torch's samples are no tests of pytest's.
    import pytest

    words = ["-q", "-p", "no:cacheprovider", "--tb=short" if only else "--tb=line", "-W", "ignore", "--no-header", "-c", "/dev/null", "--rootdir", str(root)]
    words += ["-k", only] if only else ["-p", "no:terminalreporter"]
    pytest.main([*words, *map(str, files)], plugins=[plugin])
