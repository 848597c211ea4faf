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

import hashlib
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


# More vectors than this do not add up: see ``Partial.to_vector``.
_MOST_VECTORS = 1 << 15


def all_reduce(
    x: Any,
    op: Any = "sum",
    group: Any = None,
    *,
    axis: int | Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    correction: float | None = None,
    nan: Any = None,
    start: int | None = None,
) -> Any:
    """The answers for the tensors of all ranks together, on every rank: the bits do not depend on how many there are.

    All ranks call it with the same words. States that add up travel as int64 that the group sums: 400 bytes for a sum
    of float64, 96 for one of float32, for each output; others travel as bytes. They are made where the tensor lies, and pass
    through the host's memory. There are no derivatives.

    Arguments:
        x: this rank's tensor, several whose elements are taken together, as gradients, or a ``warpfold.Partial``, which
            says itself what is asked
        op: the name of an operation, or names, whose answers come as a dictionary
        group: a process group of ``torch.distributed``; without it all ranks
        axis: the axes that are reduced beside the ranks; without it all. The others have the same lengths on all ranks
        dtype: of the answer
        correction: what variances subtract from the count
        nan: "propagate", the default, "omit" or "raise"
        start: where this rank's elements begin, for operations that answer positions

    Raises:
        ValueError: ranks ask different questions; all of them raise it, before anything is reduced.
        RuntimeError: another rank could not give its share.
    """
    from torch import distributed

    # Groups of NCCL have no tensors of the host.
    device = torch.device("cuda" if distributed.get_backend(group) == "nccl" else "cpu")
    partial, vector, failure, told = x, None, None, ""
    try:
        if not isinstance(x, _warpfold.Partial):
            partial = _warpfold.Partial(op, axis=axis, correction=correction, nan=nan)
            for one in x if isinstance(x, (list, tuple)) else [x]:
                partial.absorb(one.detach(), start=start)
        vector = partial.to_vector()
        rules = partial.__reduce__()[2][1:4]
        told = f"{', '.join(partial.ops)} over {partial.dtype} in the shape {partial.shape} under {rules} as {dtype} in warpfold {_warpfold.__version__}"
    except Exception as error:
        failure = error
    digest = int.from_bytes(hashlib.blake2b(told.encode(), digest_size=7).digest(), "big")
    asked = torch.tensor([failure is not None, digest, -digest], dtype=torch.int64, device=device)
    distributed.all_reduce(asked, distributed.ReduceOp.MAX, group)
    failed, most, least = asked.tolist()
    if failure is not None:
        raise failure
    if failed:
        raise RuntimeError("another rank cannot give its share\nhint: that rank's own message says why")
    if most != -least:
        raise ValueError(f"ranks ask different questions: this one asks for {told}\nhint: all ranks call all_reduce with the same words and one type")
    ranks = distributed.get_world_size(group)
    if vector is None or ranks > _MOST_VECTORS:
        parts: list[Any] = [None] * ranks
        distributed.all_gather_object(parts, partial, group)
        whole = parts[0]
        for part in parts[1:]:
            whole += part
    else:
        sums = torch.from_dlpack(vector).to(device)
        distributed.all_reduce(sums, group=group)
        whole = partial.from_vector(sums.cpu())
    where = x[0].device if isinstance(x, (list, tuple)) else getattr(x, "device", device)
    answers = whole.finish(dtype=dtype)

    def tensor(answer: Any, name: str) -> Any:
        if isinstance(answer, tuple):
            return tuple(tensor(one, name) for one in answer)
        # One without axes is a number of Python.
        kind = getattr(torch, _warpfold._answer_type(name, partial.dtype, dtype))
        return torch.as_tensor(answer if isinstance(answer, (bool, int, float)) else torch.from_dlpack(answer), dtype=kind).to(where)

    if isinstance(answers, dict):
        return {name: tensor(answer, name) for name, answer in answers.items()}
    return tensor(answers, partial.ops[0])


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
    "all_reduce",
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
    if _name != "all_reduce":
        _in_graphs(_name, globals()[_name])
del _name
