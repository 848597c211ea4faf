//! Exact floating-point sums at the speed of memory.
//!
//! Moments are summed with integers of 52 bits where the machine multiplies and adds these ([`fixed`]), as long
//! as their elements fit a window. Products of f64, and their moments on other machines with a fused multiply-add,
//! are summed with residues ([`residues`]), tile by tile, as long as most tiles' elements lie close together.
//! Otherwise a block of elements is tried on the lowest rung that recent blocks passed and goes up until one
//! certifies it:
//!
//! 1. the range certificate ([`range`], f32; [`halves`], bf16) or a window of two levels
//!    ([`window`]); f16 sums need nothing else ([`halves`]);
//! 2. a window of two, then of four levels;
//! 3. a bin for every exponent ([`bins`] and [`product_bins`], long blocks), or fewer bins of more
//!    bits ([`wide`]), which hold any finite terms;
//! 4. element by element into the superaccumulator, which holds everything.
//!
//! The rungs differ in speed only: each hands over the block's exact sum. Infinities and NaNs are counted
//! beside ([`specials`]).

mod bins;
mod fixed;
mod halves;
mod moments;
pub(crate) mod odd;
mod product_bins;
mod range;
mod residues;
pub(crate) mod short;
mod specials;
mod squares;
mod terms;
#[cfg(any(unoptimised, all(test, x86_vectors)))]
mod unoptimised;
mod wide;
mod window;

pub(crate) use moments::Squared;
pub(crate) use terms::{Elements, Plain, Product, Terms, Widen};

use crate::isa::Isa;
use crate::pack::room;
use crate::simd::madd52::dispatch52;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use bins::Binned;
use core::cell::Cell;
use fixed::{FixedTuner, FixedWindow, MomentsKernel, Part};
use halves::{BriefSum, Half, NarrowSum};
use moments::MomentsSum;
use product_bins::BinnedProduct;
use range::{RangeSum, Word};
use residues::{LeftOut, ResidueSum};
use specials::Specials;
use squares::{Cut, SquareRange};
use warpfold_core::DType;
use warpfold_core::element::{Element, Key, Parts, bf16, f16};
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::fpenv;
use wide::{Outcome, WideSum};
pub(crate) use window::Window;
use window::WindowSum;

/// Elements in a block: enough to make a block's fixed cost small, few enough
/// to stay in the L2 cache for a second pass.
pub(crate) const BLOCK: usize = 8192;

/// The same on the wide path: two fillings of the bins of f64, or one of those of shorter
/// types.
const WIDE_BLOCK: usize = 15 * BLOCK;

/// Binades between the block's largest term and the top of its window, so that
/// a slowly growing series does not fail at every block.
pub(crate) const HEADROOM: i32 = 2;

/// `2^exponent`, which is normal.
pub(crate) const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The exponent of the power of two that is at most the magnitude of `x`, which is normal.
#[inline(always)]
pub(crate) fn exponent_of(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
}

/// What the previous blocks taught: speed only, never the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuner {
    /// Terms of recent blocks lie below `2^top`.
    top: i32,
    /// The rung to try first.
    rung: u8,
    /// Blocks until a lower rung is tried again.
    patience: u32,
    /// What `patience` starts from; doubles with every failed try.
    backoff: u32,
    /// For products.
    fixed: FixedTuner,
    /// Whether the last block had infinities or NaNs: then the next one is copied without them at
    /// once.
    odd: bool,
}

impl Default for Tuner {
    fn default() -> Self {
        Tuner {
            top: i32::MIN,
            rung: 0,
            patience: 0,
            backoff: 8,
            fixed: FixedTuner::NEW,
            odd: false,
        }
    }
}

const QUICK: u8 = 0;
const WINDOW_2: u8 = 1;
const WINDOW_4: u8 = 2;
const WIDE: u8 = 3;

impl Tuner {
    /// The rung to begin a block on.
    fn begin(&mut self) -> u8 {
        if self.rung > QUICK && self.patience == 0 {
            return QUICK;
        }
        self.patience = self.patience.saturating_sub(1);
        self.rung
    }

    /// How many elements to take next: on the wide path more, as it has more
    /// to do at the end of a block.
    fn block(&self) -> usize {
        if self.rung == WIDE && self.patience > 0 { WIDE_BLOCK } else { BLOCK }
    }

    /// A block that began on rung `first` passed on `rung`.
    fn passed(&mut self, first: u8, rung: u8) {
        if rung > self.rung {
            self.rung = rung;
            self.patience = self.backoff;
        } else if rung < self.rung {
            self.rung = rung;
            self.backoff = 8;
        } else if first < rung {
            // The lower rungs were tried again, in vain: ask less often, so
            // that failed tries cost less than one block in a hundred.
            self.backoff = (self.backoff * 2).min(1 << 10);
            self.patience = self.backoff;
        }
    }
}

/// A block's sums that needed no rungs: by integer multiply-add, or with residues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtOnce {
    /// Of the elements of the first array, where that was asked for.
    sums: [Part; 2],
    /// Of the products.
    products: [Part; 3],
    /// What is in neither.
    left_out: LeftOut,
}

/// Terms and the quick rung that suits them.
pub(crate) trait Summable: Terms {
    /// The block's sum by the quickest rung, in parts.
    fn quick(_items: &[Self::Item], _top: i32, _isa: Isa) -> Option<[Part; 2]> {
        None
    }
    /// The block's sum without rungs.
    fn at_once(
        _slices: Slices<'_, Self::Item>,
        _tuner: &mut FixedTuner,
        _isa: Isa,
    ) -> Option<AtOnce> {
        None
    }
    /// The block's sum by bins for every exponent, counted into `acc`, if the block is
    /// long enough for it.
    fn bins<F: Format>(
        acc: &mut Superacc<F>,
        slices: Slices<'_, Self::Item>,
        isa: Isa,
    ) -> Option<()>;
    /// Counts terms of elements that are no numbers, of one array.
    fn count_specials<F: Format>(acc: &mut Superacc<F>, specials: Specials) {
        // Of magnitudes and squares.
        acc.nans += specials.nans;
        acc.pos_infs += specials.positive + specials.negative;
    }
    /// Absorbs one term by its bits.
    fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: Self::Item, other: Self::Item);
    /// An upper bound of `log2` of the sum of terms that a lane of the quick
    /// rung adds, over the largest term.
    const QUICK_GROWTH: i32 = 0;
    /// Whether the quick rung holds all finite terms: nothing else is compiled then.
    const QUICK_IS_ALL: bool = false;
}

macro_rules! elements {
    ($t:ty, $growth:expr, $all:literal, |$items:ident, $top:ident, $isa:ident| $quick:expr) => {
        impl<const ABS: bool> Summable for Elements<$t, ABS> {
            const QUICK_GROWTH: i32 = $growth;
            const QUICK_IS_ALL: bool = $all;
            #[inline]
            fn quick($items: &[$t], $top: i32, $isa: Isa) -> Option<[Part; 2]> {
                $quick
            }
            fn bins<F: Format>(
                acc: &mut Superacc<F>,
                slices: Slices<'_, $t>,
                isa: Isa,
            ) -> Option<()> {
                element_bins(acc, slices.items(), ABS, isa)
            }
            fn count_specials<F: Format>(acc: &mut Superacc<F>, specials: Specials) {
                acc.nans += specials.nans;
                acc.pos_infs += specials.positive + if ABS { specials.negative } else { 0 };
                acc.neg_infs += if ABS { 0 } else { specials.negative };
            }
            #[inline(always)]
            fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: $t, _: $t) {
                if ABS { acc.absorb_abs(item) } else { acc.absorb(item) }
            }
        }
    };
}
elements!(f64, 0, false, |items, top, _isa| quick_f64(items, top, ABS));
elements!(f32, range::K_BITS, false, |items, top, isa| {
    let window = Window::below(top, 2, false)?;
    let sums = dispatch(isa, RangeSum::<f32, ABS> { items, window })?;
    Some([0, 1].map(|level| (i128::from(sums[level]), window.unit(level))))
});
elements!(bf16, halves::K_BITS, false, |items, top, isa| {
    let window = Window::below(top - bf16::SCALE, 2, false)?;
    let sums = dispatch(isa, BriefSum::<ABS> { items, window })?;
    Some([0, 1].map(|level| (i128::from(sums[level]), window.unit(level) + bf16::SCALE)))
});
elements!(f16, 0, true, |items, _top, isa| {
    let sum = dispatch(isa, NarrowSum::<ABS> { items })?;
    Some([(i128::from(sum), -24), (0, -24)])
});

macro_rules! product {
    ($($t:ty, $at_once:ident, $squares:ident, $bins:ident;)*) => {$(
        impl<const P: bool> Summable for Product<$t, P> {
            #[inline]
            fn quick(items: &[$t], top: i32, isa: Isa) -> Option<[Part; 2]> {
                if P { None } else { $squares(items, top, isa) }
            }
            #[inline]
            fn at_once(
                slices: Slices<'_, $t>,
                tuner: &mut FixedTuner,
                isa: Isa,
            ) -> Option<AtOnce> {
                $at_once(slices, P, tuner, isa)
            }
            fn bins<F: Format>(
                acc: &mut Superacc<F>,
                slices: Slices<'_, $t>,
                isa: Isa,
            ) -> Option<()> {
                $bins(acc, slices, P, isa)
            }
            #[inline(always)]
            fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: $t, other: $t) {
                acc.absorb_product(item, other);
            }
        }
    )*};
}
product! {
    // Their products are exact in f64 as they are.
    f16, not_at_once, quick_squares, no_bins;
    bf16, not_at_once, quick_squares, product_bins;
    f32, not_at_once, quick_squares, product_bins;
    f64, products_at_once, no_squares, product_bins;
}

#[cfg(unoptimised)]
fn quick_f64(items: &[f64], top: i32, absolute: bool) -> Option<[Part; 2]> {
    let window = Window::below(top, 2, false)?;
    let sums = unoptimised::sum(items, window, absolute)?;
    Some([0, 1].map(|level| (i128::from(sums[level]), window.unit(level))))
}

/// The window of two levels is the quickest rung of f64.
#[cfg(not(unoptimised))]
#[inline(always)]
fn quick_f64(_: &[f64], _: i32, _: bool) -> Option<[Part; 2]> {
    None
}

fn no_squares<T>(_: &[T], _: i32, _: Isa) -> Option<[Part; 2]> {
    None
}

/// The sum of the squares of elements, which are below `2^top`.
fn quick_squares<T: Word>(items: &[T], top: i32, isa: Isa) -> Option<[Part; 2]> {
    let cut = Cut::below::<T>(top)?;
    dispatch(isa, SquareRange { items, cut }).map(|sums| cut.parts(sums))
}

/// The sum of elements, or of their absolute values, by bins, if there are enough of them.
fn element_bins<T: Binned, F: Format>(
    acc: &mut Superacc<F>,
    items: &[T],
    absolute: bool,
    isa: Isa,
) -> Option<()> {
    (items.len() >= T::WORTH).then(|| bins::absorb(acc, items, absolute, isa))
}

fn no_bins<T, F: Format>(_: &mut Superacc<F>, _: Slices<'_, T>, _: bool, _: Isa) -> Option<()> {
    None
}

/// The sum of products by bins, if there are enough of them.
fn product_bins<T: BinnedProduct, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T>,
    paired: bool,
    isa: Isa,
) -> Option<()> {
    (slices.len() >= T::FROM).then(|| product_bins::absorb(acc, slices, paired, isa))
}

fn not_at_once<T>(_: Slices<'_, T>, _: bool, _: &mut FixedTuner, _: Isa) -> Option<AtOnce> {
    None
}

/// The sum of the products of two slices, or of one slice's squares.
fn products_at_once(
    slices: Slices<'_, f64>,
    paired: bool,
    tuner: &mut FixedTuner,
    isa: Isa,
) -> Option<AtOnce> {
    with_residues(slices, paired, false, tuner, isa)
}

/// The sums of elements and of their squares.
fn moments_at_once<T: Squared>(items: &[T], tuner: &mut FixedTuner, isa: Isa) -> Option<AtOnce> {
    if !isa.has_madd52() {
        let items = bytemuck::try_cast_slice(items).ok().filter(|_| T::DTYPE == DType::F64)?;
        return with_residues(Slices::one(items), false, true, tuner, isa);
    }
    let look = || largest_exponent(items, isa).map(|top| [top; 2]);
    let moments = tuner.attempt(look, |[top, _]| {
        let window = FixedWindow::below(top)?;
        match T::LIMBS {
            1 => dispatch52(isa, MomentsKernel::<T, 1> { items, window }).flatten(),
            _ => dispatch52(isa, MomentsKernel::<T, 2> { items, window }).flatten(),
        }
    })?;
    Some(AtOnce { sums: moments.sums, products: moments.squares, left_out: LeftOut::default() })
}

/// The sums of products, or of one slice's squares, and of the elements where these are
/// asked for.
fn with_residues(
    slices: Slices<'_, f64>,
    paired: bool,
    with_sum: bool,
    tuner: &mut FixedTuner,
    isa: Isa,
) -> Option<AtOnce> {
    if !isa.has_fma() {
        return None;
    }
    // A tile that a top is too low for is left out: less headroom than that of windows, which fail
    // as a whole, lets smaller elements pass.
    let top = |items| largest_exponent(items, isa).map(|top| top - 1);
    let look = || {
        let first = top(slices.items())?;
        Some([first, if paired { top(slices.others())? } else { first }])
    };
    let tiled = tuner.attempt(look, |tops| {
        let cuts = [residues::Cut::below(tops[0])?, residues::Cut::below(tops[1])?];
        match (paired, with_sum) {
            (true, _) => dispatch(isa, ResidueSum::<true, false> { slices, cuts }),
            (false, true) => dispatch(isa, ResidueSum::<false, true> { slices, cuts }),
            (false, false) => dispatch(isa, ResidueSum::<false, false> { slices, cuts }),
        }
    })?;
    let [a, b] = tiled.products;
    let products = [a, b, (0, 0)];
    Some(AtOnce { sums: [tiled.sum, (0, 0)], products, left_out: tiled.left_out })
}

/// Adds the terms of the elements to `acc`, exactly.
pub(crate) fn absorb<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    let usual = fpenv::is_usual();
    let mut rest = slices;
    while !rest.is_empty() {
        let (block, after) = rest.split_at(tuner.block());
        rest = after;
        if usual && tuner.odd {
            absorb_specials::<T, F>(acc, block, tuner, isa);
        } else if usual {
            absorb_block::<T, F>(acc, block, tuner, isa);
        } else if T::bins(acc, block, isa).is_none() {
            // Bins are integers, which rounding modes do not touch.
            one_by_one::<T, F>(acc, block);
        }
    }
}

/// Adds elements to `sum` and their squares to `squares`, exactly.
pub(crate) fn absorb_moments<T: Squared, F: Format, G: Format>(
    sum: &mut Superacc<F>,
    squares: &mut Superacc<G>,
    items: &[T],
    tuners: &mut [Tuner; 2],
    isa: Isa,
) where
    Plain<T>: Summable<Item = T>,
    T::Squares: Summable<Item = T>,
{
    let mut clean = Vec::new();
    for mut items in items.chunks(BLOCK) {
        if fpenv::is_usual() {
            if tuners.iter().any(|tuner| tuner.odd) {
                clean.resize(items.len(), bytemuck::Zeroable::zeroed());
                let specials = specials::without(items, &mut clean, isa);
                Plain::<T>::count_specials(sum, specials);
                T::Squares::count_specials(squares, specials);
                let odd = specials != Specials::default();
                tuners.iter_mut().for_each(|tuner| tuner.odd = odd);
                items = &clean;
            }
            if let Some(moments) = moments_at_once(items, &mut tuners[0].fixed, isa) {
                deposit(sum, moments.sums);
                deposit(squares, moments.products);
                let mut absorbed = items.len();
                for range in moments.left_out.ranges(items.len()) {
                    absorbed -= range.len();
                    let rest = Slices::one(&items[range]);
                    climb::<Plain<T>, F>(sum, rest, &mut tuners[0], isa);
                    climb::<T::Squares, G>(squares, rest, &mut tuners[1], isa);
                }
                sum.count += absorbed as i64;
                squares.count += absorbed as i64;
                continue;
            }
            if both_at_once(sum, squares, items, tuners, isa).is_some() {
                continue;
            }
        }
        // One after the other over a block that stays in the cache.
        absorb::<Plain<T>, F>(sum, Slices::one(items), &mut tuners[0], isa);
        absorb::<T::Squares, G>(squares, Slices::one(items), &mut tuners[1], isa);
    }
}

fn deposit<F: Format>(acc: &mut Superacc<F>, parts: impl IntoIterator<Item = Part>) {
    parts.into_iter().for_each(|(value, exponent)| acc.deposit_wide(value, exponent));
}

fn both_at_once<T: Squared, F: Format, G: Format>(
    sum: &mut Superacc<F>,
    squares: &mut Superacc<G>,
    items: &[T],
    tuners: &[Tuner; 2],
    isa: Isa,
) -> Option<()> {
    // With few registers the two passes over the cache are faster than one.
    if !isa.has_many_registers() || tuners.iter().any(|t| t.rung > WINDOW_2 || t.top == i32::MIN) {
        return None;
    }
    let windows = [
        Window::below(tuners[0].top, 2, false)?,
        Window::below(tuners[1].top, 2, T::Squares::SPLIT)?,
    ];
    let [plain, square] = windows;
    if T::Squares::SPLIT && plain.unit(1) < moments::LOWEST_UNIT {
        return None;
    }
    let totals = dispatch(isa, MomentsSum { items, plain, squares: square })?;
    for (level, (&a, &b)) in totals[0].iter().zip(&totals[1]).enumerate() {
        sum.deposit_wide(i128::from(a), plain.unit(level));
        squares.deposit_wide(i128::from(b), square.unit(level));
    }
    sum.count += items.len() as i64;
    squares.count += items.len() as i64;
    Some(())
}

fn one_by_one<T: Summable, F: Format>(acc: &mut Superacc<F>, slices: Slices<'_, T::Item>) {
    for (&item, &other) in slices.items().iter().zip(slices.others()) {
        T::absorb_one(acc, item, other);
    }
}

fn absorb_block<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    let Some(sums) = T::at_once(slices, &mut tuner.fixed, isa) else {
        return climb::<T, F>(acc, slices, tuner, isa);
    };
    deposit(acc, sums.products);
    let mut absorbed = slices.len();
    for range in sums.left_out.ranges(slices.len()) {
        absorbed -= range.len();
        climb::<T, F>(acc, slices.range(range), tuner, isa);
    }
    acc.count += absorbed as i64;
}

/// Adds a block's terms on the lowest rung that certifies them.
fn climb<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    let first = tuner.begin();
    if tuner.top == i32::MIN {
        tuner.top = top_of::<T>(slices, isa).unwrap_or(0) + HEADROOM;
    }
    if try_windows::<T, F>(acc, slices, tuner, first, isa) {
        return;
    }
    if const { T::QUICK_IS_ALL } {
        return absorb_specials::<T, F>(acc, slices, tuner, isa);
    }
    // Look at the block itself before going further up.
    if first < WIDE {
        let Some(top) = top_of::<T>(slices, isa) else {
            return absorb_specials::<T, F>(acc, slices, tuner, isa);
        };
        let top = top + HEADROOM;
        if top != core::mem::replace(&mut tuner.top, top)
            && try_windows::<T, F>(acc, slices, tuner, first, isa)
        {
            return;
        }
    }
    if T::bins(acc, slices, isa).is_some() {
        return tuner.passed(first, WIDE);
    }
    match dispatch(isa, WideSum::<T, F> { slices, acc }) {
        Outcome::Exact => acc.count += slices.len() as i64,
        Outcome::Special => {
            return absorb_specials::<T, F>(acc, slices, tuner, isa);
        }
        Outcome::Inexact if top_of::<T>(slices, isa).is_none() => {
            return absorb_specials::<T, F>(acc, slices, tuner, isa);
        }
        Outcome::Inexact => one_by_one::<T, F>(acc, slices),
    }
    tuner.passed(first, WIDE);
}

/// Tries the rungs from `first` below the wide path; says whether one passed.
fn try_windows<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    first: u8,
    isa: Isa,
) -> bool {
    fn window<T: Summable, F: Format, const L: usize>(
        acc: &mut Superacc<F>,
        slices: Slices<'_, T::Item>,
        top: i32,
        isa: Isa,
    ) -> Option<()> {
        let window = Window::below(top, L as i32, T::SPLIT)?;
        let sums = dispatch(isa, WindowSum::<T, L> { slices, window })?;
        for (l, sum) in sums.into_iter().enumerate() {
            acc.deposit_wide(i128::from(sum), window.unit(l));
        }
        Some(())
    }
    let top = tuner.top;
    let rung = if first == QUICK
        && let Some(parts) = T::quick(slices.items(), top + T::QUICK_GROWTH, isa)
    {
        deposit(acc, parts);
        QUICK
    } else if const { T::QUICK_IS_ALL } {
        return false;
    } else if first <= WINDOW_2 && window::<T, F, 2>(acc, slices, top, isa).is_some() {
        WINDOW_2
    } else if first <= WINDOW_4 && window::<T, F, 4>(acc, slices, top, isa).is_some() {
        WINDOW_4
    } else {
        return false;
    };
    acc.count += slices.len() as i64;
    tuner.passed(first, rung);
    true
}

/// The least `t` with every term below `2^t`; `None` if an element is an
/// infinity or a NaN.
fn top_of<T: Summable>(slices: Slices<'_, T::Item>, isa: Isa) -> Option<i32> {
    let a = largest_exponent(slices.items(), isa)?;
    Some(if T::PAIRED {
        a + largest_exponent(slices.others(), isa)?
    } else if T::IS_PRODUCT {
        2 * a
    } else {
        a
    })
}

/// The least `t` with every element below `2^t`.
pub(crate) fn largest_exponent<E: Element>(items: &[E], isa: Isa) -> Option<i32> {
    match E::from_bits(dispatch(isa, LargestMagnitude { items })).parts() {
        Parts::Finite { magnitude, exponent, .. } => {
            Some(exponent + 64 - magnitude.leading_zeros() as i32)
        }
        _ => None,
    }
}

/// The bits of the largest magnitude: without the sign, bits order as values do.
struct LargestMagnitude<'a, E> {
    items: &'a [E],
}

impl<E: Element> Kernel for LargestMagnitude<'_, E> {
    type Out = u64;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> u64 {
        // In the type's own width, and with several maxima, for the sake of
        // the vectoriser.
        const LANES: usize = 32;
        let magnitude = |x: &E| x.without_sign();
        let mut most = [<E::Key as Key>::LEAST; LANES];
        let mut rows = self.items.chunks_exact(LANES);
        for row in &mut rows {
            for (m, x) in most.iter_mut().zip(row) {
                *m = (*m).max(magnitude(x));
            }
        }
        let rest = rows.remainder().iter().map(magnitude);
        most.into_iter().chain(rest).max().map_or(0, Key::to_bits64)
    }
}

thread_local! {
    /// Room for the copies of a block, kept for the next one: blocks may be of a few elements.
    static COPIES: Cell<[Vec<u64>; 2]> = const { Cell::new([const { Vec::new() }; 2]) };
}

/// A block that may have infinities or NaNs: they are counted, and the rest is summed with zeros in
/// their places.
#[cold]
fn absorb_specials<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    let zero = <T::Item as bytemuck::Zeroable>::zeroed();
    let mut copies = COPIES.take();
    let n = slices.len();
    let [first, second] = copies.each_mut().map(|copy| {
        let copy: &mut [T::Item] = bytemuck::cast_slice_mut(room(copy, n * size_of::<T::Item>()));
        copy
    });
    if !T::PAIRED {
        let found = specials::without(slices.items(), first, isa);
        T::count_specials(acc, found);
        tuner.odd = found != Specials::default();
        absorb_block::<T, F>(acc, Slices::one(first), tuner, isa);
        COPIES.set(copies);
        return;
    }
    tuner.odd = false;
    for (i, (&x, &y)) in slices.items().iter().zip(slices.others()).enumerate() {
        let is_special = |x: T::Item| !matches!(x.parts(), Parts::Finite { .. });
        [first[i], second[i]] = [x, y];
        if is_special(x) || is_special(y) {
            T::absorb_one(acc, x, y);
            // The zero that takes its place must not count.
            acc.count -= 1;
            [first[i], second[i]] = [zero; 2];
            tuner.odd = true;
        }
    }
    if let Ok(clean) = Slices::pair(first, &*second) {
        absorb_block::<T, F>(acc, clean, tuner, isa);
    }
    COPIES.set(copies);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes blocks on the rungs that `needs` gives; says where each began.
    fn begins(tuner: &mut Tuner, needs: impl IntoIterator<Item = u8>) -> Vec<u8> {
        let mut block = |need: u8| {
            let first = tuner.begin();
            tuner.passed(first, need.max(first));
            first
        };
        needs.into_iter().map(&mut block).collect()
    }

    #[test]
    fn one_hard_block_is_soon_forgotten() {
        let mut tuner = Tuner::default();
        let firsts = begins(&mut tuner, [WINDOW_2].into_iter().chain([QUICK; 20]));
        assert_eq!(firsts[..10], [0, 1, 1, 1, 1, 1, 1, 1, 1, QUICK]);
        assert_eq!(firsts[10..], [QUICK; 11]);
        assert_eq!(tuner.backoff, 8);
    }

    #[test]
    fn hard_data_are_tried_less_and_less_often() {
        let mut tuner = Tuner::default();
        let firsts = begins(&mut tuner, [WIDE; 100_000]);
        let tries = firsts.iter().filter(|&&first| first == QUICK).count();
        assert!((50..=120).contains(&tries), "{tries}");
        assert_eq!(tuner.backoff, 1 << 10);
    }
}
