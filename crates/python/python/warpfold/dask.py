"""Reductions of Dask's arrays: lazy, with the same bits for every chunking and every scheduler.

>>> import dask.array, warpfold
>>> x = dask.array.ones((1000, 1000), chunks=(100, 1000))
>>> mean = warpfold.mean(x, axis=0)          # nothing is computed yet
>>> float(mean.sum().compute())
1000.0

The package's functions take arrays of Dask for the functions here, which have ``split_every``, too.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial as _bound
from itertools import accumulate
from typing import Any

try:
    import dask.array as da
    from dask.array.utils import validate_axis
except ImportError as _error:
    raise ImportError("warpfold.dask needs Dask's arrays\nhint: pip install 'dask[array]'") from _error
import numpy as np

from . import _warpfold
from ._warpfold import Partial

_POSITIONS = {"argmin", "argmax", "argminmax"}
_PAIRS = {"minmax", "argminmax"}


def reduce(
    x: Any,
    ops: Any,
    /,
    axis: int | Sequence[int] | None = None,
    dtype: Any = None,
    keepdims: bool = False,
    *,
    y: Any = None,
    ddof: float | None = None,
    correction: float | None = None,
    nan: Any = None,
    device: str | None = None,
    threads: int | None = None,
    split_every: int | dict[int, int] | None = None,
) -> Any:
    """Answers to operations on an array of Dask, as arrays of Dask: of several names a dictionary, in one pass.

    Each chunk becomes a ``Partial``, which Dask merges in a tree.

    Arguments:
        x: an array of Dask, or what holds one: an array of xarray, a column of a data frame
        ops: the name of an operation, or names
        axis, dtype, keepdims, ddof, correction, nan: as for ``warpfold.reduce``
        y: the second array of ``dot``
        device: as for ``warpfold.reduce``, on each worker
        threads: how many threads work on a chunk: without it one, since Dask has threads of its own
        split_every: how many partials are merged at a time, as for ``dask.array.sum``

    Raises:
        ValueError: positions over several axes, but not all.
        TypeError: an array of complex numbers; two of different types.
    """
    x = _array(x)
    names = [name.replace("-", "_") for name in ([ops] if isinstance(ops, str) else ops)]
    # Names, types and words are checked now, not when a worker hears of them.
    Partial(names, nan=nan, ddof=ddof, correction=correction)
    if x.dtype.kind == "c":
        raise TypeError("a partial has no complex numbers\nhint: reduce x.real and x.imag")
    # The answers to ``dot`` have the types of sums of squares.
    types = {name: np.dtype(_warpfold._answer_type("sumsq" if name == "dot" else name, x.dtype, dtype)) for name in names}
    arrays = [x]
    if y is not None:
        y = _array(y)
        if y.dtype != x.dtype:
            raise TypeError(f"dot takes two arrays of one type of Dask, not {x.dtype} and {y.dtype}\nhint: x.astype(y.dtype), where it holds the numbers")
        _, arrays = da.core.unify_chunks(*(one for array in da.broadcast_arrays(x, y) for one in (array, _places(array))))
    ndim = arrays[0].ndim
    axes = _places(arrays[0])
    if axis is not None:
        axes = validate_axis((axis,) if isinstance(axis, int) else tuple(axis), ndim)
    positions = not _POSITIONS.isdisjoint(names)
    if positions and len(axes) > 1:
        if len(axes) < ndim:
            raise ValueError(f"positions over the axes {axes} of {ndim} are not told\nhint: name one axis, or none for all")
        arrays, axes = [x.reshape(-1)], (0,)
    x = arrays[0]
    places = _places(x)
    blocks = [one for array in arrays for one in (array, places)]
    if positions and axes:
        starts = np.array([0, *accumulate(x.chunks[axes[0]])][:-1])
        if np.isnan(starts).any():
            raise ValueError("positions count the elements of all chunks, and these have no known lengths\nhint: x.compute_chunk_sizes() finds them")
        blocks += [da.from_array(starts, chunks=1), axes]
    meta = np.empty((0,) * x.ndim, dtype=object)
    asked = (tuple(names), axes, nan, ddof, correction, device, threads or 1)
    parts = da.blockwise(_partial, places, *blocks, asked=asked, pair=y is not None, adjust_chunks=dict.fromkeys(axes, _one), align_arrays=False, dtype=object, meta=meta)
    whole = da.reduction(parts, _same, _merged, axis=axes, keepdims=True, dtype=object, split_every=split_every, concatenate=False, meta=meta)
    kept = tuple(place for place in places if keepdims or place not in axes)

    def answer(name: str, which: int | None = None) -> Any:
        made = da.blockwise(
            _finished, kept, whole, places, name=None, op=name, which=which, out=None if dtype is None else str(np.dtype(dtype)), spread=axes if keepdims else (), dtype=types[name], meta=np.empty((0,) * len(kept), dtype=types[name])
        )
        # An array that was made flat has its axes again.
        return made.reshape((1,) * ndim) if keepdims and x.ndim < ndim else made

    answers = {name: (answer(name, 0), answer(name, 1)) if name in _PAIRS else answer(name) for name in names}
    return answers[names[0]] if isinstance(ops, str) else answers


def _places(x: Any) -> tuple[int, ...]:
    return tuple(place for place, _ in enumerate(x.shape))


def _array(x: Any) -> Any:
    """The array of Dask in an object."""
    if hasattr(x, "to_dask_array"):
        return x.to_dask_array()
    return da.asarray(x.data if type(x).__module__.startswith("xarray") else x)


def _one(length: int) -> int:
    return 1


def _partial(x: Any, *more: Any, asked: Any, pair: bool) -> Partial:
    """The partial of a chunk."""
    ops, axes, nan, ddof, correction, device, threads = asked
    part = Partial(list(ops), axis=axes, nan=nan, ddof=ddof, correction=correction, device=device, threads=threads)
    if pair:
        part.absorb(x, more[0])
    else:
        part.absorb(x, start=int(more[0].item()) if more else None)
    return part


def _same(part: Any, axis: Any = None, keepdims: bool = True) -> Any:
    return part


def _flat(parts: Any) -> Iterable[Any]:
    if not isinstance(parts, (list, tuple)):
        yield parts
        return
    for part in parts:
        yield from _flat(part)


def _merged(parts: Any, axis: Any = None, keepdims: bool = True) -> Partial:
    first, *others = _flat(parts)
    # The first belongs to the scheduler.
    merged = first + others.pop() if others else first
    for part in others:
        merged += part
    return merged  # type: ignore[no-any-return]


def _finished(part: Any, op: str, which: int | None, out: str | None, spread: tuple[int, ...]) -> Any:
    (part,) = _flat(part)
    answer = part.finish(dtype=out)[op]
    answer = np.asarray(answer if which is None else answer[which])
    return np.expand_dims(answer, spread)


def aggregation(op: str, /, *, nan: Any = None, ddof: float | None = None, correction: float | None = None) -> Any:
    """An operation for groups of Dask's data frames: ``frame.groupby("key").price.agg(aggregation("sum"))``.

    The bits of a group do not depend on how the frame is cut. A NaN in a column is a NaN unless it is left out by
    ``nan="omit"``.

    Arguments:
        op: the name of an operation that does not answer positions
        nan, ddof, correction: as for ``warpfold.reduce``
    """
    import dask.dataframe as dd

    if op.replace("-", "_") in {*_POSITIONS, *_PAIRS, "dot"}:
        raise ValueError(f"groups of a data frame have no {op} here\nhint: there are sum, mean, var, std, min, max and others with one answer")
    part = Partial(op, nan=nan, ddof=ddof, correction=correction)
    return dd.Aggregation(f"warpfold_{op}", _bound(_each, _bound(_absorbed, part)), _bound(_each, _merged_column), _answers)


def _each(function: Callable[[Any], Any], groups: Any) -> Any:
    return groups.apply(function)


def _absorbed(part: Partial, column: Any) -> Partial:
    part = part.empty()
    part.absorb(column)
    return part


def _merged_column(column: Any) -> Partial:
    return _merged(list(column))


def _answers(parts: Any) -> Any:
    return parts.map(Partial.finish)


def _function(name: str) -> Callable[..., Any]:
    def function(
        x: Any,
        /,
        axis: int | Sequence[int] | None = None,
        dtype: Any = None,
        keepdims: bool = False,
        **words: Any,
    ) -> Any:
        return reduce(x, name, axis, dtype, keepdims, **words)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``warpfold.{name}``, of an array of Dask; the words are those of ``reduce``."
    return function


def dot(x: Any, y: Any, /, axis: int | Sequence[int] | None = None, dtype: Any = None, keepdims: bool = False, **words: Any) -> Any:
    """As ``warpfold.dot``, of arrays of Dask; the words are those of ``reduce``."""
    return reduce(x, "dot", axis, dtype, keepdims, y=y, **words)


sum = _function("sum")
prod = _function("prod")
mean = _function("mean")
var = _function("var")
std = _function("std")
min = _function("min")
max = _function("max")
any = _function("any")
all = _function("all")
argmin = _function("argmin")
argmax = _function("argmax")
count = _function("count")
count_nonzero = _function("count_nonzero")
count_nan = _function("count_nan")
norm1 = _function("norm1")
norm2 = _function("norm2")
norm_inf = _function("norm_inf")
sumsq = _function("sumsq")
range = _function("range")
logsumexp = _function("logsumexp")
minmax = _function("minmax")
argminmax = _function("argminmax")

__all__ = [
    "aggregation",
    "all",
    "any",
    "argmax",
    "argmin",
    "argminmax",
    "count",
    "count_nan",
    "count_nonzero",
    "dot",
    "logsumexp",
    "max",
    "mean",
    "min",
    "minmax",
    "norm1",
    "norm2",
    "norm_inf",
    "prod",
    "range",
    "reduce",
    "std",
    "sum",
    "sumsq",
    "var",
]
