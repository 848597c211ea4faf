"""Functions that are made of others, under the names that people look for."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import _warpfold

if TYPE_CHECKING:
    from ._warpfold import _Answer, _Array, _Axis, _DType, _Mask, _Nan, _Out

__all__ = ["average", "ptp", "std_mean", "var_mean"]


def ptp(x: _Array, /, axis: _Axis = None, out: _Out = None, keepdims: bool = False, *, dtype: _DType = None, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> _Answer:
    """The largest element minus the smallest, rounded once: ``range`` by NumPy's name.

    Of signed integers of NumPy the answer is an int64, where NumPy's wraps around in the type of the elements.

    Arguments:
        x: an array or numbers
        axis: the axes that are reduced, an integer or several of them; without it all
        out: an array that the answers are written to, and that is returned
        keepdims: whether the reduced axes stay, with length 1
        dtype: the type of the answer, such as ``"float64"``
        where: the elements that count: truth values of the shape of x, or of one that is broadcast to it
        nan: ``"propagate"``, ``"omit"`` or ``"raise"``: what NaNs do
        device, threads: as for ``sum``

    Raises:
        ValueError: no elements, or none but NaNs under ``nan="omit"``; an ``out`` of another shape.
        TypeError: an object that holds no numbers; an ``out`` of another type.
        OverflowError: a difference of integers that the answer's type does not have.

    >>> ptp([3, 1, 4])
    3
    >>> ptp([[1.0, 5.0], [2.0, 2.5]], axis=1)
    [4.0, 0.5]
    >>> ptp([1.0, float("nan"), 3.0], nan="omit")
    2.0
    """
    if dtype is None and out is None and getattr(getattr(x, "dtype", None), "kind", None) == "i":
        dtype = "int64"
    return _warpfold.range(x, axis, dtype, out, keepdims, where=where, nan=nan, device=device, threads=threads)


def average(x: _Array, /, axis: _Axis = None, weights: _Array | None = None, returned: bool = False, *, keepdims: bool = False, device: str | None = None, threads: int | None = None) -> _Answer:
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


def var_mean(x: _Array, /, axis: _Axis = None, dtype: _DType = None, keepdims: bool = False, *, ddof: float | None = None, correction: float | None = None, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Answer, _Answer]:
    """The variance and the mean in one pass, each rounded once.

    As for ``var``, and unlike in torch, nothing is subtracted from the count unless it is said.

    Arguments:
        x: an array or numbers
        axis: the axes that are reduced, an integer or several of them; without it all
        dtype: the type of both answers, one of floats
        keepdims: whether the reduced axes stay, with length 1
        ddof, correction: what is subtracted from the count in the divisor, by NumPy's name and by the array API's
        where: the elements that count: truth values of the shape of x, or of one that is broadcast to it
        nan: ``"propagate"``, ``"omit"`` or ``"raise"``: what NaNs do
        device, threads: as for ``sum``

    Raises:
        TypeError: an object that holds no numbers; a ``dtype`` that is none of floats; both ``ddof`` and ``correction``.
        ValueError: NaNs under ``nan="raise"``.

    Where no element is left, or not more than are subtracted, both or the variance are NaN.

    >>> var_mean([1.0, 2.0, 3.0], ddof=1)
    (1.0, 2.0)
    >>> var_mean([[1.0, 3.0], [2.0, 2.0]], axis=1)
    ([1.0, 0.0], [2.0, 2.0])
    """
    return _with_mean("var", x, axis, dtype, keepdims, ddof=ddof, correction=correction, where=where, nan=nan, device=device, threads=threads)


def std_mean(x: _Array, /, axis: _Axis = None, dtype: _DType = None, keepdims: bool = False, *, ddof: float | None = None, correction: float | None = None, where: _Mask = None, nan: _Nan = None, device: str | None = None, threads: int | None = None) -> tuple[_Answer, _Answer]:
    """The standard deviation and the mean in one pass, each rounded once.

    Arguments:
        x: an array or numbers
        axis: the axes that are reduced, an integer or several of them; without it all
        dtype: the type of both answers, one of floats
        keepdims: whether the reduced axes stay, with length 1
        ddof, correction: what is subtracted from the count in the divisor, by NumPy's name and by the array API's
        where: the elements that count: truth values of the shape of x, or of one that is broadcast to it
        nan: ``"propagate"``, ``"omit"`` or ``"raise"``: what NaNs do
        device, threads: as for ``sum``

    Raises:
        TypeError: an object that holds no numbers; a ``dtype`` that is none of floats; both ``ddof`` and ``correction``.
        ValueError: NaNs under ``nan="raise"``.

    >>> std_mean([1.0, 2.0, 3.0], ddof=1)
    (1.0, 2.0)
    >>> std_mean([2.0, 4.0, float("nan")], nan="omit")
    (1.0, 3.0)
    """
    return _with_mean("std", x, axis, dtype, keepdims, ddof=ddof, correction=correction, where=where, nan=nan, device=device, threads=threads)


def _with_mean(op: str, x: Any, *places: Any, **words: Any) -> tuple[Any, Any]:
    found = _warpfold.reduce(x, [op, "mean"], *places, **words)
    return found[op], found["mean"]
