// Sums of squares of a few floats, and of these themselves, by plain adds of f64 that are exact where the elements are not far apart.
//
// Let all elements be below 2^E and multiples of 2^(F - P) where they are not 0, P being the significand's length and F an exponent like E. E and F
// are fields of exponents here: with m the largest magnitude and l + 1 the smallest one that is not 0, m - l <= D 2^FRACTION implies E - F <= D. A zero
// wraps and drops out.
//
// Elements of shorter floats than f64
//
// Squares are exact in f64. They are added to an anchor A, a power of two: `at` is A + head, and a fused multiply-add makes and adds a square at
// once. What that rounds off is exact, too (Fast2Sum, as A is more than a square), and adds up in `rest`. A batch is seen before it is added. Where
// 2^(2 E + K) is more than A, there is a new anchor, 2^(2 E + K + 2), so that elements may grow by a binade before there is one more. For up to 2^K
// elements in batches of eight or more, or in one batch,
//
//  - `at` stays in the binade of A, as squares add up to less than 2^(2 E + K);
//  - what is rounded off is at most 2^(2 E + K + 2 - 53) each time, and there are fewer than 2^(K + 1) times, new anchors among them. So `rest` is
//    below 2^(2 E + 2 K - 50). It is a multiple of 2^(2 F - 2 P), and exact if 2 (E - F) <= 103 - 2 K - 2 P;
//  - elements add up to a multiple of 2^(F - P) below 2^(E + K), which is exact if E - F <= 53 - K - P. That is less to ask.
//
// f64
//
// A square is p, rounded, and its error e, multiples of 2^(2 F - 54) and 2^(2 F - 106), |e| <= 2^(2 E - 54). Sums of eight of these, and of elements, each
// have an anchor: 2^(2 E + 3), 1.5 2^(2 E - 49), 1.5 2^(E + 4). What adding rounds off is at most 2^(2 E - 50), 2^(2 E - 102), 2^(E - 49), eight times
// that is 2^(2 E - 47), 2^(2 E - 99), 2^(E - 46), and its sums are exact if E - F <= 23.

#pragma once

#include "rounded.cuh"

template <class T, bool SPREAD, int K>
struct PlainSquares {
    using Format = Element<T>;
    using Bits = typename Format::Bits;
    static constexpr int P = Format::FRACTION + 1, FAR = (103 - 2 * K - 2 * P) / 2;
    static_assert(FAR <= 53 - K - P, "elements add up exactly where squares do");

    f64 at = 0.0, rest = 0.0, sum = 0.0;

    // What was seen of magnitudes.
    struct Seen {
        Bits most = 0, least = Bits(~Bits(0));

        __device__ __forceinline__ void see(Bits magnitude)
        {
            most = max(most, magnitude);
            least = min(least, Bits(magnitude - 1));
        }
        __device__ __forceinline__ bool holds() const { return most < Format::INFINITE && Bits(most - least) <= u32(FAR) << Format::FRACTION; }
    };

    static __device__ __forceinline__ u32 field(f64 x) { return u32(bits_of(x) >> 52); }
    // The power of two in whose binade `at` is; 0 of nothing.
    __device__ __forceinline__ f64 anchor() const { return of_bits(bits_of(at) & u64(0x7ff) << 52); }
    // What is here of squares besides `rest`.
    __device__ __forceinline__ f64 head() const { return sub(at, anchor()); }

    // Makes room for elements of at most this magnitude.
    __device__ __forceinline__ void make_room(Bits most)
    {
        // Elements are below 2 to the power of their field, and UNIT and FRACTION.
        const u32 least = u32(1023 + K + 2 * (Format::UNIT + Format::FRACTION)) + 2 * u32(most >> Format::FRACTION);
        if (field(at) < least) {
            const f64 before = head(), next = of_bits(u64(least + 2) << 52);
            at = add(next, before);
            rest = add(rest, sub(before, sub(at, next)));
        }
    }

    __device__ __forceinline__ void add_one(f64 x)
    {
        const f64 next = fused(x, x, at);
        rest = add(rest, fused(x, x, sub(at, next)));
        at = next;
        if constexpr (SPREAD)
            sum = add(sum, x);
    }

    // Gives both sums to what adds up more of them.
    template <class Sum>
    __device__ __forceinline__ void give(Sum &of_squares, Sum &of_elements) const
    {
        of_squares.include(head());
        of_squares.include_error(rest);
        if constexpr (SPREAD)
            of_elements.include(sum);
    }
};

// A sum that an anchor is part of.
struct AnchoredSum {
    f64 at, rest = 0.0;

    __device__ __forceinline__ void add_one(f64 x)
    {
        const f64 next = add(at, x);
        rest = add(rest, sub(x, sub(next, at)));
        at = next;
    }
};

// Elements are taken times a power of two, and are less than 2^480 with it and, where they are not 0, 2^-474 at least.
template <bool SPREAD>
struct PlainSquares<f64, SPREAD, 3> {
    using Bits = u64;
    static constexpr u32 FAR = 23;
    AnchoredSum squares, errors, elements;
    i32 top; // E

    // The upper halves, which tell fields.
    struct Seen {
        u32 most = 0, least = ~0u;

        __device__ __forceinline__ void see(u64 magnitude)
        {
            most = max(most, u32(magnitude >> 32));
            least = min(least, u32((magnitude - 1) >> 32));
        }
        __device__ __forceinline__ bool holds() const { return most - least <= FAR << 20; }
    };

    static __device__ __forceinline__ f64 power(i32 exponent) { return of_bits(u64(1023 + exponent) << 52); }
    static __device__ __forceinline__ f64 middle(i32 exponent) { return of_bits(u64(2 * (1023 + exponent) + 1) << 51); }
    __device__ __forceinline__ f64 of_squares() const { return power(2 * top + 3); }
    __device__ __forceinline__ f64 of_errors() const { return middle(2 * top - 49); }
    __device__ __forceinline__ f64 of_elements() const { return middle(top + 4); }

    // Makes room for elements of which the largest has this upper half, times a power of two with that field.
    __device__ __forceinline__ void make_room(u32 most, u32 field)
    {
        top = max(i32((most >> 20) + field) - 1022 - 1023, -474);
        squares.at = of_squares();
        errors.at = of_errors();
        elements.at = of_elements();
    }

    __device__ __forceinline__ void add_one(f64 x)
    {
        const f64 square = mul(x, x);
        squares.add_one(square);
        errors.add_one(fused(x, x, -square));
        if constexpr (SPREAD)
            elements.add_one(x);
    }

    template <class Sum>
    __device__ __forceinline__ void give(Sum &all_squares, Sum &all_elements) const
    {
        all_squares.include(sub(squares.at, of_squares()));
        all_squares.include_error(squares.rest);
        all_squares.include_error(sub(errors.at, of_errors()));
        all_squares.include_error(errors.rest);
        if constexpr (SPREAD) {
            all_elements.include(sub(elements.at, of_elements()));
            all_elements.include_error(elements.rest);
        }
    }
};
