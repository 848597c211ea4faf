"""CUDA C++ compiled by NVRTC: CUB's blocks, cooperative groups, libcu++, and plain kernels."""

import ctypes
import importlib.util
import pathlib
import sys

import numpy

from cases import Folder, In, Out, launch

PACKAGES = pathlib.Path(importlib.util.find_spec("nvidia").submodule_search_locations[0])


class Nvrtc:
    """The few functions of the compiler that are needed."""

    def __init__(self):
        (path,) = [p for p in PACKAGES.rglob("libnvrtc.so.*") if not p.name.endswith(".alt.so")]
        for builtins in sorted(path.parent.glob("libnvrtc-builtins.so*")):
            ctypes.CDLL(str(builtins))
        self.library = ctypes.CDLL(str(path))
        found = {p.parent for name in ["cuda_fp16.h", "cooperative_groups.h"] for p in PACKAGES.rglob(name)}
        found |= {p.parent.parent for name in ["cub/cub.cuh", "crt/mma.h"] for p in PACKAGES.rglob(name)}
        self.include = sorted(str(p) for p in found)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: status {status}")

    def text(self, program, what):
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode()

    def compile(self, source, compute, *options):
        program = ctypes.c_void_p()
        self.call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"case.cu", 0, None, None)
        flags = [f"--gpu-architecture=compute_{compute}", "--std=c++17", "--device-as-default-execution-space", "-lineinfo", *options]
        flags += [f"-I{folder}" for folder in self.include]
        try:
            self.call("nvrtcCompileProgram", program, len(flags), (ctypes.c_char_p * len(flags))(*[f.encode() for f in flags]))
        except RuntimeError as error:
            log = [line for line in self.text(program, "ProgramLog").splitlines() if "error" in line]
            raise RuntimeError(log[0] if log else str(error)) from error
        return self.text(program, "PTX")


# The whole of CUB is not for NVRTC: its headers are, one by one.
BLOCKS = ["reduce", "scan", "radix_sort", "merge_sort", "load", "store", "adjacent_difference", "histogram"]
CUB = "".join(f"#include <cub/block/block_{name}.cuh>\n" for name in BLOCKS)
CUB += "#include <cub/warp/warp_reduce.cuh>\n#include <cub/warp/warp_scan.cuh>\n"
GROUPS = "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n#include <cooperative_groups/scan.h>\nnamespace cg = cooperative_groups;\n"
KERNEL = 'extern "C" __global__ void k'
CTYPES = {"int32": "int", "float32": "float", "int64": "long long", "float64": "double", "uint8": "unsigned char", "uint32": "unsigned", "int16": "short"}


def main():
    folder, core, compute = Folder(sys.argv[1]), "--core" in sys.argv, sys.argv[2]
    nvrtc = Nvrtc()
    random = numpy.random.default_rng(7)

    def case(name, source, args, grid=1, block=128, tensor=False, arch=compute, options=(), **shape):
        try:
            text = nvrtc.compile(source, arch, *options)
        except Exception as error:
            return folder.failed(name, error)
        folder.case(name, text, [launch("k", grid, block, args, **shape)], tensor)

    def numbers(dtype, n):
        return random.integers(-40, 40, n).astype(dtype) if dtype != "uint8" else random.integers(0, 9, n).astype(dtype)

    # CUB, block by block.
    for dtype in ["int32", "float32"] if core else ["int32", "float32", "int64", "float64", "int16", "uint8"]:
        t = CTYPES[dtype]
        for threads in [128] if core else [32, 96, 128, 256]:
            tag, four = f"{dtype}-{threads}", 4 * threads
            x = numbers(dtype, four)
            items = f"using T = {t}; constexpr int N = {threads};\n"
            load = f"T v[4]; for (int i = 0; i < 4; i++) v[i] = in[threadIdx.x * 4 + i];"
            store = "for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = v[i];"
            both = f"{KERNEL}(const T *in, T *out)"
            io = lambda after: [In("in", x), Out("out", after)]
            with numpy.errstate(all="ignore"):
                total = x.sum(dtype=dtype)
                running = x.cumsum(dtype=dtype)
            algorithms = ["WARP_REDUCTIONS"] if core else ["WARP_REDUCTIONS", "RAKING", "RAKING_COMMUTATIVE_ONLY"]
            for algorithm in algorithms:
                case(
                    f"block-reduce-{algorithm.lower()}-{tag}",
                    f"{CUB}{items}{both} {{ using R = cub::BlockReduce<T, N, cub::BLOCK_REDUCE_{algorithm}>; __shared__ typename R::TempStorage s; {load}"
                    " T r = R(s).Sum(v); if (threadIdx.x == 0) *out = r; }",
                    io(numpy.array([total])), block=threads,
                )
            for algorithm in ["RAKING"] if core else ["RAKING", "RAKING_MEMOIZE", "WARP_SCANS"]:
                case(
                    f"block-scan-{algorithm.lower()}-{tag}",
                    f"{CUB}{items}{both} {{ using S = cub::BlockScan<T, N, cub::BLOCK_SCAN_{algorithm}>; __shared__ typename S::TempStorage s; {load}"
                    f" S(s).InclusiveSum(v, v); {store} }}",
                    io(running), block=threads,
                )
            case(
                f"block-radix-sort-{tag}",
                f"{CUB}{items}{both} {{ using S = cub::BlockRadixSort<T, N, 4>; __shared__ typename S::TempStorage s; {load} S(s).Sort(v); {store} }}",
                io(numpy.sort(x)), block=threads,
            )
            case(
                f"block-merge-sort-{tag}",
                f"{CUB}{items}struct L {{ __device__ bool operator()(T a, T b) const {{ return a < b; }} }};\n"
                f"{both} {{ using S = cub::BlockMergeSort<T, N, 4>; __shared__ typename S::TempStorage s; {load} S(s).Sort(v, L()); {store} }}",
                io(numpy.sort(x)), block=threads,
            )
            for algorithm in ["TRANSPOSE"] if core else ["DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE", "WARP_TRANSPOSE"]:
                if algorithm == "WARP_TRANSPOSE" and threads % 32:
                    continue
                case(
                    f"block-load-{algorithm.lower()}-{tag}",
                    f"{CUB}{items}{KERNEL}(T *in, T *out) {{ using L = cub::BlockLoad<T, N, 4, cub::BLOCK_LOAD_{algorithm}>; using S = cub::BlockStore<T, N, 4, cub::BLOCK_STORE_{algorithm}>;"
                    " __shared__ union { typename L::TempStorage l; typename S::TempStorage s; } u; T v[4]; L(u.l).Load(in, v); for (auto &x : v) x = x + x;"
                    " __syncthreads(); S(u.s).Store(out, v); }",
                    io((x + x).astype(dtype)), block=threads,
                )
            y = x[: four - 5]
            case(
                f"block-guarded-{tag}",
                f"{CUB}{items}{KERNEL}(T *in, T *out, int n) {{ using L = cub::BlockLoad<T, N, 4, cub::BLOCK_LOAD_TRANSPOSE>; using S = cub::BlockStore<T, N, 4, cub::BLOCK_STORE_TRANSPOSE>;"
                " __shared__ union { typename L::TempStorage l; typename S::TempStorage s; } u; T v[4]; L(u.l).Load(in, v, n);"
                " __syncthreads(); S(u.s).Store(out, v, n); }",
                [In("in", y), Out("out", y), f"i32:{len(y)}"], block=threads,
            )
            case(
                f"block-partial-{tag}",
                f"{CUB}{items}{KERNEL}(const T *in, T *out, int n) {{ using R = cub::BlockReduce<T, N>; __shared__ typename R::TempStorage s; T v; if (threadIdx.x < n) v = in[threadIdx.x];"
                " T r = R(s).Sum(v, n); if (threadIdx.x == 0) *out = r; }",
                [In("in", x), Out("out", numpy.array([x[: threads - 7].sum(dtype=dtype)])), f"i32:{threads - 7}"], block=threads,
            )
            case(
                f"warp-reduce-{tag}",
                f"{CUB}{items}{both} {{ using R = cub::WarpReduce<T>; __shared__ typename R::TempStorage s[N / 32]; T r = R(s[threadIdx.x / 32]).Sum(in[threadIdx.x]);"
                " if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = r; }",
                io(x[:threads].reshape(-1, 32).sum(1, dtype=dtype)), block=threads,
            )
            case(
                f"warp-scan-16-{tag}",
                f"{CUB}{items}{both} {{ using R = cub::WarpScan<T, 16>; __shared__ typename R::TempStorage s[N / 16]; T r; R(s[threadIdx.x / 16]).InclusiveSum(in[threadIdx.x], r); out[threadIdx.x] = r; }}",
                io(x[:threads].reshape(-1, 16).cumsum(1, dtype=dtype).ravel()), block=threads,
            )
            case(
                f"block-adjacent-{tag}",
                f"{CUB}{items}struct D {{ __device__ T operator()(T a, T b) const {{ return a - b; }} }};\n"
                f"{both} {{ using A = cub::BlockAdjacentDifference<T, N>; __shared__ typename A::TempStorage s; {load} T w[4]; A(s).SubtractLeft(v, w, D());"
                " for (int i = 0; i < 4; i++) out[threadIdx.x * 4 + i] = w[i]; }",
                io(numpy.concatenate([x[:1], x[1:] - x[:-1]])), block=threads,
            )
    bytes_ = random.integers(0, 16, 512).astype(numpy.uint8)
    counts = numpy.bincount(bytes_, minlength=16).astype(numpy.uint32)
    for algorithm in ["ATOMIC"] if core else ["ATOMIC", "SORT"]:
        case(
            f"block-histogram-{algorithm.lower()}",
            f"{CUB}{KERNEL}(const unsigned char *in, unsigned *out) {{ using H = cub::BlockHistogram<unsigned char, 128, 4, 16, cub::BLOCK_HISTO_{algorithm}>; __shared__ typename H::TempStorage s; __shared__ unsigned h[16];"
            " unsigned char v[4]; for (int i = 0; i < 4; i++) v[i] = in[threadIdx.x * 4 + i]; H(s).Histogram(v, h); __syncthreads(); if (threadIdx.x < 16) out[threadIdx.x] = h[threadIdx.x]; }",
            [In("in", bytes_), Out("out", counts)],
        )

    # Cooperative groups.
    i = random.integers(-99, 99, 512).astype(numpy.int32)
    zero = numpy.zeros(1, numpy.int32)
    total = numpy.array([i.sum()], numpy.int32)
    case(
        "cg-tiles",
        f"{GROUPS}{KERNEL}(const int *in, int *out) {{ auto t = cg::tiled_partition<8>(cg::this_thread_block()); int r = cg::reduce(t, in[threadIdx.x], cg::plus<int>()); if (t.thread_rank() == 0) out[threadIdx.x / 8] = r; }}",
        [In("in", i), Out("out", i[:128].reshape(-1, 8).sum(1, dtype=numpy.int32))],
    )
    case(
        "cg-large-tile",
        f"#define _CG_ABI_EXPERIMENTAL\n{GROUPS}{KERNEL}(const int *in, int *out) {{ auto t = cg::tiled_partition<32>(cg::this_thread_block()); int r = cg::inclusive_scan(t, in[threadIdx.x]); out[threadIdx.x] = r; }}",
        [In("in", i), Out("out", i[:128].reshape(-1, 32).cumsum(1, dtype=numpy.int32).ravel())],
    )
    case(
        "cg-coalesced",
        f"{GROUPS}{KERNEL}(const int *in, int *out) {{ if (in[threadIdx.x] > 0) {{ auto g = cg::coalesced_threads(); int r = cg::reduce(g, in[threadIdx.x], cg::plus<int>()); if (g.thread_rank() == 0) atomicAdd(out, r); }} }}",
        [In("in", i), In("out", zero, zero + i[:128][i[:128] > 0].sum())],
    )
    case(
        "cg-block",
        f"{GROUPS}{KERNEL}(const int *in, int *out) {{ __shared__ int s[128]; auto b = cg::this_thread_block(); s[b.thread_rank()] = in[threadIdx.x]; b.sync(); out[threadIdx.x] = s[127 - b.thread_rank()]; }}",
        [In("in", i), Out("out", i[127::-1])],
    )
    case(
        "cg-grid",
        f"{GROUPS}{KERNEL}(const int *in, int *part, int *out) {{ auto g = cg::this_grid(); int i = g.thread_rank(); int t = 0; for (int k = i; k < 512; k += g.size()) t += in[k]; part[i] = t; g.sync();"
        " if (i == 0) { int s = 0; for (int k = 0; k < g.size(); k++) s += part[k]; *out = s; } }",
        [In("in", i), "part:i32:128", Out("out", total)], grid=4, block=32, cooperative=True,
    )
    case(
        "cg-labeled",
        f"{GROUPS}{KERNEL}(const int *in, int *out) {{ auto w = cg::tiled_partition<32>(cg::this_thread_block()); auto g = cg::labeled_partition(w, threadIdx.x % 3); out[threadIdx.x] = g.size(); }}",
        [In("in", i), Out("out", numpy.array([sum(1 for j in range(k // 32 * 32, k // 32 * 32 + 32) if j % 3 == k % 3) for k in range(128)], numpy.int32))],
    )
    case(
        "cg-cluster",
        f"{GROUPS}{KERNEL}(const int *in, int *out) {{ __shared__ int s; auto c = cg::this_cluster(); int r = __reduce_add_sync(~0u, in[blockIdx.x * 32 + threadIdx.x]); if (threadIdx.x == 0) s = r; c.sync();"
        " if (c.block_rank() == 0 && threadIdx.x == 0) { int t = 0; for (int k = 0; k < c.num_blocks(); k++) t += *c.map_shared_rank(&s, k); out[blockIdx.x / 4] = t; } c.sync(); }",
        [In("in", i), Out("out", i[:256].reshape(2, 128).sum(1, dtype=numpy.int32))], grid=8, block=32, cluster=[4],
    )
    case(
        "cg-memcpy-async",
        f"{GROUPS}#include <cooperative_groups/memcpy_async.h>\n{KERNEL}(const int *in, int *out) {{ __shared__ __align__(16) int s[128]; auto b = cg::this_thread_block(); cg::memcpy_async(b, s, in, sizeof(s)); cg::wait(b); out[threadIdx.x] = s[127 - threadIdx.x]; }}",
        [In("in", i), Out("out", i[127::-1])],
    )

    # libcu++.
    case(
        "cuda-atomic",
        f"#include <cuda/atomic>\n{KERNEL}(const int *in, int *out) {{ cuda::atomic_ref<int, cuda::thread_scope_device> a(*out); a.fetch_add(in[blockIdx.x * 128 + threadIdx.x], cuda::memory_order_relaxed); }}",
        [In("in", i), In("out", zero, total)], grid=4,
    )
    case(
        "cuda-flag",
        f"#include <cuda/atomic>\n{KERNEL}(int *data, int *flag, int *out) {{ cuda::atomic_ref<int, cuda::thread_scope_device> f(*flag); if (blockIdx.x == 0) {{ if (threadIdx.x == 0) {{ *data = 42; f.store(1, cuda::memory_order_release); }} }}"
        " else if (threadIdx.x == 0) { while (f.load(cuda::memory_order_acquire) == 0); *out = *data; } }",
        ["data:i32:1", In("flag", zero), Out("out", zero + 42)], grid=2, block=32,
    )
    case(
        "cuda-barrier",
        f"#include <cuda/barrier>\n{KERNEL}(const int *in, int *out) {{ __shared__ cuda::barrier<cuda::thread_scope_block> b; __shared__ int s[128]; if (threadIdx.x == 0) init(&b, 128); __syncthreads(); s[threadIdx.x] = in[threadIdx.x]; b.arrive_and_wait(); out[threadIdx.x] = s[127 - threadIdx.x]; }}",
        [In("in", i), Out("out", i[127::-1])],
    )
    case(
        "cuda-pipeline",
        f"#include <cuda/pipeline>\n{KERNEL}(const int *in, int *out) {{ __shared__ __align__(16) int s[2][128]; auto p = cuda::make_pipeline(); int t = 0; for (int k = 0; k < 5; k++) {{ if (k < 4) {{ p.producer_acquire(); cuda::memcpy_async(&s[k % 2][threadIdx.x], in + k * 128 + threadIdx.x, sizeof(int), p); p.producer_commit(); }}"
        " if (k > 0) { if (k < 4) cuda::pipeline_consumer_wait_prior<1>(p); else cuda::pipeline_consumer_wait_prior<0>(p); t += s[(k - 1) % 2][threadIdx.x]; p.consumer_release(); } } out[threadIdx.x] = t; }",
        [In("in", i), Out("out", i.reshape(4, 128).sum(0, dtype=numpy.int32))],
    )

    # Halves, printing, shuffles, division, dynamic indices, classic tails.
    h = random.standard_normal(256).astype(numpy.float16)
    case(
        "half2",
        f"#include <cuda_fp16.h>\n{KERNEL}(const __half2 *in, __half2 *out) {{ out[threadIdx.x] = __hadd2(in[threadIdx.x], in[threadIdx.x]); }}",
        [In("in", h), Out("out", h + h)],
    )
    case(
        "half-sum",
        f"#include <cuda_fp16.h>\n{KERNEL}(const __half *in, float *out) {{ float v = __half2float(in[threadIdx.x]); for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d); if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = v; }}",
        [In("in", h), Out("out", h[:128].astype(numpy.float32).reshape(4, 32).sum(1), 1e-3)],
    )
    case(
        "struct-by-value",
        f"struct S {{ int v[8]; }};\n__device__ __noinline__ int pick(S s, int i) {{ return s.v[i]; }}\n{KERNEL}(const int *in, int *out) {{ S s; for (int i = 0; i < 8; i++) s.v[i] = in[i] + threadIdx.x; out[threadIdx.x] = pick(s, threadIdx.x % 8); }}",
        [In("in", i), Out("out", numpy.array([i[k % 8] + k for k in range(128)], numpy.int32))],
    )
    case(
        "kernel-struct",
        f"struct S {{ const int *in; int n; int *out; }};\n{KERNEL}(S s) {{ if (threadIdx.x < s.n) s.out[threadIdx.x] = s.in[threadIdx.x] * 3; }}",
        [__import__("cases").Struct(In("in", i), "i32:100", Out("out", i[:100] * 3))],
    )
    case(
        "last-block",
        f"__device__ unsigned ticket;\n{KERNEL}(const int *in, int *part, int *out) {{ __shared__ bool last; int v = in[blockIdx.x * 128 + threadIdx.x]; v = __reduce_add_sync(~0u, v); __shared__ int s[4]; if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = v; __syncthreads();"
        " if (threadIdx.x == 0) { part[blockIdx.x] = s[0] + s[1] + s[2] + s[3]; __threadfence(); last = atomicAdd(&ticket, 1) == gridDim.x - 1; } __syncthreads();"
        " if (last && threadIdx.x == 0) { __threadfence(); int t = 0; for (int k = 0; k < gridDim.x; k++) t += ((volatile int *)part)[k]; *out = t; } }",
        [In("in", i), "part:i32:4", Out("out", total)], grid=4,
    )
    d = random.standard_normal(128)
    case(
        "math",
        f"{KERNEL}(const double *in, double *out) {{ double v = in[threadIdx.x]; out[threadIdx.x] = sin(v) + exp(v) + log(fabs(v)) + tgamma(fabs(v) + 1) + fmod(v, 0.3) + rsqrt(fabs(v)); }}",
        [In("in", d), Out("out", numpy.sin(d) + numpy.exp(d) + numpy.log(abs(d)) + numpy.array([__import__("math").gamma(abs(v) + 1) for v in d]) + numpy.fmod(d, 0.3) + abs(d) ** -0.5, 1e-12)],
    )
    u = random.integers(1, 2**63, 128).astype(numpy.uint64)
    case(
        "wide-division",
        f"{KERNEL}(const unsigned long long *in, unsigned long long *out) {{ unsigned __int128 v = (unsigned __int128)in[threadIdx.x] * in[127 - threadIdx.x]; out[threadIdx.x] = (unsigned long long)(v / 1000000007u) ^ (unsigned long long)(v % 998244353u); }}",
        [In("in", u), Out("out", numpy.array([(a * b // 1000000007 % 2**64) ^ (a * b % 998244353) for a, b in zip(u.tolist(), u[::-1].tolist())], numpy.uint64))],
        options=["--device-int128"],
    )
    case(
        "virtual-call",
        f"struct A {{ __device__ virtual int f(int x) {{ return x; }} }}; struct B : A {{ __device__ int f(int x) override {{ return 2 * x; }} }};\n{KERNEL}(const int *in, int *out) {{ A a; B b; A *p = threadIdx.x % 2 ? &b : &a; out[threadIdx.x] = p->f(in[threadIdx.x]); }}",
        [In("in", i), Out("out", (i[:128] * numpy.tile([1, 2], 64)).astype(numpy.int32))],
    )
    case(
        "heap",
        f"{KERNEL}(const int *in, int *out) {{ int *p = (int *)malloc(4 * sizeof(int)); for (int k = 0; k < 4; k++) p[k] = in[threadIdx.x] + k; int t = 0; for (int k = 0; k < 4; k++) t += p[k]; free(p); out[threadIdx.x] = t; }}",
        [In("in", i), Out("out", i[:128] * 4 + 6)],
    )
    # Tensor cores and textures.
    a16 = random.integers(-4, 5, (16, 16)).astype(numpy.float16)
    b16 = random.integers(-4, 5, (16, 16)).astype(numpy.float16)
    case(
        "wmma",
        f"#include <mma.h>\nusing namespace nvcuda;\n{KERNEL}(const __half *a, const __half *b, float *c) {{ wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x; wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y; wmma::fragment<wmma::accumulator, 16, 16, 16, float> z;"
        " wmma::fill_fragment(z, 0.0f); wmma::load_matrix_sync(x, a, 16); wmma::load_matrix_sync(y, b, 16); wmma::mma_sync(z, x, y, z); wmma::store_matrix_sync(c, z, 16, wmma::mem_row_major); }",
        [In("a", a16), In("b", b16), Out("c", (a16.astype(float) @ b16.astype(float)).astype(numpy.float32))], block=32,
    )
    a8, b8 = random.integers(-128, 128, (32, 16)).astype(numpy.int8), random.integers(-128, 128, (16, 8)).astype(numpy.int8)
    case(
        "wmma-s8",
        f"#include <mma.h>\nusing namespace nvcuda;\n{KERNEL}(const signed char *a, const signed char *b, int *c) {{ __shared__ __align__(32) int s[256]; wmma::fragment<wmma::matrix_a, 32, 8, 16, signed char, wmma::col_major> x; wmma::fragment<wmma::matrix_b, 32, 8, 16, signed char, wmma::col_major> y; wmma::fragment<wmma::accumulator, 32, 8, 16, int> z;"
        " wmma::fill_fragment(z, 3); wmma::load_matrix_sync(x, a, 32); wmma::load_matrix_sync(y, b, 16); wmma::mma_sync(z, x, y, z); for (int i = 0; i < z.num_elements; i++) z.x[i] *= 2; wmma::store_matrix_sync(s, z, 32, wmma::mem_col_major); __syncwarp(); for (int i = threadIdx.x; i < 256; i += 32) c[i] = s[i]; }",
        [In("a", a8.T), In("b", b8.T), Out("c", (2 * (a8.astype(int) @ b8.astype(int) + 3)).T.astype(numpy.int32))], block=32,
    )
    four = random.integers(-8, 8, (8, 32)), random.integers(0, 16, (8, 32))
    nibbles = lambda x: ((x[:, ::2] & 15) | (x[:, 1::2] & 15) << 4).astype(numpy.uint8)
    case(
        "wmma-s4",
        f"#include <mma.h>\nusing namespace nvcuda;\nusing namespace nvcuda::wmma::experimental::precision;\n{KERNEL}(const void *a, const void *b, int *c) {{ wmma::fragment<wmma::matrix_a, 8, 8, 32, s4, wmma::row_major> x; wmma::fragment<wmma::matrix_b, 8, 8, 32, s4, wmma::col_major> y; wmma::fragment<wmma::accumulator, 8, 8, 32, int> z;"
        " wmma::fill_fragment(z, -5); wmma::load_matrix_sync(x, a, 32); wmma::load_matrix_sync(y, b, 32); wmma::mma_sync(z, x, y, z); wmma::store_matrix_sync(c, z, 8, wmma::mem_row_major); }",
        [In("a", nibbles(four[0])), In("b", nibbles(four[0][::-1])), Out("c", (four[0] @ four[0][::-1].T - 5).astype(numpy.int32))], block=32,
    )
    single = random.integers(0, 2, (2, 8, 128))
    bits = lambda x: numpy.packbits(x.astype(numpy.uint8), axis=1, bitorder="little")
    case(
        "wmma-b1",
        f"#include <mma.h>\nusing namespace nvcuda;\nusing namespace nvcuda::wmma::experimental::precision;\n{KERNEL}(const void *a, const void *b, int *c) {{ wmma::fragment<wmma::matrix_a, 8, 8, 128, b1, wmma::row_major> x; wmma::fragment<wmma::matrix_b, 8, 8, 128, b1, wmma::col_major> y; wmma::fragment<wmma::accumulator, 8, 8, 128, int> z;"
        " wmma::fill_fragment(z, 7); wmma::load_matrix_sync(x, a, 128); wmma::load_matrix_sync(y, b, 128); wmma::bmma_sync(z, x, y, z, wmma::experimental::bmmaBitOpAND); wmma::store_matrix_sync(c, z, 8, wmma::mem_row_major); }",
        [In("a", bits(single[0])), In("b", bits(single[1])), Out("c", (single[0] @ single[1].T + 7).astype(numpy.int32))], block=32,
    )
    # Textures and surfaces.
    image = random.standard_normal((16, 32)).astype(numpy.float32)
    case(
        "texture",
        f"{KERNEL}(cudaTextureObject_t t, float *out) {{ out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }}",
        [In("in", image[0], over="texture:32"), Out("out", numpy.append(image[0], numpy.zeros(32, numpy.float32)))], block=64,
    )
    case(
        "texture-2d",
        f"{KERNEL}(cudaTextureObject_t t, float *out) {{ int i = threadIdx.x; out[i] = tex2D<float>(t, i % 32 - 3.5f, i / 32 + 2.25f); }}",
        [In("in", image, over="texture:32x16"), Out("out", numpy.array([image[k // 32 + 2, max(k % 32 - 4, 0)] for k in range(128)], numpy.float32))],
    )
    case(
        "texture-wrapped",
        f"{KERNEL}(cudaTextureObject_t t, float4 *out) {{ float i = threadIdx.x; out[threadIdx.x] = tex2D<float4>(t, i / 8 + 0.0625f, 0.125f - i / 4); }}",
        [
            In("in", image, over="texture:8x4,parts=4,wrap,normalized"),
            Out("out", numpy.array([image.reshape(-1)[:128].reshape(4, 8, 4)[-k % 4, k % 8] for k in range(128)], numpy.float32)),
        ],
    )
    bytes4 = random.integers(0, 256, (4, 8, 4)).astype(numpy.uint8)
    case(
        "texture-unit",
        f"{KERNEL}(cudaTextureObject_t t, float4 *out) {{ out[threadIdx.x] = tex2D<float4>(t, threadIdx.x % 8, threadIdx.x / 8); }}",
        [In("in", bytes4, over="texture:8x4,parts=4,unit"), Out("out", (bytes4 / numpy.float32(255)).astype(numpy.float32))], block=32,
    )
    case(
        "texture-layers",
        f"{KERNEL}(cudaTextureObject_t t, float *out) {{ int i = threadIdx.x; out[i] = tex2DLayered<float>(t, i % 8, i / 8 % 4, i / 32); }}",
        [In("in", image, over="texture:8x4x16"), Out("out", image.reshape(-1)[:128])],
    )
    case(
        "surface",
        f"{KERNEL}(cudaSurfaceObject_t s) {{ int x = threadIdx.x % 32, y = threadIdx.x / 32; float v = surf2Dread<float>(s, x * 4, y); surf2Dwrite(v + 1, s, x * 4, y + 4); surf2Dwrite(9.0f, s, x * 4, y + 100, cudaBoundaryModeZero); }}",
        [In("in", image, numpy.concatenate([image[:4], image[:4] + 1, image[8:]]), over="surface:32x16")],
    )
    # Memory of the thread that is allocated, and a tile of a tensor.
    case(
        "alloca",
        f'{KERNEL}(const int *in, int *out) {{ int n = threadIdx.x % 9 + 1, t = 0; int *p; asm volatile("{{ .reg .u64 a; alloca.u64 a, %1, 16; cvta.local.u64 %0, a; }}" : "=l"(p) : "l"(n * sizeof(int))); for (int k = 0; k < n; k++) p[k] = in[k] + k; for (int k = 0; k < n; k++) t += p[n - 1 - k] * (k + 1); out[threadIdx.x] = t; }}',
        [In("in", i), Out("out", numpy.array([sum((i[k % 9 - j] + k % 9 - j) * (j + 1) for j in range(k % 9 + 1)) for k in range(128)], numpy.int32))],
    )
    case(
        "tensor-tile",
        f"struct alignas(64) Map {{ char bytes[128]; }};\n{KERNEL}(const __grid_constant__ Map map, float *out) {{ __shared__ alignas(128) float tile[8][16]; __shared__ alignas(8) unsigned long long bar; unsigned b = __cvta_generic_to_shared(&bar), s = __cvta_generic_to_shared(tile);"
        ' if (threadIdx.x == 0) { asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.proxy.async;" :: "r"(b) : "memory"); } __syncthreads(); if (threadIdx.x == 0) { asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(b) : "memory");'
        ' asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" :: "r"(s), "l"(&map), "r"(20), "r"(12), "r"(b) : "memory"); }'
        ' asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }" :: "r"(b) : "memory"); out[threadIdx.x] = (&tile[0][0])[threadIdx.x]; }',
        [In("in", image, over="tensormap:32x16/16x8"), Out("out", numpy.pad(image[12:, 20:], ((0, 4), (0, 4))))],
    )
    folder.write()


main()
