// The rungs of an exact sum of floats: the window where a warp is, a window made for the tile, the superaccumulator. What one cannot
// certify goes to the next; the last one cannot fail.
//
// A lane says what is summed and how it gets into the window: range.cuh, products.cuh.

#pragma once

#include "window.cuh"

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

    template <class Bits>
    __device__ __forceinline__ void one(Bits x, Bits y) { Lane::absorb(wide, x, y); }
    __device__ __forceinline__ void open() { lane = Lane(window); }
    template <class Bits>
    __device__ __forceinline__ void add(Bits x, Bits y) { lane.add(x, y, window); }
    // Whether this lane certifies its part of the tile.
    __device__ __forceinline__ bool holds() { return lane.close(window); }
    __device__ __forceinline__ void commit() { window.commit(lane.drift); }

    // Behind every tile.
    __device__ __forceinline__ void count()
    {
        if (++window.commits == Window::COMMITS)
            window.flush(wide);
    }
    __device__ __forceinline__ void finish() { window.flush(wide); }

    // Moves the window to a tile whose terms in this lane are below 2^top, and begins it again.
    __device__ __forceinline__ void move(int top)
    {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            top = max(top, __shfl_xor_sync(ALL_LANES, top, distance));
        const int first = Window::below(top + Lane::GROWTH + ROOM);
        if (first != window.first) {
            window.flush(wide);
            window.first = first;
        }
        open();
    }
};
