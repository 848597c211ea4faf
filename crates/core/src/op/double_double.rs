//! Numbers of about 106 bits as unevaluated sums of two f64, with the
//! exponential and logarithm that `logsumexp` needs.
//!
//! Built from correctly rounded operations only (+, -, *, fused multiply-add),
//! so that every machine computes the same bits. Below, u = 2^-53; the bounds
//! of the basic operations are those of Joldes, Muller and Popescu 2017.

/// `hi + lo` with `hi` the nearest f64 to the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Double {
    /// The nearest f64.
    pub hi: f64,
    /// What `hi` lacks.
    pub lo: f64,
}

/// `a + b`, exactly (Knuth).
#[inline(always)]
fn two_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    let t = hi - a;
    Double { hi, lo: (a - (hi - t)) + (b - t) }
}

/// `a + b`, exactly, if `|a| >= |b|` or `a = 0` (Dekker).
#[inline(always)]
fn fast_two_sum(a: f64, b: f64) -> Double {
    let hi = a + b;
    Double { hi, lo: b - (hi - a) }
}

/// The first of three parts of `ln 2`, LN2_HIGH + LN2_MID + LN2_LOW up to 2^-141. The first two have
/// 42 and 40 bits, so that their products with integers of 11 bits are exact.
pub const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
const LN2_MID: f64 = f64::from_bits(0x3d2e_f357_93c7_6000);
const LN2_LOW: f64 = f64::from_bits(0x3a8c_c01f_97b5_7a08);
/// ln 2 = LN2_HIGH + LN2_REST up to 2^-98.
pub const LN2_REST: f64 = f64::from_bits(0x3d2e_f357_93c7_6730);

/// Adding and subtracting it rounds to an integer, whose two's complement is
/// then in the low bits of the sum.
pub const ROUNDER: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// Exponentials of arguments below this are 0 here: beside a sum that is at
/// least `e^-256`, even 2^64 of them are below 2^-432 of it.
const CUTOFF: f64 = -600.0;

/// 1 / e, to 107 bits.
pub(super) const INV_E: Double =
    Double { hi: f64::from_bits(0x3fd7_8b56_362c_ef38), lo: -1.242_875_367_278_836_3e-17 };

impl Double {
    /// 0.
    pub(super) const ZERO: Double = Double { hi: 0.0, lo: 0.0 };

    /// An f64.
    #[inline(always)]
    #[must_use]
    pub const fn new(hi: f64) -> Double {
        Double { hi, lo: 0.0 }
    }

    /// An integer, exactly.
    pub(super) fn from_u64(n: u64) -> Double {
        two_sum((n >> 32) as f64 * 4_294_967_296.0, (n as u32) as f64)
    }

    /// The product with a power of two, exact where nothing underflows.
    pub(super) fn scaled(self, power: f64) -> Double {
        Double { hi: self.hi * power, lo: self.lo * power }
    }

    /// The negative.
    pub(super) fn negated(self) -> Double {
        Double { hi: -self.hi, lo: -self.lo }
    }

    /// The sum; relative error at most `3 u^2 + 13 u^3`.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, b: Double) -> Double {
        let s = two_sum(self.hi, b.hi);
        let t = two_sum(self.lo, b.lo);
        let v = fast_two_sum(s.hi, s.lo + t.hi);
        fast_two_sum(v.hi, t.lo + v.lo)
    }

    /// The product; relative error below `5 u^2`.
    #[inline(always)]
    pub(super) fn times(self, b: Double) -> Double {
        let p = self.hi * b.hi;
        let e = self.hi.mul_add(b.hi, -p);
        let cross = self.hi.mul_add(b.lo, self.lo * b.hi);
        fast_two_sum(p, e + cross)
    }

    /// `self * x + c` for `|c| >= |self * x|` or `c = 0`, without the last
    /// normalisation, which would make up most of the time the chain of steps
    /// below takes: `lo` may grow to some units of `hi`'s last place.
    ///
    /// With `|lo| <= k u |hi|` in the operands, what is rounded is below
    /// `(k + 3) u |hi|`, in four operations, and what is left out is
    /// `self.lo * x.lo`.
    #[inline(always)]
    fn step(self, x: Double, c: Double) -> Double {
        let p = self.hi * x.hi;
        let e = self.hi.mul_add(x.hi, -p);
        let cross = self.hi.mul_add(x.lo, self.lo * x.hi);
        let s = fast_two_sum(c.hi, p);
        Double { hi: s.hi, lo: s.lo + (e + (cross + c.lo)) }
    }

    /// `e^self` for `self <= 600`, relative error below 2^-96; 0 below
    /// -600, for minus infinity and for NaN.
    ///
    /// With `n` the integer nearest to `self / ln 2`, `|n| <= 866`, the rest
    /// `r = self - n ln 2` has `|r| < 0.348`:
    ///
    /// * `hi - n LN2_HIGH` is exact: the product is, and the difference by
    ///   Sterbenz's lemma if `n != 0`. `n LN2_MID` is exact too. What is
    ///   rounded is below `2^-43`, so that `r` is off by at most 2^-97, and
    ///   by 2^-106 for `|self| <= 1`.
    /// * `e^(r/64) - 1` comes from its Taylor series, `|r/64| < 2^-7.5`. The
    ///   terms from `r^11 / 11!` on are below `2^-100.5 r`. The terms from
    ///   `r^6 / 6!` on are computed in f64, which costs 2^-53 of something
    ///   below `2^-47 r`, and the others with doubles.
    /// * Six times, `e^(2 x) - 1 = 2 y + y^2` with `y = e^x - 1`. A relative
    ///   error `d` of `y` becomes `d (2 + 2 |y|) / (2 - |y|)`, in all `1.6 d`,
    ///   while `lo` grows from 2 to at most 10 units, so that the steps add
    ///   less than `170 u^2 < 2^-98.5`.
    ///
    /// With `|y| < 0.42` at the end that is `1.6 * 0.42 * 2^-98.5 +
    /// 0.42 * 2^-98.5 + 2^-97` relative to `e^self`.
    #[inline(always)]
    #[must_use]
    pub fn exp(self) -> Double {
        const C5: Double = Double { hi: 1.0 / 120.0, lo: 1.156_482_317_317_871_4e-19 };
        const C4: Double = Double { hi: 1.0 / 24.0, lo: 2.312_964_634_635_742_7e-18 };
        const C3: Double = Double { hi: 1.0 / 6.0, lo: 9.251_858_538_542_97e-18 };
        const C2: Double = Double::new(0.5);

        let shifted = self.hi * core::f64::consts::LOG2_E + ROUNDER;
        let n = shifted - ROUNDER;
        let head = two_sum(self.hi - n * LN2_HIGH, -(n * LN2_MID));
        let r = two_sum(head.hi, head.lo + (self.lo - n * LN2_LOW));
        let r = Double { hi: r.hi * (1.0 / 64.0), lo: r.lo * (1.0 / 64.0) };

        let x = r.hi;
        let tail = x.mul_add(1.0 / 3_628_800.0, 1.0 / 362_880.0);
        let tail = x.mul_add(tail, 1.0 / 40_320.0);
        let tail = x.mul_add(tail, 1.0 / 5_040.0);
        let tail = x.mul_add(tail, 1.0 / 720.0);
        let p = fast_two_sum(C5.hi, x * tail);
        let p = Double { hi: p.hi, lo: p.lo + C5.lo };
        let p = p.step(r, C4);
        let p = p.step(r, C3);
        let p = p.step(r, C2);
        let mut y = p.step(r, Double::ZERO).step(r, r);
        for _ in 0..6 {
            y = y.step(y, Double { hi: 2.0 * y.hi, lo: 2.0 * y.lo });
        }
        let e = fast_two_sum(1.0, y.hi);
        let e = fast_two_sum(e.hi, e.lo + y.lo);
        let scale = power_of_two(shifted);
        let inside = self.hi >= CUTOFF;
        Double {
            hi: if inside { e.hi * scale } else { 0.0 },
            lo: if inside { e.lo * scale } else { 0.0 },
        }
    }

    /// `ln self` for `2^-372 < self < 2^440`, absolute error below 2^-95.
    ///
    /// An f64 `y` good to 2^-40 is corrected by `ln(1 + z)` with
    /// `1 + z = self e^-y`, whose error is that of the exponential:
    /// `z - z^2 / 2` leaves out `z^3 / 3 < 2^-121`.
    #[must_use]
    pub fn ln(self) -> Double {
        let bits = self.hi.to_bits();
        let fraction = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
        let exponent = (bits >> 52) as f64 - 1023.0;
        let (m, k) = if fraction > core::f64::consts::SQRT_2 {
            (fraction * 0.5, exponent + 1.0)
        } else {
            (fraction, exponent)
        };
        // 2 artanh t, |t| < 0.1716; the first term left out is below 2^-41.
        let t = (m - 1.0) / (m + 1.0);
        let t2 = t * t;
        let mut series = 0.0;
        for k in [13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
            series = series * t2 + 1.0 / k;
        }
        let y = k * LN2_HIGH + (k * LN2_REST + 2.0 * t * series);
        let p = self.times(Double::new(-y).exp());
        // Exact, as p.hi lies next to 1.
        let z = two_sum(p.hi - 1.0, p.lo);
        two_sum(z.hi, z.lo - 0.5 * z.hi * z.hi).plus(Double::new(y))
    }

    /// An f64 whose rounding to any type of at most 51 bits is that of `self`:
    /// of the two f64 around `self`, if it is none, the one with an odd last
    /// bit (Boldo and Melquiond 2008).
    pub(super) fn round_to_odd(self) -> f64 {
        let bits = self.hi.to_bits();
        if self.lo == 0.0 || bits & 1 == 1 || !self.hi.is_finite() {
            return self.hi;
        }
        // `hi` is even and not zero, as `lo` is not: its neighbours are odd.
        let outward = (self.lo > 0.0) == (self.hi > 0.0);
        f64::from_bits(if outward { bits + 1 } else { bits - 1 })
    }
}

/// `2^n` for the `n` in the low bits of `n + ROUNDER`, -1022 to 1023.
#[inline(always)]
fn power_of_two(shifted: f64) -> f64 {
    f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

#[cfg(test)]
#[path = "../../tests/states/tree_support/oracle.rs"]
#[expect(dead_code, reason = "the test files use the rest")]
pub(super) mod oracle;

#[cfg(test)]
mod tests {
    use super::super::exponential::tests::exp_error;
    use super::*;

    fn arguments() -> impl Iterator<Item = Double> {
        let mut z = 1u64;
        (0..4000).map(move |i| {
            z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let unit = (z >> 11) as f64 / (1u64 << 53) as f64;
            let hi = match i % 4 {
                0 => -unit * 60.0,
                1 => -unit * 2f64.powi(-(i / 100)),
                // Beside a change of n.
                2 => -(f64::from(i / 40) + 0.5) * core::f64::consts::LN_2 + unit * 1e-12,
                _ => -unit,
            };
            // Up to half an ulp of it.
            fast_two_sum(hi, hi * (unit - 0.5) * f64::EPSILON)
        })
    }

    #[test]
    fn exponentials_keep_their_bounds() {
        let mut worst = 0.0f64;
        for x in arguments() {
            let e = x.exp();
            worst = worst.max(exp_error([e.hi, e.lo], [x.hi, x.lo]));
        }
        assert!(worst < 2f64.powi(-96), "2^{}", worst.log2());
        println!("2^{:.1}", worst.log2());
    }

    #[test]
    fn exponentials_end_at_the_cut_off() {
        assert_eq!(Double::ZERO.exp(), Double::new(1.0));
        assert!(Double::new(CUTOFF).exp().hi > 0.0);
        for x in [-600.1, -1e9, -1e300, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(Double::new(x).exp(), Double::ZERO);
        }
    }

    #[test]
    fn logarithms_keep_their_bound() {
        let ln_2 = oracle::ln(&oracle::fixed(2.0));
        let mut worst = 0.0f64;
        for (i, x) in arguments().enumerate() {
            let unit = x.hi - x.hi.floor();
            // The oracle's fixed point has room for the fraction alone.
            let hi = 1.0 + unit;
            let fraction = fast_two_sum(hi, hi * x.lo.abs() * 0.1 * f64::EPSILON);
            let exponent = if i % 2 == 0 { i as i32 % 65 } else { i as i32 % 812 - 372 };
            let scale = 2f64.powi(exponent);
            let s = Double { hi: fraction.hi * scale, lo: fraction.lo * scale };
            let want = oracle::ln(&(oracle::fixed(fraction.hi) + oracle::fixed(fraction.lo)))
                + &ln_2 * exponent;
            let got = s.ln();
            let off = oracle::fixed(got.hi) + oracle::fixed(got.lo) - want;
            worst = worst.max(oracle::float(&oracle::magnitude(&off)));
        }
        assert!(worst < 2f64.powi(-95), "2^{}", worst.log2());
        assert_eq!(Double::new(1.0).ln(), Double::ZERO);
    }

    #[test]
    fn constants_are_what_they_are_called() {
        // e * (1 / e) = 1, and e^(ln 2) = 2.
        let two = oracle::exp(
            &-(oracle::fixed(LN2_HIGH) + oracle::fixed(LN2_MID) + oracle::fixed(LN2_LOW)),
        );
        let off = |x: num_bigint::BigInt| oracle::float(&oracle::magnitude(&x));
        assert!(off(two * 2 - oracle::one()) < 2f64.powi(-140));
        let inverse = oracle::exp(&-oracle::one());
        let lo = oracle::fixed(INV_E.hi) + oracle::fixed(INV_E.lo);
        assert!(off(inverse - lo) < 2f64.powi(-107));
        assert!(
            off(oracle::fixed(LN2_REST) - oracle::fixed(LN2_MID) - oracle::fixed(LN2_LOW))
                < 2f64.powi(-97)
        );
    }

    #[test]
    fn rounding_to_odd_does_not_round_twice() {
        let tie = 1.0 + 2f64.powi(-24);
        for (lo, want) in [(2f64.powi(-90), 1.0 + f32::EPSILON), (-2f64.powi(-90), 1.0), (0.0, 1.0)]
        {
            for sign in [1.0, -1.0] {
                let x = Double { hi: sign * tie, lo: sign * lo };
                assert_eq!(x.round_to_odd() as f32, sign as f32 * want);
            }
        }
    }
}
