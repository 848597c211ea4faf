//! What sums of floats keep: f64 sums that know how far they can be off.
//!
//! A sum is kept in three f64: the rounded sum `s`, the sum `e` of the rounding errors
//! of `s`, which TwoSum gives exactly (Knuth 1969, Ogita, Rump and Oishi 2005), and the
//! sum `a` of their magnitudes. Of `N` terms in `e`, each of at most 53 bits, the sum in
//! any order errs by at most `(N - 1) u (1 + ...)` times the sum of the magnitudes, with
//! `u = 2^-53`. So the exact sum lies within `s + e` plus or minus `N 2^-52 a`, and where
//! `a` is 0 it is `s`. If both ends round to the same number, that is the exact sum
//! rounded once (Ziv 1991); otherwise the general way has to answer. Infinities, NaNs and
//! overflow make `e` NaN, and a NaN end equals nothing.
//!
//! Of short rows of f64 many sums lie exactly in the middle: one in eight of eight numbers
//! between 0 and 1. No interval tells those, unless it has no width. So `e` is added up by
//! TwoSum as well where it is worth it (*doubly compensated* measures): `l` is the sum of its rounding
//! errors, `b` that of their magnitudes, and where `b` is 0, which is the rule, `s + e` is
//! the exact sum. Otherwise it is `s + e + l` plus or minus `N 2^-52 b`.
//!
//! Products of f64 enter as the rounded product and its error, which the fused operation
//! gives exactly unless it underflows: see [`LEAST_SQUARES`] and [`LOST`]. Those of shorter
//! floats are exact.

use super::round::Interval;
use crate::exact::{exponent_of, power_of_two};
use crate::simd::Simd;

/// Parts of a sum, and of one with the errors of its errors.
pub(super) const SUM: usize = 3;
const DOUBLY: usize = 4;

/// The share of sums of squares that is more than what they may have lost: see [`framed`].
const SHARE: f64 = power_of_two(-100);

/// Sums of squares above this have lost nothing that matters: what underflows is below
/// `2^-1020` a term, even if it becomes 0, and there are fewer than `2^64` terms.
pub(super) const LEAST_SQUARES: f64 = 1e-200;

/// What underflows of a product of two f64 and of its error, at most: each is rounded to a
/// multiple of 2^-1074.
pub(super) const LOST: f64 = 2e-323;

/// What subnormal results are that became zeros, of an element or of a square, all that are made of one
/// together.
pub(super) const FLUSHED: f64 = power_of_two(-1018);

/// What is subtracted from elements before they are squared, so that squares do not cancel where the
/// variance is far smaller than the mean: the output's first element, or the one of the largest
/// magnitude. It is the last part of an output.
pub(super) const fn origin(parts: usize) -> usize {
    parts - 1
}

/// The element of the largest magnitude and what brings it to between 1 and 2, of elements from `least`
/// to `greatest`: their sums do not overflow then, and squares of what is 2^-537 of it are lost, and far
/// too small to matter.
#[inline(always)]
pub(super) fn of_largest(least: f64, greatest: f64) -> [f64; 2] {
    let largest = if -least > greatest { least } else { greatest };
    // Subnormal numbers are not brought as far, nor what is next to infinite; zeros need not be.
    let exponent = exponent_of(largest).clamp(-FARTHEST, FARTHEST);
    [largest, if largest == 0.0 { 1.0 } else { power_of_two(-exponent) }]
}

/// The largest exponent of a scale, either way.
const FARTHEST: i32 = 1000;
/// The scale of outputs whose elements are subnormal.
pub(super) const LARGEST_SCALE: f64 = power_of_two(FARTHEST);

/// What is summed: an accumulator of `P` parts takes elements, or pairs of them.
pub(super) trait Measure<const P: usize>: Copy + Send + Sync + 'static {
    /// Whether products are summed.
    const PRODUCTS: bool;
    /// Whether the parts are plain sums, which are joined by adding them.
    const BOUNDED: bool = P < SUM;
    /// Takes in a vector of pairs; an element alone is a pair with itself.
    ///
    /// # Safety
    /// See [`Simd`], here and below.
    unsafe fn step<S: Simd>(acc: &mut [S::F; P], pair: [S::F; 2], one: S::F);
    /// Takes in an accumulator of other elements.
    unsafe fn join<S: Simd>(acc: &mut [S::F; P], others: [S::F; P], one: S::F);
    /// Whether the last part of an output is no sum, but its [`origin`].
    const SHIFTED: bool = false;
    /// Whether products that are subnormal may become zeros: what is lost so is far too small to matter.
    const FLUSHES: bool = false;
    /// Whether f64 may be multiplied by a power of two beforehand.
    const SCALES: bool = true;
    /// The origin, before it is multiplied, and the scale of an output whose elements are from
    /// `least` to `greatest`.
    #[inline(always)]
    fn frame(least: f64, greatest: f64) -> [f64; 2] {
        of_largest(least, greatest)
    }
    /// What adds nothing, where that is neither the origin nor 0.
    const NEUTRAL: Option<f64> = None;
    /// NaN if elements are, where sums tell; finite where there is no telling. It is for f64: sums of
    /// shorter floats do not overflow, so that they are that themselves.
    fn special(parts: [f64; P]) -> f64 {
        let _ = parts;
        0.0
    }
    /// The sum of `len` elements.
    fn first(parts: [f64; P], len: f64) -> Interval;
    /// That of their magnitudes or of their squares, whichever it is.
    fn second(parts: [f64; P], len: f64) -> Interval;
}

/// Adds `x` to a sum.
#[inline(always)]
unsafe fn add<S: Simd>(s: &mut S::F, e: &mut S::F, a: &mut S::F, x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let t = S::add_beside(x, *s, one);
        let z = S::sub(t, *s);
        let error = S::add_beside(S::sub(*s, S::sub(t, z)), S::sub(x, z), one);
        *s = t;
        *e = S::add_beside(error, *e, one);
        *a = S::add(*a, S::abs(error));
    }
}

/// The rounded sum of two numbers, and what it is off by.
#[inline(always)]
pub(super) unsafe fn two_sums<S: Simd>(a: S::F, b: S::F, one: S::F) -> [S::F; 2] {
    // SAFETY: passed on from the caller.
    unsafe {
        let t = S::add_beside(b, a, one);
        let z = S::sub(t, a);
        [t, S::add_beside(S::sub(a, S::sub(t, z)), S::sub(b, z), one)]
    }
}

/// Adds `x` to a sum, and the error to that of the errors.
#[inline(always)]
unsafe fn add_doubly<S: Simd>([s, e, l, b]: [&mut S::F; DOUBLY], x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let [sum, error] = two_sums::<S>(*s, x, one);
        let [errors, rest] = two_sums::<S>(*e, error, one);
        (*s, *e) = (sum, errors);
        *l = S::add(*l, rest);
        *b = S::add(*b, S::abs(rest));
    }
}

/// Parts that are sums with the errors of their errors.
#[inline(always)]
unsafe fn join_doubly<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        for p in (0..P).step_by(DOUBLY) {
            let [mut s, mut e, mut l, mut b] = [acc[p], acc[p + 1], acc[p + 2], acc[p + 3]];
            add_doubly::<S>([&mut s, &mut e, &mut l, &mut b], others[p], one);
            let [errors, rest] = two_sums::<S>(e, others[p + 1], one);
            l = S::add(S::add(l, rest), others[p + 2]);
            b = S::add(S::add(b, S::abs(rest)), others[p + 3]);
            (acc[p], acc[p + 1], acc[p + 2], acc[p + 3]) = (s, errors, l, b);
        }
    }
}

/// The interval of a sum with the errors of its errors, of which there are as many as
/// [`interval`] says of errors.
#[inline(always)]
fn doubly([s, e, l, b]: [f64; DOUBLY], len: f64) -> Interval {
    let rest = Interval::of_sum(s, e + l, (len + 8.0) * 32.0, b);
    let off = if b == 0.0 { 0.0 } else { rest.off + (e.abs() + l.abs()) * f64::EPSILON };
    Interval { off, ..rest }
}

/// Parts that are sums with their errors.
#[inline(always)]
unsafe fn join_sums<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        for p in (0..P / SUM * SUM).step_by(SUM) {
            let [mut s, mut e, mut a] = [acc[p], acc[p + 1], acc[p + 2]];
            add::<S>(&mut s, &mut e, &mut a, others[p], one);
            e = S::add(e, others[p + 1]);
            a = S::add(a, others[p + 2]);
            (acc[p], acc[p + 1], acc[p + 2]) = (s, e, a);
        }
    }
}

/// The interval of a sum with its errors. They have at most two terms for an element,
/// and for a run of elements, which has at least one, those of the lanes that are
/// merged.
#[inline(always)]
fn interval([s, e, a]: [f64; SUM], len: f64) -> Interval {
    Interval::of_sum(s, e, (len + 8.0) * 32.0, a)
}

/// The same of elements: of two there is one error, which is the sum of errors.
#[inline(always)]
fn elements(parts: [f64; SUM], len: f64) -> Interval {
    let found = interval(parts, len);
    let is_exact = (len <= 2.0) & found.high.is_finite();
    Interval { off: if is_exact { 0.0 } else { found.off }, ..found }
}

/// The interval of a plain sum of `len` terms, whose magnitudes have this sum.
#[inline(always)]
fn bounded(s: f64, magnitudes: f64, len: f64) -> Interval {
    Interval::of_sum(s, 0.0, len + 8.0, magnitudes)
}

/// NaN if a sum of magnitudes or squares is: that takes a NaN among the elements, as what overflows
/// has one sign.
#[inline(always)]
fn nan_of(sum: f64) -> f64 {
    if sum.is_nan() { sum } else { 0.0 }
}

macro_rules! measure {
    ($(
        $(#[$doc:meta])*
        $name:ident $(<const $split:ident>)?: $parts:literal, $products:literal,
        $join:ident,
        |$S:ident, $acc:pat, $pair:pat, $one:ident| $step:expr,
        |$p:ident, $len:ident| $first:expr, $second:expr
        $(, nan $nan:literal)? $(, flushes $flushes:literal)? $(, shifted $shifted:literal)?
        $(, bounded $bounded:literal)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name $(<const $split: bool>)?;

        impl $(<const $split: bool>)? Measure<$parts> for $name $(<$split>)? {
            const PRODUCTS: bool = $products;
            #[inline(always)]
            unsafe fn step<$S: Simd>($acc: &mut [$S::F; $parts], $pair: [$S::F; 2], $one: $S::F) {
                // SAFETY: passed on from the caller.
                unsafe { $step }
            }
            #[inline(always)]
            unsafe fn join<S: Simd>(acc: &mut [S::F; $parts], others: [S::F; $parts], one: S::F) {
                // SAFETY: passed on from the caller.
                unsafe { $join::<S, $parts>(acc, others, one) }
            }
            $(#[inline(always)]
            fn special(parts: [f64; $parts]) -> f64 {
                nan_of(parts[$nan])
            })?
            $(const FLUSHES: bool = $flushes;)?
            $(const SHIFTED: bool = $shifted;)?
            $(const BOUNDED: bool = $bounded;)?
            #[inline(always)]
            fn first($p: [f64; $parts], $len: f64) -> Interval {
                $first
            }
            #[inline(always)]
            fn second($p: [f64; $parts], $len: f64) -> Interval {
                $second
            }
        }
    )*};
}

#[inline(always)]
unsafe fn join_plain<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], _: S::F) {
    for p in 0..P {
        // SAFETY: passed on from the caller.
        acc[p] = unsafe { S::add(acc[p], others[p]) };
    }
}

/// Adds a product, with its error if it has one, to a sum.
#[inline(always)]
unsafe fn add_product<S: Simd, const SPLIT: bool>(
    [s, e, a]: [&mut S::F; SUM],
    [x, y]: [S::F; 2],
    one: S::F,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        let product = S::mul(x, y);
        add::<S>(s, e, a, product, one);
        if SPLIT {
            let rest = S::mul_sub(x, y, product);
            *e = S::add(*e, rest);
            *a = S::add(*a, S::abs(rest));
        }
    }
}

measure! {
    /// The elements.
    Plain: 3, false, join_sums,
        |S, [s, e, a], [x, _], one| add::<S>(s, e, a, x, one),
        |p, len| elements(p, len), elements(p, len);
    /// Their absolute values.
    Absolute: 3, false, join_sums,
        |S, [s, e, a], [x, _], one| add::<S>(s, e, a, S::abs(x), one),
        |p, len| elements(p, len), elements(p, len), nan 0;
    /// The elements, with the errors of their errors.
    DoublyPlain: 4, false, join_doubly,
        |S, [s, e, l, b], [x, _], one| add_doubly::<S>([s, e, l, b], x, one),
        |p, len| doubly(p, len), doubly(p, len);
    /// Their absolute values likewise.
    DoublyAbsolute: 4, false, join_doubly,
        |S, [s, e, l, b], [x, _], one| add_doubly::<S>([s, e, l, b], S::abs(x), one),
        |p, len| doubly(p, len), doubly(p, len);
    /// The products; `SPLIT` if these have more than 53 bits.
    Products<const SPLIT>: 3, true, join_sums,
        |S, [s, e, a], pair, one| add_product::<S, SPLIT>([s, e, a], pair, one),
        |p, len| interval(p, len), interval(p, len);
    /// The squares of f64, each with its error.
    ///
    /// Partial sums of squares are no larger than the sum `s`, so that it bounds the rounding errors:
    /// there are fewer than `n` sums of two numbers that are not 0, each of which is off by at most
    /// `u s`, and the errors of the squares add up to `u s` at most. So the magnitudes of what is added
    /// to `e` have a sum of at most `(n + 1) u s`, and these are at most `2 n` numbers, of which the sum
    /// is off by at most `2 n u` of that. Of no terms but these a sum of magnitudes needs to be kept.
    Squares: 2, true, join_squares,
        |S, [s, e], [x, _], one| {
            let square = S::mul(x, x);
            let rest = S::mul_sub(x, x, square);
            let [sum, error] = two_sums::<S>(*s, square, one);
            *s = sum;
            *e = S::add(*e, S::add(error, rest));
        },
        |p, len| squares(p, len), squares(p, len), nan 0, flushes true, bounded false;
    /// f64, and their squares, where subnormal results may be zeros; the last part is 0 where all
    /// elements are: what is tiny has squares of 0, too.
    Both: 7, true, join_both,
        |S, [s, e, a, t, f, b, any], [x, y], one| {
            add::<S>(s, e, a, x, one);
            add_product::<S, true>([t, f, b], [x, y], one);
            *any = S::or(*any, x);
        },
        |p, len| flushed(elements([p[0], p[1], p[2]], len), p[6], len),
        lossy(interval([p[3], p[4], p[5]], len), p[6]), nan 3, flushes true;
    /// The elements and their squares, which f64 holds of shorter floats, with the errors of their
    /// errors: variances in f64 of a few of them often lie in the middle.
    DoublyBoth: 8, true, join_doubly,
        |S, [s, e, l, b, t, f, m, c], [x, y], one| {
            add_doubly::<S>([s, e, l, b], x, one);
            add_doubly::<S>([t, f, m, c], S::mul(x, y), one);
        },
        |p, len| doubly([p[0], p[1], p[2], p[3]], len), doubly([p[4], p[5], p[6], p[7]], len);
    /// What elements are more than the [`origin`], and the squares of that; `LOSES` if these may
    /// underflow.
    Shifted<const LOSES>: 8, true, join_shifted,
        |S, acc, [x, _], one| add_shifted::<S>(acc, x, one),
        |p, len| interval([p[0], p[1], p[2]], len), shifted::<LOSES>(p, len), shifted true;
    /// The same of floats shorter than f64 in plain sums, where all differences are exact.
    BoundedShifted: 4, true, join_bounded_shifted,
        |S, [s, t, odd, origin], [x, _], _one| {
            let d = S::sub(x, *origin);
            // Of the larger one and the difference another difference is exact (Dekker 1971).
            *odd = S::or_xor(*odd, S::add(d, *origin), x);
            *odd = S::or_xor(*odd, S::sub(x, d), *origin);
            *s = S::add(*s, d);
            *t = S::add(*t, S::mul(d, d));
        },
        |p, len| bounded(p[0], (len * p[1]).sqrt() * 1.01, len).only_if(p[2] == 0.0),
        bounded(p[1], p[1], len).only_if(p[2] == 0.0), shifted true;
    /// The elements in a plain sum, and their magnitudes. Plain sums are for types of at
    /// most 24 bits: they are off by too little to matter for most outputs, and those
    /// that lie too close to the middle between two numbers are summed again.
    BoundedPlain: 2, false, join_plain,
        |S, [s, a], [x, _], _one| {
            *s = S::add(*s, x);
            *a = S::add(*a, S::abs(x));
        },
        |p, len| bounded(p[0], p[1], len), bounded(p[1], p[1], len);
    /// The products in a plain sum, and their magnitudes.
    BoundedProducts: 2, true, join_plain,
        |S, [s, a], [x, y], _one| {
            let product = S::mul(x, y);
            *s = S::add(*s, product);
            *a = S::add(*a, S::abs(product));
        },
        |p, len| bounded(p[0], p[1], len), bounded(p[1], p[1], len);
    /// The squares in a plain sum, which is that of their magnitudes, too.
    BoundedSquares: 1, true, join_plain,
        |S, [s], [x, y], _one| *s = S::add(*s, S::mul(x, y)),
        |p, len| bounded(p[0], p[0], len), bounded(p[0], p[0], len);
    /// The elements, and their squares, in plain sums. The sum of the magnitudes is at
    /// most the root of `len` times the sum of the squares.
    BoundedBoth: 2, true, join_plain,
        |S, [s, t], [x, y], _one| {
            *s = S::add(*s, x);
            *t = S::add(*t, S::mul(x, y));
        },
        |p, len| bounded(p[0], (len * p[1]).sqrt() * 1.01, len), bounded(p[1], p[1], len);
}

#[inline(always)]
unsafe fn join_squares<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let [sum, error] = two_sums::<S>(acc[0], others[0], one);
        acc[0] = sum;
        acc[1] = S::add(acc[1], S::add(error, others[1]));
    }
}

/// The interval of [`Squares`].
#[inline(always)]
fn squares([s, e]: [f64; 2], len: f64) -> Interval {
    // Each step is doubled, and the last factor as well.
    let found = Interval::of_sum(s, e, (len + 8.0) * 2.0, (len + 8.0) * f64::EPSILON * s);
    // What is tiny has squares of 0.
    found.only_if(s != 0.0)
}

/// Two sums with their errors, and what is 0 where all elements are.
#[inline(always)]
unsafe fn join_both<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        join_sums::<S, P>(acc, others, one);
        acc[P - 1] = S::or(acc[P - 1], others[P - 1]);
    }
}

#[inline(always)]
unsafe fn join_bounded_shifted<S: Simd, const P: usize>(
    acc: &mut [S::F; P],
    others: [S::F; P],
    _: S::F,
) {
    // SAFETY: passed on from the caller.
    unsafe {
        (acc[0], acc[1]) = (S::add(acc[0], others[0]), S::add(acc[1], others[1]));
        acc[2] = S::or(acc[2], others[2]);
    }
}

/// Parts of [`Shifted`] that are added.
const ADDED: usize = 6;

/// Adds what an element is more than the origin, and the square of that.
///
/// With `d + r` the difference exactly, the square is `d^2 + 2 d r + r^2`. The error of `d^2` is a
/// fused operation's; `2 d r` is rounded once, by less than what errors are assumed to be, and so is
/// `r^2`, which is at most `2^-54` of that.
#[inline(always)]
unsafe fn add_shifted<S: Simd>(acc: &mut [S::F; 8], x: S::F, one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let [s, e, a, t, f, b, any, origin] = acc;
        let d = S::sub(x, *origin);
        let z = S::sub(d, x);
        let r = S::sub(S::sub(x, S::sub(d, z)), S::add(*origin, z));
        add::<S>(s, e, a, d, one);
        *e = S::add(*e, r);
        *a = S::add(*a, S::abs(r));
        add_product::<S, true>([t, f, b], [d, d], one);
        let cross = S::mul(S::add(d, d), r);
        *f = S::add(*f, cross);
        *b = S::add(*b, S::abs(cross));
        *any = S::or(*any, d);
    }
}

/// The interval of the squares of [`Shifted`]. Those of shorter floats are exact where no error was
/// seen: variances of a few lie in the middle between two of them often.
#[inline(always)]
fn shifted<const LOSES: bool>([_, _, _, t, f, b, any, _]: [f64; 8], len: f64) -> Interval {
    let found = interval([t, f, b], len);
    if LOSES { lossy(found, any) } else { found }
}

/// A sum of squares of f64, which may underflow, unless `any` is 0: then all elements are 0.
///
/// An element may be off by [`FLUSHED`], and its square by as much again. Sums above
/// [`LEAST_SQUARES`], and no others are answered, have fewer than 2^64 terms, so that this is below
/// 2^-280 of them.
#[inline(always)]
fn lossy(squares: Interval, any: f64) -> Interval {
    let Interval { high, off, .. } = squares;
    let off = if any == 0.0 {
        0.0
    } else if high == 0.0 {
        f64::INFINITY
    } else {
        off + high * SHARE
    };
    Interval { off, ..squares }
}

/// A sum of elements, on the way to which subnormal results may have become zeros, unless `any` is 0:
/// then all elements are. What adds an element, or joins lanes, takes eight operations.
#[inline(always)]
fn flushed(sum: Interval, any: f64, len: f64) -> Interval {
    let lost = if any == 0.0 { 0.0 } else { (len + 8.0) * FLUSHED };
    Interval { off: sum.off + lost, ..sum }
}

/// Sums with their errors, and behind these what tells any difference; then the origin, which is the
/// same of both.
#[inline(always)]
unsafe fn join_shifted<S: Simd, const P: usize>(acc: &mut [S::F; P], others: [S::F; P], one: S::F) {
    // SAFETY: passed on from the caller.
    unsafe {
        let (mut sums, mut more) = ([acc[0]; ADDED], [acc[0]; ADDED]);
        sums.copy_from_slice(&acc[..ADDED]);
        more.copy_from_slice(&others[..ADDED]);
        join_sums::<S, ADDED>(&mut sums, more, one);
        acc[..ADDED].copy_from_slice(&sums);
        acc[ADDED] = S::or(acc[ADDED], others[ADDED]);
    }
}
