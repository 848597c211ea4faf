"""What the tests share."""

import os
import pathlib
import signal

import hypothesis
import pytest

# A shell without job control starts what runs in its background with Ctrl-C ignored, and so are those whom we start. Tests of Ctrl-C
# need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A change is judged by the same cases each time; WARPFOLD_PYTHON_CASES=all draws as many as the records say.
hypothesis.settings.register_profile("quick", max_examples=100, deadline=None, derandomize=True)
hypothesis.settings.register_profile("thorough", max_examples=10_000, deadline=None, derandomize=True)
hypothesis.settings.load_profile("thorough" if os.environ.get("WARPFOLD_PYTHON_CASES") == "all" else "quick")

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def repository():
    return REPOSITORY
