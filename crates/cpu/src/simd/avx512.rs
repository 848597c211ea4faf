//! AVX-512 F, BW, DQ and VL: eight f64 lanes.

use super::{Kernel, Simd};
use core::arch::x86_64::*;

/// AVX-512 F, BW, DQ and VL: eight f64 lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

type F = __m512d;
type W = __m512i;

/// The lesser and the greater magnitude, without a sign; of a NaN and a number the number.
const LESSER: i32 = 0b1010;
const GREATER: i32 = 0b1011;

/// The bits less one: of zero they are a NaN.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn less_one(x: F) -> F {
    _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_castpd_si512(x), _mm512_set1_epi64(1)))
}

/// Compiles `kernel` with these instructions.
///
/// # Safety
/// The machine must have them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
#[inline(never)]
pub(crate) unsafe fn run<K: Kernel>(kernel: K) -> K::Out {
    // SAFETY: the caller guarantees the instructions.
    unsafe { kernel.run::<Avx512>() }
}

// SAFETY, for every block below: the trait's contract guarantees the instructions and
// for the pointers; loads and stores are the unaligned ones.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
impl Simd for Avx512 {
    const LANES: usize = 8;
    const FUSED: bool = true;
    type F = F;
    type W = W;

    #[inline(always)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { run(kernel) }
    }

    instructions! {
        splat(x: f64) -> F = _mm512_set1_pd(x);
        load(p: *const f64) -> F = _mm512_loadu_pd(p);
        store(v: F, p: *mut f64) = _mm512_storeu_pd(p, v);
        add(a: F, b: F) -> F = _mm512_add_pd(a, b);
        sub(a: F, b: F) -> F = _mm512_sub_pd(a, b);
        mul(a: F, b: F) -> F = _mm512_mul_pd(a, b);
    }
    #[inline(always)]
    unsafe fn add_beside(a: F, b: F, _: F) -> F {
        // Intel's units that add are those that multiply, and these take 150 cycles for a vector with
        // a subnormal number; those that add take none.
        unsafe { _mm512_add_pd(a, b) }
    }
    instructions! {
        mul_sub(a: F, b: F, c: F) -> F = _mm512_fmsub_pd(a, b, c);
        and(a: F, b: F) -> F = _mm512_and_pd(a, b);
        or(a: F, b: F) -> F = _mm512_or_pd(a, b);
        or_xor(a: F, b: F, c: F) -> F = {
            let [a, b, c] =
                [_mm512_castpd_si512(a), _mm512_castpd_si512(b), _mm512_castpd_si512(c)];
            // The truth table of a | (b ^ c).
            _mm512_castsi512_pd(_mm512_ternarylogic_epi64::<0xf6>(a, b, c))
        };
        abs(a: F) -> F = _mm512_abs_pd(a);
        max(a: F, b: F) -> F = _mm512_max_pd(a, b);
        min(a: F, b: F) -> F = _mm512_min_pd(a, b);
        or_unordered(acc: F, a: F, b: F) -> F = {
            let odd = _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, b);
            _mm512_castsi512_pd(_mm512_mask_set1_epi64(_mm512_castpd_si512(acc), odd, -1))
        };
        lookup(table: &[u64; 64], n: F) -> F = {
            let index = _mm512_and_si512(_mm512_castpd_si512(n), _mm512_set1_epi64(63));
            _mm512_castsi512_pd(_mm512_i64gather_epi64::<8>(index, table.as_ptr().cast()))
        };
        add_exponent(x: F, n: F) -> F = {
            let moved = _mm512_slli_epi64::<46>(_mm512_castpd_si512(n));
            _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(x), moved))
        };
        magnitudes([least, most]: [F; 2], x: F) -> [F; 2] = {
            let less = less_one(x);
            [_mm512_range_pd::<LESSER>(less, least), _mm512_range_pd::<GREATER>(x, most)]
        };
        magnitudes_of_two([least, most]: [F; 2], a: F, b: F) -> [F; 2] = {
            // The two of each other first: what was seen waits once.
            let less = _mm512_range_pd::<LESSER>(less_one(a), less_one(b));
            let more = _mm512_range_pd::<GREATER>(a, b);
            [_mm512_range_pd::<LESSER>(less, least), _mm512_range_pd::<GREATER>(more, most)]
        };
        all_below(a: F, limit: f64) -> bool = _mm512_cmp_pd_mask::<_CMP_NLT_UQ>(a, Self::splat(limit)) == 0;
        none_below(a: F, limit: f64) -> bool = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, Self::splat(limit)) == 0;
    }
    #[inline(always)]
    unsafe fn transpose(v: [F; 8]) -> [F; 8] {
        // Pairs of lanes, pairs of those, and pairs of these.
        unsafe {
            let [a, b, c, d, e, f, g, h] = v;
            // A macro: a closure would be called, with its vectors in memory.
            macro_rules! quads {
                ($w:expr, $x:expr, $y:expr, $z:expr) => {{
                    let (w, x, y, z) = ($w, $x, $y, $z);
                    let p = _mm512_shuffle_f64x2::<0x88>(w, x);
                    let q = _mm512_shuffle_f64x2::<0x88>(y, z);
                    let r = _mm512_shuffle_f64x2::<0xdd>(w, x);
                    let s = _mm512_shuffle_f64x2::<0xdd>(y, z);
                    [
                        _mm512_shuffle_f64x2::<0x88>(p, q),
                        _mm512_shuffle_f64x2::<0x88>(r, s),
                        _mm512_shuffle_f64x2::<0xdd>(p, q),
                        _mm512_shuffle_f64x2::<0xdd>(r, s),
                    ]
                }};
            }
            let [t0, t2, t4, t6] = quads!(
                _mm512_unpacklo_pd(a, b),
                _mm512_unpacklo_pd(c, d),
                _mm512_unpacklo_pd(e, f),
                _mm512_unpacklo_pd(g, h)
            );
            let [t1, t3, t5, t7] = quads!(
                _mm512_unpackhi_pd(a, b),
                _mm512_unpackhi_pd(c, d),
                _mm512_unpackhi_pd(e, f),
                _mm512_unpackhi_pd(g, h)
            );
            [t0, t1, t2, t3, t4, t5, t6, t7]
        }
    }
    instructions! {
        sum_each(v: [F; 8]) -> F = {
            // Neighbouring lanes: [a0+a1, b0+b1, a2+a3, b2+b3, ..].
            let ab = _mm512_add_pd(_mm512_unpacklo_pd(v[0], v[1]), _mm512_unpackhi_pd(v[0], v[1]));
            let cd = _mm512_add_pd(_mm512_unpacklo_pd(v[2], v[3]), _mm512_unpackhi_pd(v[2], v[3]));
            let ef = _mm512_add_pd(_mm512_unpacklo_pd(v[4], v[5]), _mm512_unpackhi_pd(v[4], v[5]));
            let gh = _mm512_add_pd(_mm512_unpacklo_pd(v[6], v[7]), _mm512_unpackhi_pd(v[6], v[7]));
            // Neighbouring pairs of lanes: [ab 0+1, ab 2+3, cd 0+1, cd 2+3].
            let abcd = _mm512_add_pd(
                _mm512_shuffle_f64x2::<0b10_00_10_00>(ab, cd),
                _mm512_shuffle_f64x2::<0b11_01_11_01>(ab, cd),
            );
            let efgh = _mm512_add_pd(
                _mm512_shuffle_f64x2::<0b10_00_10_00>(ef, gh),
                _mm512_shuffle_f64x2::<0b11_01_11_01>(ef, gh),
            );
            _mm512_add_pd(
                _mm512_shuffle_f64x2::<0b10_00_10_00>(abcd, efgh),
                _mm512_shuffle_f64x2::<0b11_01_11_01>(abcd, efgh),
            )
        };
        wsplat(x: u32) -> W = _mm512_set1_epi32(x.cast_signed());
        wload(p: *const u32) -> W = _mm512_loadu_si512(p.cast());
        wstore(v: W, p: *mut u32) = _mm512_storeu_si512(p.cast(), v);
        wadd(a: W, b: W) -> W = _mm512_add_epi32(a, b);
        wsub(a: W, b: W) -> W = _mm512_sub_epi32(a, b);
        wmax(a: W, b: W) -> W = _mm512_max_epu32(a, b);
        wmin(a: W, b: W) -> W = _mm512_min_epu32(a, b);
        wleast(a: W, b: W) -> W = _mm512_castps_si512(_mm512_min_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
        wgreatest(a: W, b: W) -> W = _mm512_castps_si512(_mm512_max_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)));
        wor_unordered(acc: W, a: W, b: W) -> W = {
            let [a, b] = [_mm512_castsi512_ps(a), _mm512_castsi512_ps(b)];
            _mm512_mask_set1_epi32(acc, _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, b), -1)
        };
        wand(a: W, b: W) -> W = _mm512_and_si512(a, b);
        wxor(a: W, b: W) -> W = _mm512_xor_si512(a, b);
        sum_bytes(acc: W, a: W) -> W = _mm512_add_epi64(acc, _mm512_sad_epu8(a, _mm512_setzero_si512()));
        add_words(to: &mut [u64; 2], p: *const u64, beside: [u64; 2]) = {
            let beside = _mm_set_epi64x(beside[1].cast_signed(), beside[0].cast_signed());
            let words = _mm_cvtepu32_epi64(_mm_loadl_epi64(p.cast()));
            let to: *mut __m128i = to.as_mut_ptr().cast();
            let sum = _mm_add_epi64(_mm_loadu_si128(to), _mm_add_epi64(words, beside));
            _mm_storeu_si128(to, sum);
        };
        dadd_bits(acc: W, x: F) -> W = _mm512_add_epi64(acc, _mm512_castpd_si512(x));
        widen(a: W) -> (F, F) = {
            let low = _mm256_castsi256_ps(_mm512_castsi512_si256(a));
            let high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64::<1>(a));
            (_mm512_cvtps_pd(low), _mm512_cvtps_pd(high))
        };
        load_f16(p: *const u16) -> W = _mm512_castps_si512(_mm512_cvtph_ps(_mm256_loadu_si256(p.cast())));
        load_bf16(p: *const u16) -> W = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())));
    }
}
