//! Logarithms of elements as integers: what products of floats add up.
//!
//! An element that is finite and not 0 is `± m 2^e` with `m` in [1/√2, √2), roughly. Its `ln m`
//! is rounded by itself to a multiple of 2^-80: an integer, which depends on the element alone.
//! It is
//!
//! ```text
//! ln m = -ln k + ln(1 + r),    r = m k - 1,
//! ```
//!
//! where `k`, near `1 / m`, is one of a table's, chosen by the leading digits of `m`, and short
//! enough for `r` to be exact. All operations are sums and products of f64, one after the
//! other: no fused ones, so that every machine has the same bits.
//!
//! # The error
//!
//! Let u = 2^-53.
//!
//! *f64.* 1024 entries; `k` is a multiple of 2^-11, and of 2^-10 where `m < 1`. The middle of
//! an entry's interval, times `k`, is off 1 by half the interval, `2^-11`, and by half a unit
//! of `k`, `m 2^-12`, or of both the like for `m < 1`: `|r| < 1.5 * 2^-11`. `m = h + l`, where
//! `h` has 26 bits and `l` is below 2^-25: both products with the 12 bits of `k` are exact, `h
//! k - 1` is a multiple of 2^-37, and the sum, a multiple of 2^-63 below 2^-10, is exact, too.
//!
//! `ln(1 + r) = r - w / 2 + r w P(r)` with `w = r^2`. Of it,
//!
//! * `w` is rounded: off by half of its last place, which for `w < 2^-20.8` is 2^-74, and half
//!   of that counts: 2^-75. Where `|r| < 2^-10.5`, which most of an interval is, half of that,
//!   and so on.
//! * `P` is the series to `r^7`, of which the last term is taken from lower ones by the
//!   Chebyshev polynomial: it leaves `R^7 / 56 < 2^-78.7`, and `R^8 / 8 < 2^-86`. Its own
//!   roundings are at most `2u r^3 < 2^-83`.
//! * The parts are not added up in f64. `big` is their rounded sum at multiples of 2^-60, and
//!   what is left, `((r - big) - w / 2) + c`, is exact until `c < 2^-32` comes: each difference
//!   is a multiple of 2^-75 or less and below 2^-22. That last sum and its rounding to a
//!   multiple of 2^-80 are off by 2^-81 and by 2^-85.
//! * The table is off by 2^-81.
//!
//! Together below `2^-75 + 2^-78.5`: an element is off by less than `1.1 * 2^-75`, and by a
//! tenth of that on the average.
//!
//! *Types of at most 24 digits.* 512 entries with multiples of 2^-13; `m k` has at most 38
//! bits, so that `r` is exact, and `|r| < 1.07 * 2^-10`. `ln(1 + r)` by the series to `r^6`,
//! whose last term leaves `R^6 / 48 < 2^-65`, has one rounding of a result below 2^-9.9, 2^-63,
//! and is rounded to a multiple of 2^-60: off by 2^-61. The table is off by 2^-58. Together
//! below `0.6 * 2^-57`.

use super::float::FloatElement;

/// What the integers count: `2^-UNIT_BITS`.
pub(super) const UNIT_BITS: u32 = 80;

const MAGNITUDE: u64 = u64::MAX >> 1;
const FIELD: u64 = 0x7ff << 52;
/// One in the field of the exponent.
const STEP: u64 = 1 << 52;
const BIAS: u64 = 1023;
const ONE: u64 = BIAS << 52;

/// Binary digits behind the point of what the tables are made from.
const FINE: u32 = 120;

/// `ln(k + 1) - ln k`: `2 artanh(1 / (2 k + 1))` by its series, each term off by 2^-120.
const fn log_step(k: i128) -> i128 {
    let d = 2 * k + 1;
    let (mut power, mut sum, mut j) = ((2 << FINE) / d, 0, 1);
    while power != 0 {
        sum += power / j;
        power /= d * d;
        j += 2;
    }
    sum
}

/// `-ln(k / one)` for `k` from `from` on, off by less than `4 N 2^-120`.
const fn logs<const N: usize>(one: usize, from: usize) -> [i128; N] {
    let mut logs = [0; N];
    let mut i = one - from;
    while i + 1 < N {
        logs[i + 1] = logs[i] - log_step((from + i) as i128);
        i += 1;
    }
    i = one - from;
    while i > 0 {
        logs[i - 1] = logs[i] + log_step((from + i - 1) as i128);
        i -= 1;
    }
    logs
}

/// `x 2^-bits` to the nearest integer.
const fn nearest(x: i128, bits: u32) -> i64 {
    ((x + (1 << (bits - 1))) >> bits) as i64
}

/// `n / d` to the nearest integer.
const fn ratio(n: usize, d: usize) -> usize {
    (2 * n + d) / (2 * d)
}

/// Entries of the table for f64.
pub const LONG: usize = 1024;
/// From this entry on, significands are halved: from about √2 on.
pub const LONG_HALVED: usize = 425;
/// `1 / LONG_SCALE` is the unit of factors.
pub const LONG_SCALE: usize = 2048;

/// What belongs to the leading digits of a significand: `k` and `-ln k` in two parts.
#[derive(Clone, Copy, Debug)]
pub struct LongEntry {
    /// `k`.
    pub factor: f64,
    /// `-ln k` in units of 2^-40.
    pub high: i64,
    /// The rest in units of 2^-80.
    pub low: i64,
}

/// The factors of an entry, in units of `1 / LONG_SCALE`.
const fn long_factor(i: usize) -> usize {
    // The middle is 1 + i / 1024, or half of it.
    let middle = LONG + i;
    if i < LONG_HALVED {
        ratio(LONG_SCALE * LONG, middle)
    } else {
        2 * ratio(LONG_SCALE * LONG, middle)
    }
}

/// The table for f64.
pub static LONG_TABLE: [LongEntry; LONG] = {
    const FROM: usize = 1440;
    let logs: [i128; 1460] = logs(LONG_SCALE, FROM);
    let mut table = [LongEntry { factor: 1.0, high: 0, low: 0 }; LONG];
    let mut i = 0;
    while i < LONG {
        let k = long_factor(i);
        let log = logs[k - FROM];
        let high = nearest(log, FINE - 40);
        let low = nearest(log - ((high as i128) << (FINE - 40)), FINE - UNIT_BITS);
        table[i] = LongEntry { factor: k as f64 / LONG_SCALE as f64, high, low };
        i += 1;
    }
    table
};

/// The factors alone: a table that is half as wide stays nearer.
static LONG_FACTORS: [f64; LONG] = {
    let mut factors = [1.0; LONG];
    let mut i = 0;
    while i < LONG {
        factors[i] = long_factor(i) as f64 / LONG_SCALE as f64;
        i += 1;
    }
    factors
};
/// The two parts of the logarithms.
static LONG_LOGS: [[u64; 2]; LONG] = {
    let mut logs = [[0; 2]; LONG];
    let mut i = 0;
    while i < LONG {
        logs[i] = [LONG_TABLE[i].high.cast_unsigned(), LONG_TABLE[i].low.cast_unsigned()];
        i += 1;
    }
    logs
};

/// Entries of the table for narrower types.
pub const SHORT: usize = 512;
/// From this entry on, significands are halved.
pub const SHORT_HALVED: usize = 213;
const SHORT_SCALE: usize = 8192;
/// The unit of its logarithms is `2^-SHORT_BITS`.
pub const SHORT_BITS: u32 = 57;

/// What belongs to the leading digits of a significand.
#[derive(Clone, Copy, Debug)]
pub struct ShortEntry {
    /// `k`.
    pub factor: f64,
    /// `-ln k` in units of 2^-57.
    pub log: i64,
}

/// The table for narrower types.
pub static SHORT_TABLE: [ShortEntry; SHORT] = {
    const FROM: usize = 5760;
    let logs: [i128; 5840] = logs(SHORT_SCALE, FROM);
    let mut table = [ShortEntry { factor: 1.0, log: 0 }; SHORT];
    let mut i = 0;
    while i < SHORT {
        let one = if i < SHORT_HALVED { SHORT_SCALE } else { 2 * SHORT_SCALE };
        let k = ratio(one * SHORT, SHORT + i);
        let log = nearest(logs[k - FROM], FINE - SHORT_BITS);
        table[i] = ShortEntry { factor: k as f64 / SHORT_SCALE as f64, log };
        i += 1;
    }
    table
};

/// An f64 that rounds, where it is added, to multiples of `2^unit`. It is even there, so that
/// what a tie is rounded to depends on nothing else.
const fn rounder(unit: i32) -> f64 {
    f64::from_bits(((1023 + 52 + unit) as u64) << 52 | 1 << 51)
}

const BIG_BITS: u32 = 60;
const BIG: f64 = rounder(-(BIG_BITS as i32));
const SMALL: f64 = rounder(-(UNIT_BITS as i32));

/// Of the series for f64: with `R = 1.5 * 2^-11`, `1/3 - R^4 / 56` and `1/5 + R^2 / 7`.
pub const LONG_CUBE: f64 = 1.0 / 3.0 - LONG_R * LONG_R * LONG_R * LONG_R / 56.0;
/// See [`LONG_CUBE`].
pub const LONG_FIFTH: f64 = 0.2 + LONG_R * LONG_R / 7.0;
const LONG_R: f64 = 1.5 / 2048.0;

/// Of the series for narrower types: with `R = 1.07 * 2^-10`, `-1/2 + R^4 / 48` and `-1/4 - R^2
/// / 6`.
pub const SHORT_SQUARE: f64 = -0.5 + SHORT_R * SHORT_R * SHORT_R * SHORT_R / 48.0;
/// See [`SHORT_SQUARE`].
pub const SHORT_FOURTH: f64 = -0.25 - SHORT_R * SHORT_R / 6.0;
const SHORT_R: f64 = 1.07 / 1024.0;

/// Words of a lane. Types of at most 24 digits use all but the last two.
pub const WORDS: usize = 7;

/// Sums of logarithms and exponents, side by side.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<const N: usize> {
    /// How many elements each lane has taken.
    rows: u64,
    /// With each element's bias.
    exponents: [u64; N],
    /// Their last bit is the sign of the product.
    signs: [u64; N],
    /// Their last bit says that an element was not a normal number.
    odd: [u64; N],
    /// Bits of floats near [`BIG`] and [`SMALL`], which count units.
    big: [u64; N],
    small: [u64; N],
    /// From the table: units of 2^-40 or 2^-57, and of 2^-80.
    high: [u64; N],
    low: [u64; N],
}

/// What a lane has added up, or several of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSum {
    /// How many elements.
    pub count: u64,
    /// The sum of their exponents.
    pub exponent: i64,
    /// The sum of their significands' logarithms, in units of 2^-80.
    pub log: i128,
    /// Whether their product is negative.
    pub negative: bool,
    /// Whether one of them was zero, subnormal, infinite or NaN: the sums mean nothing.
    pub odd: bool,
}

impl LogSum {
    /// Takes in the sums of other elements.
    pub fn merge(&mut self, other: &LogSum) {
        self.count = self.count.wrapping_add(other.count);
        self.exponent = self.exponent.wrapping_add(other.exponent);
        self.log = self.log.wrapping_add(other.log);
        self.negative ^= other.negative;
        self.odd |= other.odd;
    }
}

impl<const N: usize> Default for Lanes<N> {
    #[inline(always)]
    fn default() -> Self {
        Self::NEW
    }
}

impl<const N: usize> Lanes<N> {
    /// Nothing added up.
    pub const NEW: Self = Lanes {
        rows: 0,
        exponents: [0; N],
        signs: [0; N],
        odd: [0; N],
        big: [0; N],
        small: [0; N],
        high: [0; N],
        low: [0; N],
    };

    /// How many elements a lane has room for.
    ///
    /// A logarithm of the short table is below `2^55.6`, and what `big` counts below `2^50.2`,
    /// of at most 63 bits each. With [`TOGETHER`](Self::add) the long table's logarithms, below
    /// `2^39`, are those of all lanes.
    pub const ROOM: u64 = 128;

    /// Adds an element to each lane. Elements of type `T` are widened to f64; 1 changes
    /// nothing. With `TOGETHER` the sums of the lanes are not told apart, which is quicker:
    /// [`total`](Self::total) alone has them.
    ///
    /// Always inlined, so that a caller with wider vector instructions gets the same arithmetic
    /// compiled for them.
    #[inline(always)]
    pub fn add<T: FloatElement, const TOGETHER: bool>(&mut self, wide: &[f64; N]) {
        self.rows += 1;
        if T::DIGITS > 24 { self.add_long::<TOGETHER>(wide) } else { self.add_short(wide) }
    }

    /// Takes an element apart; what is left is its significand.
    #[inline(always)]
    fn take(&mut self, i: usize, x: f64, turn: u64) -> f64 {
        let bits = x.to_bits();
        let magnitude = bits & MAGNITUDE;
        self.signs[i] ^= bits;
        // The largest field of the exponent leaves its place upwards, 0 downwards.
        self.odd[i] |= (magnitude + STEP) | magnitude.wrapping_sub(STEP);
        // Significands from the turn on go with the next exponent.
        let turned = magnitude + (STEP - turn);
        self.exponents[i] = self.exponents[i].wrapping_add(turned >> 52);
        f64::from_bits((magnitude + ONE).wrapping_sub(turned & FIELD))
    }

    #[inline(always)]
    fn add_long<const TOGETHER: bool>(&mut self, wide: &[f64; N]) {
        // Entries are those of the nearest of 1024 steps.
        const BITS: u32 = 52 - LONG.ilog2();
        const TURN: u64 = (2 * LONG_HALVED as u64 - 1) << (BITS - 1);
        let mut factors = [0.0; N];
        for i in 0..N {
            let entry =
                (wide[i].to_bits().wrapping_add(1 << (BITS - 1))) >> BITS & (LONG as u64 - 1);
            let [high, low] = LONG_LOGS[entry as usize];
            factors[i] = LONG_FACTORS[entry as usize];
            let to = if TOGETHER { 0 } else { i };
            self.high[to] = self.high[to].wrapping_add(high);
            self.low[to] = self.low[to].wrapping_add(low);
        }
        for i in 0..N {
            let m = self.take(i, wide[i], TURN);
            let h = f64::from_bits(m.to_bits() & !((1 << 27) - 1));
            let r = (h * factors[i] - 1.0) + (m - h) * factors[i];
            let w = r * r;
            let half = w * -0.5;
            let c = (w * r) * (LONG_CUBE + r * (-0.25 + r * (LONG_FIFTH - r * (1.0 / 6.0))));
            let big = (r + (half + c)) + BIG;
            let small = (((r - (big - BIG)) + half) + c) + SMALL;
            self.big[i] = self.big[i].wrapping_add(big.to_bits());
            self.small[i] = self.small[i].wrapping_add(small.to_bits());
        }
    }

    #[inline(always)]
    fn add_short(&mut self, wide: &[f64; N]) {
        const BITS: u32 = 52 - SHORT.ilog2();
        const TURN: u64 = (2 * SHORT_HALVED as u64 - 1) << (BITS - 1);
        let mut factors = [0.0; N];
        for i in 0..N {
            let entry =
                (wide[i].to_bits().wrapping_add(1 << (BITS - 1))) >> BITS & (SHORT as u64 - 1);
            let ShortEntry { factor, log } = SHORT_TABLE[entry as usize];
            factors[i] = factor;
            self.high[i] = self.high[i].wrapping_add(log.cast_unsigned());
        }
        for i in 0..N {
            let m = self.take(i, wide[i], TURN);
            let r = m * factors[i] - 1.0;
            let p = SHORT_SQUARE + r * (1.0 / 3.0 + r * (SHORT_FOURTH + r * 0.2));
            let big = (r + (r * r) * p) + BIG;
            self.big[i] = self.big[i].wrapping_add(big.to_bits());
        }
    }

    /// What `lanes` lanes have added up.
    #[inline(always)]
    fn sum<T: FloatElement>(&self, lanes: core::ops::Range<usize>) -> LogSum {
        let mut sum = LogSum::default();
        let (mut signs, mut odd) = (0, 0);
        for i in lanes {
            signs ^= self.signs[i];
            odd |= self.odd[i];
            let exponents = self.exponents[i].wrapping_sub(self.rows.wrapping_mul(BIAS));
            sum.exponent += exponents.cast_signed();
            let units = |bits: u64, rounder: f64| {
                let offsets = self.rows.wrapping_mul(rounder.to_bits());
                i128::from(bits.wrapping_sub(offsets).cast_signed())
            };
            sum.log += units(self.big[i], BIG) << (UNIT_BITS - BIG_BITS);
            let high = i128::from(self.high[i].cast_signed());
            if T::DIGITS > 24 {
                let low = i128::from(self.low[i].cast_signed());
                sum.log += (high << (UNIT_BITS - 40)) + low + units(self.small[i], SMALL);
            } else {
                sum.log += high << (UNIT_BITS - SHORT_BITS);
            }
            sum.count += self.rows;
        }
        sum.negative = signs >> 63 == 1;
        sum.odd = odd >> 63 == 1;
        sum
    }

    /// Takes the biases off all sums: elements are not counted any more.
    #[inline(always)]
    pub fn settle<T: FloatElement>(&mut self) {
        let take = |lanes: &mut [u64; N], bias: u64| {
            let bias = self.rows.wrapping_mul(bias);
            for lane in lanes {
                *lane = lane.wrapping_sub(bias);
            }
        };
        take(&mut self.exponents, BIAS);
        take(&mut self.big, BIG.to_bits());
        if T::DIGITS > 24 {
            take(&mut self.small, SMALL.to_bits());
        }
        self.rows = 0;
    }

    /// The sums word by word, for lanes that are kept elsewhere. They are
    /// [settled](Self::settle).
    #[inline(always)]
    pub fn words(&mut self) -> [&mut [u64; N]; WORDS] {
        [
            &mut self.exponents,
            &mut self.signs,
            &mut self.odd,
            &mut self.big,
            &mut self.high,
            &mut self.small,
            &mut self.low,
        ]
    }

    /// What a lane has added up.
    #[inline(always)]
    #[must_use]
    pub fn lane<T: FloatElement>(&self, i: usize) -> LogSum {
        self.sum::<T>(i..i + 1)
    }

    /// What all lanes have added up.
    #[inline(always)]
    #[must_use]
    pub fn total<T: FloatElement>(&self) -> LogSum {
        self.sum::<T>(0..N)
    }
}

#[cfg(test)]
mod tests {
    use super::super::double_double::oracle;
    use super::*;
    use num_bigint::BigInt;

    fn random(z: &mut u64) -> u64 {
        *z = z.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *z ^ *z >> 29
    }

    /// What an element adds up to, less its logarithm, in units of `2^-bits`.
    fn error<T: FloatElement>(x: T, ln_2: &BigInt, bits: i32) -> f64 {
        let wide: f64 = x.widen().into();
        let mut lanes = Lanes::<1>::NEW;
        lanes.add::<T, false>(&[wide]);
        let sum = lanes.lane::<T>(0);
        assert!(!sum.odd && sum.count == 1);
        assert_eq!(sum.negative, wide < 0.0);
        let mut together = Lanes::<1>::NEW;
        together.add::<T, true>(&[wide]);
        assert_eq!(together.total::<T>(), sum);
        // The fraction of f64, which is in [1, 2).
        let fraction = f64::from_bits(wide.to_bits() & ((1 << 52) - 1) | ONE);
        let exponent = (wide.to_bits() >> 52 & 0x7ff) as i64 - 1023;
        let want = oracle::ln(&oracle::fixed(fraction)) + ln_2 * (exponent - sum.exponent);
        let got = BigInt::from(sum.log) << (oracle::BITS - UNIT_BITS);
        oracle::float(&oracle::magnitude(&(got - want))) * 2f64.powi(bits)
    }

    /// Both ends of every entry's interval, their middles, and places beside them.
    fn hard(entries: u64) -> impl Iterator<Item = u64> {
        let bits = 52 - entries.ilog2();
        (0..2 * entries).flat_map(move |i| {
            let at = i << (bits - 1);
            [at.saturating_sub(1), at, at + 1, at + 12_345]
        })
    }

    #[test]
    fn logarithms_keep_their_bounds() {
        let ln_2 = oracle::ln(&oracle::fixed(2.0));
        let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
        let mut z = 1;
        let drawn = (0..3000).map(|_| random(&mut z) & ((1 << 52) - 1));
        for (i, fraction) in hard(LONG as u64).step_by(3).chain(drawn).enumerate() {
            let exponent = 1 + (i as u64 * 7919) % 2046;
            let sign = (i as u64 % 2) << 63;
            let off = error(f64::from_bits(fraction | exponent << 52 | sign), &ln_2, 75);
            (worst, sum, count) = (worst.max(off), sum + off, count + 1.0);
        }
        println!("f64: {worst:.3}, on the average {:.3}", sum / count);
        assert!(worst < 1.1 && sum / count < 0.12, "{worst} {}", sum / count);
        let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0.0);
        let drawn = (0..3000).map(|_| random(&mut z) & ((1 << 52) - 1));
        for (i, fraction) in hard(SHORT as u64).step_by(3).chain(drawn).enumerate() {
            let exponent = 1 + (i as u32 * 79) % 254;
            let sign = (i as u32 % 2) << 31;
            let x = f32::from_bits((fraction >> 29) as u32 | exponent << 23 | sign);
            let off = error(x, &ln_2, 57);
            (worst, sum, count) = (worst.max(off), sum + off, count + 1.0);
        }
        println!("f32: {worst:.3}, on the average {:.3}", sum / count);
        assert!(worst < 0.6 && sum / count < 0.3, "{worst} {}", sum / count);
    }

    #[test]
    fn powers_of_two_have_none() {
        for exponent in 1..2047u64 {
            let mut lanes = Lanes::<1>::NEW;
            lanes.add::<f64, false>(&[f64::from_bits(exponent << 52)]);
            let want = LogSum { count: 1, exponent: exponent as i64 - 1023, ..LogSum::default() };
            assert_eq!(lanes.lane::<f64>(0), want);
            let mut lanes = Lanes::<1>::NEW;
            lanes.add::<f32, false>(&[f64::from_bits(exponent << 52)]);
            assert_eq!(lanes.lane::<f32>(0), want);
        }
    }

    #[test]
    fn what_is_not_normal_is_told() {
        let odd = |x: f64| {
            let mut lanes = Lanes::<2>::NEW;
            lanes.add::<f64, true>(&[1.0, x]);
            lanes.add::<f64, true>(&[1.5, 2.0]);
            lanes.total::<f64>().odd
        };
        let tiny = f64::MIN_POSITIVE;
        for x in [0.0, tiny.next_down(), f64::from_bits(1), f64::INFINITY, f64::NAN] {
            assert!(odd(x) && odd(-x), "{x}");
        }
        for x in [tiny, 1.0, f64::MAX] {
            assert!(!odd(x) && !odd(-x), "{x}");
        }
    }

    /// The widest sums that a lane may hold do not wrap.
    #[test]
    fn a_lane_has_room() {
        fn check<T: FloatElement>(x: f64) {
            let mut one = Lanes::<1>::NEW;
            one.add::<T, false>(&[x]);
            let one = one.lane::<T>(0);
            let (mut apart, mut together) = (Lanes::<16>::NEW, Lanes::<16>::NEW);
            for _ in 0..Lanes::<16>::ROOM {
                apart.add::<T, false>(&[x; 16]);
                together.add::<T, true>(&[x; 16]);
            }
            let many = i128::from(Lanes::<16>::ROOM);
            for i in 0..16 {
                let lane = apart.lane::<T>(i);
                assert_eq!(lane.log, one.log * many);
                assert_eq!(i128::from(lane.exponent), i128::from(one.exponent) * many);
            }
            assert_eq!(together.total::<T>().log, one.log * many * 16);
            assert_eq!(together.total::<T>(), apart.total::<T>());
        }
        for x in [1.414f64, 1.4155, 1.4146, 1.9996, 1.0004, f64::MAX, f64::MIN_POSITIVE] {
            check::<f64>(x);
            check::<f32>(f64::from(x as f32).clamp(1e-38, 3e38));
        }
    }
}
