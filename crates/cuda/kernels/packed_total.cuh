// Totals of neighbouring floats, exact, by chunks of elements whose plain sums are exact in f64: an accumulator for strided_packs.cuh.

#pragma once

#include "float_total.cuh"

// Totals of outputs whose elements are 16 bytes of a row.
template <class T>
struct PackedTotal : FloatTotal<T> {
    using Base = FloatTotal<T>;
    using typename Base::Asked, typename Base::Bits;
    using Format = Element<T>;
    static constexpr u32 PACK = 16 / sizeof(Bits);
    // Kept has 37 KiB then, of the 48 KiB of shared memory that a block may declare.
    static constexpr u32 THREADS = 1024 / PACK;
    // Elements of an output that a thread has under way: 128 bytes of all.
    static constexpr int AT_ONCE = 8;

    __device__ __forceinline__ PackedTotal() {}
    __device__ __forceinline__ PackedTotal(const Base &total) : Base(total) {}

    // Plain f64 sums of a chunk of up to 2^LOG_CHUNK elements of every output, which are exact if these are near each other (range.cuh). The outputs'
    // adds go side by side, as each waits for the one before it.
    static constexpr int LOG_CHUNK = sizeof(Bits) == 2 ? 7 : 5;
    static_assert(HAS_NAN == 1 && HAS_POSITIVE == 2 && HAS_NEGATIVE == 4 && LOG_CHUNK < 8, "three bits and a byte of a note");
    struct Chunk {
        // Those of 16 bits are seen two by two.
        static constexpr u32 PAIR = sizeof(Bits) == 2 ? 2 : 1;
        f64 sum[PACK] = {};
        // Of each element of a word: how many NaNs are missing, and in the upper bits what else was not finite.
        u32 notes[4] = {};
        Spread<T, LOG_CHUNK> spread[4];

        // The upper bits of a word's elements, and what is added to magnitudes so that these have it set from infinity on.
        static constexpr int WIDTH = 8 * sizeof(Bits);
        static constexpr u32 EVERY = PAIR == 2 ? 0x00010001 : 1, SIGNS = EVERY << (WIDTH - 1), BEYOND = SIGNS - EVERY * Format::INFINITE;

        static __device__ __forceinline__ u32 beyond(u32 word) { return (word & ~SIGNS) + BEYOND & SIGNS; }

        // Puts 0 in the place of what is not finite, and notes what that was.
        template <int N>
        __device__ __forceinline__ void filter(uint4 (&packs)[N], bool omits, const Asked &asked)
        {
            u32 some = 0;
#pragma unroll
            for (int k = 0; k < N; ++k)
                some |= beyond(packs[k].x) | beyond(packs[k].y) | beyond(packs[k].z) | beyond(packs[k].w);
            if (some == 0)
                return;
            const u32 omitted = omits ? SIGNS : 0, signs = EVERY * asked.mask;
#pragma unroll
            for (int k = 0; k < N; ++k) {
                u32 words[4] = {packs[k].x, packs[k].y, packs[k].z, packs[k].w};
#pragma unroll
                for (u32 w = 0; w < 4; ++w) {
                    const u32 word = words[w], odd = beyond(word), nan = (word & ~SIGNS) + (BEYOND - EVERY) & SIGNS;
                    const u32 infinite = odd & ~nan, negative = infinite & word & signs;
                    notes[w] += (nan & omitted) >> (WIDTH - 1);
                    notes[w] |= (nan & ~omitted) >> 2 | (infinite & ~negative) >> 1 | negative;
                    words[w] = word & ~(odd - (odd >> (WIDTH - 1)) | odd);
                }
                packs[k] = make_uint4(words[0], words[1], words[2], words[3]);
            }
        }
        __device__ __forceinline__ bool has_notes() const { return (notes[0] | notes[1] | notes[2] | notes[3]) != 0; }
        // Of the i-th output.
        __device__ __forceinline__ u32 note(u32 i) const { return notes[i / PAIR] >> WIDTH * (i % PAIR); }
        __device__ __forceinline__ u32 missing(u32 i) const { return note(i) & 0xff; }
        __device__ __forceinline__ u8 trouble(u32 i) const { return note(i) >> (WIDTH - 3) & (HAS_NAN | HAS_POSITIVE | HAS_NEGATIVE); }

        template <int N>
        __device__ __forceinline__ void add(const uint4 (&packs)[N], const Asked &asked)
        {
#pragma unroll
            for (int k = 0; k < N; ++k) {
                const u32 words[4] = {packs[k].x, packs[k].y, packs[k].z, packs[k].w};
#pragma unroll
                for (u32 w = 0; w < 4; ++w) {
                    if constexpr (PAIR == 2) {
                        spread[w].see_pair(words[w]);
                        const u32 pair = words[w] & (u32(asked.mask) << 16 | asked.mask);
                        sum[2 * w] = ::add(sum[2 * w], f64(Format::value(Bits(pair))));
                        sum[2 * w + 1] = ::add(sum[2 * w + 1], f64(Format::value(Bits(pair >> 16))));
                    } else {
                        sum[w] = spread[w].added(sum[w], Format::value(asked.of(words[w])));
                    }
                }
            }
        }
        __device__ __forceinline__ bool has_specials() const
        {
            bool has_specials = false;
#pragma unroll
            for (u32 i = 0; i < PACK; ++i)
                has_specials = has_specials || !is_finite(sum[i]);
            return has_specials;
        }
        __device__ __forceinline__ bool is_exact() const
        {
            bool is_exact = true;
#pragma unroll
            for (u32 i = 0; i < PACK; ++i)
                is_exact = is_exact && is_finite(sum[i]) && (PAIR == 2 ? spread[i / PAIR].pair_holds() : spread[i / PAIR].holds());
            return is_exact;
        }
    };

    // What threads have of packs, in shared memory: only the ends of chunks ask for it, and loads that are under way for the registers.
    struct Kept {
        f64 sums[PACK][4][THREADS];
        u32 missing[PACK][THREADS];
        alignas(4) u8 trouble[THREADS][PACK];

        __device__ __forceinline__ PackedTotal of(u32 i, u32 thread) const
        {
            PackedTotal total;
            const auto &its = sums[i];
            total.sum = its[0][thread], total.error = its[1][thread], total.far = its[2][thread], total.size = its[3][thread];
            total.missing = missing[i][thread];
            total.trouble = trouble[thread][i];
            return total;
        }
        __device__ __forceinline__ void set_sums(u32 i, u32 thread, const Base &total)
        {
            auto &its = sums[i];
            its[0][thread] = total.sum, its[1][thread] = total.error, its[2][thread] = total.far, its[3][thread] = total.size;
        }
        // Others may set what the thread has of other outputs.
        __device__ __forceinline__ void set(u32 i, u32 thread, const Base &total)
        {
            set_sums(i, thread, total);
            missing[i][thread] = total.missing;
            trouble[thread][i] = u8(total.trouble);
        }
        __device__ __forceinline__ void clear()
        {
#pragma unroll
            for (u32 i = 0; i < PACK; ++i)
                set(i, threadIdx.x, Base());
        }

        __device__ __forceinline__ void include(const Chunk &chunk)
        {
#pragma unroll
            for (u32 i = 0; i < PACK; ++i) {
                Base total = of(i, threadIdx.x);
                total.include(chunk.sum[i]);
                set_sums(i, threadIdx.x, total);
            }
            if (!chunk.has_notes())
                return;
#pragma unroll
            for (u32 i = 0; i < PACK; ++i) {
                missing[i][threadIdx.x] += chunk.missing(i);
                trouble[threadIdx.x][i] |= chunk.trouble(i);
            }
        }

        // Takes some elements of every output that are far apart.
        template <int N>
        __device__ __forceinline__ void include_apart(const uint4 (&packs)[N], const Asked &asked)
        {
            // So many side by side as there are registers for.
            constexpr u32 SOME = 4;
#pragma unroll
            for (u32 from = 0; from < PACK; from += SOME) {
                Base some[SOME];
#pragma unroll
                for (u32 i = 0; i < SOME; ++i)
                    some[i] = of(from + i, threadIdx.x);
#pragma unroll
                for (int k = 0; k < N; ++k) {
#pragma unroll
                    for (u32 i = 0; i < SOME; ++i)
                        some[i].include(f64(Format::value(asked.of(item<T>(packs[k], from + i)))));
                }
#pragma unroll
                for (u32 i = 0; i < SOME; ++i)
                    set_sums(from + i, threadIdx.x, some[i]);
            }
        }
    };
};
