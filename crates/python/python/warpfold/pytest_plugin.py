"""A fixture of pytest that runs CUDA kernels on the CPU under several schedules.

``ptx_run`` is ``warpfold.ptx.run``, and a test that takes it runs once for each schedule: in lockstep, and with ``--ptx-seeds`` seeds of the
random and the adversarial one. The mark ``ptx`` chooses for one test: ``@pytest.mark.ptx(schedules=["lockstep"], seeds=10, checks="all,strict")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .ptx import Run

_SCHEDULES = ("lockstep", "random", "adversarial")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--ptx-seeds``."""
    group = parser.getgroup("warpfold", "CUDA kernels on the CPU")
    group.addoption("--ptx-seeds", type=int, default=3, metavar="N", help="seeds of each schedule that has seeds, for tests that take ptx_run [default: 3]")


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line("markers", "ptx(schedules, seeds, checks): how the fixture ptx_run runs kernels")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each schedule and seed."""
    if "ptx_run" not in metafunc.fixturenames:
        return
    words = _words(metafunc.definition)
    seeds = words.get("seeds", metafunc.config.getoption("--ptx-seeds"))
    chosen = [(name, seed) for name in words.get("schedules", _SCHEDULES) for seed in range(1 if name == "lockstep" else seeds)]
    if not chosen:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: no schedule is left: name one, and at least one seed")
    ids = [name if name == "lockstep" else f"{name}-{seed}" for name, seed in chosen]
    metafunc.parametrize("ptx_run", chosen, indirect=True, ids=ids)


def _words(item: Any) -> dict[str, Any]:
    """The words of the marks of a test; those nearest to it win."""
    words: dict[str, Any] = {}
    for mark in item.iter_markers("ptx"):
        words = {**mark.kwargs, **words}
    unknown = words.keys() - {"schedules", "seeds", "checks"}
    if unknown:
        raise pytest.UsageError(f"{item.nodeid}: the mark ptx has no {', '.join(sorted(unknown))}; it has schedules, seeds and checks")
    return words


@pytest.fixture
def ptx_run(request: pytest.FixtureRequest) -> Callable[..., Run]:
    """``warpfold.ptx.run`` under the schedule of this test."""
    from . import ptx

    schedule, seed = request.param
    words = {name: value for name, value in _words(request.node).items() if name == "checks"}

    def run(*args: Any, **options: Any) -> Run:
        return ptx.run(*args, **{**words, "schedule": schedule, "seed": seed, **options})

    return run
