"""Runs files of tests in processes of their own, so that a test which hangs, crashes or takes long ends nothing but itself.

A suite calls `run` with the command that starts one of its processes. That command adds `Told` to its plugins, which
writes a line for each event to the descriptor that it was given. A test that is not done in its time is killed with
its process, and a new process goes on behind it.
"""

import dataclasses
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import time

import exceptions
import pytest


class Told:
    """A plugin that tells of each test when it begins and when it has ended, and leaves out those that were run before."""

    def __init__(self, descriptor, before, why):
        """`why` says of a report of pytest's why the test failed: nothing (`""`) if it passed, None if it does not count."""
        self.pipe = os.fdopen(descriptor, "w", buffering=1)
        self.before, self.why = set(before), why

    def tell(self, **event):
        print(json.dumps(event), file=self.pipe)

    # After whatever else leaves tests out.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if item.nodeid not in self.before]
        self.tell(event="collected", count=len(items))

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell(event="broken", why=" ".join(str(report.longrepr).split())[-240:])

    def pytest_runtest_logstart(self, nodeid):
        self.tell(event="begins", test=nodeid)

    def pytest_runtest_logreport(self, report):
        why = self.why(report)
        if why is not None:
            self.tell(event="outcome", test=report.nodeid, why=why)

    def pytest_runtest_logfinish(self, nodeid):
        self.tell(event="ended", test=nodeid)


@dataclasses.dataclass
class Outcome:
    passed: list[str] = dataclasses.field(default_factory=list)
    # Why, by the names of tests.
    failed: dict[str, str] = dataclasses.field(default_factory=dict)
    # Parts that were not run to their end, and why.
    unfinished: dict[str, str] = dataclasses.field(default_factory=dict)

    def named(self, name):
        """The same with other names of the tests."""
        return Outcome([name(test) for test in self.passed], {name(test): why for test, why in self.failed.items()}, self.unfinished)


def judge(suite, outcome, listed, as_list, some):
    """The exit status, as `exceptions.outcome` has it; 1, too, where a part was not run to its end."""
    status = exceptions.outcome(suite, outcome.passed, outcome.failed, listed, as_list, some)
    for part, why in outcome.unfinished.items():
        print(f"not run to its end: {part}: {why}", file=sys.stderr)
    return 1 if outcome.unfinished else status


def run(command, part, outcome, each, whole, start=300.0):
    """Adds to `outcome` what the tests of a part do, with `each` seconds for a test, `whole` for the part and `start` until its first test.

    `command(part, before, descriptor)` is a list of words; `before` is a file with a JSON list of tests to leave out.
    """
    done, ends = [], time.monotonic() + whole
    while True:
        at, failed = _process(command, part, done, outcome, each, ends, start)
        if at is None:
            if failed:
                outcome.unfinished[part] = failed
            return
        done.append(at)
        outcome.failed[at] = failed
        if time.monotonic() >= ends:
            outcome.unfinished[part] = f"its {whole:.0f} s were over in {at}"
            return


def _process(command, part, done, outcome, each, ends, start):
    """Runs one process. The test that it did not end, or None, and why."""
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        before = pathlib.Path(folder, "before.json")
        before.write_text(json.dumps(done))
        process = subprocess.Popen(command(part, before, writer), pass_fds=[writer], start_new_session=True)
        os.close(writer)
        at, allowed, rest, broken, collected = None, time.monotonic() + start, b"", None, False
        try:
            while True:
                limit = min(allowed, ends)
                ready, _, _ = select.select([reader], [], [], max(0.0, limit - time.monotonic()))
                if not ready:
                    late = "the part's time was over" if ends <= allowed else f"took more than {each if at else start:.0f} s, and was ended"
                    return at, late
                data = os.read(reader, 1 << 16)
                if not data:
                    break
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    match event["event"]:
                        case "collected":
                            collected = True
                        case "broken":
                            broken = event["why"]
                        case "begins":
                            at, allowed = event["test"], time.monotonic() + each
                        case "outcome" if event["why"]:
                            outcome.failed[event["test"]] = event["why"]
                        case "outcome":
                            outcome.passed.append(event["test"])
                        case "ended":
                            done.append(event["test"])
                            at, allowed = None, time.monotonic() + start
            status = process.wait()
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            os.close(reader)
    if at is not None:
        return at, f"its process ended with {f'signal {-status}' if status < 0 else f'status {status}'}"
    # What pytest says of tests that passed or failed, or were none.
    if broken or not collected or status not in (0, 1, 5):
        return None, broken or f"its process ended with status {status} outside of its tests"
    return None, None
