"""The cases of `questions.py` as tensors on a device, and torch's calls beside ours.

Figures are seconds of the wall's clock for a call among many back to back, the median of some rounds in turn: what a program waits for
that calls from Python. Every second case whose elements would stay in the L2 cache finds them there; all others go from one copy of their
elements to the next. Answers are compared with those of our CPU code, bit for bit,
where that does not take too long.
"""

import math
import statistics
import time

import numpy as np
import torch
import warpfold as wf

TYPES = {
    **{"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32},
    **{"i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool},
}
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Bytes that a case goes through, so that none of them are in the L2 cache, and copies of small ones.
COLD = 192 << 20
MOST_COPIES = 64
ROUNDS = 3
ROUND = 3e-3
# Seconds of a call that is not done again.
LONG = 0.2
# Bytes of a case whose answers are compared with the CPU's.
COMPARED = 256 << 20


class Torch:
    """Tensors of a device."""

    name = "torch"
    types = (*TYPES,)

    def __init__(self, device="cuda"):
        self.device = device

    def wait(self):
        if self.device != "cpu":
            torch.cuda.synchronize()

    def machine(self):
        where = torch.cuda.get_device_name() if self.device != "cpu" else "the CPU"
        return f"{where}, torch {torch.__version__}, CUDA {torch.version.cuda}"

    def buffer(self, case, base, copies):
        """Elements of a case, some times over, that repeat `base`."""
        kind = TYPES[case.dtype]
        words = torch.from_numpy(base)
        if words.dtype != kind:
            words = words.to(kind) if case.data != "random bits" else words.view(torch.uint8).view(kind)
        words = words.to(self.device)
        count = self.apart(case) * copies
        return words.repeat(-(-count // words.numel()))[:count]

    @staticmethod
    def apart(case):
        """Elements from one copy to the next."""
        return -(-case.span // 128) * 128

    def views(self, case, buffer, copies):
        at = [i * self.apart(case) + case.offset for i in range(copies)]
        return [torch.as_strided(buffer, case.shape, case.strides, i) for i in at]

    def seconds(self, call, views):
        """Seconds of a call: the mean over a few milliseconds of them."""
        begin = time.perf_counter()
        call(views[0])
        self.wait()
        first = time.perf_counter() - begin
        if first > LONG:
            return first
        count = min(max(int(ROUND / max(first, 5e-6)), 2), 400)
        begin = time.perf_counter()
        for i in range(count):
            call(views[i % len(views)])
        self.wait()
        return (time.perf_counter() - begin) / count

    def timed(self, case, number, piece, calls):
        """Seconds of ours, of ours on uniform data, of torch, and of ours one operation at a time; and whether the answers are the CPU's."""
        kind = "f32" if case.dtype == "bf16" else case.dtype
        size = TYPES[case.dtype].itemsize
        used = self.apart(case) * size
        cached = number % 2 == 0 and used <= 24 << 20
        copies = 1 if cached else min(max(COLD // used, 1), MOST_COPIES)
        buffer = self.buffer(case, piece(kind, case.data, np.random.default_rng(number)), copies)
        views = self.views(case, buffer, copies)
        plain = views
        if case.data != "uniform":
            plain = self.views(case, self.buffer(case, piece(kind, "uniform", np.random.default_rng(1)), copies), copies)
        mask = (torch.rand(case.shape, device=self.device) < 0.5) if case.where else None
        mine, alone = calls(case, mask)
        theirs = runs_of(case, views[0]) if case.segments or case.groups else theirs_of(case, mask)
        self.wait()
        runs = [(mine, views), (mine, plain), (theirs, views), *((call, views) for call in alone)]
        wrong = differs(mine(views[0]), mine_on_host(case, calls, buffer, mask)) if used <= COMPARED else None
        for call, its in runs[:3] if len(views) > 1 else []:
            call(its[1])
        times = zip(*([self.seconds(call, its) for call, its in runs] for _ in range(ROUNDS)))
        middle = [statistics.median(some) for some in times]
        return (*middle[:3], middle[3:], {"cached": cached, "wrong": wrong})


def mine_on_host(case, calls, buffer, mask):
    """Our CPU's answers."""
    host = torch.as_strided(buffer[: case.span].cpu(), case.shape, case.strides, case.offset)
    return calls(case, None if mask is None else mask.cpu())[0](host)


def flat(answer):
    """The tensors of an answer of any number of parts."""
    if isinstance(answer, torch.Tensor):
        return [answer.cpu().reshape(-1)]
    if isinstance(answer, (tuple, list, dict)):
        return [part for some in (answer.values() if isinstance(answer, dict) else answer) for part in flat(some)]
    return [torch.tensor(answer).reshape(-1)]


def differs(mine, other):
    """What of two answers is not the same, bit for bit, whatever a NaN's bits are; None if all is."""
    mine, other = flat(mine), flat(other)
    if len(mine) != len(other):
        return f"{len(mine)} and {len(other)} answers"
    for a, b in zip(mine, other):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        word = WORDS[a.dtype.itemsize]
        same = a.view(word) == b.view(word)
        if a.dtype.is_floating_point:
            same |= a.isnan() & b.isnan()
        if not bool(same.all()):
            at = int((~same).nonzero()[0])
            return f"{int((~same).sum())} of {a.numel()}, number {at}: {a[at].item()!r}, of the CPU {b[at].item()!r}"
    return None


def runs_of(case, x):
    """torch's calls on a tensor in segments, or in groups by key."""
    from questions import told

    columns = told(case, x)
    real = (lambda x: x) if case.dtype in ("f64", "f32", "f16", "bf16") else (lambda x: x.double())
    if case.segments:
        return lambda x: [torch.segment_reduce(real(x), op, offsets=columns[0]) for op in case.ops]
    names = {"sum": "sum", "mean": "mean", "min": "amin", "max": "amax"}

    def call(x):
        x = real(x)
        distinct, group, lengths = torch.unique(columns[0] if len(columns) == 1 else columns[0] * 100 + columns[1], return_inverse=True, return_counts=True)
        of = lambda values, name: torch.empty(len(distinct), dtype=values.dtype, device=x.device).scatter_reduce_(0, group, values, name, include_self=False)
        spread = lambda: of((x - of(x, "mean")[group]) ** 2, "sum") / (lengths - (case.ddof or 0))
        return [distinct, *(spread() if op == "var" else of(x, names[op]) for op in case.ops)]

    return call


def theirs_of(case, mask):
    """torch's calls on a tensor, one for each operation."""
    omit, axes = case.nan == "omit", list(case.axes)
    whole = len(axes) == len(case.shape)
    one, keep = None if whole else axes[0], {} if whole else {"keepdim": case.keepdims}
    to = {"dtype": torch.float64} if case.out else {}
    floats = case.dtype in ("f64", "f32", "f16", "bf16")

    def real(x):
        return x if floats else x.double()

    def chosen(x, otherwise):
        if mask is not None:
            return torch.where(mask, x, otherwise)
        return torch.where(x.isnan(), otherwise, x) if omit and floats else x

    def end(x, sign):
        info = torch.finfo(x.dtype) if floats else torch.iinfo(x.dtype)
        far = sign * math.inf if floats else (info.max if sign > 0 else info.min)
        found = (torch.amin if sign > 0 else torch.amax)(chosen(x, far), axes, case.keepdims)
        return (torch.minimum if sign > 0 else torch.maximum)(found, torch.ones((), dtype=x.dtype, device=x.device)) if case.initial else found

    def spread(x, root):
        x = real(x)
        if mask is None and not omit:
            x = x.double() if case.out else x
            return (torch.std if root else torch.var)(x, axes, correction=case.ddof or 0, keepdim=case.keepdims)
        keeps = ~x.isnan() if mask is None else mask
        n = keeps.sum(axes, keepdim=True)
        middle = torch.where(keeps, x, 0).sum(axes, keepdim=True, **to) / n
        found = torch.where(keeps, (x - middle) ** 2, 0).sum(axes) / (n.sum(axes) - (case.ddof or 0))
        return found.sqrt() if root else found

    def mean(x):
        if omit and floats and mask is None:
            return torch.nanmean(x, axes, case.keepdims, **to)
        if mask is not None:
            return torch.where(mask, x, 0).sum(axes, case.keepdims) / mask.sum(axes, case.keepdims)
        return torch.mean(real(x), axes, case.keepdims, **to)

    def total(x):
        if omit and floats and mask is None:
            found = torch.nansum(x, axes, case.keepdims, **to)
        else:
            found = torch.sum(chosen(x, 0), axes, case.keepdims, **to)
        return found + 1 if case.initial else found

    known = {
        "sum": total,
        "mean": mean,
        "var": lambda x: spread(x, False),
        "std": lambda x: spread(x, True),
        "min": lambda x: end(x, 1),
        "max": lambda x: end(x, -1),
        "norm1": lambda x: torch.linalg.vector_norm(chosen(real(x), 0), 1, axes, case.keepdims),
        "norm2": lambda x: torch.linalg.vector_norm(chosen(real(x), 0), 2, axes, case.keepdims),
        "norm-inf": lambda x: torch.linalg.vector_norm(chosen(real(x), 0), math.inf, axes, case.keepdims),
        "prod": lambda x: product(chosen(x, 1), axes),
        "minmax": lambda x: torch.aminmax(chosen(x, 0), **({} if whole else {"dim": one, **keep})) if (whole or len(axes) == 1) and not omit else (end(x, 1), end(x, -1)),
        "range": lambda x: end(x, -1) - end(x, 1),
        "count-nan": lambda x: x.isnan().sum(axes),
        "count-nonzero": lambda x: torch.count_nonzero(x, axes),
        "logsumexp": lambda x: torch.logsumexp(chosen(x, -math.inf), axes, case.keepdims),
        "argmin": lambda x: torch.argmin(chosen(x, math.inf), one, **keep),
        "argmax": lambda x: torch.argmax(chosen(x, -math.inf), one, **keep),
        "argminmax": lambda x: (torch.argmin(chosen(x, math.inf), one, **keep), torch.argmax(chosen(x, -math.inf), one, **keep)),
    }
    ops = [known[op] for op in case.ops]
    return lambda x: [op(x) for op in ops]


def product(x, axes):
    """Over one axis after the other, as torch has no other way."""
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis)
    return x
