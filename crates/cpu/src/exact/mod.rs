//! Exact floating-point sums at the speed of memory.
//!
//! A block of elements whose magnitudes lie close together is summed with residues ([`residues`]). What does not lie together, a block or
//! a tile of it, goes to a bin for every exponent ([`bins`] and [`product_bins`]), and a few elements one by one into the
//! superaccumulator. Both hold everything.
//!
//! These differ in speed only: each hands over the exact sum. Infinities and NaNs are counted
//! beside ([`specials`]).

mod bins;
pub(crate) mod odd;
mod product_bins;
mod residues;
pub(crate) mod short;
mod specials;
mod terms;
#[cfg(any(unoptimised, all(test, x86_vectors)))]
mod unoptimised;

pub(crate) use residues::{Near, Tiled};
pub(crate) use terms::{Elements, Plain, Product, Widen};

use crate::isa::Isa;
use crate::pack::room;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use bins::Binned;
use core::cell::Cell;
use product_bins::BinnedProduct;
use residues::{Part, ResidueSum};
use specials::Specials;
use terms::{Moments, Terms};
use warpfold_core::element::{Element, Key, Parts, bf16, f16};
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::fpenv;

/// Elements in a block: enough to make a block's fixed cost small, few enough
/// to stay in the L2 cache for a second pass.
pub(crate) const BLOCK: usize = 8192;

/// The same for bins: two fillings of those of f64, or one of those of shorter types.
const WIDE_BLOCK: usize = 15 * BLOCK;

/// Binades between the block's largest element and the top that is assumed of the next ones, so that
/// a slowly growing series does not fail at every block. Small elements have as many binades less.
const HEADROOM: i32 = 1;

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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tuner {
    /// Elements of recent blocks, of the first and of the second array, lie
    /// below `2^top`.
    tops: Option<[i32; 2]>,
    /// Blocks until residues are tried again.
    patience: u32,
    /// What `patience` starts from after the next failure.
    backoff: u32,
    /// Whether the last block had infinities or NaNs: then the next one is copied without them at
    /// once.
    odd: bool,
}

/// What became of a block.
enum Tried {
    /// It was summed, but for what is left out.
    Near(Tiled),
    /// Its elements do not lie together.
    Wide,
    /// It has infinities or NaNs.
    Special,
}

impl Tuner {
    /// How many elements to take next: for bins more, as they have more to do at the end of a block.
    fn block(&self) -> usize {
        if self.patience > 0 { WIDE_BLOCK } else { BLOCK }
    }

    /// Tries the tops of recent blocks, then those of this block.
    fn attempt(
        &mut self,
        run: &dyn Fn([i32; 2]) -> Option<Tiled>,
        tops_of: &dyn Fn() -> Option<[i32; 2]>,
    ) -> Tried {
        if self.patience > 0 {
            self.patience -= 1;
            return Tried::Wide;
        }
        let known = self.tops;
        if let Some(tiled) = known.and_then(run) {
            self.backoff = 0;
            return Tried::Near(tiled);
        }
        let Some(tops) = tops_of() else { return Tried::Special };
        let tops = [tops[0] + HEADROOM, tops[1] + HEADROOM];
        if known != Some(tops) {
            self.tops = Some(tops);
            if let Some(tiled) = run(tops) {
                self.backoff = 0;
                return Tried::Near(tiled);
            }
        }
        self.backoff = (2 * self.backoff).clamp(1, 1 << 10);
        self.patience = self.backoff;
        Tried::Wide
    }
}

/// Terms, and what sums them.
pub(crate) trait Summable: Terms {
    /// The sum of a block whose elements lie below `2^top` of their array and close together.
    fn near(slices: Slices<'_, Self::Item>, tops: [i32; 2], isa: Isa) -> Option<Tiled>;
    /// The block's sum by bins for every exponent, counted into `acc`, if the block is
    /// long enough for it.
    fn bins<F: Format>(
        acc: &mut Superacc<F>,
        slices: Slices<'_, Self::Item>,
        isa: Isa,
    ) -> Option<()>;
    /// Absorbs one term by its bits.
    fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: Self::Item, other: Self::Item);
}

/// By residues, without first sums.
fn by_residues<T: Terms>(slices: Slices<'_, T::Item>, tops: [i32; 2], isa: Isa) -> Option<Tiled> {
    // The errors of products of f64 take a fused multiply-add.
    if T::PRODUCTS && T::Item::SPLIT && !isa.has_fma() {
        return None;
    }
    dispatch(isa, ResidueSum::<T, false>::below(slices, tops)?)
}

/// By residues, with first sums, which take no more of elements than products do.
fn moments<T: Near>(items: &[T], tops: [i32; 2], isa: Isa) -> Option<Tiled> {
    let one = Slices::one(items);
    if T::SPLIT {
        return by_residues::<Moments<T>>(one, tops, isa);
    }
    dispatch(isa, ResidueSum::<Moments<T>, true>::below(one, tops)?)
}

/// By residues, with first sums where elements lie close enough together for these.
fn by_first_sums<T: Terms>(slices: Slices<'_, T::Item>, tops: [i32; 2], isa: Isa) -> Option<Tiled> {
    let first = ResidueSum::<T, true>::below(slices, tops)?;
    dispatch(isa, first).or_else(|| by_residues::<T>(slices, tops, isa))
}

#[cfg(unoptimised)]
use unoptimised::near as sums_of_f64;

#[cfg(not(unoptimised))]
use by_residues as sums_of_f64;

macro_rules! summable {
    ($($t:ty, $sums:ident, $product_bins:ident;)*) => {$(
        impl<const ABS: bool> Summable for Elements<$t, ABS> {
            #[inline]
            fn near(slices: Slices<'_, $t>, tops: [i32; 2], isa: Isa) -> Option<Tiled> {
                $sums::<Self>(slices, tops, isa)
            }
            fn bins<F: Format>(
                acc: &mut Superacc<F>,
                slices: Slices<'_, $t>,
                isa: Isa,
            ) -> Option<()> {
                let enough = slices.len() >= <$t as Binned>::WORTH;
                enough.then(|| bins::absorb(acc, slices.items(), ABS, isa))
            }
            #[inline(always)]
            fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: $t, _: $t) {
                if ABS { acc.absorb_abs(item) } else { acc.absorb(item) }
            }
        }

        impl<const P: bool> Summable for Product<$t, P> {
            #[inline]
            fn near(slices: Slices<'_, $t>, tops: [i32; 2], isa: Isa) -> Option<Tiled> {
                by_residues::<Self>(slices, tops, isa)
            }
            fn bins<F: Format>(
                acc: &mut Superacc<F>,
                slices: Slices<'_, $t>,
                isa: Isa,
            ) -> Option<()> {
                $product_bins(acc, slices, P, isa)
            }
            #[inline(always)]
            fn absorb_one<F: Format>(acc: &mut Superacc<F>, item: $t, other: $t) {
                acc.absorb_product(item, other);
            }
        }
    )*};
}
summable! {
    // Residues hold all products of f16.
    f16, by_first_sums, no_bins;
    bf16, by_first_sums, product_bins;
    f32, by_first_sums, product_bins;
    f64, sums_of_f64, product_bins;
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
        } else {
            // Bins are integers, which rounding modes do not touch.
            absorb_wide::<T, F>(acc, block, isa);
        }
    }
}

/// Adds elements to `sum` and their squares to `squares`, exactly.
pub(crate) fn absorb_moments<T: Near, F: Format, G: Format>(
    sum: &mut Superacc<F>,
    squares: &mut Superacc<G>,
    items: &[T],
    tuners: &mut [Tuner; 2],
    isa: Isa,
) where
    Plain<T>: Summable<Item = T>,
    Product<T, false>: Summable<Item = T>,
{
    let mut clean = Vec::new();
    for mut items in items.chunks(BLOCK) {
        if fpenv::is_usual() {
            if tuners.iter().any(|tuner| tuner.odd) {
                clean.resize(items.len(), bytemuck::Zeroable::zeroed());
                let specials = specials::without(items, &mut clean, isa);
                specials.add_to(sum, false);
                specials.add_to(squares, true);
                let odd = specials != Specials::default();
                tuners.iter_mut().for_each(|tuner| tuner.odd = odd);
                items = &clean;
            }
            let run = |tops| moments(items, tops, isa);
            let one = Slices::one(items);
            match tuners[1].attempt(&run, &|| tops_of::<Moments<T>>(one, isa)) {
                Tried::Near(tiled) => {
                    deposit(sum, &[tiled.sum]);
                    deposit(squares, &tiled.products);
                    let mut absorbed = items.len();
                    for range in tiled.left_out.ranges(items.len()) {
                        absorbed -= range.len();
                        let rest = one.range(range);
                        absorb_block::<Plain<T>, F>(sum, rest, &mut tuners[0], isa);
                        absorb_left_out::<Product<T, false>, G>(squares, rest, &mut tuners[1], isa);
                    }
                    sum.count += absorbed as i64;
                    squares.count += absorbed as i64;
                    continue;
                }
                // The elements alone may lie together.
                Tried::Wide => {
                    absorb::<Plain<T>, F>(sum, one, &mut tuners[0], isa);
                    absorb_wide::<Product<T, false>, G>(squares, one, isa);
                    continue;
                }
                Tried::Special => {}
            }
        }
        // One after the other over a block that stays in the cache.
        absorb::<Plain<T>, F>(sum, Slices::one(items), &mut tuners[0], isa);
        absorb::<Product<T, false>, G>(squares, Slices::one(items), &mut tuners[1], isa);
    }
}

fn deposit<F: Format>(acc: &mut Superacc<F>, parts: &[Part]) {
    parts.iter().for_each(|&(value, exponent)| acc.deposit_wide(value, exponent));
}

impl Tiled {
    /// Adds what was asked for, which is one of both: the other is 0.
    fn deposit<F: Format>(&self, acc: &mut Superacc<F>) {
        deposit(acc, &self.products);
        deposit(acc, &[self.sum]);
    }
}

fn absorb_block<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    let run = |tops| T::near(slices, tops, isa);
    match tuner.attempt(&run, &|| tops_of::<T>(slices, isa)) {
        Tried::Near(tiled) => {
            tiled.deposit(acc);
            let mut absorbed = slices.len();
            for range in tiled.left_out.ranges(slices.len()) {
                absorbed -= range.len();
                absorb_left_out::<T, F>(acc, slices.range(range), tuner, isa);
            }
            acc.count += absorbed as i64;
        }
        Tried::Wide => absorb_wide::<T, F>(acc, slices, isa),
        Tried::Special => absorb_specials::<T, F>(acc, slices, tuner, isa),
    }
}

/// Adds the terms of a tile that does not lie together: if most of its elements do, the others one by one.
fn absorb_left_out<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    tuner: &mut Tuner,
    isa: Isa,
) {
    /// One element in so many is added alone, which takes some fifty times as long.
    const MOST: usize = 32;
    let mut without_others = |tops| {
        let lies = residues::lying::<T>(tops)?;
        with_copies(slices.len(), |copies| {
            let apart = take_apart::<T>(slices, copies, lies, slices.len() / MOST)?;
            let clean = copies.slices(T::PAIRED);
            let tiled = T::near(clean, tops, isa).filter(|tiled| tiled.left_out.is_empty())?;
            tiled.deposit(acc);
            absorb_ones::<T, F>(acc, slices, &apart);
            acc.count += (clean.len() - apart.len()) as i64;
            Some(())
        })
    };
    if tuner.tops.and_then(&mut without_others).is_some() {
        return;
    }
    if tops_of::<T>(slices, isa).is_none() {
        absorb_specials::<T, F>(acc, slices, tuner, isa);
    } else {
        absorb_wide::<T, F>(acc, slices, isa);
    }
}

/// Adds any terms, in any floating-point environment.
fn absorb_wide<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    isa: Isa,
) {
    if T::bins(acc, slices, isa).is_none() {
        for (&item, &other) in slices.items().iter().zip(slices.others()) {
            T::absorb_one(acc, item, other);
        }
    }
}

/// The least `t` of each array with every element below `2^t`; `None` if one is an infinity or a NaN.
fn tops_of<T: Terms>(slices: Slices<'_, T::Item>, isa: Isa) -> Option<[i32; 2]> {
    let first = largest_exponent(slices.items(), isa)?;
    let second = if T::PAIRED { largest_exponent(slices.others(), isa)? } else { first };
    Some([first, second])
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
        let mut most = [<E::Key as Key>::LEAST; LANES];
        let (rows, rest) = self.items.as_chunks::<LANES>();
        for row in rows {
            for i in 0..LANES {
                most[i] = most[i].max(row[i].without_sign());
            }
        }
        for (most, x) in most.iter_mut().zip(rest) {
            *most = (*most).max(x.without_sign());
        }
        let mut largest = <E::Key as Key>::LEAST;
        for &most in &most {
            largest = largest.max(most);
        }
        largest.to_bits64()
    }
}

thread_local! {
    /// Room for the copies of a block, kept for the next one: blocks may be of a few elements.
    static COPIES: Cell<[Vec<u64>; 2]> = const { Cell::new([const { Vec::new() }; 2]) };
}

/// Copies of the elements of a block.
struct Copies<'a, T>([&'a mut [T]; 2]);

impl<T> Copies<'_, T> {
    fn slices(&self, paired: bool) -> Slices<'_, T> {
        let [first, second] = &self.0;
        let one = Slices::one(first);
        if paired { Slices::pair(first, second).unwrap_or(one) } else { one }
    }
}

/// Room for as many elements.
fn with_copies<T: Element, R>(len: usize, work: impl FnOnce(&mut Copies<'_, T>) -> R) -> R {
    let mut rooms = COPIES.take();
    let [first, second] = &mut rooms;
    let bytes = len * size_of::<T>();
    let (first, second) = (room(first, bytes), room(second, bytes));
    let copies = [bytemuck::cast_slice_mut(first), bytemuck::cast_slice_mut(second)];
    let result = work(&mut Copies(copies));
    COPIES.set(rooms);
    result
}

/// Copies a block with zeros in place of what does not lie where it should, and says which that is, unless
/// it is more than `most`.
fn take_apart<T: Terms>(
    slices: Slices<'_, T::Item>,
    copies: &mut Copies<'_, T::Item>,
    lies: impl Fn(T::Item, T::Item) -> bool,
    most: usize,
) -> Option<Vec<usize>> {
    let zero = <T::Item as bytemuck::Zeroable>::zeroed();
    let [first, second] = &mut copies.0;
    let pairs = slices.items().iter().zip(slices.others());
    let mut apart = Vec::new();
    for (i, ((&x, &y), (to, other))) in pairs.zip(first.iter_mut().zip(&mut **second)).enumerate() {
        [*to, *other] = [x, y];
        if !lies(x, y) {
            if apart.len() == most {
                return None;
            }
            [*to, *other] = [zero; 2];
            apart.push(i);
        }
    }
    Some(apart)
}

/// Adds the terms of some elements.
fn absorb_ones<T: Summable, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T::Item>,
    places: &[usize],
) {
    for &i in places {
        T::absorb_one(acc, slices.items()[i], slices.others()[i]);
    }
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
    with_copies(slices.len(), |copies| {
        tuner.odd = if T::PAIRED {
            let is_number = |x: T::Item| matches!(x.parts(), Parts::Finite { .. });
            let lies = |x, y| is_number(x) && is_number(y);
            let apart = take_apart::<T>(slices, copies, lies, usize::MAX).unwrap_or_default();
            absorb_ones::<T, F>(acc, slices, &apart);
            // The zeros that take their places must not count.
            acc.count -= apart.len() as i64;
            !apart.is_empty()
        } else {
            let found = specials::without(slices.items(), copies.0[0], isa);
            // Squares have no sign.
            found.add_to(acc, T::ABSOLUTE || T::PRODUCTS);
            found != Specials::default()
        };
        absorb_block::<T, F>(acc, copies.slices(T::PAIRED), tuner, isa);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_repeated_ever_less_often() {
        let mut tuner = Tuner::default();
        let tries = Cell::new(0);
        let (slices, isa) = (Slices::one(&[1.0f64]), Isa::best());
        let run = |_: [i32; 2]| {
            tries.set(tries.get() + 1);
            None
        };
        for _ in 0..10_000 {
            let tried = tuner.attempt(&run, &|| tops_of::<Plain<f64>>(slices, isa));
            assert!(matches!(tried, Tried::Wide));
        }
        assert!(tries.get() < 50, "{}", tries.get());
        // And forgotten after a success.
        tuner.patience = 0;
        let near = |tops| Plain::<f64>::near(slices, tops, isa);
        let tried = tuner.attempt(&near, &|| tops_of::<Plain<f64>>(slices, isa));
        assert!(matches!(tried, Tried::Near(_)));
        assert_eq!(tuner.backoff, 0);
    }
}
