"""The array API's namespace with our reductions: everything else in it is NumPy's.

The standard has complex numbers, which are not ours: NumPy's functions answer for them.

>>> import warpfold.array_api as xp
>>> float(xp.sum(xp.asarray([1e16, 1.0, -1e16])))
1.0
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy

from . import _warpfold
from ._warpfold import argmax, argmin, max, min, std, var


def _unless_complex(name: str) -> Callable[..., Any]:
    ours, theirs = getattr(_warpfold, name), getattr(numpy, name)

    @functools.wraps(ours)
    def function(x: Any, /, **words: Any) -> Any:
        return (theirs if numpy.iscomplexobj(x) else ours)(x, **words)

    return function


all = _unless_complex("all")
any = _unless_complex("any")
count_nonzero = _unless_complex("count_nonzero")
mean = _unless_complex("mean")
prod = _unless_complex("prod")
sum = _unless_complex("sum")

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__array_namespace_info__" and name != "__array_api_version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(numpy, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(numpy)})
