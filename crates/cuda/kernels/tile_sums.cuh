// What takes sums in tiles: differences where they fit a word, parts of threads where elements have 64 bits.

#pragma once

#include "tile_differences.cuh"
#include "tile_parts.cuh"

template <class T, bool FLOAT = Element<T>::FLOAT, bool LONG = sizeof(typename Element<T>::Bits) == 8>
struct TileSumsOf {
    using Type = TileDifferences<WordTerms<T, TotalOf<T>>>;
};
template <class T>
struct TileSumsOf<T, true, false> {
    using Type = TileDifferences<FloatTerms<T>>;
};
template <class T>
struct TileSumsOf<T, false, true> {
    using Type = TileParts<OneByOne<T, TotalOf<T>>>;
};
template <class T>
struct TileSumsOf<T, true, true> {
    using Type = TileParts<QuickSum<T>>;
};
