// How many integers lie how far below the largest: core's `IntLogSumExp`, crates/core/src/op/logsumexp.rs.
//
// A block counts in shared memory, each lane of its warps in a column of its own, so that no data make banks collide. Bytes have a row
// for every value. Longer elements have one for each of the TOLD_APART values up to the block's largest so far, which rises with the
// data: a value's row is the value modulo TOLD_APART, and rows of values that drop out are cleared for those that come in. What is
// too far below one largest is too far below every later one.

#pragma once

#include "extremes.cuh"
#include "ticket.cuh"

// Values told apart: core's `DEPTH`.
constexpr int TOLD_APART = 128;

template <class Bits> struct DistanceOf { using Type = u32; };
template <> struct DistanceOf<u64> { using Type = u64; };

template <class T>
struct IntegerLogSumExp {
    using Item = T;
    using Bits = typename Element<T>::Bits;
    using Key = typename Element<T>::Key;
    using Long = typename OrderOf<T>::Long;
    using Distance = typename DistanceOf<Bits>::Type;
    static constexpr bool BYTES = sizeof(Bits) == 1;
    static constexpr int VALUES = BYTES ? 256 : TOLD_APART;

    u32 (&rows)[VALUES][32];
    // The block's largest element so far, if it looked at any: the same in all threads.
    Key top = Element<T>::LEAST;
    bool any = false;
    // The array's ends, which threads have that are not all of a block.
    Key ends[2] = {};
    int waiting = 0;

    __device__ __forceinline__ IntegerLogSumExp(u32 (&rows)[VALUES][32]) : rows(rows)
    {
        for (int i = threadIdx.x; i < VALUES * 32; i += blockDim.x)
            rows[i / 32][i % 32] = 0;
        __syncthreads();
    }

    __device__ __forceinline__ void count(Key key) { atomicAdd(&rows[u32(key) % VALUES][threadIdx.x % 32], 1u); }

    // Whether a value is one of those told apart now.
    __device__ __forceinline__ bool is_near(Key key) const { return Distance(top) - Distance(key) < TOLD_APART; }

    // Makes the largest key of all threads that have one the block's largest, if it is larger. All threads of the block call it.
    __device__ __forceinline__ void raise(bool some, Key key)
    {
        // All have counted what came before.
        if (!__syncthreads_or(some && (!any || key > top)))
            return;
        __shared__ Long largest[32];
        Long most = warp_max(some ? key : Element<T>::LEAST);
        if (threadIdx.x % 32 == 0)
            largest[threadIdx.x / 32] = most;
        __syncthreads();
        for (int warp = 0; warp < blockDim.x / 32; ++warp)
            most = max(most, largest[warp]);
        const Distance by = Distance(Key(most)) - Distance(top);
        const int dropped = !any ? 0 : by < TOLD_APART ? int(by) : TOLD_APART;
        for (int i = threadIdx.x; i < dropped * 32; i += blockDim.x)
            rows[(u32(top) + 1 + i / 32) % VALUES][i % 32] = 0;
        top = Key(most);
        any = true;
        __syncthreads();
    }

    __device__ __forceinline__ void one(Bits bits)
    {
        const Key key = Element<T>::key(bits);
        if constexpr (BYTES) {
            count(key);
        } else {
            ends[1] = ends[0];
            ends[0] = key;
            ++waiting;
        }
    }

    template <bool FULL>
    __device__ __forceinline__ void tile(const uint4 (&v)[VECTORS], u32, u32 valid)
    {
        if constexpr (BYTES) {
            each<T, FULL>(v, valid, [&](Bits bits) { count(Element<T>::key(bits)); });
        } else {
            Extremes<T> here;
            here.template take<FULL>(v, valid);
            const bool some = FULL || valid > 0;
            raise(some, here.largest);
            if (some && is_near(here.largest)) {
                each<T, FULL>(v, valid, [&](Bits bits) {
                    const Key key = Element<T>::key(bits);
                    if (is_near(key))
                        count(key);
                });
            }
        }
    }

    // Counts what is waiting and adds up the columns. Then `total` is right.
    __device__ __forceinline__ void close()
    {
        if constexpr (!BYTES) {
            raise(waiting > 0, waiting == 2 ? max(ends[0], ends[1]) : ends[0]);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                if (i < waiting && is_near(ends[i]))
                    count(ends[i]);
            }
        }
        __syncthreads();
        for (int value = threadIdx.x; value < VALUES; value += blockDim.x) {
            u32 sum = 0;
            // Threads begin in different banks.
            for (int i = 0; i < 32; ++i)
                sum += rows[value][(value + i) % 32];
            rows[value][0] = sum;
        }
        __syncthreads();
        if constexpr (BYTES) {
            for (int value = threadIdx.x % 32; value < VALUES; value += 32) {
                if (rows[value][0] != 0) {
                    top = max(top, Key(Bits(value)));
                    any = true;
                }
            }
            top = Key(warp_max(top));
            any = __any_sync(ALL_LANES, any);
        }
    }

    // How many elements lie so far below the largest. Below the least value are the largest ones of the type, which do not occur.
    __device__ __forceinline__ u64 total(int distance) const { return rows[(u32(top) - distance) % VALUES][0]; }

    static __device__ __forceinline__ Long warp_max(Long mine)
    {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            mine = max(mine, __shfl_xor_sync(ALL_LANES, mine, distance));
        return mine;
    }
};

// Words of a block's partial state, whether there are elements, the largest and the counts; as many as the payload of the whole has:
// the number of counts in a byte, the largest and the counts, and no more bytes than there are counts.
constexpr int COUNTED_WORDS = 2 + TOLD_APART;

// Word w of the payload.
template <class Count>
__device__ __forceinline__ u64 payload_word(int w, u64 length, u64 top, Count count)
{
    const u64 before = w == 0 ? length << 56 : w == 1 ? top : count(w - 2);
    const u64 value = w == 0 ? top : w <= TOLD_APART ? count(w - 1) : 0;
    return before >> 56 | value << 8;
}

template <class T>
__device__ __forceinline__ void integer_logsumexp(const void *data, u64 n, u64 *scratch, u64 *out)
{
    using Pass = IntegerLogSumExp<T>;
    using Long = typename Pass::Long;
    __shared__ u32 rows[Pass::VALUES][32];
    __shared__ u64 counts[TOLD_APART];
    __shared__ u32 length;
    Pass pass(rows);
    walk(data, n, scratch, pass);
    pass.close();
    Long top = pass.top;
    bool any = pass.any;
    if (threadIdx.x == 0)
        length = 0;
    for (int d = threadIdx.x; d < TOLD_APART; d += blockDim.x)
        counts[d] = gridDim.x > 1 ? 0 : pass.total(d);
    if (gridDim.x > 1) {
        u64 *partials = scratch + WORKSPACE_ZEROS;
        u64 *mine = partials + blockIdx.x * COUNTED_WORDS;
        if (threadIdx.x == 0) {
            mine[0] = any;
            mine[1] = u64(top);
        }
        for (int d = threadIdx.x; d < TOLD_APART; d += blockDim.x)
            mine[2 + d] = pass.total(d);
        __threadfence();
        if (!is_last_block(scratch))
            return;

        const u32 lane = threadIdx.x % 32;
        top = Element<T>::LEAST;
        any = false;
        for (u32 b = lane; b < gridDim.x; b += 32) {
            if (__ldcg(&partials[b * COUNTED_WORDS]) != 0) {
                top = max(top, Long(__ldcg(&partials[b * COUNTED_WORDS + 1])));
                any = true;
            }
        }
        top = Pass::warp_max(top);
        any = __any_sync(ALL_LANES, any);
        u64 sums[TOLD_APART / 32] = {};
        for (u32 b = threadIdx.x / 32; b < gridDim.x; b += blockDim.x / 32) {
            const u64 *its = &partials[b * COUNTED_WORDS];
            const u64 below = u64(top) - __ldcg(&its[1]);
            if (__ldcg(&its[0]) == 0)
                continue;
#pragma unroll
            for (int i = 0; i < TOLD_APART / 32; ++i) {
                const u32 d = lane + 32 * i;
                if (d >= below)
                    sums[i] += __ldcg(&its[2 + d - below]);
            }
        }
#pragma unroll
        for (int i = 0; i < TOLD_APART / 32; ++i)
            atomicAdd(&counts[lane + 32 * i], sums[i]);
    }
    __syncthreads();
    for (int d = threadIdx.x; d < TOLD_APART; d += blockDim.x) {
        if (counts[d] != 0)
            atomicMax(&length, u32(d + 1));
    }
    __syncthreads();
    for (int w = threadIdx.x; w < COUNTED_WORDS; w += blockDim.x)
        out[w] = payload_word(w, length, any ? u64(top) : 0, [&](int d) { return counts[d]; });
}
