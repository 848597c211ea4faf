//! Sums of integers for many outputs, in 64 bits.

use super::factors::{SIGNED, UNSIGNED};
use super::finish::{Asked, Request};
use super::lanes::{Lanes, ShortAsked, Words};
use super::round::{Interval, quotient, rooted, spread, two_sum};
use super::words::Word;
use crate::integer::Integer;
use crate::simd::Simd;
use core::marker::PhantomData;
use warpfold_core::exact::FloatFormat;

/// Sums of integers of at most 32 bits, or of their magnitudes. Those of unsigned ones are less by
/// `bias` an element: their words without it have a sign.
#[derive(Clone, Copy)]
pub(super) struct Totals<W, const MAGNITUDES: bool> {
    pub(super) asked: Asked,
    /// The topmost bit of unsigned integers, or none.
    pub(super) bias: W,
}

impl<W: Word, const MAGNITUDES: bool> Lanes for Totals<W, MAGNITUDES> {
    type Item = W;
    type Out = u64;
    type A = i64;
    type B = ();
    type C = ();
    const START: (i64, (), ()) = (0, (), ());
    const MEANS: bool = true;

    #[inline(always)]
    fn take(self, a: &mut i64, (): &mut (), (): &mut (), x: W, _: u32) {
        let x = (x ^ self.bias).wide();
        *a = a.wrapping_add(if MAGNITUDES { x.abs() } else { x });
    }

    #[inline(always)]
    fn merge((a, ..): &mut (i64, (), ()), others: (i64, (), ())) {
        *a += others.0;
    }

    fn neutral(&self) -> Option<W> {
        // Its word without the bias is 0.
        Some(self.bias)
    }

    fn short(&self) -> Option<ShortAsked> {
        few_asked(self.asked)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (sum, ..): (i64, (), ()), len: u64) -> (u64, bool) {
        // A few integers of at most 32 bits have a sum that f64 holds.
        let sum = sum - len.cast_signed() * self.bias.wide();
        if MEAN {
            return ((sum as f64 / len as f64).to_bits(), true);
        }
        (sum.cast_unsigned(), true)
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        if self.asked == Asked::Sum {
            return self.answer_each(words, to, request);
        }
        // The topmost bit alone is the least integer.
        let (lengths, each) = (request.lengths, -self.bias.wide());
        // Fewer than 2^31 elements each.
        let all = |i: usize| lengths.at(i).cast_signed() * each;
        let sums = |i: usize| [Interval::of_i64(words.a[i] + all(i)); 2];
        request.finish_each(self.asked, to, sums);
    }
}

/// What is asked of sums.
fn few_asked(asked: Asked) -> Option<ShortAsked> {
    match asked {
        Asked::Sum | Asked::Second | Asked::Variance { root: false, .. } => Some(ShortAsked::Words),
        Asked::Mean | Asked::Root | Asked::Variance { root: true, .. } => Some(ShortAsked::Mean),
        _ => None,
    }
}

/// Sums of integers of 64 bits: [`SIGNED`], [`UNSIGNED`] or [`MAGNITUDES`]. The words are the sums of
/// the lower halves and of the upper ones, which fewer than 2^31 elements do not overflow.
#[derive(Clone, Copy)]
pub(super) struct LongTotals<const OF: u8> {
    pub(super) asked: Asked,
}

/// The magnitudes of integers with a sign, whose sums have one, too.
pub(super) const MAGNITUDES: u8 = 3;

impl<const OF: u8> LongTotals<OF> {
    /// The lower 64 bits of a sum, and whether that is all of it.
    #[inline(always)]
    fn total(lower: i64, upper: i64) -> (i64, bool) {
        let upper = upper + (lower >> 32);
        let held = match OF {
            UNSIGNED => upper >> 32 == 0,
            MAGNITUDES => upper >> 31 == 0,
            _ => upper == i64::from(upper as i32),
        };
        (upper << 32 | i64::from(lower as u32), held)
    }
}

impl<const OF: u8> Lanes for LongTotals<OF> {
    type Item = i64;
    type Out = u64;
    type A = i64;
    type B = i64;
    type C = ();
    const START: (i64, i64, ()) = (0, 0, ());
    const MEANS: bool = true;

    #[inline(always)]
    fn take(self, a: &mut i64, b: &mut i64, (): &mut (), x: i64, _: u32) {
        let x = if OF == MAGNITUDES { x.wrapping_abs() } else { x };
        let upper = if OF == SIGNED { x >> 32 } else { (x.cast_unsigned() >> 32).cast_signed() };
        *a = a.wrapping_add(x & i64::from(u32::MAX));
        *b = b.wrapping_add(upper);
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (i64, i64, ()), others: (i64, i64, ())) {
        *a += others.0;
        *b += others.1;
    }

    fn neutral(&self) -> Option<i64> {
        Some(0)
    }

    fn short(&self) -> Option<ShortAsked> {
        few_asked(self.asked)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (lower, upper, ()): (i64, i64, ()), len: u64) -> (u64, bool) {
        if MEAN {
            // Both halves of the sum are f64, and of fewer than 2^22 elements.
            let held = (lower.unsigned_abs() | upper.unsigned_abs()) >> 53 == 0;
            let (mean, sure) = quotient(of_halves(upper, lower), 0.0, len as f64);
            return (mean.to_bits(), held & sure);
        }
        let (sum, held) = Self::total(lower, upper);
        (sum.cast_unsigned(), held)
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        if self.asked == Asked::Sum {
            return self.answer_each(words, to, request);
        }
        let sums = |i: usize| {
            let sum = (i128::from(words.b[i]) << 32) + i128::from(words.a[i]);
            [Interval::of_integer(sum); 2]
        };
        request.finish_each(self.asked, to, sums);
    }
}

/// An integer by its halves: the upper one times 2^32, and the lower one.
#[inline(always)]
fn of_halves(upper: i64, lower: i64) -> [f64; 2] {
    two_sum(upper as f64 * 4_294_967_296.0, lower as f64)
}

const TOP: u64 = 1 << 63;

/// Sums of integers of at most 16 bits and of their squares. A variance does not change
/// where all elements do by the same: of unsigned ones the topmost bit is flipped, which
/// takes half of their range from each.
#[derive(Clone, Copy)]
pub(super) struct ShortPowers<W> {
    pub(super) asked: Asked,
    pub(super) flip: W,
}

impl<W: Word> Lanes for ShortPowers<W> {
    type Item = W;
    type Out = u64;
    type A = i64;
    type B = u64;
    type C = ();
    const START: (i64, u64, ()) = (0, 0, ());
    const MEANS: bool = true;

    #[inline(always)]
    fn take(self, a: &mut i64, b: &mut u64, (): &mut (), x: W, _: u32) {
        let wide = (x ^ self.flip).wide();
        *a = a.wrapping_add(wide);
        // Below 2^32 each.
        *b += wide.wrapping_mul(wide).cast_unsigned();
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (i64, u64, ()), others: (i64, u64, ())) {
        *a += others.0;
        *b += others.1;
    }

    fn neutral(&self) -> Option<W> {
        Some(self.flip)
    }

    fn of_one(&self) -> Option<u64> {
        variance_of_one(self.asked)
    }

    fn short(&self) -> Option<ShortAsked> {
        few_asked(self.asked)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (sum, squares, ()): (i64, u64, ()), len: u64) -> (u64, bool) {
        let squares = match self.asked {
            Asked::Variance { .. } => squares.cast_signed(),
            _ => self.squares(sum, squares, len),
        };
        if self.asked == Asked::Second {
            return (squares.cast_unsigned(), true);
        }
        finish_few::<MEAN>(self.asked, sum, [squares as f64, 0.0], len)
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        let (asked, lengths) = (self.asked, request.lengths);
        if asked == Asked::Second {
            return self.answer_each(words, to, request);
        }
        // Below 2^63 as fewer than 2^31 elements are.
        let squares = |i: usize| match asked {
            Asked::Variance { .. } => words.b[i].cast_signed(),
            _ => self.squares(words.a[i], words.b[i], lengths.at(i)),
        };
        request.finish_each(asked, to, |i| [words.a[i], squares(i)].map(Interval::of_i64));
    }
}

impl<W: Word> ShortPowers<W> {
    /// The sum of the squares of `len` elements, below 2^63, by the sums of what they are less by half
    /// of their range, if they have no sign.
    #[inline(always)]
    fn squares(self, sum: i64, squares: u64, len: u64) -> i64 {
        let half = -self.flip.wide();
        let all = half * half * len.cast_signed();
        squares.cast_signed().wrapping_add(2 * half * sum).wrapping_add(all)
    }
}

/// The bits of the root of the sum of squares of a few elements, of their variance or, if `MEAN` says so,
/// of its root; and whether that is certain.
///
/// Of at most 64 elements below 2^32 the squares are below 2^70, and `n squares - sum^2` below 2^76:
/// what both products have beyond f64 are integers below 2^30, whose sums are exact.
#[inline(always)]
fn finish_few<const MEAN: bool>(
    asked: Asked,
    sum: i64,
    squares: [f64; 2],
    len: u64,
) -> (u64, bool) {
    let Asked::Variance { ddof, .. } = asked else {
        let (root, sure) = rooted(squares, 0.0, 1.0);
        return (root.to_bits(), sure);
    };
    let (n, rest) = (len as f64, len.saturating_sub(ddof));
    let (spread, divisor) = (spread(n, squares, [sum as f64, 0.0]), n * rest as f64);
    let (found, sure) =
        if MEAN { rooted(spread, 0.0, divisor) } else { quotient(spread, 0.0, divisor) };
    (found.to_bits(), sure & (rest > 0))
}

/// The bits of the variance of one integer, whatever it is.
fn variance_of_one(asked: Asked) -> Option<u64> {
    match asked {
        Asked::Variance { ddof: 0, .. } => Some(0.0f64.to_bits()),
        Asked::Variance { .. } => Some(f64::NAN_BITS),
        _ => None,
    }
}

/// Sums of elements and of their squares: these in two words, of their low 32 bits and
/// of the rest. The top bit of the latter says that some element has more than 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Powers<T> {
    asked: Asked,
    item: PhantomData<T>,
}

impl<T> Powers<T> {
    pub(super) fn new(asked: Asked) -> Self {
        Powers { asked, item: PhantomData }
    }
}

impl<T: Integer> Lanes for Powers<T> {
    type Item = T;
    type Out = u64;
    type A = i64;
    type B = u64;
    type C = u64;
    const START: (i64, u64, u64) = (0, 0, 0);
    const MEANS: bool = true;

    #[inline(always)]
    fn take(self, a: &mut i64, b: &mut u64, c: &mut u64, x: T, _: u32) {
        let wide = x.wide();
        *a = a.wrapping_add(wide);
        let magnitude = if T::UNSIGNED { wide.cast_unsigned() } else { wide.unsigned_abs() };
        let short = u64::from(magnitude as u32);
        let (square, whole) = (short * short, short == magnitude);
        *b += u64::from(square as u32);
        let beyond = if whole { 0 } else { TOP };
        *c = ((*c & !TOP) + (square >> 32)) | ((*c | beyond) & TOP);
    }

    #[inline(always)]
    fn merge((a, b, c): &mut (i64, u64, u64), others: (i64, u64, u64)) {
        *a = a.wrapping_add(others.0);
        *b += others.1;
        *c = ((*c & !TOP) + (others.2 & !TOP)) | ((*c | others.2) & TOP);
    }

    fn neutral(&self) -> Option<T> {
        Some(T::zeroed())
    }

    fn of_one(&self) -> Option<u64> {
        variance_of_one(self.asked)
    }

    fn short(&self) -> Option<ShortAsked> {
        few_asked(self.asked)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (sum, low, high): (i64, u64, u64), len: u64) -> (u64, bool) {
        // A root is no sum: known to the compiler, which makes vectors of it alone.
        if !MEAN && self.asked == Asked::Second {
            // Above all where some element has more than 32 bits.
            let upper = high + (low >> 32);
            let bits = if T::UNSIGNED { 32 } else { 31 };
            return (upper << 32 | u64::from(low as u32), upper >> bits == 0);
        }
        let squares = of_halves((high & !TOP).cast_signed(), low.cast_signed());
        let (found, sure) = finish_few::<MEAN>(self.asked, sum, squares, len);
        (found, sure & (high & TOP == 0))
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        if self.asked == Asked::Second {
            return self.answer_each(words, to, request);
        }
        let sums = |i: usize| {
            let (low, high) = (words.b[i], words.c[i]);
            let squares = match Interval::of_parts(high, low) {
                Some(squares) => squares,
                None if high & TOP != 0 => Interval::UNKNOWN,
                None => Interval::of_integer(i128::from(low) + (i128::from(high) << 32)),
            };
            [Interval::of_i64(words.a[i]), squares]
        };
        request.finish_each(self.asked, to, sums);
    }
}

/// Sums of elements of 64 bits and of their squares, whatever they are: these in 128 bits and a word of
/// what is above. Scalars, where some elements have more bits than [`Powers`] take.
#[derive(Clone, Copy)]
pub(super) struct LongPowers<T> {
    asked: Asked,
    item: PhantomData<T>,
}

impl<T> LongPowers<T> {
    pub(super) fn new(asked: Asked) -> Self {
        LongPowers { asked, item: PhantomData }
    }
}

impl<T: Integer> Lanes for LongPowers<T> {
    type Item = T;
    type Out = u64;
    type A = i128;
    type B = u128;
    type C = u64;
    const START: (i128, u128, u64) = (0, 0, 0);

    #[inline(always)]
    fn take(self, a: &mut i128, b: &mut u128, c: &mut u64, x: T, _: u32) {
        let wide = x.wide();
        let value = if T::UNSIGNED { i128::from(wide.cast_unsigned()) } else { i128::from(wide) };
        *a += value;
        let (squares, over) = b.overflowing_add(value.unsigned_abs().pow(2));
        (*b, *c) = (squares, *c + u64::from(over));
    }

    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[T], _: usize) -> Option<(i128, u128, u64)> {
        let (mut a, mut b, mut c) = Self::START;
        for &x in items {
            self.take(&mut a, &mut b, &mut c, x, 0);
        }
        Some((a, b, c))
    }

    #[inline(always)]
    fn merge((a, b, c): &mut (i128, u128, u64), others: (i128, u128, u64)) {
        *a += others.0;
        let (squares, over) = b.overflowing_add(others.1);
        (*b, *c) = (squares, *c + others.2 + u64::from(over));
    }

    fn neutral(&self) -> Option<T> {
        Some(T::zeroed())
    }

    fn answer(&self, words: Words<'_, Self>, to: &mut [u64], request: Request<'_>) {
        let (asked, lengths) = (self.asked, request.lengths);
        let limbs = |x: u128, above: u64| [x as u64, (x >> 64) as u64, above];
        let sums = |i: usize| {
            let squares = limbs(words.b[i], words.c[i]);
            let Asked::Variance { .. } = asked else {
                return [Interval::of_limbs(&squares); 2];
            };
            // What the squares of the differences from the mean add up to is a quotient of integers.
            let (n, sum) = (lengths.at(i), words.a[i].unsigned_abs());
            let [low, high, _] = limbs(sum, 0);
            let (all, less) = (product(squares, [n, 0]), product([low, high, 0], [low, high]));
            let (mut spread, mut borrow) = ([0; 5], false);
            for (k, limb) in spread.iter_mut().enumerate() {
                let (less, first) = all[k].overflowing_sub(less[k]);
                let (rest, second) = less.overflowing_sub(u64::from(borrow));
                (*limb, borrow) = (rest, first | second);
            }
            [Interval::ZERO, Interval::of_limbs(&spread).divided(n as f64, 1.0 / n as f64).0]
        };
        request.finish_each(asked, to, sums);
    }
}

/// The product of two integers, the lowest 64 bits first.
fn product(a: [u64; 3], b: [u64; 2]) -> [u64; 5] {
    let mut found = [0; 5];
    for (i, &b) in b.iter().enumerate() {
        let mut carry = 0;
        for (j, &a) in a.iter().enumerate() {
            let sum = u128::from(a) * u128::from(b) + u128::from(found[i + j]) + carry;
            (found[i + j], carry) = (sum as u64, sum >> 64);
        }
        found[i + 3] = carry as u64;
    }
    found
}
