// Products of floats over any axes of any view.

#pragma once

#include "float_prod.cuh"
#include "strided.cuh"

template <class T>
struct StridedProd : FloatProd<T> {
    using Base = FloatProd<T>;
    using Item = T;
    using Bits = typename Base::Bits;
    static constexpr int SINGLES = sizeof(Bits) == 8 ? 4 : 8, MOST = SINGLES;
    static constexpr bool NUMBERED = false;
    static constexpr bool SETTLES = false;
    static constexpr bool MAY_BE_LOST = false;
    static constexpr bool TAKES_INITIAL = true;

    struct Asked {
        u64 n;
        static __device__ __forceinline__ Bits fill() { return Base::IDENTITY; }
    };

    __device__ __forceinline__ StridedProd() {}
    __device__ __forceinline__ StridedProd(const Base &base) : Base(base) {}

    template <int V, int N, class Number>
    __device__ __forceinline__ void take(const Bits (&bits)[N], Number, const Asked &)
    {
        Base::take(bits);
    }

    __device__ __forceinline__ void write(void *out, u64 place, const Asked &asked)
    {
        static_cast<Bits *>(out)[place] = Base::value(Base::whole(), asked.n);
    }
};

template <class T>
__device__ __forceinline__ void prods_of_view(const Layout &layout)
{
    using Product = StridedProd<T>;
    Product::prepare();
    reduce_view<Product>(layout, {layout.n});
}
