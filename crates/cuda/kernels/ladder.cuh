// A window, what a lane adds to it in a tile, and the superaccumulator below it: what a warp cannot certify goes to a window made for
// the tile, and from there to bins, or, what a lane cannot certify, one by one to the superaccumulator.
//
// A lane says what is summed and how it gets into the window: range.cuh, products.cuh.

#pragma once

#include "pipeline.cuh"
#include "window.cuh"

// Two tiles, a window and its sums want more registers than two blocks of 512 threads leave to each. 80 will do; where f64 has two
// arrays or two sums, 128 of one block.
template <class T>
constexpr bool IS_F64 = Element<T>::FLOAT && sizeof(typename Element<T>::Bits) == 8;
template <class T, int SUMS_OR_ARRAYS>
constexpr int LADDER_BLOCKS = IS_F64<T> && SUMS_OR_ARRAYS > 1 ? 1 : BLOCKS;
template <class T, int SUMS_OR_ARRAYS>
constexpr int LADDER_THREADS = Element<T>::FLOAT && LADDER_BLOCKS<T, SUMS_OR_ARRAYS> > 1 ? 384 : THREADS;

// Below the top of anything that is not zero.
constexpr int LOWEST_TOP = -4096;

template <class LaneOf>
struct Ladder {
    using Lane = LaneOf;
    using Window = typename Lane::Window;
    using Sums = Wide<typename Lane::Limbs>;

    Sums &wide;
    Window window;
    Lane lane;

    __device__ __forceinline__ Ladder(Sums &wide) : wide(wide), window(Window::below(START)), lane(window) {}

    __device__ __forceinline__ void open() { lane = Lane(window); }
    // Whether this lane certifies its part of the tile.
    __device__ __forceinline__ bool holds() { return lane.close(window); }
    __device__ __forceinline__ void commit() { window.commit(lane.drift); }

    // Makes room for the commits of another run.
    __device__ __forceinline__ void pause(u32 tiles)
    {
        static_assert(Window::COMMITS >= 2 * RUN, "room for a run");
        window.commits += tiles;
        if (window.commits > Window::COMMITS - RUN)
            window.flush(wide);
    }
    __device__ __forceinline__ void finish() { window.flush(wide); }

    __device__ __forceinline__ bool is_special() const { return window.is_special(lane.drift); }

    // Moves the window to a tile whose terms in this lane are below 2^top. Returns whether it is another one.
    __device__ __forceinline__ bool move(int top)
    {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            top = max(top, __shfl_xor_sync(ALL_LANES, top, distance));
        const int first = Window::below(top + Lane::K + ROOM);
        if (first == window.first)
            return false;
        window.flush(wide);
        window.first = first;
        return true;
    }
};
