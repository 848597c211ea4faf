// Logarithms of sums of exponentials of floats over any axes of any view.

#pragma once

#include "float_logsumexp.cuh"
#include "strided.cuh"

template <class T>
struct StridedLogSumExp : FloatLogSumExp<T> {
    using Base = FloatLogSumExp<T>;
    using Item = T;
    using Bits = typename Base::Bits;
    static constexpr int SINGLES = sizeof(Bits) == 8 ? 4 : 8, MOST = SINGLES;
    static constexpr bool NUMBERED = false;
    static constexpr bool SETTLES = false;
    static constexpr bool MAY_BE_LOST = false;

    struct Asked {
        static __device__ __forceinline__ Bits fill() { return Base::IDENTITY; }
    };

    __device__ __forceinline__ StridedLogSumExp() {}
    __device__ __forceinline__ StridedLogSumExp(const Base &base) : Base(base) {}

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
        typename Base::Value x[N];
#pragma unroll
        for (int k = 0; k < N; ++k)
            x[k] = Element<T>::value(bits[k]);
        Base::take(x);
    }

    __device__ __forceinline__ void write(void *out, u64 place, const Asked &) { static_cast<Bits *>(out)[place] = Base::value(); }
};

template <class T>
__device__ __forceinline__ void logsumexp_of_view(const Layout &layout)
{
    using Sum = StridedLogSumExp<T>;
    Sum::prepare();
    reduce_view<Sum>(layout, {});
}
