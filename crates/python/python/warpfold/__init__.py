"""Exact reductions at the speed of memory, with the same bits everywhere.

>>> import warpfold
>>> warpfold.sum([1e16, 1.0, -1e16])
1.0

Arrays of NumPy, torch, CuPy, pandas, Polars, PyArrow and everyone with DLPack, a buffer or
Arrow's C interface are reduced where they lie. The guide is ``docs/python.md`` of the
repository.
"""

from ._derived import average, ptp, std_mean, var_mean
from ._warpfold import (
    Array,
    File,
    GroupPartial,
    Partial,
    __version__,
    all,
    any,
    argmax,
    argmin,
    argminmax,
    count,
    count_nan,
    count_nonzero,
    dot,
    groupby,
    logsumexp,
    max,
    mean,
    min,
    minmax,
    nanargmax,
    nanargmin,
    nanmax,
    nanmean,
    nanmin,
    nanprod,
    nanstd,
    nansum,
    nanvar,
    norm1,
    norm2,
    norm_inf,
    open,
    prod,
    range,
    reduce,
    segments,
    stats,
    std,
    sum,
    sumsq,
    var,
)


class AxisError(ValueError, IndexError):
    """An axis that the array does not have, where NumPy, which has this exception too, is not loaded."""


class FileError(OSError, ValueError):
    """A file that is not what it says, or that lacks what was asked for."""


__all__ = [
    "Array",
    "AxisError",
    "File",
    "FileError",
    "GroupPartial",
    "Partial",
    "__version__",
    "all",
    "any",
    "argmax",
    "argmin",
    "argminmax",
    "average",
    "count",
    "count_nan",
    "count_nonzero",
    "dot",
    "groupby",
    "logsumexp",
    "max",
    "mean",
    "min",
    "minmax",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "norm1",
    "norm2",
    "norm_inf",
    "open",
    "prod",
    "ptp",
    "range",
    "reduce",
    "segments",
    "stats",
    "std",
    "std_mean",
    "sum",
    "sumsq",
    "var",
    "var_mean",
]
