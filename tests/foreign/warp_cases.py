"""Kernels compiled by Warp for compute capability 9.0, without a GPU."""

import pathlib
import sys
import tempfile

import numpy
import warp

from cases import Folder, In, Out, Struct, launch

warp.config.quiet = True


@warp.kernel
def saxpy(x: warp.array(dtype=float), y: warp.array(dtype=float), a: float):
    i = warp.tid()
    y[i] = a * x[i] + y[i]


@warp.kernel
def total(x: warp.array(dtype=int), o: warp.array(dtype=int)):
    warp.atomic_add(o, 0, x[warp.tid()])


@warp.kernel
def lengths(x: warp.array(dtype=warp.vec3), o: warp.array(dtype=float)):
    i = warp.tid()
    o[i] = warp.dot(x[i], x[i])


@warp.kernel
def turned(x: warp.array(dtype=warp.vec3), o: warp.array(dtype=warp.vec3)):
    i = warp.tid()
    m = warp.mat33(0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    o[i] = m * x[i]


@warp.kernel
def blurred(x: warp.array2d(dtype=float), o: warp.array2d(dtype=float), n: int):
    i, j = warp.tid()
    s = float(0.0)
    for d in range(-1, 2):
        k = warp.clamp(j + d, 0, n - 1)
        s += x[i, k]
    o[i, j] = s


@warp.func
def collatz(n: int):
    k = int(0)
    while n != 1:
        if n % 2 == 0:
            n = n / 2
        else:
            n = 3 * n + 1
        k += 1
    return k


@warp.kernel
def steps(o: warp.array(dtype=int)):
    i = warp.tid()
    o[i] = collatz(i + 1)


@warp.kernel
def tiles(x: warp.array(dtype=float), o: warp.array(dtype=float)):
    i = warp.tid()
    t = warp.tile_load(x, shape=64, offset=i * 64)
    warp.tile_store(o, warp.tile_sum(t), offset=i)


def main():
    folder = Folder(sys.argv[1])
    random = numpy.random.default_rng(7)
    warp.init()
    where = pathlib.Path(tempfile.mkdtemp())
    try:
        warp.compile_aot_module("__main__", arch=90, module_dir=str(where), use_ptx=True)
    except Exception as error:
        folder.failed("module", error)
        return folder.write()
    (file,) = where.glob("*.ptx")
    text = file.read_text().rstrip("\0")

    def array(arg, shape):
        """`array_t`: data, gradient, shape[4], strides[4], ndim."""
        a = arg.array if isinstance(arg, In) else arg.after
        size = a.itemsize * a.size // int(numpy.prod(shape))
        strides = [size * int(numpy.prod(shape[k + 1 :])) for k in range(len(shape))]
        pad = lambda values: [*values, *([0] * (4 - len(values)))]
        return Struct(arg, "u64:0", *(f"i32:{x}" for x in pad(list(shape))), *(f"i32:{x}" for x in pad(strides)), f"i32:{len(shape)}", "i32:0")

    def case(name, kernel, dims, args, block=64, bounds=None):
        entry = next((line.split()[2].split("(")[0] for line in text.splitlines() if line.startswith(".visible .entry") and f" {kernel}_" in line and "forward" in line), None)
        if entry is None:
            return folder.failed(name, f"no kernel {kernel} in the module")
        # `launch_bounds_t`: shape, size, threads that share a coordinate.
        bounds = Struct(*(f"u32:{x}" for x in dims), f"u64:{int(numpy.prod(dims))}", "u64:1")
        total = int(numpy.prod(dims))
        folder.case(name, text, [launch(entry, -(-total // block), block, [bounds, *args])])

    f = random.standard_normal(100).astype(numpy.float32)
    g = random.standard_normal(100).astype(numpy.float32)
    expected = (numpy.float64(2) * f + g).astype(numpy.float32)
    case("saxpy", "saxpy", [100], [array(In("x", f), [100]), array(In("y", g, expected), [100]), "f32:2"])
    i = random.integers(-99, 99, 100).astype(numpy.int32)
    zero = numpy.zeros(1, numpy.int32)
    case("total", "total", [100], [array(In("x", i), [100]), array(In("o", zero, zero + i.sum()), [1])])
    v = random.integers(-9, 9, (50, 3)).astype(numpy.float32)
    case("lengths", "lengths", [50], [array(In("x", v), [50]), array(Out("o", (v * v).sum(1)), [50])])
    case("turned", "turned", [50], [array(In("x", v), [50]), array(Out("o", v[:, [1, 2, 0]]), [50])])
    t = random.integers(-9, 9, (8, 12)).astype(numpy.float32)
    p = numpy.pad(t, ((0, 0), (1, 1)), mode="edge")
    case("blurred", "blurred", [8, 12], [array(In("x", t), [8, 12]), array(Out("o", p[:, :-2] + p[:, 1:-1] + p[:, 2:]), [8, 12]), "i32:12"])

    def walk(n):
        k = 0
        while n != 1:
            n, k = (n // 2 if n % 2 == 0 else 3 * n + 1), k + 1
        return k

    case("steps", "steps", [100], [array(Out("o", numpy.array([walk(n + 1) for n in range(100)], numpy.int32)), [100])])
    folder.write()


main()
