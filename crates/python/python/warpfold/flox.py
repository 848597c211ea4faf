"""Aggregations for flox, which groups arrays of NumPy, Dask and xarray.

>>> import flox.xarray, warpfold.flox
>>> flox.xarray.xarray_reduce(x, "month", func=warpfold.flox.aggregation("mean"))
"""

from functools import partial as _bound
from typing import Any

try:
    import flox
except ImportError as _error:
    raise ImportError("warpfold.flox needs flox\nhint: pip install flox") from _error
import numpy as np

from . import _warpfold
from ._warpfold import Partial

__all__ = ["aggregation"]

_REFUSED = ("argmin", "argmax", "argminmax", "minmax", "dot")


def aggregation(op: str, /, *, nan: Any = None, ddof: float | None = None, correction: float | None = None) -> Any:
    """An operation as flox's ``func``, with the same bits for every chunking. Its method may be any but "blockwise" where groups lie in several chunks.

    Arguments:
        op: the name of an operation that has one answer, and does not answer positions
        nan, ddof, correction: as for ``warpfold.reduce``
    """
    if op.replace("-", "_") in _REFUSED:
        raise ValueError(f"groups of flox have no {op} here\nhint: there are sum, mean, var, std, min, max and others with one answer")
    made = _bound(_partials, Partial(op, nan=nan, ddof=ddof, correction=correction))
    whole = _bound(_whole, made)
    # A sum of an array of objects adds them up; a group that no chunk has is 0.
    return flox.Aggregation(f"warpfold_{op}", numpy=whole, chunk=made, combine="sum", finalize=_answers, fill_value=0, final_fill_value=np.nan, dtypes=object)


def _partials(part: Partial, codes: Any, array: Any, *, axis: int = -1, size: int | None = None, **words: Any) -> Any:
    """For each row and each group the partial of its numbers."""
    groups = size if size is not None else int(codes.max(initial=-1)) + 1
    rows = np.asarray(array).reshape(-1, array.shape[-1])
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(groups + 1))
    made = np.empty((len(rows), groups), dtype=object)
    for r, row in enumerate(rows[:, order]):
        for g in range(groups):
            made[r, g] = part.empty()
            made[r, g].absorb(row[bounds[g] : bounds[g + 1]])
    return made.reshape((*array.shape[:-1], groups))


def _whole(made: Any, codes: Any, array: Any, **words: Any) -> Any:
    return _answers(made(codes, array, **words))


def _answers(parts: Any, **words: Any) -> Any:
    some = [part for part in parts.flat if part]
    if not some:
        return np.full(parts.shape, np.nan)
    dtype = _warpfold._answer_type(some[0].ops[0], some[0].dtype, None)
    answers = np.full(parts.shape, 0, dtype=dtype)
    for place, part in np.ndenumerate(parts):
        answers[place] = part.finish() if part else np.nan
    return answers
