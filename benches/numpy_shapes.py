"""NumPy's reduction of any view, for `peers.py --shapes`: a line for a case, as `cpu_shapes` of the CPU backend reads it.

The answer to each line is the seconds of a call: the processor time of this thread, which other processes do not disturb.
"""

import sys
import time

import numpy as np

TYPES = {"f64": "f8", "f32": "f4", "f16": "f2", "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "u8": "u1", "bool": "?", "u64": "u8", "u32": "u4", "u16": "u2"}
PIECE = 16 << 20
ROUND = 2e-3


def piece(dtype):
    rng = np.random.default_rng(1)
    kind = np.dtype(TYPES[dtype])
    count = PIECE // kind.itemsize
    if kind.kind == "f":
        return rng.random(count).astype(kind)
    if kind.kind == "b":
        return rng.random(count) < 0.5
    # Totals fit their type, as they do not of any 64 bits.
    low, high = (0, 1 << 32) if dtype == "i64" else (np.iinfo(kind).min, np.iinfo(kind).max + 1)
    return rng.integers(low, high, count, dtype=kind)


def call(op, x, y, axes):
    """The call that a user writes for it."""
    whole = len(axes) == x.ndim
    one = None if whole else axes[0]
    single = whole or len(axes) == 1
    axes = None if whole else axes

    def norm(order, general):
        if whole and order == 2:
            return lambda: np.linalg.norm(x)
        return (lambda: np.linalg.norm(x, order, one)) if single and not whole else general

    return {
        "sum": lambda: x.sum(axes),
        "mean": lambda: x.mean(axes),
        "min": lambda: x.min(axes),
        "max": lambda: x.max(axes),
        "argmin": lambda: x.argmin(one),
        "argmax": lambda: x.argmax(one),
        "var": lambda: x.var(axes),
        "std": lambda: x.std(axes),
        "norm1": norm(1, lambda: np.abs(x).sum(axes)),
        "norm2": norm(2, lambda: np.sqrt(np.square(x).sum(axes))),
        "norm-inf": norm(np.inf, lambda: np.abs(x).max(axes)),
        "prod": lambda: x.prod(axes),
        "any": lambda: x.any(axes),
        "all": lambda: x.all(axes),
        "count-nonzero": lambda: np.count_nonzero(x, axes),
        "dot": (lambda: np.vdot(x, y)) if whole else (lambda: np.vecdot(x, y, axis=one)),
    }[op]


def main():
    np.seterr(all="ignore")
    filled, buffer = None, None
    for line in sys.stdin:
        op, dtype, span, offset, shape, strides, axes = line.split()
        span, offset = int(span), int(offset)
        shape, strides, axes = (tuple(map(int, word.split(","))) for word in (shape, strides, axes))
        need = span * (2 if op == "dot" else 1)
        if filled != dtype:
            filled, part, buffer = dtype, piece(dtype), None
        if buffer is None or buffer.size < need:
            buffer = np.tile(part, -(-need // part.size))
        views = [
            np.lib.stride_tricks.as_strided(buffer[start:], shape, [s * buffer.itemsize for s in strides])
            for start in ([offset, span + offset] if op == "dot" else [offset])
        ]
        run = call(op, views[0], views[-1], axes)
        calls, batch, begin = 0, 1, time.thread_time()
        while True:
            # Asking for the time costs as much as a short call.
            for _ in range(batch):
                run()
            calls += batch
            batch = calls
            passed = time.thread_time() - begin
            if passed >= ROUND:
                break
        print(passed / calls, flush=True)


if __name__ == "__main__":
    main()
