"""Kernels compiled by Numba-CUDA for compute capability 9.0, without a GPU."""

import math
import sys

import numba
import numpy
from numba import cuda, float32, float64, int32, int64, uint64

from cases import Folder, In, Out, launch


def double(x, o, n):
    i = cuda.grid(1)
    if i < n:
        o[i] = x[i] * 2


def block_sum(x, o, n):
    s = cuda.shared.array(128, dtype=int32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = x[i] if i < n else 0
    cuda.syncthreads()
    half = 64
    while half > 0:
        if t < half:
            s[t] += s[t + half]
        cuda.syncthreads()
        half //= 2
    if t == 0:
        o[cuda.blockIdx.x] = s[0]


def warp_sum(x, o, n):
    i = cuda.grid(1)
    v = x[i] if i < n else int32(0)
    offset = 16
    while offset > 0:
        v += cuda.shfl_down_sync(0xFFFFFFFF, v, offset)
        offset //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(o, 0, v)


def atomics(x, o, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(o, 0, x[i])
        cuda.atomic.max(o, 1, x[i])
        cuda.atomic.min(o, 2, x[i])
        cuda.atomic.add(o, 3 + (x[i] & 3), 1)


def matmul(a, b, c):
    sa = cuda.shared.array((16, 16), dtype=float32)
    sb = cuda.shared.array((16, 16), dtype=float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for k in range(a.shape[1] // 16):
        sa[ty, tx] = a[y, tx + k * 16]
        sb[ty, tx] = b[ty + k * 16, x]
        cuda.syncthreads()
        for i in range(16):
            total += sa[ty, i] * sb[i, tx]
        cuda.syncthreads()
    c[y, x] = total


def local_array(x, o, n):
    a = cuda.local.array(8, dtype=int32)
    i = cuda.grid(1)
    if i < n:
        for k in range(8):
            a[k] = x[i] + k
        o[i] = a[x[i] & 7]


def elementary(x, o, n):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
        o[i] = math.sin(v) + math.exp(v) * math.sqrt(abs(v)) + math.log1p(abs(v)) + math.pow(abs(v), 1.5)


def mandel(o, w, h):
    x, y = cuda.grid(2)
    if x < w and y < h:
        cr, ci = -2.0 + 3.0 * x / w, -1.0 + 2.0 * y / h
        zr = zi = 0.0
        k = 0
        while k < 50 and zr * zr + zi * zi < 4.0:
            zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
            k += 1
        o[y * w + x] = k


def votes(x, o, n):
    i = cuda.grid(1)
    p = x[i] > 0
    o[i] = cuda.ballot_sync(0xFFFFFFFF, p) + cuda.any_sync(0xFFFFFFFF, p) + 2 * cuda.all_sync(0xFFFFFFFF, p)


def bits(x, o, n):
    i = cuda.grid(1)
    if i < n:
        o[i] = cuda.popc(x[i]) + 100 * cuda.clz(x[i]) + 10000 * cuda.ffs(x[i])


@cuda.jit(device=True)
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def greatest(x, o, n):
    i = cuda.grid(1)
    if i < n:
        o[i] = gcd(int64(abs(x[i]) + 1), int64(360))


def early(x, o, n):
    i = cuda.grid(1)
    s = cuda.shared.array(64, dtype=int32)
    s[cuda.threadIdx.x] = 0
    if i >= n:
        return
    s[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    o[i] = s[63 - cuda.threadIdx.x]


def main():
    folder, core = Folder(sys.argv[1]), "--core" in sys.argv
    random = numpy.random.default_rng(7)

    def array(arg):
        """The parameters that an array is: owners, elements, bytes of one, data, shape, strides."""
        a = arg.array if isinstance(arg, In) else arg.after
        words = [a.size, a.itemsize]
        return ["u64:0", "u64:0", *(f"i64:{x}" for x in words), arg, *(f"i64:{x}" for x in a.shape), *(f"i64:{x}" for x in a.strides)]

    def case(name, function, signature, args, grid, block, **options):
        try:
            text, _ = cuda.compile_ptx(function, signature, cc=(9, 0), **options)
        except Exception as error:
            return folder.failed(name, error)
        entry = text.split(".visible .entry ", 1)[1].split("(", 1)[0]
        flat = []
        for arg in args:
            flat += array(arg) if isinstance(arg, (In, Out)) else [arg]
        folder.case(name, text, [launch(entry, grid, block, flat)])

    i = random.integers(-99, 99, 1000).astype(numpy.int32)
    f = random.standard_normal(1000).astype(numpy.float32)
    ints, floats, n = int32[::1], float32[::1], "i32:1000"
    s3 = (ints, ints, int32)
    for tag, options in [("opt", {}), ("debug", {"debug": True, "opt": False}), ("lineinfo", {"lineinfo": True})][: 1 if core else 3]:
        case(f"double-{tag}", double, (floats, floats, int32), [In("x", f), Out("o", f * 2), n], 8, 128, **options)
        sums = numpy.array([i[k : k + 128].sum() for k in range(0, 1000, 128)], numpy.int32)
        case(f"block-sum-{tag}", block_sum, s3, [In("x", i), Out("o", sums), n], 8, 128, **options)
        one = numpy.zeros(1, numpy.int32)
        case(f"warp-sum-{tag}", warp_sum, s3, [In("x", i), In("o", one, one + i.sum()), n], 8, 128, **options)
        expected = numpy.array([i.sum(), i.max(), i.min(), *numpy.bincount(i & 3, minlength=4)], numpy.int32)
        start = numpy.array([0, -1000, 1000, 0, 0, 0, 0], numpy.int32)
        case(f"atomics-{tag}", atomics, s3, [In("x", i), In("o", start, expected), n], 8, 128, **options)
        a, b = random.integers(-4, 5, (2, 32, 32)).astype(numpy.float32)
        tables = (float32[:, ::1], float32[:, ::1], float32[:, ::1])
        case(f"matmul-{tag}", matmul, tables, [In("a", a), In("b", b), Out("c", a @ b)], [2, 2], [16, 16], **options)
        case(f"local-{tag}", local_array, s3, [In("x", i), Out("o", i + (i & 7)), n], 8, 128, **options)
        v = f.astype(numpy.float64)
        wanted = numpy.sin(v) + numpy.exp(v) * numpy.sqrt(abs(v)) + numpy.log1p(abs(v)) + abs(v) ** 1.5
        doubles = (float64[::1], float64[::1], int32)
        case(f"elementary-{tag}", elementary, doubles, [In("x", v), Out("o", wanted, 1e-12), n], 8, 128, **options)
        single = (floats, floats, int32)
        case(f"elementary-f32-{tag}", elementary, single, [In("x", f), Out("o", wanted.astype(numpy.float32), 1e-4), n], 8, 128, **options)
        count = numpy.zeros((20, 30), numpy.int32)
        for y in range(20):
            for x in range(30):
                c, z, k = complex(-2 + 3 * x / 30, -1 + 2 * y / 20), 0j, 0
                while k < 50 and z.real * z.real + z.imag * z.imag < 4:
                    z, k = complex(z.real * z.real - z.imag * z.imag + c.real, 2 * z.real * z.imag + c.imag), k + 1
                count[y, x] = k
        case(f"mandel-{tag}", mandel, (ints, int32, int32), [Out("o", count.ravel()), "i32:30", "i32:20"], [4, 3], [8, 8], **options)
        w = i[:128].reshape(4, 32) > 0
        signed = lambda x: x - (1 << 32) if x >> 31 else x
        ballots = numpy.array([signed(sum(int(p) << k for k, p in enumerate(row))) + int(row.any()) + 2 * int(row.all()) for row in w])
        case(f"votes-{tag}", votes, (ints, int64[::1], int32), [In("x", i[:128]), Out("o", numpy.repeat(ballots, 32)), n], 1, 128, **options)
        u = random.integers(1, 2**32, 1000).astype(numpy.uint64)
        counted = [bin(x).count("1") + 100 * (64 - int(x).bit_length()) + 10000 * ((int(x) & -int(x)).bit_length()) for x in u.tolist()]
        case(f"bits-{tag}", bits, (uint64[::1], int64[::1], int32), [In("x", u), Out("o", numpy.array(counted)), n], 8, 128, **options)
        divisors = numpy.gcd(abs(i) + 1, 360).astype(numpy.int32)
        case(f"gcd-{tag}", greatest, s3, [In("x", i), Out("o", divisors), n], 8, 128, **options)
        mirrored = numpy.concatenate([i[:960].reshape(-1, 64)[:, ::-1].ravel(), numpy.concatenate([i[960:1000], numpy.zeros(24, numpy.int32)])[::-1][:40]])
        case(f"early-{tag}", early, s3, [In("x", i), Out("o", mirrored.astype(numpy.int32)), n], 16, 64, **options)
    folder.write()


main()
