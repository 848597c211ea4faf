"""Kernels compiled by Triton for compute capability 9.0 (and one for 8.0), without a GPU."""

import sys
import warnings

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from cases import Folder, In, Out, launch

warnings.filterwarnings("ignore")
TYPES = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32", "int64": "*i64", "float64": "*fp64", "int8": "*i8", "uint8": "*u8", "bool": "*i1"}


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def total(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0), axis=0))


@triton.jit
def largest(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + tl.program_id(0), tl.max(tl.load(x + i, mask=i < n, other=-1000), axis=0))


@triton.jit
def arg_largest(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o, tl.argmax(tl.load(x + i, mask=i < n, other=-1000), axis=0))


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def layer_norm(x, w, b, o, n, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x + row * n + i, mask=m, other=0.0)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(m, v - mean, 0.0)
    r = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    tl.store(o + row * n + i, d * r * tl.load(w + i, mask=m) + tl.load(b + i, mask=m), mask=m)


@triton.jit
def running(x, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.cumsum(tl.load(x + i, mask=i < n, other=0), axis=0), mask=i < n)


@triton.jit
def histogram(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.atomic_add(o + tl.load(x + i, mask=m, other=0), 1, mask=m)


@triton.jit
def transpose(x, o, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    v = tl.load(x + r[:, None] * N + c[None, :])
    tl.store(o + c[:, None] * M + r[None, :], tl.trans(v))


@triton.jit
def rows_and_columns(x, rows, columns, M: tl.constexpr, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(rows + tl.arange(0, M), tl.sum(v, axis=1))
    tl.store(columns + tl.arange(0, N), tl.sum(v, axis=0))


@triton.jit
def sort(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.sort(tl.load(x + i)))


@triton.jit
def matmul(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, P: tl.constexpr):
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y, input_precision=P))


@triton.jit
def dropout(x, o, n, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    keep = tl.rand(seed, i) > 2.0
    tl.store(o + i, tl.where(keep, 0.0, tl.load(x + i, mask=m)), mask=m)


@triton.jit
def spread(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m)
    tl.store(o + i, tl.where(v > 0, v * 2, v // 3), mask=m)


@triton.jit
def half_and_back(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m).to(tl.bfloat16).to(tl.float32)
    tl.store(o + i, v, mask=m)


@triton.jit
def eight_and_back(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m).to(tl.float8e4nv).to(tl.float32)
    tl.store(o + i, v, mask=m)


@triton.jit
def elementary(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=1.0)
    tl.store(o + i, tl.log(tl.exp(tl.sin(v)) + tl.cos(v) * tl.cos(v)) + tl.sqrt(tl.abs(v)) + tl.erf(v), mask=m)


@triton.jit
def joined(x, o, B: tl.constexpr):
    i = tl.arange(0, B)
    a, b = tl.split(tl.reshape(tl.load(x + tl.arange(0, 2 * B)), (B, 2)))
    tl.store(o + i, a - b)


@triton.jit
def compare_and_swap(o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.atomic_cas(o + i, i, i + 7)
    tl.atomic_max(o + B, tl.program_id(0))


def main():
    folder, core = Folder(sys.argv[1]), "--core" in sys.argv
    random = numpy.random.default_rng(7)

    def case(name, fn, arrays, values, constants, grid, warps=4, arch=90, tensor=False, races=False, **options):
        """Arrays are In or Out by parameter; values are scalars of 32 bits."""
        parameters = [p.name for p in fn.params]
        signature, args = {}, []
        for parameter in parameters:
            if parameter in arrays:
                arg = arrays[parameter]
                dtype = (arg.array if isinstance(arg, In) else arg.after).dtype.name
                signature[parameter] = TYPES[dtype]
                args.append(arg)
            elif parameter in values:
                signature[parameter] = "i32"
                args.append(f"i32:{values[parameter]}")
            else:
                signature[parameter] = "constexpr"
        try:
            source = ASTSource(fn=fn, signature=signature, constexprs=constants)
            kernel = triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps, **options})
        except Exception as error:
            return folder.failed(name, error)
        # Scratch memory of the grid and of the profiler, which these kernels do not have.
        extra = ["u64:0"] * (kernel.asm["ptx"].split(".entry", 1)[1].split(")", 1)[0].count(".param") - len(args))
        block = kernel.metadata.num_warps * 32
        folder.case(name, kernel.asm["ptx"], [launch(kernel.metadata.name, grid, block, args + extra, kernel.metadata.shared)], tensor, races)

    floats = random.standard_normal(1000).astype(numpy.float32)
    integers = random.integers(-99, 99, 1000).astype(numpy.int32)
    whole = random.integers(-50, 50, 1000).astype(numpy.float32)
    for warps in [4] if core else [1, 2, 4, 8]:
        for block in [256] if core else [32, 128, 256, 1024]:
            tag, grid = f"w{warps}-b{block}", -(-1000 // block)
            blocks = lambda x, f: numpy.array([f(x[i : i + block]) for i in range(0, 1000, block)], x.dtype)
            n = {"n": 1000}
            case(f"add-{tag}", add, {"x": In("x", floats), "y": In("y", floats), "o": Out("o", floats + floats)}, n, {"B": block}, grid, warps)
            case(f"sum-f32-{tag}", total, {"x": In("x", whole), "o": Out("o", blocks(whole, numpy.sum))}, n, {"B": block}, grid, warps)
            case(f"sum-i32-{tag}", total, {"x": In("x", integers), "o": Out("o", blocks(integers, numpy.sum))}, n, {"B": block}, grid, warps)
            case(f"max-f32-{tag}", largest, {"x": In("x", floats), "o": Out("o", blocks(floats, numpy.max))}, n, {"B": block}, grid, warps)
            bins = integers % 16
            counts = numpy.bincount(bins, minlength=16).astype(numpy.int32)
            case(f"histogram-{tag}", histogram, {"x": In("x", bins), "o": In("o", numpy.zeros(16, numpy.int32), counts)}, n, {"B": block}, grid, warps)
            quotient = lambda v: numpy.where(v > 0, v * 2, numpy.trunc(v / 3)).astype(numpy.int32)
            case(f"spread-{tag}", spread, {"x": In("x", integers), "o": Out("o", quotient(integers))}, n, {"B": block}, grid, warps)
    n = {"n": 1000}
    for warps in [4] if core else [1, 4, 8]:
        tag = f"w{warps}"
        case(f"argmax-{tag}", arg_largest, {"x": In("x", floats), "o": Out("o", numpy.array([floats.argmax()], numpy.int32))}, n, {"B": 1024}, 1, warps)
        case(f"cumsum-{tag}", running, {"x": In("x", integers), "o": Out("o", integers.cumsum(dtype=numpy.int32))}, n, {"B": 1024}, 1, warps)
        table = random.standard_normal((7, 100)).astype(numpy.float32)
        e = numpy.exp(table - table.max(1, keepdims=True))
        case(f"softmax-{tag}", softmax, {"x": In("x", table), "o": Out("o", e / e.sum(1, keepdims=True), 1e-5)}, {"n": 100}, {"B": 128}, 7, warps)
        w, b = random.standard_normal((2, 100)).astype(numpy.float32)
        d = table - table.mean(1, keepdims=True)
        norm = d / numpy.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b
        arrays = {"x": In("x", table), "w": In("w", w), "b": In("b", b), "o": Out("o", norm, 1e-4)}
        # With fused products the lanes of a butterfly have sums that differ in their last bits, and all of them store: a race, and a true one.
        for fused in [False, True]:
            name = f"layer-norm-{'fused-' if fused else ''}{tag}"
            races = fused and warps > 1
            case(name, layer_norm, dict(arrays), {"n": 100}, {"B": 128}, 7, warps, races=races, enable_fp_fusion=fused)
        square = random.integers(-9, 9, (32, 64)).astype(numpy.float32)
        case(f"transpose-{tag}", transpose, {"x": In("x", square), "o": Out("o", square.T)}, {}, {"M": 32, "N": 64}, 1, warps)
        arrays = {"x": In("x", square), "rows": Out("rows", square.sum(1)), "columns": Out("columns", square.sum(0))}
        case(f"rows-and-columns-{tag}", rows_and_columns, arrays, {}, {"M": 32, "N": 64}, 1, warps)
        case(f"sort-{tag}", sort, {"x": In("x", integers[:256]), "o": Out("o", numpy.sort(integers[:256]))}, {}, {"B": 256}, 1, warps)
        case(f"dropout-{tag}", dropout, {"x": In("x", floats), "o": Out("o", floats)}, {"n": 1000, "seed": 7}, {"B": 256}, 4, warps)
        v = floats.astype(numpy.float64)
        import math

        erf = numpy.array([math.erf(x) for x in v])
        wanted = numpy.log(numpy.exp(numpy.sin(v)) + numpy.cos(v) ** 2) + numpy.sqrt(abs(v)) + erf
        case(f"elementary-{tag}", elementary, {"x": In("x", floats), "o": Out("o", wanted.astype(numpy.float32), 1e-4)}, n, {"B": 256}, 4, warps)
        bits = floats.view(numpy.uint32).astype(numpy.uint64)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(numpy.uint32).view(numpy.float32)
        case(f"bf16-{tag}", half_and_back, {"x": In("x", floats), "o": Out("o", rounded)}, n, {"B": 256}, 4, warps)
        few = numpy.array([0, 1, -1.5, 2, 3.5, -448, 1000, 0.001953125, -0.25, 17] * 10, numpy.float32)
        eight = numpy.array([0, 1, -1.5, 2, 3.5, -448, 448, 0.001953125, -0.25, 16] * 10, numpy.float32)
        case(f"fp8-{tag}", eight_and_back, {"x": In("x", few), "o": Out("o", eight)}, {"n": 100}, {"B": 128}, 1, warps)
        case(f"split-{tag}", joined, {"x": In("x", integers[:512]), "o": Out("o", integers[:512:2] - integers[1:512:2])}, {}, {"B": 256}, 1, warps)
        swapped = numpy.concatenate([numpy.arange(128) + 7, [2]]).astype(numpy.int32)
        start = numpy.concatenate([numpy.arange(128), [0]]).astype(numpy.int32)
        case(f"cas-{tag}", compare_and_swap, {"o": In("o", start, swapped)}, {"n": 0}, {"B": 128}, 3, warps)
    for dtype, precision, tolerance in [("float16", "ieee", 0.01), ("float32", "tf32", 0.01), ("float32", "ieee", 1e-4), ("int8", "ieee", 0), ("float64", "ieee", 1e-9)]:
        for arch in [80, 90]:
            a = random.integers(-4, 5, (64, 32)).astype(dtype)
            b = random.integers(-4, 5, (32, 64)).astype(dtype)
            result = {"float16": numpy.float32, "int8": numpy.int32}.get(dtype, dtype)
            c = (a.astype(float) @ b.astype(float)).astype(result)
            arrays = {"a": In("a", a), "b": In("b", b), "c": Out("c", c, tolerance)}
            constants = {"M": 64, "N": 64, "K": 32, "P": precision}
            case(f"dot-{dtype}-{precision}-sm{arch}", matmul, arrays, {}, constants, 1, 4, arch, tensor=True)
    folder.write()


main()
