"""Our reductions as operators of torch: ``torch.compile`` keeps them in its graphs.

Importing this module registers ``torch.ops.warpfold.reduce`` and ``reduce_pair``, with the shapes and
types of their answers and with derivatives. The functions here call them. ``torch.compile`` takes the
functions of ``warpfold`` for these, too, where it meets one that is called with a tensor.

>>> import torch, warpfold.torch
>>> @torch.compile(backend="eager", fullgraph=True)
... def spread(x):
...     return warpfold.torch.std(x, axis=0) + warpfold.sum(x)
>>> spread(torch.tensor([[1.0], [3.0]]))
tensor([5.])
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import _warpfold

_PAIRS = ("minmax", "argminmax")
_SCHEMA = "(Tensor x, str op, int[]? axis=None, ScalarType? dtype=None, bool keepdims=False, float? correction=None, str? nan=None)"

_library: Any = torch.library
# It is kept: what it registered goes with it.
_LIBRARY = _library.Library("warpfold", "DEF")
# A graph of CUDA is captured on a stream of its own, and ours is the default stream.
_TAGS = [getattr(torch.Tag, name) for name in ("pt2_compliant_tag", "cudagraph_unsafe") if hasattr(torch.Tag, name)]
_LIBRARY.define(f"reduce{_SCHEMA} -> Tensor", tags=_TAGS)
_LIBRARY.define(f"reduce_pair{_SCHEMA} -> (Tensor, Tensor)", tags=_TAGS)


def _reduce(x: Any, op: str, axis: Any = None, dtype: Any = None, keepdims: bool = False, correction: float | None = None, nan: Any = None) -> Any:
    axis = None if axis is None else tuple(axis)
    # ``reduce`` has all words, whatever the operation.
    return _warpfold.reduce(x.detach(), op, axis, dtype, keepdims, correction=correction, nan=nan)


_TYPES: dict[tuple[str, torch.dtype, torch.dtype | None], torch.dtype] = {}


def _answer_type(op: str, dtype: torch.dtype, out: torch.dtype | None) -> torch.dtype:
    key = (op, dtype, out)
    if key not in _TYPES:
        _TYPES[key] = getattr(torch, _warpfold._answer_type(op, dtype, out))
    return _TYPES[key]


def _reduced(x: Any, axis: Sequence[int] | None) -> list[bool]:
    """Which axes are reduced."""
    if axis is None:
        return [True] * x.dim()
    reduced = [False] * x.dim()
    for one in axis:
        place = one + x.dim() if one < 0 else one
        if not 0 <= place < x.dim():
            raise IndexError(f"axis {one} is out of range for an array of {x.dim()} axes")
        if reduced[place]:
            raise ValueError(f"axis {one} is named twice")
        reduced[place] = True
    return reduced


def _fake(x: Any, op: str, axis: Any = None, dtype: Any = None, keepdims: bool = False, correction: float | None = None, nan: str | None = None) -> Any:
    shape = [1 if gone else n for n, gone in zip(x.shape, _reduced(x, axis)) if keepdims or not gone]
    return x.new_empty(shape, dtype=_answer_type(op, x.dtype, dtype))


def _fake_pair(*args: Any, **words: Any) -> Any:
    return _fake(*args, **words), _fake(*args, **words)


for _name, _kernel, _shapes in [("reduce", _reduce, _fake), ("reduce_pair", _reduce, _fake_pair)]:
    _LIBRARY.impl(_name, _kernel, "CompositeExplicitAutograd")
    _library.register_fake(f"warpfold::{_name}", _shapes, lib=_LIBRARY)


def _context(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.op, ctx.axis, _, ctx.keepdims, ctx.correction, ctx.nan = inputs
    ctx.save_for_backward(x, output)


def _derivative(ctx: Any, grad: Any) -> Any:
    x, answer = ctx.saved_tensors
    reduced = _reduced(x, ctx.axis)

    def spread(y: Any) -> Any:
        """An answer for each output, at each of its elements."""
        if not ctx.keepdims:
            for place, gone in enumerate(reduced):
                y = y.unsqueeze(place) if gone else y
        return y.to(x.dtype).expand(x.shape)

    def count() -> Any:
        ones = present.to(torch.float64)
        return spread(torch.ops.warpfold.reduce(ones, "sum", ctx.axis, None, ctx.keepdims))

    omits = ctx.nan == "omit"
    present = ~x.isnan() if omits else torch.ones_like(x, dtype=torch.bool)
    g = spread(grad)
    if ctx.op == "sum":
        each = g
    elif ctx.op == "mean":
        each = g / count()
    elif ctx.op == "sumsq":
        each = 2 * x * g
    elif ctx.op == "norm1":
        each = x.sign() * g
    elif ctx.op == "norm2":
        norm = spread(answer)
        each = torch.where(norm == 0, 0, x / norm * g)
    elif ctx.op == "logsumexp":
        each = (x - spread(answer)).exp() * g
    elif ctx.op in ("var", "std"):
        mean = torch.ops.warpfold.reduce(x, "mean", ctx.axis, None, True, None, ctx.nan)
        each = (x - mean) * g / (count() - (ctx.correction or 0.0))
        if ctx.op == "var":
            each = 2 * each
        else:
            std = spread(answer)
            each = torch.where(std == 0, 0, each / std)
    else:
        raise NotImplementedError(f"warpfold has no derivative of {ctx.op}\nhint: detach the tensor first, or use torch's own function")
    each = torch.where(present, each, 0) if omits else each
    return each, None, None, None, None, None, None


def _no_derivative(ctx: Any, *grads: Any) -> Any:
    raise NotImplementedError(f"warpfold has no derivative of {ctx.op}\nhint: detach the tensor first, or use torch's own functions")


def _pair_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.op = inputs[1]


_library.register_autograd("warpfold::reduce", _derivative, setup_context=_context, lib=_LIBRARY)
_library.register_autograd("warpfold::reduce_pair", _no_derivative, setup_context=_pair_context, lib=_LIBRARY)


def _function(name: str) -> Callable[..., Any]:
    operator = torch.ops.warpfold.reduce_pair if name in _PAIRS else torch.ops.warpfold.reduce

    def function(
        x: torch.Tensor,
        /,
        axis: int | Sequence[int] | None = None,
        dtype: torch.dtype | None = None,
        *,
        keepdims: bool = False,
        correction: float | None = None,
        nan: str | None = None,
    ) -> Any:
        axes = [axis] if isinstance(axis, int) else axis
        return operator(x, name, axes, dtype, keepdims, correction, nan)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"As ``warpfold.{name}``, of a tensor and in graphs of torch."
    return function


def _in_graphs(name: str, function: Callable[..., Any]) -> None:
    """Lets the compiler take the package's function for ours."""

    def called(x: Any, /, axis: Any = None, *rest: Any, keepdims: bool = False, ddof: float | None = None, correction: float | None = None, dtype: Any = None, nan: str | None = None) -> Any:
        if rest:
            raise TypeError(f"warpfold.{name} takes the tensor and its axis by their places in a compiled function\nhint: name the other words")
        if ddof is not None and correction is not None:
            raise ValueError("ddof and correction are two names of the same: give one")
        return function(x, axis, dtype, keepdims=keepdims, correction=ddof if correction is None else correction, nan=nan)

    torch.compiler.substitute_in_graph(getattr(_warpfold, name), skip_signature_check=True)(called)


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
    "all",
    "any",
    "argmax",
    "argmin",
    "argminmax",
    "count",
    "count_nan",
    "count_nonzero",
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
    "std",
    "sum",
    "sumsq",
    "var",
]

for _name in __all__:
    _in_graphs(_name, globals()[_name])
del _name
