//! Logarithms of sums of exponentials, for many outputs.
//!
//! The answer of a log-sum-exp is defined by terms that are rounded to a grid (`core/op/logsumexp.rs`),
//! and lies within a bound of the true value. So does what is found here, in two f64, by some thirty
//! operations an element. Where all numbers as near as both bounds say round to the same one, that
//! is the answer.
//!
//! The first element `o` of an output is its origin: the answer is `o + ln s`, with the sum `s` of
//! `e^(x - o)`.
//!
//! # The bounds
//!
//! With `u = 2^-53`, relative to the term, `x - o = n ln 2 / 64 + r` with `|r| <= ln 2 / 128 < 2^-7.5`:
//!
//! | of an exponential | |
//! |---|---|
//! | the polynomial `q = e^r - 1 - r`, below 2^-16.1: 2.5 u of itself by its operations | 2^-67.7 |
//! | what it lacks, from `r^8 / 8!` on | 2^-75 |
//! | the second part of `r`, below 2^-60, times `r` | 2^-68 |
//! | the constants, the second parts of products | 2^-80 |
//! | all | 2^-66.9 |
//!
//! The sum of `n` terms is `s + e` with the errors of its additions, which TwoSum gives, in `e`. These
//! are below `n u s` together with the second parts of terms, and `2 n` additions to `e` are off by
//! `u` of that: below `n^2 2^-104 s`.
//!
//! The logarithm of `s = 2^k m` begins with `y`, which is off by 2^-30 at most. With
//! `z = m e^-y - 1`, the logarithm of `m` is `y + z - z^2 / 2`, off by `z^3 / 3` and by what the
//! exponential is.

use super::finish::{Pair, TOGETHER};
use super::measures::{Measure, two_sums};
use super::round::{Interval, two_sum};
use crate::exact::power_of_two;
use crate::simd::{Kernel, Simd};
use warpfold_core::op::logsumexp::{LN2_HIGH, LN2_REST, POWERS, ROUNDER};

/// Steps of a binade.
const STEPS: usize = 64;
/// What an exponential is off by, of itself.
const EXPONENTIAL: f64 = power_of_two(-66);
/// The least exponent of a term, of 2^-865.7: those of smaller ones are too small to matter beside
/// the sums that are certain. The greatest one, of 2^867.1, takes a sum beyond these.
const LEAST: f64 = -600.0;
const MOST: f64 = 601.0;
/// Sums of terms that are certain.
const SUMS: [f64; 2] = [power_of_two(-700), power_of_two(860)];

/// `ln 2 / 64` in two parts: of the first, multiples by integers of 17 bits are exact.
const STEP: [f64; 2] =
    [f64::from_bits(0x3f86_2e42_fefa_0000), f64::from_bits(0x3d1c_f79a_bc9e_3b3a)];
/// The bits of the root of a half.
const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;

/// What `2^(j / 64)` is more than the number it is rounded to, relative to that.
#[rustfmt::skip]
const TAILS: [u64; STEPS] = [
    0x0000_0000_0000_0000, 0xbc71_6013_9cd8_dc5d, 0x3c8c_d252_3567_f613, 0x3c60_f74e_61e6_c861,
    0x3c97_9aa6_5d83_7b6d, 0x3c3e_be3d_702f_9cd1, 0xbc95_5652_2a2f_bd0e, 0xbc91_c923_b9d5_f416,
    0xbc80_1b15_eaa5_9348, 0x3c8b_898c_3f13_53bf, 0x3c9a_ecf7_3e3a_2f60, 0x3c8a_6f41_44a6_c38d,
    0x3c96_8efd_e3a8_a894, 0x3c80_472b_981f_e7f2, 0x3c82_f7e1_6d09_ab31, 0x3c8b_3782_720c_0ab4,
    0x3c83_4d75_4db0_abb6, 0x3c8f_dd39_5dd3_f84a, 0xbc92_4aed_cc4b_5068, 0xbc71_d1e8_3e94_36d2,
    0x3c85_9f48_a72a_4c6d, 0xbc58_a78f_4817_895b, 0x3c43_63ed_60c2_ac11, 0x3c6e_cce1_daa1_0379,
    0x3c76_90ce_bb7a_afb0, 0xbc8f_9434_0071_a38e, 0xbc78_dec6_bd0f_385f, 0x3c93_3505_18fd_d78e,
    0x3c90_63e1_e21c_5409, 0x3c94_32e6_2b64_c035, 0xbc8c_33c5_3bef_4da8, 0xbc93_cedd_7856_5858,
    0xbc93_b3ef_bf5e_2228, 0xbc63_67ef_b86d_a9ee, 0xbc78_1f64_7e5a_3ecf, 0xbc86_1932_1e55_e68a,
    0xbc7b_32dc_b94d_a51d, 0x3c65_ebe1_abd6_6c55, 0xbc93_69b6_f13b_3734, 0xbc94_d450_d872_576e,
    0x3c8d_b72f_c1f0_eab4, 0x3c7b_f683_59f3_5f44, 0xbc5d_a9b8_8b6c_1e29, 0xbc92_4343_22f4_f9aa,
    0x3c71_affc_2b91_ce27, 0xbc87_c504_2262_2263, 0xbc91_bbd1_d3bc_bb15, 0x3c84_6984_6e73_5ab3,
    0x3c8c_1a77_92cb_3387, 0xbc55_c3d9_56dc_aeba, 0xbc68_d6f4_38ad_9334, 0x3c74_ffd7_0a5f_ddcd,
    0x3c73_6eae_30af_0cb3, 0x3c84_e08f_d109_59ac, 0x3c67_6b2c_6c92_1968, 0xbc8f_ad5d_3fff_fa6f,
    0x3c74_a385_a63d_07a7, 0x3c8e_5a50_d5c1_92ac, 0xbc82_d521_07b4_3e1f, 0x3c74_b604_603a_88d3,
    0xbc8f_f712_8fd3_91f0, 0x3c8e_c3bc_41aa_2008, 0x3c8a_64a9_31d1_85ee, 0x3c77_893b_4d91_cd9d,
];

/// The exponentials of `d + more`, in two parts. `more` is at most `u` of `d`. What is beyond
/// [`LEAST`] and [`MOST`] is brought there; a NaN stays one.
#[inline(always)]
unsafe fn exponential<S: Simd>(d: S::F, more: S::F) -> [S::F; 2] {
    // SAFETY: passed on from the caller.
    unsafe {
        let [zero, one] = [S::splat(0.0), S::splat(1.0)];
        // `a b + c`.
        let fused = |a, b, c| S::mul_sub(a, b, S::sub(zero, c));
        let x = S::min(S::splat(MOST), S::max(S::splat(LEAST), d));
        let most = MOST * f64::EPSILON;
        // No NaN, which an infinite `d` has here.
        let more = S::min(S::max(more, S::splat(-most)), S::splat(most));
        let steps = S::splat(STEPS as f64 * core::f64::consts::LOG2_E);
        let shifted = S::mul_sub(x, steps, S::splat(-ROUNDER));
        let n = S::sub(shifted, S::splat(ROUNDER));
        // Exact: the difference has no digits below those of either.
        let r = S::sub(zero, S::mul_sub(n, S::splat(STEP[0]), x));
        let rest = S::sub(zero, S::mul_sub(n, S::splat(STEP[1]), more));
        let [r, rest] = two_sums::<S>(r, rest, one);
        let mut p = S::splat(1.0 / 5040.0);
        for factorial in [720.0, 120.0, 24.0, 6.0, 2.0] {
            p = S::mul_sub(p, r, S::splat(-1.0 / factorial));
        }
        let high = S::add(one, r);
        let low = fused(S::mul(r, r), p, rest);
        let low = S::add(S::add(S::sub(one, high), r), low);
        let low = fused(high, S::lookup(&TAILS, shifted), low);
        let power = S::add_exponent(S::lookup(&POWERS, shifted), shifted);
        let product = S::mul(power, high);
        [product, fused(power, low, S::mul_sub(power, high, product))]
    }
}

/// The sum of the exponentials of what elements are more than the first one.
#[derive(Clone, Copy)]
pub(super) struct Exponentials;

impl Measure<4> for Exponentials {
    const PRODUCTS: bool = false;
    const SHIFTED: bool = true;
    const SCALES: bool = false;
    const NEUTRAL: Option<f64> = Some(f64::NEG_INFINITY);

    #[inline(always)]
    fn frame(_: f64, greatest: f64) -> [f64; 2] {
        // Sums are of at least 1 then.
        [greatest, 1.0]
    }

    #[inline(always)]
    unsafe fn step<S: Simd>([s, e, largest, origin]: &mut [S::F; 4], [x, _]: [S::F; 2], one: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            // The largest element, which is at least 0 here; a NaN is in the sum.
            *largest = S::max(x, *largest);
            let d = S::sub(x, *origin);
            let z = S::sub(d, x);
            let more = S::sub(S::sub(x, S::sub(d, z)), S::add(*origin, z));
            let [high, low] = exponential::<S>(d, more);
            let [sum, error] = two_sums::<S>(*s, high, one);
            *s = sum;
            *e = S::add(*e, S::add(error, low));
        }
    }

    #[inline(always)]
    unsafe fn join<S: Simd>(acc: &mut [S::F; 4], others: [S::F; 4], one: S::F) {
        // SAFETY: passed on from the caller.
        unsafe {
            let [sum, error] = two_sums::<S>(acc[0], others[0], one);
            acc[0] = sum;
            acc[1] = S::add(acc[1], S::add(error, others[1]));
            acc[2] = S::max(acc[2], others[2]);
        }
    }

    #[inline(always)]
    fn special([s, ..]: [f64; 4]) -> f64 {
        // An infinite sum is in `first`.
        if s.is_nan() { s } else { 0.0 }
    }

    #[inline(always)]
    fn first([s, e, largest, _]: [f64; 4], len: f64) -> Interval {
        let off = s * (EXPONENTIAL + len * len * power_of_two(-104));
        let known = (s > SUMS[0]) & (s < SUMS[1]) | s.is_nan();
        let found = Interval { high: s, low: e, off }.or(Interval::UNKNOWN, !known);
        let infinite = (largest == f64::INFINITY) & !s.is_nan();
        found.or(Interval::of_special(largest), infinite)
    }

    #[inline(always)]
    fn second([.., origin]: [f64; 4], _: f64) -> Interval {
        Interval { high: origin, low: 0.0, off: 0.0 }
    }
}

/// Makes the first sums, and the second ones, which are origins, to their answers: `o + ln s`. What
/// an answer by definition may be off by more is added.
pub(super) struct Logarithms<'a> {
    pub(super) pair: &'a mut Pair,
    /// Whether elements are as long as f64.
    pub(super) is_long: bool,
}

impl Kernel for Logarithms<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Logarithms { pair: Pair { first, second }, is_long } = self;
        let definition = power_of_two(if is_long { -93 } else { -47 });
        let (mut parts, mut roots) = ([Binary::ZERO; TOGETHER], [[0.0; TOGETHER]; 2]);
        for i in 0..TOGETHER {
            parts[i] = Binary::of(first.get(i));
            roots[0][i] = -parts[i].near;
        }
        for at in (0..TOGETHER).step_by(S::LANES) {
            // SAFETY: whole vectors of the buffers; the caller has the instructions.
            unsafe {
                let [high, low] = roots.each_mut().map(|root| root[at..].as_mut_ptr());
                let [root, rest] = exponential::<S>(S::load(high), S::splat(0.0));
                S::store(root, high);
                S::store(rest, low);
            }
        }
        for i in 0..TOGETHER {
            let (sum, origin) = (first.get(i), second.get(i).high);
            let Binary { high, low, exponent, near } = parts[i];
            let (root, rest) = (roots[0][i], roots[1][i]);
            let product = high * root;
            let error = high.mul_add(root, -product);
            let z = (product - 1.0) + (error + high.mul_add(rest, low * root));
            let z = (-0.5 * z).mul_add(z, z);
            let [a, b] = two_sum(origin, exponent * LN2_HIGH);
            let [found, c] = two_sum(a, near);
            let more = exponent * LN2_REST;
            let magnitudes = b.abs() + c.abs() + z.abs() + more.abs();
            let definition = definition + a.abs() * power_of_two(-103);
            let off = sum.off / sum.high * 1.01 + EXPONENTIAL + definition;
            let off = off + magnitudes * (4.0 * f64::EPSILON);
            let found = Interval { high: found, low: (b + c) + (z + more), off };
            // Infinities and NaNs, and sums of which nothing is known.
            let known = sum.off < f64::INFINITY;
            first.set(i, found.or(sum, sum.is_special() | !known));
        }
    }
}

/// `(high + low) 2^exponent`, with `high` between the root of a half and of 2, and the logarithm of
/// that but for 2^-30 of it.
#[derive(Clone, Copy)]
struct Binary {
    high: f64,
    low: f64,
    exponent: f64,
    near: f64,
}

impl Binary {
    const ZERO: Binary = Binary { high: 0.0, low: 0.0, exponent: 0.0, near: 0.0 };

    #[inline(always)]
    fn of(sum: Interval) -> Binary {
        let [s, e] = two_sum(sum.high, sum.low);
        let exponent = s.to_bits().wrapping_sub(ROOT_HALF).cast_signed() >> 52;
        let scale = f64::from_bits(1023i64.wrapping_sub(exponent).cast_unsigned() << 52);
        let exponent = f64::from_bits(ROUNDER.to_bits().wrapping_add_signed(exponent)) - ROUNDER;
        let (high, low) = (s * scale, e * scale);
        let f = (high - 1.0) / (high + 1.0);
        let square = f * f;
        let p = square.mul_add(2.0 / 11.0, 2.0 / 9.0);
        let p = p.mul_add(square, 2.0 / 7.0);
        let p = p.mul_add(square, 2.0 / 5.0);
        let p = p.mul_add(square, 2.0 / 3.0);
        Binary { high, low, exponent, near: p.mul_add(square, 2.0) * f }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finish::Intervals;
    use super::*;
    use crate::isa::Isa;
    use crate::simd::dispatch;
    use warpfold_core::op::logsumexp::Double;

    /// Numbers of 0 to 1.
    fn units() -> impl Iterator<Item = f64> {
        let mut z = 1u64;
        core::iter::repeat_with(move || {
            z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (z >> 11) as f64 / (1u64 << 53) as f64
        })
    }

    /// The exponentials of 8 numbers.
    struct Eight([f64; 8]);

    impl Kernel for Eight {
        type Out = [[f64; 2]; 8];

        #[inline(always)]
        unsafe fn run<S: Simd>(self) -> [[f64; 2]; 8] {
            let mut parts = [[0.0; 8]; 2];
            for at in (0..8).step_by(S::LANES) {
                // SAFETY: whole vectors of the buffers; the caller has the instructions.
                unsafe {
                    let zero = S::splat(0.0);
                    let found = exponential::<S>(S::load(self.0[at..].as_ptr()), zero);
                    S::store(found[0], parts[0][at..].as_mut_ptr());
                    S::store(found[1], parts[1][at..].as_mut_ptr());
                }
            }
            core::array::from_fn(|i| [parts[0][i], parts[1][i]])
        }
    }

    #[test]
    fn exponentials_keep_their_bound() {
        let mut worst = 0.0f64;
        let mut units = units();
        for i in 0..25_000 {
            let mut unit = || units.next().unwrap_or(0.5);
            let given: [f64; 8] = core::array::from_fn(|j| match j % 4 {
                0 => (unit() - 0.5) * 1200.0,
                1 => (unit() - 0.5) * 40.0,
                2 => (unit() - 0.5) * 2f64.powi(-(i / 500)),
                // Beside a change of n, where rests are largest.
                _ => {
                    let n = ((unit() - 0.5) * 50_000.0).round() + 0.5;
                    n * core::f64::consts::LN_2 / 64.0 * (1.0 + (unit() - 0.5) * 1e-12)
                }
            });
            for isa in Isa::available() {
                for (d, [high, low]) in given.into_iter().zip(dispatch(isa, Eight(given))) {
                    let want = Double::new(d).exp();
                    worst = worst.max(((high - want.hi) + (low - want.lo)).abs() / want.hi);
                }
            }
        }
        assert!(worst < EXPONENTIAL, "2^{}", worst.log2());
        // The bound is no wider than need be.
        assert!(worst > EXPONENTIAL / 16.0, "2^{}", worst.log2());
    }

    #[test]
    fn logarithms_keep_theirs() {
        let mut units = units();
        for i in 0..2_000 {
            let mut unit = || units.next().unwrap_or(0.5);
            let sums: [[f64; 3]; TOGETHER] = core::array::from_fn(|j| {
                let s = match j % 3 {
                    0 => 1.0 + unit() * 1e3,
                    1 => 2f64.powf(unit() * 120.0),
                    _ => 1.0 + unit() * 2f64.powi(-(i / 50)),
                };
                let origin = if j % 2 == 0 { 0.0 } else { (unit() - 0.5) * 100.0 };
                [s, (unit() - 0.5) * s * f64::EPSILON, origin]
            });
            for isa in Isa::available() {
                let pair = &mut Pair { first: Intervals::NONE, second: Intervals::NONE };
                let exact = |high, low| Interval { high, low, off: 0.0 };
                for (i, [s, e, origin]) in sums.into_iter().enumerate() {
                    pair.first.set(i, exact(s, e));
                    pair.second.set(i, exact(origin, 0.0));
                }
                dispatch(isa, Logarithms { pair: &mut *pair, is_long: true });
                for (j, [s, e, origin]) in sums.into_iter().enumerate() {
                    let sum = Double::new(s).plus(Double::new(e));
                    let want = sum.ln().plus(Double::new(origin));
                    let found = pair.first.get(j);
                    let error = ((found.high - want.hi) + (found.low - want.lo)).abs();
                    assert!(error <= found.off, "{s} {e} {origin}: 2^{}", error.log2());
                }
            }
        }
    }

    #[test]
    fn what_is_far_from_the_origin_is_left_out_or_to_others() {
        let far = [601.5, f64::INFINITY, -601.0, f64::NEG_INFINITY, f64::NAN, 1e300, -1e300, 0.0];
        for isa in Isa::available() {
            let found = dispatch(isa, Eight(far)).map(|[high, _]| high);
            for i in [0, 1, 5] {
                assert!(found[i] > SUMS[1] && found[i].is_finite(), "{}", far[i]);
            }
            for i in [2, 3, 6] {
                assert!(found[i] < SUMS[0] * power_of_two(-100), "{}", far[i]);
            }
            assert!(found[4].is_nan() && found[7] == 1.0);
        }
    }
}
