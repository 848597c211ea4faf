// Walks an array as load.cuh does, or two of the same length side by side, in half the registers: those of a vector that was used take
// one of the next tile.
//
//     |head|  tile  |  tile  | ... |  tile  | part of a tile |tail|
//
// Tiles begin where the first array is aligned. If the second is aligned otherwise, its vectors are put together from words.
//
// A pass says what is done with the elements; of one array, y is zero. What a tile lacks at the end of the array is zeros, which must
// add nothing:
//
//     pass.one(x, y)           takes a peeled element
//     pass.open()              begins a tile
//     pass.take(x, y)          takes a vector of it
//     pass.close()             ends it; false if it is needed once more: the same in all lanes of a warp
//     pass.again(place)        has it once more: place.each(f) calls f(x, y) with every element

#pragma once

#include "load.cuh"

// Where a thread's elements of a tile are: its first vector's address, that of the second array's less that, and the tile's vectors.
template <class T, bool PAIRED>
struct Place {
    using Bits = typename Element<T>::Bits;
    u64 at;
    u64 apart;
    u32 vectors;

    template <class Take>
    __device__ __forceinline__ void each(Take take) const
    {
#pragma unroll 1
        for (u32 v = threadIdx.x; v < vectors; v += blockDim.x) {
            const Bits *x = reinterpret_cast<const Bits *>(at + u64(v - threadIdx.x) * 16);
            const Bits *y = reinterpret_cast<const Bits *>(at + u64(v - threadIdx.x) * 16 + apart);
#pragma unroll 1
            for (int i = 0; i < ITEMS<T>; ++i)
                take(x[i], PAIRED ? y[i] : Bits(0));
        }
    }
};

// Loads that stay where they are written: compilers would put them off behind what may want other elements in these registers.
__device__ __forceinline__ void load(u64 at, uint4 &to)
{
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(at));
}
__device__ __forceinline__ void load(u64 at, u32 &to) { asm volatile("ld.global.u32 %0, [%1];" : "=r"(to) : "l"(at)); }

// A vector at a multiple of 16 bytes.
struct Aligned {
    static constexpr bool SHIFTED = false;
    uint4 value = {0, 0, 0, 0};
    __device__ __forceinline__ void load(u64 at) { ::load(at, value); }
    __device__ __forceinline__ uint4 vector(u64) const { return value; }
};

// A vector at any address that its elements allow: of short elements, the five words that it lies in.
template <class T>
struct Shifted {
    static constexpr bool SHIFTED = true;
    static constexpr int WORDS = sizeof(typename Element<T>::Bits) < 4 ? 5 : 4;
    u32 word[WORDS] = {};

    __device__ __forceinline__ void load(u64 at)
    {
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            ::load((at & ~u64(3)) + 4 * w, word[w]);
    }
    __device__ __forceinline__ uint4 vector(u64 at) const
    {
        const u32 shift = u32(at) % 4 * 8;
        const auto part = [&](int w) { return WORDS == 4 ? word[w] : __funnelshift_r(word[w], word[(w + 1) % WORDS], shift); };
        return {part(0), part(1), part(2), part(3)};
    }
};

template <class Second, class Pass>
__device__ __forceinline__ void pipe(u64 data, u64 others, u64 n, Pass &pass)
{
    using T = typename Pass::Item;
    using Bits = typename Element<T>::Bits;
    constexpr bool PAIRED = Pass::PAIRED;
    constexpr int DEPTH = PAIRED ? VECTORS / 2 : VECTORS;

    // Shifted words reach up to three bytes beyond their vector: one more vector at each end is peeled.
    const u64 before = (16 - data % 16) % 16 / sizeof(Bits) + (Second::SHIFTED ? ITEMS<T> : 0);
    const u32 head = u32(before < n ? before : n);
    const u64 aligned = (n - head) / ITEMS<T>;
    const u64 vectors = Second::SHIFTED && aligned > 0 ? aligned - 1 : aligned;
    const u32 peeled = u32(n - vectors * ITEMS<T>);
    if (blockIdx.x == 0) {
        const Bits *x = reinterpret_cast<const Bits *>(data), *y = reinterpret_cast<const Bits *>(others);
        for (u32 i = threadIdx.x; i < peeled; i += blockDim.x) {
            const u64 at = i < head ? i : n - peeled + i;
            pass.one(x[at], PAIRED ? y[at] : Bits(0));
        }
    }

    const u32 step = blockDim.x * DEPTH;
    const u64 whole = vectors / step;
    const u32 rest = u32(vectors % step);
    const u64 first = share(whole + (rest != 0), blockIdx.x);
    const u64 last = share(whole + (rest != 0), blockIdx.x + 1);
    // The block's last tile may have this many vectors only.
    const u32 ragged = last > whole ? rest : 0;
    const u64 begin = data + head * sizeof(Bits);
    const u64 apart = others - data;
    u64 at = begin + (first * step + threadIdx.x) * 16;

    Aligned xs[DEPTH];
    Second ys[DEPTH];
    bool filled = false;
    for (u32 left = u32(last - first); left > 0; --left, at += u64(step) * 16) {
        const u32 count = left == 1 && ragged != 0 ? ragged : step;
        if (!filled) {
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) {
                xs[k] = Aligned();
                ys[k] = Second();
                if (k * blockDim.x + threadIdx.x < count) {
                    xs[k].load(at + k * blockDim.x * 16);
                    if (PAIRED)
                        ys[k].load(at + k * blockDim.x * 16 + apart);
                }
            }
        }
        // Behind the last whole tile the first vector over and over, so that loads need no branch.
        filled = left > (ragged != 0 ? 2 : 1);
        const u64 next = filled ? at + u64(step) * 16 : begin;
        const u32 stride = filled ? blockDim.x * 16 : 0;
        pass.open();
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            pass.take(xs[k].vector(at), ys[k].vector(at + apart));
            xs[k].load(next + k * stride);
            if (PAIRED)
                ys[k].load(next + k * stride + apart);
        }
        if (!pass.close()) {
            pass.again(Place<T, PAIRED>{at, apart, count});
            // Not kept over that: registers are scarce, and the caches have it.
            filled = false;
        }
    }
}

template <class Pass>
__device__ __forceinline__ void pipe(const void *data, const void *others, u64 n, Pass &pass)
{
    // Generic addresses of global memory are its own.
    if constexpr (Pass::PAIRED) {
        if ((u64(data) ^ u64(others)) % 16 != 0) {
            pipe<Shifted<typename Pass::Item>>(u64(data), u64(others), n, pass);
            return;
        }
    }
    pipe<Aligned>(u64(data), u64(others), n, pass);
}
