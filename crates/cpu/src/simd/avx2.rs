//! AVX2 with FMA and F16C: four f64 lanes.

use super::{Kernel, Simd};
use core::arch::x86_64::*;

/// AVX2 with FMA and F16C: four f64 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

type F = __m256d;
type W = __m256i;

/// Compiles `kernel` with these instructions.
///
/// # Safety
/// The machine must have them.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline(never)]
pub(crate) unsafe fn run<K: Kernel>(kernel: K) -> K::Out {
    // SAFETY: the caller guarantees the instructions.
    unsafe { kernel.run::<Avx2>() }
}

// SAFETY, for every block below: the trait's contract guarantees the instructions and
// for the pointers; loads and stores are the unaligned ones.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
impl Simd for Avx2 {
    const LANES: usize = 4;
    const FUSED: bool = true;
    type F = F;
    type W = W;

    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { run(kernel) }
    }

    instructions! {
        splat(x: f64) -> F = _mm256_set1_pd(x);
        load(p: *const f64) -> F = _mm256_loadu_pd(p);
        store(v: F, p: *mut f64) = _mm256_storeu_pd(p, v);
        add(a: F, b: F) -> F = _mm256_add_pd(a, b);
        sub(a: F, b: F) -> F = _mm256_sub_pd(a, b);
        mul(a: F, b: F) -> F = _mm256_mul_pd(a, b);
        add_beside(a: F, b: F, one: F) -> F = _mm256_fmadd_pd(a, one, b);
        mul_sub(a: F, b: F, c: F) -> F = _mm256_fmsub_pd(a, b, c);
        and(a: F, b: F) -> F = _mm256_and_pd(a, b);
        or(a: F, b: F) -> F = _mm256_or_pd(a, b);
        or_xor(a: F, b: F, c: F) -> F = _mm256_or_pd(a, _mm256_xor_pd(b, c));
        abs(a: F) -> F = _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
        max(a: F, b: F) -> F = _mm256_max_pd(a, b);
        min(a: F, b: F) -> F = _mm256_min_pd(a, b);
        or_unordered(acc: F, a: F, b: F) -> F = _mm256_or_pd(acc, _mm256_cmp_pd::<_CMP_UNORD_Q>(a, b));
        lookup(table: &[u64; 64], n: F) -> F = {
            let index = _mm256_and_si256(_mm256_castpd_si256(n), _mm256_set1_epi64x(63));
            _mm256_castsi256_pd(_mm256_i64gather_epi64::<8>(table.as_ptr().cast(), index))
        };
        add_exponent(x: F, n: F) -> F = {
            let moved = _mm256_slli_epi64::<46>(_mm256_castpd_si256(n));
            _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(x), moved))
        };
        magnitudes([least, most]: [F; 2], x: F) -> [F; 2] = {
            let x = Self::abs(x);
            let less = _mm256_sub_epi64(_mm256_castpd_si256(x), _mm256_set1_epi64x(1));
            // Of a NaN and a number these give the second. Zero less one is a NaN.
            [_mm256_min_pd(_mm256_castsi256_pd(less), least), _mm256_max_pd(x, most)]
        };
        all_below(a: F, limit: f64) -> bool = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_NLT_UQ>(a, Self::splat(limit))) == 0;
        none_below(a: F, limit: f64) -> bool = _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(a, Self::splat(limit))) == 0;
        sum_each(v: [F; 8]) -> F = {
            // [a0+a1, b0+b1, a2+a3, b2+b3] and the same of c and d.
            let ab = _mm256_hadd_pd(v[0], v[1]);
            let cd = _mm256_hadd_pd(v[2], v[3]);
            let low = _mm256_blend_pd::<0b1100>(ab, cd);
            let high = _mm256_permute2f128_pd::<0x21>(ab, cd);
            _mm256_add_pd(low, high)
        };
        transpose(v: [F; 8]) -> [F; 8] = {
            // [a0, b0, a2, b2], [a1, b1, a3, b3] and the same of c and d.
            let [even, odd] = [_mm256_unpacklo_pd(v[0], v[1]), _mm256_unpackhi_pd(v[0], v[1])];
            let [next, last] = [_mm256_unpacklo_pd(v[2], v[3]), _mm256_unpackhi_pd(v[2], v[3])];
            let mut turned = v;
            turned[0] = _mm256_permute2f128_pd::<0x20>(even, next);
            turned[1] = _mm256_permute2f128_pd::<0x20>(odd, last);
            turned[2] = _mm256_permute2f128_pd::<0x31>(even, next);
            turned[3] = _mm256_permute2f128_pd::<0x31>(odd, last);
            turned
        };
        wsplat(x: u32) -> W = _mm256_set1_epi32(x.cast_signed());
        wload(p: *const u32) -> W = _mm256_loadu_si256(p.cast());
        wstore(v: W, p: *mut u32) = _mm256_storeu_si256(p.cast(), v);
        wadd(a: W, b: W) -> W = _mm256_add_epi32(a, b);
        wsub(a: W, b: W) -> W = _mm256_sub_epi32(a, b);
        wmax(a: W, b: W) -> W = _mm256_max_epu32(a, b);
        wmin(a: W, b: W) -> W = _mm256_min_epu32(a, b);
        wleast(a: W, b: W) -> W = _mm256_castps_si256(_mm256_min_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
        wgreatest(a: W, b: W) -> W = _mm256_castps_si256(_mm256_max_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
        wor_unordered(acc: W, a: W, b: W) -> W = {
            let [a, b] = [_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)];
            let odd = _mm256_cmp_ps::<_CMP_UNORD_Q>(a, b);
            _mm256_or_si256(acc, _mm256_castps_si256(odd))
        };
        wand(a: W, b: W) -> W = _mm256_and_si256(a, b);
        wxor(a: W, b: W) -> W = _mm256_xor_si256(a, b);
        sum_bytes(acc: W, a: W) -> W = _mm256_add_epi64(acc, _mm256_sad_epu8(a, _mm256_setzero_si256()));
        add_words(to: &mut [u64; 2], p: *const u64, beside: [u64; 2]) = {
            let beside = _mm_set_epi64x(beside[1].cast_signed(), beside[0].cast_signed());
            let words = _mm_cvtepu32_epi64(_mm_loadl_epi64(p.cast()));
            let to: *mut __m128i = to.as_mut_ptr().cast();
            let sum = _mm_add_epi64(_mm_loadu_si128(to), _mm_add_epi64(words, beside));
            _mm_storeu_si128(to, sum);
        };
        dadd_bits(acc: W, x: F) -> W = _mm256_add_epi64(acc, _mm256_castpd_si256(x));
        widen(a: W) -> (F, F) = {
            let a = _mm256_castsi256_ps(a);
            (
                _mm256_cvtps_pd(_mm256_castps256_ps128(a)),
                _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a)),
            )
        };
        load_f16(p: *const u16) -> W = _mm256_castps_si256(_mm256_cvtph_ps(_mm_loadu_si128(p.cast())));
        load_bf16(p: *const u16) -> W = _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast())));
    }
}
