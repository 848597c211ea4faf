//! NEON: four f64 lanes in two registers, as many as the other instruction sets have at
//! least.

use super::{Kernel, Simd};
use core::arch::aarch64::*;
use core::arch::asm;

/// NEON: four f64 lanes in two registers.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

type F = [float64x2_t; 2];
type W = [uint32x4_t; 2];

/// Does something to each register.
macro_rules! each {
    ($f:expr, $($v:expr),+) => {
        [$f($($v[0]),+), $f($($v[1]),+)]
    };
}

/// The bits of f64.
#[inline(always)]
fn bits(a: float64x2_t) -> uint64x2_t {
    // SAFETY: NEON is part of the target.
    unsafe { vreinterpretq_u64_f64(a) }
}

/// The f64 with these bits.
#[inline(always)]
fn number(a: uint64x2_t) -> float64x2_t {
    // SAFETY: NEON is part of the target.
    unsafe { vreinterpretq_f64_u64(a) }
}

/// Four f16 as f32. The intrinsic needs a type that the oldest supported compiler does
/// not have.
#[inline(always)]
unsafe fn f16_to_f32(low_half: uint16x4_t) -> uint32x4_t {
    let wide: uint32x4_t;
    // SAFETY: the instruction is part of NEON and touches no memory.
    unsafe {
        asm!(
            "fcvtl {wide:v}.4s, {narrow:v}.4h",
            wide = out(vreg) wide,
            narrow = in(vreg) low_half,
            options(pure, nomem, nostack)
        );
    }
    wide
}

// SAFETY, for every block below: NEON is part of the target; the trait's contract
// guarantees the pointers.
#[expect(clippy::undocumented_unsafe_blocks, reason = "one argument for all, above")]
impl Simd for Neon {
    const LANES: usize = 4;
    // 32 registers are 16 of these vectors.
    const FUSED: bool = true;
    type F = F;
    type W = W;

    #[inline(never)]
    unsafe fn call<K: Kernel>(kernel: K) -> K::Out {
        unsafe { kernel.run::<Neon>() }
    }

    instructions! {
        splat(x: f64) -> F = [vdupq_n_f64(x); 2];
        load(p: *const f64) -> F = [vld1q_f64(p), vld1q_f64(p.add(2))];
        store(v: F, p: *mut f64) = {
            vst1q_f64(p, v[0]);
            vst1q_f64(p.add(2), v[1]);
        };
        add(a: F, b: F) -> F = each!(vaddq_f64, a, b);
        sub(a: F, b: F) -> F = each!(vsubq_f64, a, b);
        mul(a: F, b: F) -> F = each!(vmulq_f64, a, b);
        add_beside(a: F, b: F, _: F) -> F = each!(vaddq_f64, a, b);
        mul_sub(a: F, b: F, c: F) -> F = each!(|a, b, c| vfmaq_f64(vnegq_f64(c), a, b), a, b, c);
        and(a: F, b: F) -> F = each!(|a, b| number(vandq_u64(bits(a), bits(b))), a, b);
        or(a: F, b: F) -> F = each!(|a, b| number(vorrq_u64(bits(a), bits(b))), a, b);
        or_xor(a: F, b: F, c: F) -> F = each!(|a, b, c| number(vorrq_u64(bits(a), veorq_u64(bits(b), bits(c)))), a, b, c);
        abs(a: F) -> F = each!(vabsq_f64, a);
        max(a: F, b: F) -> F = each!(|a, b| vbslq_f64(vcgtq_f64(a, b), a, b), a, b);
        min(a: F, b: F) -> F = each!(|a, b| vbslq_f64(vcltq_f64(a, b), a, b), a, b);
        or_unordered(acc: F, a: F, b: F) -> F = {
            let odd = |acc, a, b| {
                let same = vandq_u64(vceqq_f64(a, a), vceqq_f64(b, b));
                number(vorrq_u64(bits(acc), vceqzq_u64(same)))
            };
            each!(odd, acc, a, b)
        };
        lookup(table: &[u64; 64], n: F) -> F = {
            let found = |n: float64x2_t| {
                let n = bits(n);
                let places = [vgetq_lane_u64::<0>(n), vgetq_lane_u64::<1>(n)];
                number(vld1q_u64(places.map(|n| table[n as usize % 64]).as_ptr()))
            };
            each!(found, n)
        };
        add_exponent(x: F, n: F) -> F = each!(|x, n| number(vaddq_u64(bits(x), vshlq_n_u64::<46>(bits(n)))), x, n);
        magnitudes([least, most]: [F; 2], x: F) -> [F; 2] = {
            let x = each!(vabsq_f64, x);
            let less = each!(|x| number(vsubq_u64(bits(x), vdupq_n_u64(1))), x);
            // Zero less one is a NaN, which is not less.
            let smaller = |a, b| vbslq_f64(vcltq_f64(a, b), a, b);
            let larger = |a, b| vbslq_f64(vcgtq_f64(a, b), a, b);
            [each!(smaller, less, least), each!(larger, x, most)]
        };
        all_below(a: F, limit: f64) -> bool = {
            let below = each!(vcltq_f64, a, Self::splat(limit));
            let both = vandq_u64(below[0], below[1]);
            vgetq_lane_u64::<0>(both) & vgetq_lane_u64::<1>(both) == u64::MAX
        };
        none_below(a: F, limit: f64) -> bool = {
            let below = each!(vcltq_f64, a, Self::splat(limit));
            let any = vorrq_u64(below[0], below[1]);
            vgetq_lane_u64::<0>(any) | vgetq_lane_u64::<1>(any) == 0
        };
        sum_each(v: [F; 8]) -> F = {
            let pair = |v: F| vpaddq_f64(v[0], v[1]);
            [vpaddq_f64(pair(v[0]), pair(v[1])), vpaddq_f64(pair(v[2]), pair(v[3]))]
        };
        wsplat(x: u32) -> W = [vdupq_n_u32(x); 2];
        wload(p: *const u32) -> W = {
            // By bytes: words of shorter elements lie anywhere.
            let p: *const u8 = p.cast();
            [vreinterpretq_u32_u8(vld1q_u8(p)), vreinterpretq_u32_u8(vld1q_u8(p.add(16)))]
        };
        wstore(v: W, p: *mut u32) = {
            vst1q_u32(p, v[0]);
            vst1q_u32(p.add(4), v[1]);
        };
        wadd(a: W, b: W) -> W = each!(vaddq_u32, a, b);
        wsub(a: W, b: W) -> W = each!(vsubq_u32, a, b);
        wmax(a: W, b: W) -> W = each!(vmaxq_u32, a, b);
        wmin(a: W, b: W) -> W = each!(vminq_u32, a, b);
        wleast(a: W, b: W) -> W = each!(|a, b| vbslq_u32(vcltq_f32(vreinterpretq_f32_u32(a), vreinterpretq_f32_u32(b)), a, b), a, b);
        wgreatest(a: W, b: W) -> W = each!(|a, b| vbslq_u32(vcgtq_f32(vreinterpretq_f32_u32(a), vreinterpretq_f32_u32(b)), a, b), a, b);
        wor_unordered(acc: W, a: W, b: W) -> W = {
            let odd = |acc, a, b| {
                let [a, b] = [vreinterpretq_f32_u32(a), vreinterpretq_f32_u32(b)];
                vornq_u32(acc, vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)))
            };
            each!(odd, acc, a, b)
        };
        wand(a: W, b: W) -> W = each!(vandq_u32, a, b);
        wxor(a: W, b: W) -> W = each!(veorq_u32, a, b);
        sum_bytes(acc: W, a: W) -> W = {
            let sum = |acc, a| {
                let words = vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u32(a)));
                vreinterpretq_u32_u64(vpadalq_u32(vreinterpretq_u64_u32(acc), words))
            };
            each!(sum, acc, a)
        };
        add_words(to: &mut [u64; 2], p: *const u64, beside: [u64; 2]) = {
            let words = vmovl_u32(vreinterpret_u32_u8(vld1_u8(p.cast())));
            let beside = vld1q_u64(beside.as_ptr());
            let sum = vaddq_u64(vld1q_u64(to.as_ptr()), vaddq_u64(words, beside));
            vst1q_u64(to.as_mut_ptr(), sum);
        };
        dadd_bits(acc: W, x: F) -> W = {
            let add = |acc, x| {
                vreinterpretq_u32_u64(vaddq_u64(vreinterpretq_u64_u32(acc), bits(x)))
            };
            each!(add, acc, x)
        };
        widen(a: W) -> (F, F) = {
            let wide = |words| {
                let floats = vreinterpretq_f32_u32(words);
                [vcvt_f64_f32(vget_low_f32(floats)), vcvt_high_f64_f32(floats)]
            };
            (wide(a[0]), wide(a[1]))
        };
        load_f16(p: *const u16) -> W = {
            let halves = vreinterpretq_u16_u8(vld1q_u8(p.cast()));
            [f16_to_f32(vget_low_u16(halves)), f16_to_f32(vget_high_u16(halves))]
        };
        load_bf16(p: *const u16) -> W = {
            let halves = vreinterpretq_u16_u8(vld1q_u8(p.cast()));
            [vshll_n_u16::<16>(vget_low_u16(halves)), vshll_high_n_u16::<16>(halves)]
        };
    }
}
