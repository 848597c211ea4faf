//! Exponentials in f64, of terms and of nodes of `logsumexp`.
//!
//! Made of correctly rounded operations only, so that every machine computes
//! the same bits. Below, u = 2^-53.

use super::double_double::{CUTOFF, LN2_HIGH, LN2_REST, ROUNDER, power_of_two};

/// `e^x` for `x <= 0`, relative error below 2^-51.8; 0 below [`CUTOFF`], for
/// minus infinity and for NaN; exactly 1 for 0.
///
/// The rest `r` of the reduction by `n ln 2` is off by the rounding of
/// `n LN2_REST`, of the difference and nothing else: below 2^-54. The series
/// ends after `r^13 / 13!`; what follows is below `0.348^14 / 14! < 2^-57.5`.
/// Horner's last steps, `1 + (r + r^2 q)`, round by 2^-53 and 2^-54.5 of
/// `e^r`, and what `q` lost is at most 2^-53 of `r^2 / 2`. No fused operation,
/// so that plain vector instructions compute it.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    const TAYLOR: [f64; 12] = [
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ];
    let shifted = x * core::f64::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (x - n * LN2_HIGH) - n * LN2_REST;
    let mut q = TAYLOR[0];
    for c in &TAYLOR[1..] {
        q = q * r + c;
    }
    let e = 1.0 + (r + r * r * q);
    if x >= CUTOFF { e * power_of_two(shifted) } else { 0.0 }
}

/// Powers of two that are told apart within a binade.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// The bits of `2^(j / 64)`, rounded to nearest, less `j << 46`: with `n << 46`
/// added, they are those of `2^(n / 64)` for every `n = j` modulo 64.
#[rustfmt::skip]
const POWERS: [u64; STEPS as usize] = [
    0x3ff0_0000_0000_0000, 0x3fef_ec9a_3e77_8061, 0x3fef_d9b0_d315_8574, 0x3fef_c745_1875_9bc8,
    0x3fef_b558_6cf9_890f, 0x3fef_a3ec_32d3_d1a2, 0x3fef_9301_d012_5b51, 0x3fef_829a_aea9_2de0,
    0x3fef_72b8_3c7d_517b, 0x3fef_635b_eb6f_cb75, 0x3fef_5487_3168_b9aa, 0x3fef_463b_8862_8cd6,
    0x3fef_387a_6e75_6238, 0x3fef_2b45_65e2_7cdd, 0x3fef_1e9d_f51f_dee1, 0x3fef_1285_a6e4_030b,
    0x3fef_06fe_0a31_b715, 0x3fee_fc08_b264_16ff, 0x3fee_f1a7_373a_a9cb, 0x3fee_e7db_34e5_9ff7,
    0x3fee_dea6_4c12_3422, 0x3fee_d60a_21f7_2e2a, 0x3fee_ce08_6061_892d, 0x3fee_c6a2_b5c1_3cd0,
    0x3fee_bfda_d536_2a27, 0x3fee_b9b2_769d_2ca7, 0x3fee_b42b_569d_4f82, 0x3fee_af47_36b5_27da,
    0x3fee_ab07_dd48_5429, 0x3fee_a76f_15ad_2148, 0x3fee_a47e_b03a_5585, 0x3fee_a238_8255_2225,
    0x3fee_a09e_667f_3bcd, 0x3fee_9fb2_3c65_1a2f, 0x3fee_9f75_e8ec_5f74, 0x3fee_9feb_5642_67c9,
    0x3fee_a114_73eb_0187, 0x3fee_a2f3_36cf_4e62, 0x3fee_a589_994c_ce13, 0x3fee_a8d9_9b44_92ed,
    0x3fee_ace5_422a_a0db, 0x3fee_b1ae_9915_7736, 0x3fee_b737_b0cd_c5e5, 0x3fee_bd82_9fde_4e50,
    0x3fee_c491_82a3_f090, 0x3fee_cc66_7b5d_e565, 0x3fee_d503_b23e_255d, 0x3fee_de6b_5579_fdbf,
    0x3fee_e89f_995a_d3ad, 0x3fee_f3a2_b84f_15fb, 0x3fee_ff76_f2fb_5e47, 0x3fef_0c1e_904b_c1d2,
    0x3fef_199b_dd85_529c, 0x3fef_27f1_2e57_d14b, 0x3fef_3720_dcef_9069, 0x3fef_472d_4a07_897c,
    0x3fef_5818_dcfb_a487, 0x3fef_69e6_03db_3285, 0x3fef_7c97_337b_9b5f, 0x3fef_902e_e78b_3ff6,
    0x3fef_a4af_a2a4_90da, 0x3fef_ba1b_ee61_5a27, 0x3fef_d076_5b6e_4540, 0x3fef_e7c1_819e_90d8,
];

/// -1023 ln 2 as an f32: its power of two is the number 0, so that nothing is
/// added where it stands for all that is smaller.
const FLOOR: f64 = -709.0895385742188;

/// The series of `e^r` without its fifth power, of which the Chebyshev
/// polynomial takes a sixteenth's worth of error from the other odd ones: with
/// `h = ln 2 / 128`, `1 - h^4 / 384` and `1 / 6 + h^2 / 96`.
const FIRST: f64 = 0.999_999_999_997_760_6;
const THIRD: f64 = 0.166_666_972_130_466_4;

/// `sum + e^x`, rounded once, for an exponential of relative error below
/// `(25 + 0.31 |x|) u`, `-708 < x <= 600`; what is added for smaller ones is
/// below 2^-1021, and nothing from -709.1 down to minus infinity. NaN makes the
/// sum NaN.
///
/// `x = n ln 2 / 64 + r` with `|r| <= h = ln 2 / 128`, but for `n`'s rounding,
/// and `e^x = 2^(n/64) e^r`. The constant is off by 0.302 u of itself, which `n`
/// carries to `0.302 u |x|`, and `r` is rounded once, below `0.003 u`. What the
/// polynomial lacks is `h^5 / 1920` of the Chebyshev polynomial `T5(r / h)`,
/// below 21.9 u, and the series from `r^6 / 720` on, below 0.4 u; relative to
/// `e^r` it may be `e^h` as much. Of Horner's steps, the last rounds by u of its
/// result, and those before by u of `r`'s share or less; the table is off by u or
/// less.
///
/// The table, after Tang 1989, is there for GPUs: they have few units for f64,
/// and this keeps them busy for eight operations with each element.
#[inline(always)]
pub(super) fn plus_exp(sum: f64, x: f64) -> f64 {
    // False for NaN.
    let x = if x < FLOOR { FLOOR } else { x };
    let shifted = x.mul_add(STEPS as f64 * core::f64::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-core::f64::consts::LN_2 / STEPS as f64, x);
    let p = r.mul_add(1.0 / 24.0, THIRD);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r, FIRST);
    let p = p.mul_add(r, 1.0);
    let n = shifted.to_bits();
    let power = POWERS[(n % STEPS) as usize].wrapping_add(n << (52 - STEP_BITS));
    f64::from_bits(power).mul_add(p, sum)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::double_double::oracle;
    use super::*;

    /// The error of `got` against `e^x`, relative; both are sums of two f64.
    pub(in super::super) fn exp_error(got: [f64; 2], x: [f64; 2]) -> f64 {
        let [got, x] = [got, x].map(|[hi, lo]| oracle::fixed(hi) + oracle::fixed(lo));
        let want = oracle::exp(&x);
        oracle::float(&oracle::magnitude(&(got - &want))) / oracle::float(&want)
    }

    /// Numbers of 0 to 1.
    fn units() -> impl Iterator<Item = f64> {
        let mut z = 1u64;
        core::iter::repeat_with(move || {
            z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (z >> 11) as f64 / (1u64 << 53) as f64
        })
    }

    #[test]
    fn exponentials_keep_their_bound() {
        let mut worst = 0.0f64;
        for (i, unit) in units().take(4000).enumerate() {
            let x = match i % 3 {
                0 => -unit * 60.0,
                1 => -unit * 2f64.powi(-(i as i32 / 100)),
                // Beside a change of n.
                _ => -(i as f64 / 40.0 + 0.5).floor() * core::f64::consts::LN_2 + unit * 1e-12,
            };
            let x = x.min(0.0);
            worst = worst.max(exp_error([exp(x), 0.0], [x, 0.0]));
        }
        assert!(worst < 2f64.powf(-51.8), "2^{}", worst.log2());
        println!("2^{:.2}", worst.log2());
    }

    #[test]
    fn terms_keep_their_bound() {
        // The largest error beyond what |x| may bring, in u.
        let mut worst = f64::MIN;
        let mut check = |x: f64| {
            let error = exp_error([plus_exp(0.0, x), 0.0], [x, 0.0]) * 2f64.powi(53);
            worst = worst.max(error - 0.31 * x.abs());
        };
        for (i, unit) in units().take(12_000).enumerate() {
            check(match i % 4 {
                0 => unit * 300.0,
                1 => unit * -190.0,
                2 => (unit - 0.5) * 2f64.powi(-(i as i32 / 200)),
                // Beside a change of n: the largest rests.
                _ => {
                    let n = (i / 4) as f64 - 1500.5;
                    n * core::f64::consts::LN_2 / STEPS as f64 + (unit - 0.5) * 1e-13
                }
            });
        }
        // The sum is rounded, too.
        assert!(worst < 25.0 + 1.0, "{worst}");
        // The polynomial is short enough to prove the bound.
        assert!(worst > 20.0, "{worst}");
    }

    #[test]
    fn terms_are_added_with_one_rounding() {
        let tiny = 2f64.powi(-60);
        assert_eq!(plus_exp(tiny, 0.0).to_bits(), 1f64.to_bits());
        assert_eq!(plus_exp(-1.0, 0.0), 0.0);
        // e^1 = 0x1.5bf0a8b145769535...p1: the sum has bits that e^1 has not.
        let whole = plus_exp(0.0, 1.0);
        assert_ne!(plus_exp(-whole, 1.0), 0.0);
    }

    #[test]
    fn powers_of_two_are_rounded_to_nearest() {
        use num_bigint::BigUint;
        for (j, power) in POWERS.iter().enumerate() {
            let bits = power + ((j as u64) << (52 - STEP_BITS));
            let doubled = ((bits & ((1 << 52) - 1)) | 1 << 52) << 1;
            assert_eq!(bits >> 52, 1023);
            // The midpoints to both neighbours, to the 64th power, around
            // 2^(53 * 64 + j).
            let raised = |m: u64| BigUint::from(m).pow(STEPS as u32);
            let between = BigUint::from(1u8) << (53 * STEPS as usize + j);
            assert!(raised(doubled - 1) < between && between < raised(doubled + 1));
        }
    }

    #[test]
    fn exponentials_end_at_the_cut_off() {
        assert_eq!(exp(0.0).to_bits(), 1f64.to_bits());
        assert_eq!(exp(-0.0).to_bits(), 1f64.to_bits());
        assert!(exp(CUTOFF) > 0.0 && plus_exp(0.0, -708.0) > 0.0);
        for x in [-600.1, -1e9, -1e300, f64::NEG_INFINITY] {
            assert_eq!(exp(x).to_bits(), 0);
            assert_eq!(plus_exp(0.1, x).to_bits(), 0.1f64.to_bits());
        }
        for x in [FLOOR, -709.1, -1e9, -1e300, f64::NEG_INFINITY] {
            assert_eq!(plus_exp(0.0, x).to_bits(), 0);
        }
        // Between the last normal power and none, what is added is as good as
        // none, and never less.
        for i in 0..10_000 {
            let x = -708.0 - f64::from(i) * 1.1e-4;
            assert!((0.0..2f64.powi(-1021)).contains(&plus_exp(0.0, x)), "{x}");
        }
        assert_eq!(exp(f64::NAN).to_bits(), 0);
        assert!(plus_exp(0.1, f64::NAN).is_nan());
    }
}
