"""The array API's namespace with our reductions: everything else in it is NumPy's.

Products of complex numbers are NumPy's, too.

>>> import warpfold.array_api as xp
>>> float(xp.sum(xp.asarray([1e16, 1.0, -1e16])))
1.0
"""

from typing import Any

import numpy

from . import _warpfold
from ._warpfold import all, any, argmax, argmin, count_nonzero, max, mean, min, std, sum, var


def prod(x: Any, /, **words: Any) -> Any:
    """The product: of integers exact, of floats folded in a fixed order, of complex numbers NumPy's."""
    return numpy.prod(x, **words) if numpy.iscomplexobj(x) else _warpfold.prod(x, **words)


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
