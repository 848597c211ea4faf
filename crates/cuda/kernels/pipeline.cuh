// Walks one array, or two of the same length side by side, for passes that may refuse a tile.
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
//     Pass::REFUSES            whether it ever is; if so, the pass
//     pass.moved<V>(place)     makes the window for what is finite of the tile, which V loads; whether it is another one. If so, or if
//     pass.special             the tile that was refused may have NaNs or infinities, it comes again without them, and
//     pass.count(counts)       counts these. What is refused then, which nothing is if Pass::FITS,
//     pass.any(x, y)           takes by vectors, without NaNs and infinities, and
//     pass.any_open()          begins such a tile,
//     pass.any_close(place)    and ends it: place.each(f) calls f(x, y) with every element; or it is peeled where not
//     pass.there()             says that there is memory for it
//     pass.pause(tiles)        puts away what so many tiles came to, at most RUN of them: what is seldom done is not done between
//                              two tiles, where it would take registers from what is often done

#pragma once

#include "load.cuh"

// Tiles from one pause to the next.
constexpr u32 RUN = 1024;

// Where a thread's elements of a tile are: its first vector, how far off the second array's is, and how many there are.
template <class T, bool PAIRED>
struct Place {
    using Bits = typename Element<T>::Bits;
    const char *at;
    i64 apart;
    u32 valid;

    template <class Take>
    __device__ __forceinline__ void each(Take take) const
    {
#pragma unroll 1
        for (u32 k = 0; k < valid; ++k) {
            const Bits *x = reinterpret_cast<const Bits *>(at + 512 * k);
            const Bits *y = reinterpret_cast<const Bits *>(at + 512 * k + apart);
#pragma unroll 1
            for (int i = 0; i < ITEMS<T>; ++i)
                take(x[i], PAIRED ? y[i] : Bits(0));
        }
    }
};

// A vector at a multiple of 16 bytes.
struct Aligned {
    static constexpr bool SHIFTED = false;
    uint4 value = {0, 0, 0, 0};
    __device__ __forceinline__ void load(const char *at) { value = *reinterpret_cast<const uint4 *>(at); }
    __device__ __forceinline__ uint4 vector(const char *) const { return value; }
};

// A vector at any address that its elements allow: of short elements, the five words that it lies in.
template <class T>
struct Shifted {
    static constexpr bool SHIFTED = true;
    static constexpr int WORDS = sizeof(typename Element<T>::Bits) < 4 ? 5 : 4;
    u32 word[WORDS] = {};

    __device__ __forceinline__ void load(const char *at)
    {
        const u32 *words = reinterpret_cast<const u32 *>(at - u64(at) % 4);
#pragma unroll
        for (int w = 0; w < WORDS; ++w)
            word[w] = words[w];
    }
    __device__ __forceinline__ uint4 vector(const char *at) const
    {
        const u32 shift = u32(u64(at)) % 4 * 8;
        const auto part = [&](int w) { return WORDS == 4 ? word[w] : __funnelshift_r(word[w], word[(w + 1) % WORDS], shift); };
        return {part(0), part(1), part(2), part(3)};
    }
};

// A thread's vectors of a tile.
template <class Second, int N, bool PAIRED>
struct Tile {
    Aligned xs[N];
    Second ys[N];

    __device__ __forceinline__ void load(const char *at, i64 apart)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            xs[k].load(at + 512 * k);
            if (PAIRED)
                ys[k].load(at + 512 * k + apart);
        }
    }
    // As many as there are, and zeros.
    __device__ __forceinline__ void load(const char *at, i64 apart, u32 valid)
    {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            xs[k] = Aligned();
            ys[k] = Second();
            if (k < valid) {
                xs[k].load(at + 512 * k);
                if (PAIRED)
                    ys[k].load(at + 512 * k + apart);
            }
        }
    }
    template <class Take>
    __device__ __forceinline__ void each(const char *at, i64 apart, Take take) const
    {
#pragma unroll
        for (int k = 0; k < N; ++k)
            take(xs[k].vector(at), ys[k].vector(at + apart));
    }
    // Calls `take` with every element, and with zeros for what is not there.
    template <class T, class Take>
    __device__ __forceinline__ void each_element(const Place<T, PAIRED> &place, Take take) const
    {
        each(place.at, place.apart, [&](const uint4 &x, const uint4 &y) {
#pragma unroll
            for (int i = 0; i < ITEMS<T>; ++i)
                take(item<T>(x, i), item<T>(y, i));
        });
    }
    // Whether the pass took them.
    template <class Pass>
    __device__ __forceinline__ bool give(Pass &pass, const char *at, i64 apart) const
    {
        pass.open();
        each(at, apart, [&](const uint4 &x, const uint4 &y) { pass.take(x, y); });
        return pass.close();
    }
};

// Gives the pass up to `most` whole tiles from `at` on, until it refuses one, where `at` is then. Returns how many it took. A tile's
// successor is loaded meanwhile, into registers of its own; what is under way when a tile is refused will be loaded once more, so that
// nothing stays in registers until then.
template <class Vectors, class Pass>
__device__ __forceinline__ u32 through(Pass &pass, const char *&at, u32 step, i64 apart, u32 most)
{
    Vectors even, odd;
    u32 left = most;
    // Whether there is an end, at the tile that `now` has.
    const auto ends = [&](const Vectors &now, Vectors &next) {
        if (left > 1) {
            next.load(at + step, apart);
            // Keeps the compiler from putting the loads off until most of the tile is done.
            __syncwarp();
        }
        if (!now.give(pass, at, apart))
            return true;
        at += step;
        return --left == 0;
    };
    even.load(at, apart);
    while (!ends(even, odd) && !ends(odd, even)) {
    }
    return most - left;
}

// Gives the pass up to `tiles` tiles from `place` on without NaNs and infinities, until it refuses one; the last one may have fewer vectors
// than others. Returns how many it took.
template <class Vectors, class T, class Pass>
__device__ __forceinline__ u32 finite(Pass &pass, Place<T, Pass::PAIRED> place, u32 step, u32 tiles)
{
    Vectors now, next;
    next.load(place.at, place.apart, place.valid);
    u32 done = 0;
    for (; done < tiles; ++done, place.at += step) {
        now = next;
        if (tiles - done > 1)
            next.load(place.at + step, place.apart);
        typename Pass::Specials specials;
        pass.open();
        now.each(place.at, place.apart, [&](uint4 x, uint4 y) {
            specials.take_out(x, y);
            pass.take(x, y);
        });
        if (!pass.close())
            break;
        pass.count(specials.counts());
    }
    return done;
}

// The same tiles without a window, which none is refused of.
template <class Vectors, class T, class Pass>
__device__ __forceinline__ void anything(Pass &pass, Place<T, Pass::PAIRED> place, u32 step, u32 tiles)
{
    using Bits = typename Element<T>::Bits;
    if (!pass.there()) {
        for (; tiles > 0; --tiles, place.at += step)
            place.each([&](Bits x, Bits y) { pass.one(x, y); });
        return;
    }
    Vectors now, next;
    next.load(place.at, place.apart, place.valid);
    for (; tiles > 0; --tiles) {
        now = next;
        if (tiles > 1)
            next.load(place.at + step, place.apart);
        typename Pass::Specials specials;
        pass.any_open();
        now.each(place.at, place.apart, [&](uint4 x, uint4 y) {
            if (specials.are_in(x, y))
                specials.take_out(x, y);
            pass.any(x, y);
        });
        pass.any_close(place);
        pass.count(specials.counts());
        place.at += step;
    }
}

// Works off the refused tile at `place`, and up to `tiles` from there. Returns how many.
template <class Vectors, class T, class Pass>
__device__ __forceinline__ u32 refused(Pass &pass, const Place<T, Pass::PAIRED> &place, u32 step, u32 tiles)
{
    // Beside NaNs and infinities the window may have been right. If it was not, the tiles behind these have another one.
    u32 done = pass.special || pass.template moved<Vectors>(place) ? finite<Vectors>(pass, place, step, tiles) : 0;
    if constexpr (!Pass::FITS) {
        if (done == 0) {
            pass.template moved<Vectors>(place);
            anything<Vectors>(pass, place, step, tiles);
            done = tiles;
        }
    }
    return done;
}

template <class Second, class Pass>
__device__ __forceinline__ void pipe(const char *data, i64 apart, u64 n, Pass &pass)
{
    using T = typename Pass::Item;
    using Bits = typename Element<T>::Bits;
    constexpr bool PAIRED = Pass::PAIRED;
    constexpr int N = Pass::TILE;
    using Vectors = Tile<Second, N, PAIRED>;

    // Shifted words reach up to three bytes beyond their vector: one more vector at each end is peeled.
    const u64 before = (16 - u64(data) % 16) % 16 / sizeof(Bits) + (Second::SHIFTED ? ITEMS<T> : 0);
    const u32 head = u32(before < n ? before : n);
    const u64 aligned = (n - head) / ITEMS<T>;
    const u64 vectors = Second::SHIFTED && aligned > 0 ? aligned - 1 : aligned;
    const u32 peeled = u32(n - vectors * ITEMS<T>);
    const u32 size = blockDim.x * N;
    const u64 whole = vectors / size;
    const u32 rest = u32(vectors % size);
    // Of one array, what is peeled goes to two vectors that the part of a tile does not have, if it is not nearly whole: elements by
    // themselves take long code, which a launch would wait for.
    const bool beside = !PAIRED && peeled > 0 && rest + 2 <= size;
    const auto peel = [&](u32 i) {
        const char *at = data + (i < head ? i : n - peeled + i) * sizeof(Bits);
        const Bits y = PAIRED ? *reinterpret_cast<const Bits *>(at + apart) : Bits(0);
        pass.one(*reinterpret_cast<const Bits *>(at), y);
    };
    if (blockIdx.x == 0 && !beside) {
        for (u32 i = threadIdx.x; i < peeled; i += blockDim.x)
            peel(i);
    }

    const bool has_part = rest != 0 || beside;
    const u64 first = share(whole + has_part, blockIdx.x);
    const u64 last = share(whole + has_part, blockIdx.x + 1);
    // A warp's vectors of a tile lie together.
    const u32 place = threadIdx.x / 32 * (32 * N) + threadIdx.x % 32;
    const char *at = data + head * sizeof(Bits) + (first * size + place) * 16;
    const u32 step = size * 16;
    u32 patience = 1;
    for (u64 left = (last < whole ? last : whole) - (first < whole ? first : whole); left > 0;) {
        const u32 most = u32(min(left, u64(RUN)));
        u32 tiles = through<Vectors>(pass, at, step, apart, most);
        if (Pass::REFUSES && tiles < most) {
            const Place<T, PAIRED> place{at, apart, N};
            u32 some = 1;
            if constexpr (Pass::REFUSES) {
                if (tiles > patience)
                    patience = 1;
                some = refused<Vectors>(pass, place, step, min(most - tiles, patience));
                patience = min(2 * patience, LONGEST_PATIENCE);
            }
            at += u64(some) * step;
            tiles += some;
        }
        left -= tiles;
        pass.pause(tiles);
    }
    if (first <= whole && whole < last) {
        const u32 valid = place < rest ? min((rest - place - 1) / 32 + 1, N) : 0;
        Vectors some;
        some.load(at, apart, valid);
        // The elements in front of all vectors are one thread's, and those behind them another's.
        const u32 free = valid < N ? place + 32 * valid - rest : 2;
        const u32 from = free == 0 ? 0 : head, to = !beside || free > 1 ? from : free == 0 ? head : peeled;
        if (from < to) {
            Bits items[ITEMS<T>] = {};
#pragma unroll
            for (u32 i = 0; i < ITEMS<T>; ++i)
                if (from + i < to)
                    items[i] = *reinterpret_cast<const Bits *>(data + (from < head ? i : n - peeled + from + i) * sizeof(Bits));
#pragma unroll
            for (int k = 0; k < N; ++k)
                if (k == valid)
                    memcpy(&some.xs[k].value, items, sizeof(items));
        }
        const Place<T, PAIRED> part{at, apart, valid};
        const bool taken = some.give(pass, at, apart);
        if constexpr (Pass::REFUSES) {
            if (!taken) {
                refused<Vectors>(pass, part, step, 1);
                for (u32 i = from; i < to; ++i)
                    peel(i);
            }
        }
        pass.pause(1);
    }
}

template <class Pass>
__device__ __forceinline__ void pipe(const void *data, const void *others, u64 n, Pass &pass)
{
    const char *x = static_cast<const char *>(data);
    const i64 apart = static_cast<const char *>(others) - x;
    if constexpr (Pass::PAIRED) {
        if (apart % 16 != 0) {
            pipe<Shifted<typename Pass::Item>>(x, apart, n, pass);
            return;
        }
    }
    pipe<Aligned>(x, apart, n, pass);
}
