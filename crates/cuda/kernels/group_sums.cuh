// Sums and means of groups: the digits of group_terms.cuh, in slots and in global memory.
//
// A slot has WINDOW of a group's words, from one on that the block's first rows say. What a row adds elsewhere goes to global memory: that
// costs time and no bit. A slot's word is two of 32 bits, since shared memory adds those natively: who sees the lower one wrap moves the
// upper one by one.

#pragma once

#include "group_terms.cuh"
#include "groups.cuh"

constexpr int GROUP_WINDOW = 4;

template <class T>
struct GroupSums {
    using Terms = GroupTerms<T>;
    using Bits = typename Terms::Bits;
    using Answer = typename Terms::Answer;
    static constexpr int WORDS = Terms::WORDS, WINDOW = WORDS < GROUP_WINDOW ? WORDS : GROUP_WINDOW;
    // Words are noted as in use SET at once.
    static constexpr int SET = (WORDS + 31) / 32;
    enum Mark { NOT_A_NUMBER, POSITIVE, NEGATIVE };

    const Groups &all;
    Slots slots;
    u32 *const low, *const high, *const rows; // [word][slot][copy], and [slot][copy]
    const u32 copies, copy;
    int first = 0;   // the slots' first word
    u32 in_use = 0;

    __device__ __forceinline__ GroupSums(const Groups &all) :
        all(all), slots(all), low(slots.behind()), high(low + (slots.count * WINDOW << all.log_copies)), rows(high + (slots.count * WINDOW << all.log_copies)),
        copies(1u << all.log_copies), copy(threadIdx.x & (copies - 1))
    {}

    __device__ __forceinline__ u32 place(int word, u32 slot) const { return ((u32(word) << all.log_slots) + slot) << all.log_copies; }

    // Finds where slots begin: the words of the largest of the block's first rows, and some below them.
    __device__ __forceinline__ void open()
    {
        __shared__ int highest;
        if (threadIdx.x == 0)
            highest = 0;
        for (u32 i = threadIdx.x; i < place(2 * WINDOW, 0) + (slots.count << all.log_copies); i += GROUP_THREADS)
            low[i] = 0;
        __syncthreads();
        if constexpr (WORDS > WINDOW) {
            int mine = 0;
#pragma unroll 1
            for (int k = 0; k < GROUP_ROWS; ++k) {
                const u64 row = u64(blockIdx.x) * GROUP_TILE + k * GROUP_THREADS + threadIdx.x;
                const Bits bits = row < all.n ? reinterpret_cast<const Bits *>(all.data)[row] : Bits(0);
                if (Terms::is_finite(bits))
                    mine = max(mine, Terms::lowest(bits));
            }
            mine = largest_of_warp(mine);
            if (threadIdx.x % 32 == 0)
                atomicMax(&highest, mine);
            __syncthreads();
            // The largest in the last words but one where an element has one: others are a little larger.
            constexpr int BELOW = Terms::SPAN == 1 ? WINDOW - 2 : WINDOW - Terms::SPAN;
            first = min(max(highest - BELOW, 0), WORDS - WINDOW);
        }
    }

    static __device__ __forceinline__ int largest_of_warp(int x)
    {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            x = max(x, __shfl_xor_sync(ALL_LANES, x, distance));
        return x;
    }

    // A digit on its way to a slot. Both words of a slot wrap where the lower one does: a sum that comes out below what was added, a
    // difference of less than what is taken.
    struct Digit {
        u32 at = NOWHERE, digit = 0;
        bool negative = false;

        static constexpr u32 NOWHERE = ~0u;
        __device__ __forceinline__ u32 add_to(u32 *low) const { return at == NOWHERE ? 0 : atomicAdd(&low[at], negative ? -digit : digit); }
        __device__ __forceinline__ void carry_to(u32 *high, u32 before) const
        {
            if (at != NOWHERE && (negative ? before < digit : before > ~digit))
                atomicAdd(&high[at], negative ? ~0u : 1u);
        }
    };

    __device__ __forceinline__ void add_there(int word, u32 group, u64 some)
    {
        atomicAdd(all.word(word, group), some);
        in_use |= 1u << word / SET;
    }

    // Adds a row where it does not wait for anything, and says what goes to a slot.
    __device__ __forceinline__ void take(u32 group, Bits bits, Digit (&digits)[Terms::SPAN])
    {
        u32 slot;
        const bool here = slots.find(group, slot);
        if (all.counts_rows) {
            if (here)
                atomicAdd(&rows[place(0, slot) + copy], 1u);
            else
                atomicAdd(&all.rows[group], 1u);
        }
        if (!Terms::is_finite(bits)) {
            take_special(group, bits, here ? &rows[place(0, slot) + copy] : &all.rows[group]);
            return;
        }
        if (Terms::is_zero(bits))
            return;
        const int from = Terms::lowest(bits) - first;
        const bool fits = here && from >= 0 && from <= WINDOW - Terms::SPAN;
        int part = 0;
        Terms::each(bits, all.is_absolute(), all.is_signed != 0, [&](int word, u32 digit, bool negative) {
            Digit &its = digits[part++];
            if (Terms::SPAN > 1 && digit == 0)
                return;
            if (fits)
                its.at = place(word - first, slot) + copy, its.digit = digit, its.negative = negative;
            else
                add_there(word, group, negative ? -u64(digit) : u64(digit));
        });
    }

    // Takes rows. Those that go to slots do so together, as each one takes its time.
    __device__ __forceinline__ void take_all(const u32 (&group)[GROUP_ROWS], const Bits (&bits)[GROUP_ROWS])
    {
        constexpr int TOGETHER = Terms::SPAN == 1 ? GROUP_ROWS : Terms::SPAN == 2 ? GROUP_ROWS / 2 : GROUP_ROWS / 4;
#pragma unroll
        for (int k = 0; k < GROUP_ROWS; k += TOGETHER) {
            Digit digits[TOGETHER][Terms::SPAN];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
                if (group[k + i] != NO_GROUP)
                    take(group[k + i], bits[k + i], digits[i]);
            }
            u32 before[TOGETHER][Terms::SPAN];
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
#pragma unroll
                for (int part = 0; part < Terms::SPAN; ++part)
                    before[i][part] = digits[i][part].add_to(low);
            }
#pragma unroll
            for (int i = 0; i < TOGETHER; ++i) {
#pragma unroll
                for (int part = 0; part < Terms::SPAN; ++part)
                    digits[i][part].carry_to(high, before[i][part]);
            }
        }
    }

    // `counted` is where the row was counted, if rows are.
    __device__ __forceinline__ void take_special(u32 group, Bits bits, u32 *counted)
    {
        if constexpr (Element<T>::FLOAT) {
            // What is omitted is no value of a mean.
            if (all.omits() && all.counts_rows && Element<T>::is_nan(bits))
                atomicSub(counted, 1u);
            const bool negative = !all.is_absolute() && (bits & Element<T>::SIGN) != 0;
            all.mark(Element<T>::is_nan(bits) ? NOT_A_NUMBER : negative ? NEGATIVE : POSITIVE, group);
        }
    }

    // Brings what slots have to global memory, and leaves zeros. Before and after it there must be barriers.
    __device__ __forceinline__ void flush()
    {
#pragma unroll 1
        for (u32 i = threadIdx.x; i < slots.count; i += GROUP_THREADS) {
            const u32 group = slots.group_of(all, i);
            if (group == NO_GROUP)
                continue;
#pragma unroll 1
            for (int w = 0; w < WINDOW; ++w) {
                u64 some = 0;
#pragma unroll 1
                for (u32 at = place(w, i); at < place(w, i) + copies; ++at) {
                    some += u64(high[at]) << 32 | low[at];
                    low[at] = high[at] = 0;
                }
                if (some != 0)
                    add_there(first + w, group, some);
            }
            if (all.counts_rows) {
                u32 some = 0;
#pragma unroll 1
                for (u32 at = place(0, i); at < place(0, i) + copies; ++at) {
                    some += rows[at];
                    rows[at] = 0;
                }
                if (some != 0)
                    atomicAdd(&all.rows[group], some);
            }
        }
    }

    // Notes which words are in use.
    __device__ __forceinline__ void close()
    {
        __shared__ u32 block_in_use;
        if (threadIdx.x == 0)
            block_in_use = 0;
        __syncthreads();
        if (in_use != 0)
            atomicOr(&block_in_use, in_use);
        __syncthreads();
        if (threadIdx.x == 0)
            atomicAnd(&all.notes[1], ~u64(block_in_use));
    }
};

template <class T>
__device__ __forceinline__ void finish_group_sums(const Groups &all)
{
    using Sums = GroupSums<T>;
    const u32 in_use = ~u32(all.notes[1]);
    const auto is_used = [&](int w) { return (in_use >> w / Sums::SET & 1) != 0; };
    each_group(all, [&](u32 group) {
        const u64 n = all.counts_rows ? all.rows[group] : 1;
        all.present[group] = n != 0;
        bool special = false;
        if constexpr (Element<T>::FLOAT) {
            const bool has_nan = all.is_marked(Sums::NOT_A_NUMBER, group);
            // A group of nothing but omitted NaNs is one.
            all.present[group] = n != 0 || has_nan;
            const Specials<T> specials = {has_nan && !all.omits(), all.is_marked(Sums::POSITIVE, group), all.is_marked(Sums::NEGATIVE, group)};
            special = specials.any();
            if (special)
                static_cast<typename Sums::Bits *>(all.out)[group] = specials.bits();
        }
        if (!special) {
            if (n == 0 && all.ask == MEAN)
                static_cast<typename Sums::Answer *>(all.out)[group] = typename Sums::Answer(all.none);
            else
                Sums::Terms::write([&](int w) { return is_used(w) ? *all.word(w, group) : 0; }, all.out, group, all.ask, all.is_absolute(),
                    all.is_signed != 0, n, all.overflow);
        }
#pragma unroll 1
        for (int w = 0; w < Sums::WORDS; ++w) {
            if (is_used(w))
                *all.word(w, group) = 0;
        }
    });
}

template <class T>
__device__ __forceinline__ void sum_groups(const Groups &all)
{
    if (all.phase != 0)
        return finish_group_sums<T>(all);
    GroupSums<T> sums(all);
    sums.open();
    using Bits = typename GroupSums<T>::Bits;
    each_row<Bits>(all, [&](const u32 (&group)[GROUP_ROWS], const Bits (&bits)[GROUP_ROWS]) { sums.take_all(group, bits); },
        [&](bool is_last) {
            if (is_last) {
                __syncthreads();
                sums.flush();
            }
        });
    sums.close();
}
