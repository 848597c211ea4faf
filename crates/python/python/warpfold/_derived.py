"""Functions that are made of others, under the names that people look for."""

import operator
from collections.abc import Sequence
from typing import Any

from . import _warpfold

__all__ = ["average", "ptp", "std_mean", "var_mean"]


def ptp(x: Any, /, axis: Any = None, out: Any = None, keepdims: bool = False, *, dtype: Any = None, where: Any = None, nan: Any = None, device: str | None = None, threads: int | None = None) -> Any:
    """The largest element minus the smallest, rounded once: ``range`` by NumPy's name.

    Of signed integers of NumPy the answer is an int64, and an ``OverflowError`` where that is too small; NumPy's
    wraps around. The other words and errors are those of ``range``.

    >>> ptp([3, 1, 4])
    3
    """
    if dtype is None and out is None and getattr(getattr(x, "dtype", None), "kind", None) == "i":
        dtype = "int64"
    return _warpfold.range(x, axis, dtype, out, keepdims, where=where, nan=nan, device=device, threads=threads)


def average(x: Any, /, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> Any:
    """The weighted mean: the exact sum of ``x * weights`` over the exact sum of the weights, each rounded once.

    Arguments:
        x: an array or numbers
        axis: the axes that are averaged, an integer or several of them; without it all
        weights: of the shape of x, or of one axis as long as the axis of x that is named; without them, the mean
        returned: whether the sum of the weights is the second of two answers: one number, if they are for one axis
        keepdims: whether the averaged axes stay, with length 1
        device, threads: as for ``sum``

    Raises:
        TypeError: weights of another shape, and no single axis that they are for.
        ValueError: weights of another length than their axis.
        ZeroDivisionError: weights that sum to zero.

    >>> average([1.0, 2.0, 4.0], weights=[1, 1, 2])
    2.75
    """
    words: dict[str, Any] = {"keepdims": keepdims, "device": device, "threads": threads}
    if weights is None:
        mean = _warpfold.mean(x, axis, **words)
        return (mean, _warpfold.count(x, axis, dtype=float, **words)) if returned else mean
    # An iterator is read twice.
    x, weights = _kept(x), _kept(weights)
    shape, own = _shape(x), _shape(weights)
    # Weights for one axis have the same sum everywhere.
    places: Any = axis
    if shape != own:
        places = None
        weights = _along(weights, own, axis, shape)
    # Integers become floats once, when they are exact.
    words["dtype"] = float if _is_whole(x) and _is_whole(weights) else None
    total = _warpfold.sum(weights, places, **{**words, "keepdims": keepdims and shape == own})
    if not _warpfold.all(total):
        raise ZeroDivisionError("the weights sum to zero")
    mean = _quotient(_warpfold.dot(x, weights, axis, **words), total)
    return (mean, total) if returned else mean


def _kept(x: Any) -> Any:
    return list(x) if hasattr(x, "__next__") else x


def _shape(x: Any) -> tuple[int, ...]:
    if hasattr(x, "shape"):
        return tuple(x.shape)
    if isinstance(x, (list, tuple)):
        return (len(x), *(_shape(x[0]) if x else ()))
    return (len(x),) if hasattr(x, "__len__") else ()


def _is_whole(x: Any) -> bool:
    name = str(getattr(x, "dtype", "")).lower()
    return "int" in name or "bool" in name


def _along(weights: Any, own: tuple[int, ...], axis: Any, shape: tuple[int, ...]) -> Any:
    """Weights for one axis, with axes of length 1 behind it."""
    try:
        place = operator.index(axis)
    except TypeError:
        raise TypeError(f"weights of shape {own} are not those of an array of shape {shape}\nhint: name the axis that they are for") from None
    if len(own) != 1:
        raise TypeError(f"weights for one axis have one axis, not {len(own)}")
    if not -len(shape) <= place < len(shape):
        # Which error it is, is said there.
        return weights
    if shape[place] != own[0]:
        raise ValueError(f"{own[0]} weights are for an axis of length {shape[place]}")
    behind = len(shape) - place % len(shape) - 1
    if behind == 0:
        return weights
    if hasattr(weights, "reshape"):
        return weights.reshape(own + (1,) * behind)
    weights = list(weights)
    for _ in range(behind):
        weights = [[weight] for weight in weights]
    return weights


def _quotient(x: Any, y: Any) -> Any:
    """A division of answers, which may be lists, or arrays without arithmetic."""
    x, y = (z.tolist() if isinstance(z, _warpfold.Array) else z for z in (x, y))
    if isinstance(x, list):
        return [_quotient(a, y[i] if isinstance(y, list) else y) for i, a in enumerate(x)]
    return x / y


def var_mean(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float | None = None, correction: float | None = None, where: Any = None, nan: Any = None, device: str | None = None, threads: int | None = None) -> tuple[Any, Any]:
    """The variance and the mean in one pass. As for ``var``, and unlike in torch, nothing is subtracted from the count unless it is said.

    The words and errors are those of ``reduce``.

    >>> var_mean([1.0, 2.0, 3.0], ddof=1)
    (1.0, 2.0)
    """
    return _with_mean("var", x, axis, dtype, keepdims, ddof=ddof, correction=correction, where=where, nan=nan, device=device, threads=threads)


def std_mean(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False, *, ddof: float | None = None, correction: float | None = None, where: Any = None, nan: Any = None, device: str | None = None, threads: int | None = None) -> tuple[Any, Any]:
    """The standard deviation and the mean in one pass, as ``var_mean``.

    >>> std_mean([1.0, 2.0, 3.0], ddof=1)
    (1.0, 2.0)
    """
    return _with_mean("std", x, axis, dtype, keepdims, ddof=ddof, correction=correction, where=where, nan=nan, device=device, threads=threads)


def _with_mean(op: str, x: Any, *places: Any, **words: Any) -> tuple[Any, Any]:
    found = _warpfold.reduce(x, [op, "mean"], *places, **words)
    return found[op], found["mean"]
