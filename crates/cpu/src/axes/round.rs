//! Numbers known to lie in a small interval, and what they round to.

use crate::exact::odd::{rounded_to_f32, sum_to_odd};
use crate::exact::power_of_two;
use warpfold_core::Element;
use warpfold_core::element::{bf16, f16};
use warpfold_core::exact::FloatFormat;

/// A number within `high + low` plus or minus `off`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) high: f64,
    pub(super) low: f64,
    /// 0 if the number is `high + low` exactly.
    pub(super) off: f64,
}

/// What one operation on the low parts can be off by, doubled for good measure.
const UNIT: f64 = f64::EPSILON;
/// Numbers from which on no quotient is [that small](Interval::divided_below).
pub(super) const MOST_BELOW: f64 = 2e-100;
/// Quotients and roots below have remainders that f64 may not hold.
const LEAST: f64 = 1e-250;

/// `a + b` as the rounded sum and what it is off by, exactly (Knuth 1969).
#[inline(always)]
pub(super) fn two_sum(a: f64, b: f64) -> [f64; 2] {
    let t = a + b;
    let z = t - a;
    [t, (a - (t - z)) + (b - z)]
}

/// A remainder divided by `n`, of which the inverse is known, and whether that is exact: divisions take
/// ten times as long as products. A quotient that f64 holds is found, as the second product is far
/// below its last place; of others the first one is off by two roundings, and the sum rounds once.
#[inline(always)]
fn quotient_by_inverse(remainder: f64, n: f64, inverse: f64) -> (f64, bool) {
    let near = remainder * inverse;
    let found = (-near).mul_add(n, remainder).mul_add(inverse, near);
    (found, (-found).mul_add(n, remainder) == 0.0)
}

impl Interval {
    /// A sum: `e` has so many terms, `magnitudes` being the sum of their own.
    #[inline(always)]
    pub(super) fn of_sum(s: f64, e: f64, terms: f64, magnitudes: f64) -> Interval {
        Interval { high: s, low: e, off: terms * magnitudes * UNIT }
    }

    /// Zero.
    pub(super) const ZERO: Interval = Interval { high: 0.0, low: 0.0, off: 0.0 };

    /// Nothing is known of the number.
    pub(super) const UNKNOWN: Interval = Interval { high: 0.0, low: 0.0, off: f64::INFINITY };

    /// A number that is infinite or NaN, and certainly so.
    #[inline(always)]
    pub(super) fn of_special(number: f64) -> Interval {
        Interval { high: number, low: 0.0, off: 0.0 }
    }

    /// Whether the number is infinite or NaN, and certainly so.
    #[inline(always)]
    pub(super) fn is_special(self) -> bool {
        (self.off == 0.0) & (self.high.is_infinite() | self.high.is_nan())
    }

    /// Another number in its place, if that is to be: compilers make vectors of such choices, and
    /// not of branches.
    #[inline(always)]
    pub(super) fn or(self, other: Interval, takes_other: bool) -> Interval {
        let choose = |own: f64, other: f64| if takes_other { other } else { own };
        Interval {
            high: choose(self.high, other.high),
            low: choose(self.low, other.low),
            off: choose(self.off, other.off),
        }
    }

    /// The number, or nothing of it.
    #[inline(always)]
    pub(super) fn only_if(self, known: bool) -> Interval {
        Interval { off: if known { self.off } else { f64::INFINITY }, ..self }
    }

    /// What elements that are infinite or NaN make of the number, if `special` is that.
    #[inline(always)]
    pub(super) fn or_special(self, special: f64) -> Interval {
        if special.is_finite() { self } else { Interval::of_special(special) }
    }

    /// Whether it is 0.
    #[inline(always)]
    pub(super) fn is_zero(self) -> bool {
        (self.high == 0.0) & (self.low == 0.0) & (self.off == 0.0)
    }

    /// The number times `2^exponent`, of at most 2000 either way, and whether that could be had. What
    /// is far below 1 is rounded to f64.
    #[inline(always)]
    pub(super) fn times_power(self, exponent: i32) -> (Interval, bool) {
        let half = exponent / 2;
        let (one, two) = (power_of_two(half), power_of_two(exponent - half));
        let Interval { high, low, off } = self;
        // Products that are subnormal take long.
        if exponent <= -600 && high.abs() < power_of_two(-1023 - exponent) {
            return self.times_power_to_subnormal(exponent);
        }
        let times = |x: f64| x * one * two;
        let found = Interval { high: times(high), low: times(low), off: times(off) };
        // What is rounded to infinity is far beyond it, or left to others.
        let least = self.high.abs() - (self.low.abs() + self.off);
        if times(least) == f64::INFINITY {
            return (Interval::of_special(f64::INFINITY.copysign(high)), true);
        }
        if found.high.abs() > LEAST {
            return (found, found.high.is_finite());
        }
        let ends = [high + (low - off), high + (low + off)].map(times);
        let [least, most] = ends;
        if exponent < 0 && least.abs().min(most.abs()) < f64::MIN_POSITIVE {
            return self.times_power_to_subnormal(exponent);
        }
        // Ends that are normal keep their digits.
        let found = Interval { high: least, low: 0.0, off: 0.0 };
        (found, (least.to_bits() == most.to_bits()) & least.is_finite())
    }

    /// The number times `2^exponent`, of -2000 to -600, rounded to a multiple of 2^-1074 that is
    /// below 2^-1022, and whether that could be had.
    ///
    /// Beside 2^52 units a magnitude is rounded to whole units, to the even one in the middle; what
    /// is lost of it tells to which side the number rounds.
    #[inline(never)]
    fn times_power_to_subnormal(self, exponent: i32) -> (Interval, bool) {
        let Interval { high, low, off } = self.normal();
        if !(-2000..=-600).contains(&exponent) {
            return (Interval::UNKNOWN, false);
        }
        let unit = power_of_two(-1074 - exponent);
        let beside = 4_503_599_627_370_496.0 * unit;
        let [sum, rest] = two_sum(beside, high.abs());
        let lost = rest + if high < 0.0 { -low } else { low };
        let is_below = high.abs() < beside;
        let exact = (low == 0.0) & (off == 0.0);
        let slack = off + (rest.abs() + low.abs()) * UNIT;
        let [near, beyond] = [lost.abs() < unit / 2.0 - slack, lost.abs() > unit / 2.0 + slack];
        let step = if beyond && !exact { unit.copysign(lost) } else { 0.0 };
        // The units, beside as many as there are numbers below the normal ones.
        let bits = (sum + step).to_bits() - beside.to_bits();
        let high = f64::from_bits(bits).copysign(high);
        // With a negative zero, beside which a zero keeps its sign. A zero has the sign of the number.
        let one_sign = exact | (self.high.abs() > self.low.abs() + off);
        let sure = (exact | near | beyond) & is_below & one_sign;
        (Interval { high, low: -0.0, off: 0.0 }, sure)
    }

    /// An integer, of which two f64 hold any.
    #[inline(always)]
    pub(super) fn of_i64(value: i64) -> Interval {
        // Its halves are exact.
        let [upper, lower] = [(value >> 32) as f64 * 4_294_967_296.0, f64::from(value as u32)];
        let [high, low] = two_sum(upper, lower);
        Interval { high, low, off: 0.0 }
    }

    /// `high 2^32 + low`, if f64 hold both.
    #[inline(always)]
    pub(super) fn of_parts(high: u64, low: u64) -> Option<Interval> {
        if (high | low) >> 53 != 0 {
            return None;
        }
        let [high, low] = two_sum(high as f64 * 4_294_967_296.0, low as f64);
        Some(Interval { high, low, off: 0.0 })
    }

    /// An integer, if two f64 hold it.
    #[inline(always)]
    pub(super) fn of_integer(value: i128) -> Interval {
        if let Ok(value) = i64::try_from(value) {
            return Interval::of_i64(value);
        }
        let high = value as f64;
        let rest = value - high as i128;
        let low = rest as f64;
        let held = low as i128 == rest && value.unsigned_abs() < 1 << 120;
        if held { Interval { high, low, off: 0.0 } } else { Interval::UNKNOWN }
    }

    /// An integer by its parts of 64 bits, the lowest first.
    pub(super) fn of_limbs(limbs: &[u64]) -> Interval {
        let mut found = Interval::ZERO;
        for &limb in limbs.iter().rev() {
            for half in [limb >> 32, limb & u64::from(u32::MAX)] {
                // Exact, but for what is below both numbers: that is at most the half unit of the second.
                let times = |x: f64| x * 4_294_967_296.0;
                let Interval { high, low, off } = found;
                let [high, rest] = two_sum(times(high), half as f64);
                let [low, lost] = two_sum(times(low), rest);
                found = Interval { high, low, off: times(off) + lost.abs() };
            }
        }
        // The sum of what is lost was rounded, too.
        Interval { off: found.off * (1.0 + 8.0 * UNIT), ..found }
    }

    /// Whether it is certainly above `limit`.
    #[inline(always)]
    pub(super) fn is_above(self, limit: f64) -> bool {
        self.high + (self.low - self.off) > limit
    }

    /// With `|low|` at most half a unit of `high`.
    #[inline(always)]
    fn normal(self) -> Interval {
        let [high, low] = two_sum(self.high, self.low);
        Interval { high, low, ..self }
    }

    /// The number divided by an integer `n`, of which the inverse is known, and whether that could be
    /// had.
    #[inline(always)]
    pub(super) fn divided(self, n: f64, inverse: f64) -> (Interval, bool) {
        let number = self.normal();
        let (found, sure) = number.quotient(n, inverse);
        // What has no second part is divided by one operation, however small; and such are f64.
        let is_plain = (number.low == 0.0) & (number.off == 0.0);
        let tiny = is_plain & (found.high.abs() <= LEAST);
        // With a negative zero, beside which a quotient that is one keeps its sign, or is in doubt.
        let found = found.or(Interval { high: found.high, low: -0.0, off: 0.0 }, tiny);
        (found, (sure | tiny) & (0.0 < n) & (n < 9_007_199_254_740_992.0))
    }

    /// The same of a number whose quotient is so small that f64 may not hold its remainder: it is
    /// brought to where they do, and back.
    #[inline(never)]
    pub(super) fn divided_below(self, n: f64) -> (Interval, bool) {
        const UP: i32 = 600;
        let up = power_of_two(UP);
        let is_small = self.high.abs() < MOST_BELOW && 0.0 < n && n < 9_007_199_254_740_992.0;
        // Exact, of `off` as well.
        let [high, low, off] = [self.high, self.low, self.off].map(|x| x * up);
        let number = Interval { high, low, off };
        let (found, sure) = number.normal().quotient(n, 1.0 / n);
        let (found, whole) = found.times_power(-UP);
        (found, is_small && sure && whole)
    }

    /// A normal number divided by `n`. The remainder of the rounded quotient is
    /// representable, so that the fused operation gives it exactly.
    #[inline(always)]
    fn quotient(self, n: f64, inverse: f64) -> (Interval, bool) {
        let high = self.high / n;
        let [remainder, lost] = two_sum((-high).mul_add(n, self.high), self.low);
        let (low, exact) = quotient_by_inverse(remainder, n, inverse);
        let whole = (self.high == 0.0) & (self.low == 0.0) & (self.off == 0.0);
        // Both are exact where the mean lies in the middle between two numbers, which no
        // interval tells; otherwise three operations made `low`.
        let exact = (lost == 0.0) & exact;
        let rounded = if exact { 0.0 } else { low.abs() * (4.0 * UNIT) };
        let off = rounded + self.off * inverse * (1.0 + 4.0 * UNIT);
        (Interval { high, low, off }, whole | (high.abs() > LEAST))
    }

    /// The square root, and whether that could be had.
    #[inline(always)]
    pub(super) fn root(self) -> (Interval, bool) {
        let Interval { high: x, low, off } = self.normal();
        let zero = (x == 0.0) & (low == 0.0) & (off == 0.0);
        let certain = (x > LEAST) & (off < x / 8.0);
        let high = x.sqrt();
        // Exact: the remainder of a rounded root is representable.
        let remainder = (-high).mul_add(high, x);
        let inverse = 1.0 / high;
        let low = (remainder + low) * (0.5 * inverse);
        // Of the series of the root the next term is at most `low^2 / high`.
        let rest = if low == 0.0 { 0.0 } else { low * low * inverse + low.abs() * (4.0 * UNIT) };
        let off = rest + off * inverse;
        let found = Interval { high, low, off };
        (found.or(Interval::ZERO, zero), zero | certain)
    }

    /// `(n squares - sum^2) / (n (n - ddof))` for an integer `n`, and whether that could be had; the
    /// inverse is that of the divisor.
    #[inline(always)]
    pub(super) fn variance(
        sum: Interval,
        squares: Interval,
        [n, inverse]: [f64; 2],
        ddof: u64,
    ) -> (Interval, bool) {
        // Exact where it is positive: `n` is an integer below 2^26 then.
        let rest = n - ddof as f64;
        let finite = sum.high.abs() + sum.off < f64::INFINITY;
        // Of one number it is 0, whatever is lost of its square.
        let (none, one) = (rest <= 0.0, (n == 1.0) & (rest == 1.0));
        let countable = (rest > 0.0) & (n < 67_108_864.0);
        let (sum, squares, divisor) = (sum.normal(), squares.normal(), n * rest);
        // Neither product overflows or loses what is below f64's last place.
        let usual = (squares.high < 1e250) & ((squares.high > 1e-200) | (squares.high == 0.0));
        let usual = usual & ((squares.high != 0.0) | (sum.high == 0.0)) & countable;
        let minuend = n * squares.high;
        let minuend_rest = n.mul_add(squares.high, -minuend);
        let subtrahend = sum.high * sum.high;
        let subtrahend_rest = sum.high.mul_add(sum.high, -subtrahend);
        let (below, cross) = (n * squares.low, 2.0 * sum.high * sum.low);
        // A small sum is off by what underflows of its square.
        let lost = if (sum.high == 0.0) | (subtrahend > 1e-200) { 0.0 } else { 1e-300 };
        let [high, a] = two_sum(minuend, -subtrahend);
        let [b, c] = two_sum(minuend_rest, -subtrahend_rest);
        // Exact where two f64 hold the numerator, which often lies in the middle then.
        let [low, d] = two_sum(a, b);
        let [low, e] = two_sum(low, below);
        let lost_below = n.mul_add(squares.low, -below);
        let low = low + (c + d + e - cross);
        let exact = (c == 0.0) & (d == 0.0) & (e == 0.0) & (cross == 0.0) & (lost_below == 0.0);
        let magnitudes = a.abs() + b.abs() + c.abs() + below.abs() + cross.abs();
        let rounded = if exact { 0.0 } else { magnitudes * (8.0 * UNIT) + sum.low * sum.low };
        let off = n * squares.off + 2.5 * (sum.high.abs() + sum.off) * sum.off + rounded + lost;
        let numerator =
            Interval { high, low, off: if off == 0.0 { 0.0 } else { off * (1.0 + 8.0 * UNIT) } };
        let numerator = numerator.normal();
        let zero = (numerator.high == 0.0) & (numerator.low == 0.0) & (numerator.off == 0.0);
        // Of an exact 0 the quotient is that.
        let (found, whole) = numerator.quotient(divisor, inverse);
        let sure = usual & (zero | (numerator.is_above(0.0) & whole));
        let found = found.or(Interval::of_special(f64::NAN), none).or(Interval::ZERO, one);
        (found, if none | one { finite } else { sure })
    }

    /// What an end rounds to, and whether the number does.
    #[inline(always)]
    pub(super) fn nearest<T: Narrow>(self) -> (T, bool) {
        let Interval { high, low, off } = self;
        if self.is_special() {
            let nan = T::from_bits(T::NAN_BITS);
            return (if high.is_nan() { nan } else { T::at_once(high) }, true);
        }
        // Adding `off` to `low` rounds, but for an `off` of 0.
        let off = if off == 0.0 { 0.0 } else { off + low.abs() * UNIT };
        let [least, most] = [T::narrow(high, low - off), T::narrow(high, low + off)];
        (least, (least.bits() == most.bits()) & (high + low).is_finite() & !off.is_nan())
    }
}

/// Intervals of many numbers, and where it goes what they round to.
pub(super) struct Ends<'a, T> {
    pub(super) high: &'a [f64],
    pub(super) low: &'a [f64],
    pub(super) off: &'a [f64],
    pub(super) to: &'a mut [T],
    /// Made 0 where it is certain, and something else where it may not be.
    pub(super) doubts: &'a mut [u64],
}

/// A type that sums of two f64 are rounded to.
pub(super) trait Narrow: Element + FloatFormat {
    /// `high + low`, rounded once.
    fn narrow(high: f64, low: f64) -> Self;
    /// A number rounded once; the usual NaN for all of them.
    #[inline(always)]
    fn at_once(x: f64) -> Self {
        Self::narrow(x, 0.0)
    }
    /// The element as f64.
    fn wide(self) -> f64;
    /// A number in two f64, multiplied by a power of two from 2^-16 to 1 and rounded once; and
    /// whether it is.
    #[inline(always)]
    fn scaled(high: f64, low: f64, scale: f64) -> (Self, bool) {
        let _ = scale;
        (Self::narrow(high, low), false)
    }
    /// The same divided by an integer below 2^26, of which the inverse is known.
    #[inline(always)]
    fn mean(high: f64, low: f64, n: f64, inverse: f64) -> (Self, bool) {
        let _ = (n, inverse);
        (Self::narrow(high, low), false)
    }
    /// Rounds numbers, by loops that compilers turn into vectors: these leave more in doubt than
    /// [`Interval::nearest`]. Rounded to f64 first, which moves an end by at most half a unit: the
    /// ends are taken apart by a whole one. An exact f64 is rounded once.
    #[inline(always)]
    fn round_all(ends: Ends<'_, Self>) {
        let Ends { high, low, off, to, doubts } = ends;
        let count = to.len();
        let (high, low, off) = (&high[..count], &low[..count], &off[..count]);
        let doubts = &mut doubts[..count];
        for i in 0..count {
            let more = off[i] + (high[i].abs() + low[i].abs()) * UNIT;
            let whole = (low[i] == 0.0) & (off[i] == 0.0);
            let off = if whole { 0.0 } else { more };
            let (least, most) = (high[i] + (low[i] - off), high[i] + (low[i] + off));
            // A NaN equals itself by its bits.
            let endless = if least.abs() < f64::INFINITY { 0 } else { 1 };
            let (least, most) = (Self::at_once(least), Self::at_once(most));
            to[i] = least;
            doubts[i] = u64::from(least.bits() != most.bits()) | endless;
        }
    }
}

impl Narrow for f64 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    #[inline(always)]
    fn scaled(high: f64, low: f64, scale: f64) -> (f64, bool) {
        // Zeros add up to a positive one. What is tiny may be rounded twice.
        let sum = (high + low) + 0.0;
        let exact = (scale == 1.0) | (sum.abs() > LEAST) | (sum == 0.0);
        (sum * scale, exact & (sum.abs() < f64::INFINITY))
    }

    /// A rounded quotient has a remainder that f64 holds, and this and the second number say how
    /// far it is off.
    #[inline(always)]
    fn mean(high: f64, low: f64, n: f64, inverse: f64) -> (f64, bool) {
        let quotient = (high + 0.0) / n;
        let [remainder, lost] = two_sum((-quotient).mul_add(n, high), low);
        let (rest, exact) = quotient_by_inverse(remainder, n, inverse);
        // Exact where the mean lies in the middle between two numbers: see `quotient`. Otherwise
        // three operations made the rest.
        let exact = (lost == 0.0) & exact;
        let off = if exact { 0.0 } else { rest.abs() * (4.0 * UNIT) };
        let (least, most) = (quotient + (rest - off), quotient + (rest + off));
        let usual = (quotient.abs() > LEAST) & (least.to_bits() == most.to_bits());
        // What has no second part is divided by one operation, however small.
        let tiny = (quotient.abs() <= LEAST) & (low == 0.0);
        (if tiny { quotient } else { least }, usual | tiny)
    }

    #[inline(always)]
    fn narrow(high: f64, low: f64) -> f64 {
        high + low
    }

    #[inline(always)]
    fn round_all(ends: Ends<'_, f64>) {
        let Ends { high, low, off, to, doubts } = ends;
        let count = to.len();
        let (high, low, off) = (&high[..count], &low[..count], &off[..count]);
        let doubts = &mut doubts[..count];
        for i in 0..count {
            let more = off[i] + low[i].abs() * UNIT;
            let off = if off[i] == 0.0 { 0.0 } else { more };
            let (least, most) = (high[i] + (low[i] - off), high[i] + (low[i] + off));
            to[i] = least;
            let endless = if least.abs() < f64::INFINITY { 0 } else { 1 };
            doubts[i] = (least.to_bits() ^ most.to_bits()) | endless;
        }
    }
}

impl Narrow for f32 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.into()
    }

    #[inline(always)]
    fn scaled(high: f64, low: f64, scale: f64) -> (f32, bool) {
        // Sums of f32 are far from the ends of f64.
        let sum = if low == 0.0 { high + 0.0 } else { sum_to_odd(high, low) };
        (f32::at_once(sum * scale), true)
    }

    #[inline(always)]
    fn at_once(x: f64) -> f32 {
        if x.is_nan() { f32::from_bits(Self::NAN_BITS as u32) } else { x as f32 }
    }

    /// Rounding a rounded quotient differs from rounding it once if the first leads to the
    /// middle between two f32: what is two units to either side rounds differently then.
    #[inline(always)]
    fn mean(high: f64, low: f64, n: f64, inverse: f64) -> (f32, bool) {
        let quotient = (high + 0.0) / n;
        if low != 0.0 {
            let rest = ((-quotient).mul_add(n, high) + low) * inverse;
            let off = rest.abs() * (4.0 * UNIT);
            let [least, most] = [rest - off, rest + off].map(|rest| f32::narrow(quotient, rest));
            return (least, least.to_bits() == most.to_bits());
        }
        let exact = ((-quotient).mul_add(n, high) == 0.0) | (quotient.abs() >= f64::INFINITY);
        let off = if exact { 0.0 } else { quotient.abs() * (2.0 * UNIT) };
        let [least, most] = [quotient - off, quotient + off].map(f32::at_once);
        (least, least.to_bits() == most.to_bits())
    }

    #[inline(always)]
    fn narrow(high: f64, low: f64) -> f32 {
        rounded_to_f32(high, low)
    }
}

/// `high + low` rounded to f32 and to odd, from which any rounding to fewer than 23 bits
/// is right (Boldo and Melquiond 2008).
#[inline(always)]
fn to_odd_f32(high: f64, low: f64) -> f32 {
    let [t, e] = two_sum(high, low);
    let near = t as f32;
    let (wide, bits) = (f64::from(near), near.to_bits());
    let past = if wide == t { e } else { t - wide };
    if past == 0.0 || bits & 1 == 1 || !near.is_finite() {
        return near;
    }
    // The neighbour on the side of the number.
    let outwards = (past > 0.0) == (t > 0.0);
    f32::from_bits(if outwards { bits + 1 } else { bits - 1 })
}

/// The bits of the float of 16 bits nearest to a number, of which so many are behind its exponent,
/// that is stored with this bias; by a few operations on words, of which compilers make vectors.
#[inline(always)]
fn bits_of_16<const DIGITS: u32, const BIAS: u64>(x: f64) -> u16 {
    let (shift, infinity) = (52 - DIGITS, u64::from(u16::MAX >> (DIGITS + 1)) << DIGITS);
    let magnitude = x.to_bits() & u64::MAX >> 1;
    // To the nearest, and to the even one from the middle; the exponent follows the digits.
    let half = (1 << (shift - 1)) - 1 + (magnitude >> shift & 1);
    let normal = ((magnitude + half) >> shift).saturating_sub((1023 - BIAS) << DIGITS);
    // Beside this number the last place of f64 is the least of the shorter floats.
    let beside = f64::from_bits((1076 - BIAS - u64::from(DIGITS)) << 52);
    let small = (x.abs() + beside).to_bits() - beside.to_bits();
    let least = f64::from_bits((1024 - BIAS) << 52);
    let found = if x.abs() < least { small } else { normal.min(infinity) };
    let found = if x.is_nan() { infinity | 1 << (DIGITS - 1) } else { found };
    let sign = if x.is_nan() { 0 } else { x.to_bits() >> 48 & 1 << 15 };
    (found | sign) as u16
}

impl Narrow for f16 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.to_f64()
    }

    #[inline(always)]
    fn at_once(x: f64) -> f16 {
        f16::from_bits(bits_of_16::<10, 15>(x))
    }

    #[inline(always)]
    fn narrow(high: f64, low: f64) -> f16 {
        f16::from_f32(to_odd_f32(high, low))
    }
}

impl Narrow for bf16 {
    #[inline(always)]
    fn wide(self) -> f64 {
        self.to_f64()
    }

    #[inline(always)]
    fn at_once(x: f64) -> bf16 {
        bf16::from_bits(bits_of_16::<7, 127>(x))
    }

    #[inline(always)]
    fn narrow(high: f64, low: f64) -> bf16 {
        bf16::from_f32(to_odd_f32(high, low))
    }
}

/// `n squares - sum^2` as two f64, by two f64 each; but for the square of what a sum has below the first,
/// and for what is rounded below f64's last place of a product.
#[inline(always)]
pub(super) fn spread(n: f64, squares: [f64; 2], sum: [f64; 2]) -> [f64; 2] {
    let (all, less) = (n * squares[0], sum[0] * sum[0]);
    let above = n.mul_add(squares[0], -all) + n * squares[1];
    let below = sum[0].mul_add(sum[0], -less) + 2.0 * sum[0] * sum[1];
    let [high, low] = two_sum(all, -less);
    two_sum(high, low + (above - below))
}

/// What is two f64, but for a `share` of it, over an integer below 2^22, rounded once; and whether that is
/// certain.
///
/// Of integers, of which nothing is unknown, it always is.
/// What the first quotient leaves of the first f64 is exact, as are a sum that f64 holds and its
/// quotient, so that what is in the middle between two f64 is rounded to the even one. Of others the
/// distance from such a middle is an integer, or a multiple of half a unit of the quotient if that is
/// less, over the divisor: above 2^-49 of a unit where the quotient is below 2^78. The second quotient
/// is below two units, and its roundings are below 2^-50 of it.
#[inline(always)]
pub(super) fn quotient([high, low]: [f64; 2], share: f64, divisor: f64) -> (f64, bool) {
    let found = high / divisor;
    let rest = (-found).mul_add(divisor, high) + low;
    let (rest, off) = (rest / divisor, found.abs() * share);
    let (least, most) = (found + (rest - off), found + (rest + off));
    (least, least.to_bits() == most.to_bits())
}

/// The root of what is two f64, but for a `share` of it, over an integer below 2^13, rounded once; and
/// whether that is certain.
///
/// Two roundings lead to a `root` that is off by less than a unit. What the spread is more than
/// `divisor root^2` is known to 2^-100 of the spread: the square and its product are two numbers
/// each, and the first difference is one of near numbers, which is exact. Divided by the slope it
/// is what the root is off by, but for 2^-100 of the root. Where that is less than a quarter of a
/// unit, the root is the answer whatever its own errors are; where it is more, these are less
/// than 2^-44 of it, and the answer is certain if both ends are rounded alike.
#[inline(always)]
pub(super) fn rooted([spread, below]: [f64; 2], share: f64, divisor: f64) -> (f64, bool) {
    let root = (spread / divisor).sqrt();
    let square = root * root;
    let square_rest = root.mul_add(root, -square);
    let product = divisor * square;
    let product_rest = divisor.mul_add(square, -product);
    // The difference of two near numbers is exact.
    let rest = (((spread - product) + below) - product_rest) - divisor * square_rest;
    let low = rest / (2.0 * divisor * root);
    let off = low.abs() * 2f64.powi(-40) + root * share;
    let (least, most) = (root + (low - off), root + (low + off));
    // The root of 0 leads to no number.
    if spread == 0.0 { (0.0, true) } else { (least, least.to_bits() == most.to_bits()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quotient of integers, rounded to the nearest, to the even one in the middle.
    fn nearest(m: i64, n: i64) -> i64 {
        let (quotient, rest) = (m.unsigned_abs() / n as u64, m.unsigned_abs() % n as u64);
        let more = 2 * rest > n as u64 || 2 * rest == n as u64 && quotient % 2 == 1;
        (quotient + u64::from(more)).cast_signed() * m.signum()
    }

    #[test]
    fn means_that_are_subnormal_are_rounded_once() {
        let mut random = fastrand::Rng::with_seed(1);
        let unit = f64::from_bits(1);
        let mut known = 0;
        for round in 0..20_000 {
            let n = [2, 3, 4, 6, 8, 10, 50, 1000, 1 << 20][round % 9];
            let bits = random.u32(1..60);
            let mut m = random.i64(-(1 << bits)..1 << bits);
            if round % 4 == 0 {
                // In the middle between two.
                m = (m / n * 2 + 1) * n / 2;
            }
            let high = m as f64;
            let low = (m as i128 - high as i128) as f64;
            // And some that are not exact.
            let off = if round % 3 == 0 { random.i64(0..200) } else { 0 };
            let sum = Interval { high: high * unit, low: low * unit, off: off as f64 * unit };
            let (found, sure) = sum.divided_below(n as f64);
            let (found, whole) = found.nearest::<f64>();
            let want = nearest(m, n);
            if want.abs() >= 1 << 53 {
                continue;
            }
            if sure && whole {
                assert_eq!(found.to_bits(), (want as f64 * unit).copysign(high).to_bits());
                assert!(off == 0 || (m - off).signum() == (m + off).signum(), "{m} {off}");
                assert_eq!([nearest(m - off, n), nearest(m + off, n)], [want; 2], "{m} {off} {n}");
                known += 1;
            } else {
                // A negative zero is in doubt.
                assert!(off > 0 || want.abs() >= 1 << 50 || want == 0, "{m} / {n}");
            }
        }
        assert!(known > 12_000, "{known}");
    }

    #[test]
    fn floats_of_16_bits_are_nearest() {
        let mut random = fastrand::Rng::with_seed(3);
        let check = |x: f64| {
            // Zeros add up to a positive one.
            let x = x + 0.0;
            let [half, brain] = [f16::at_once(x).to_bits(), bf16::at_once(x).to_bits()];
            if x.is_nan() {
                let usual = [f16::NAN_BITS, bf16::NAN_BITS];
                assert_eq!([u64::from(half), u64::from(brain)], usual);
            } else {
                assert_eq!(half, f16::narrow(x, 0.0).to_bits(), "{x:e}");
                assert_eq!(brain, bf16::narrow(x, 0.0).to_bits(), "{x:e}");
            }
        };
        for bits in 0..=u16::MAX {
            // Each of them, the middle to the next one, and what is beside both.
            for x in [f16::from_bits(bits).to_f64(), bf16::from_bits(bits).to_f64()] {
                let wide = x.to_bits();
                for bits in [wide, wide | 1 << 41, wide | 1 << 44, x.abs().to_bits() / 2 * 2] {
                    for bits in [bits, bits + 1, bits.wrapping_sub(1)] {
                        check(f64::from_bits(bits));
                    }
                }
                check(x + f16::from_bits(1).to_f64() / 2.0);
                check(x + bf16::from_bits(1).to_f64() / 2.0);
            }
        }
        (0..100_000).for_each(|_| check(f64::from_bits(random.u64(..))));
    }

    #[test]
    fn variances_of_few_short_floats_are_exact() {
        let mut random = fastrand::Rng::with_seed(2);
        for round in 0..5000 {
            let n = [2u64, 4, 8, 16][round % 4];
            // Multiples of 2^-20: their squares and sums are exact.
            let items: Vec<i64> = (0..n).map(|_| random.i64(0..1 << 24)).collect();
            let sum: i64 = items.iter().sum();
            let squares: i128 = items.iter().map(|&x| i128::from(x * x)).sum();
            let interval = |x: i128| {
                let high = x as f64;
                Interval { high, low: (x - high as i128) as f64, off: 0.0 }
            };
            let sums = [interval(sum.into()), interval(squares)];
            let (found, sure) =
                Interval::variance(sums[0], sums[1], [n as f64, 1.0 / (n * n) as f64], 0);
            let (found, whole) = found.nearest::<f64>();
            assert!(sure && whole, "{items:?}");
            // An integer over a power of two.
            let numerator = i128::from(n) * squares - i128::from(sum) * i128::from(sum);
            assert_eq!(found, numerator as f64 / (n * n) as f64, "{items:?}");
        }
    }
}
