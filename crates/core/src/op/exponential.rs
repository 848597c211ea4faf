//! Exponentials in f64, of terms of `logsumexp`.
//!
//! Made of correctly rounded operations only, so that every machine computes
//! the same bits. Below, u = 2^-53.

use super::double_double::ROUNDER;

/// Powers of two that are told apart within a binade.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// The bits of `2^(j / 64)`, rounded to nearest, less `j << 46`: with `n << 46`
/// added, they are those of `2^(n / 64)` for every `n = j` modulo 64.
#[rustfmt::skip]
pub const POWERS: [u64; STEPS as usize] = [
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

/// The series of `e^r` without its fifth power, of which the Chebyshev
/// polynomial takes a sixteenth's worth of error from the other odd ones: with
/// `h = ln 2 / 128`, `1 - h^4 / 384` and `1 / 6 + h^2 / 96`.
const FIRST: f64 = 0.999_999_999_997_760_6;
const THIRD: f64 = 0.166_666_972_130_466_4;

/// Two numbers of which the product is `e^x`, with a relative error below
/// `(25 + 0.31 |x|) u`, for `|x| <= 600`; the first one is a power of two to the
/// `1 / 64`.
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
pub(super) fn parts(x: f64) -> (f64, f64) {
    let shifted = x.mul_add(STEPS as f64 * core::f64::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-core::f64::consts::LN_2 / STEPS as f64, x);
    let p = r.mul_add(1.0 / 24.0, THIRD);
    let p = p.mul_add(r, 0.5);
    let p = p.mul_add(r, FIRST);
    let p = p.mul_add(r, 1.0);
    let n = shifted.to_bits();
    let power = POWERS[(n % STEPS) as usize].wrapping_add(n << (52 - STEP_BITS));
    (f64::from_bits(power), p)
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

    /// `x 2^1100`, exactly.
    pub(in super::super) fn exact(x: f64) -> num_bigint::BigInt {
        let bits = x.to_bits();
        let exponent = ((bits >> 52) & 0x7ff).max(1);
        let implicit = u64::from((bits >> 52) & 0x7ff != 0) << 52;
        let magnitude =
            num_bigint::BigInt::from(bits & ((1 << 52) - 1) | implicit) << (exponent + 25);
        if x < 0.0 { -magnitude } else { magnitude }
    }

    /// The f64 nearest to `x 2^-1100`.
    pub(in super::super) fn nearest(x: &num_bigint::BigInt) -> f64 {
        let magnitude = x.magnitude();
        let extra = magnitude.bits().saturating_sub(53);
        let floor: num_bigint::BigUint = magnitude >> extra;
        let rest = magnitude - (&floor << extra);
        let mut digits = floor.to_u64_digits().first().copied().unwrap_or(0);
        let half = num_bigint::BigUint::from(1u8) << extra >> 1;
        if extra > 0 && (rest > half || rest == half && digits % 2 == 1) {
            digits += 1;
        }
        // In two steps, which are exact above the subnormals.
        let scaled = digits as f64 * 2f64.powi(extra as i32 - 550) * 2f64.powi(-550);
        if x.sign() == num_bigint::Sign::Minus { -scaled } else { scaled }
    }

    #[test]
    fn terms_keep_their_bound() {
        // The largest error beyond what |x| may bring, in u.
        let mut worst = f64::MIN;
        let mut check = |x: f64| {
            let (power, p) = parts(x);
            let product = power * p;
            let rest = power.mul_add(p, -product);
            let error = exp_error([product, rest], [x, 0.0]) * 2f64.powi(53);
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
        assert!(worst < 25.0, "{worst}");
        // The polynomial is short enough to prove the bound.
        assert!(worst > 20.0, "{worst}");
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
}
