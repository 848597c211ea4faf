//! The wide path: sums of f64 terms of any exponent, with integers, in bins.
//!
//! A term is `s * 2^(e - 1075)` with `|s| < 2^53` and a biased exponent `e`.
//! It goes, shifted left by `e mod 8` to at most 60 bits, into bin `e / 8`,
//! which adds the low 30 bits and the rest apart. 2^31 terms fit a bin: each
//! adds less than 2^31 to a 64-bit half. It cannot fail for finite terms.

use super::terms::Terms;
use crate::simd::{Kernel, Simd};
use crate::slices::Slices;
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::prefetch;

const BINS: usize = 256;
const LOW_BITS: u32 = 30;
/// Terms taken between the loads and the bins.
const BUFFER: usize = 256;

/// One set of bins. Two are used in turn, so that neighbours of the same
/// exponent do not wait for each other's store.
type Bins = [[i64; 2]; BINS];

/// The outcome of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was added.
    Exact,
    /// A term is an infinity or a NaN.
    Special,
    /// A product is too small or too large for its bits to be held by two
    /// f64, or is a NaN.
    Inexact,
}

/// The biased exponent of infinities and NaNs.
const SPECIAL: u64 = 0x7ff;

/// Sums terms whose exponents may lie anywhere.
pub(super) struct WideSum<'a, T: Terms, F: Format> {
    /// The elements.
    pub(super) slices: Slices<'a, T::Item>,
    /// Where the sum goes.
    pub(super) acc: &'a mut Superacc<F>,
}

/// Terms taken apart: the bin of each and what it adds to the bin's halves.
struct Staged {
    bins: [u32; BUFFER],
    halves: [[i64; 2]; BUFFER],
    /// The largest biased exponent of all terms so far.
    largest: u64,
}

impl Staged {
    const EMPTY: Staged = Staged { bins: [0; BUFFER], halves: [[0; 2]; BUFFER], largest: 0 };

    /// Takes terms apart, many at a time: this loop has no branches and no
    /// dependences.
    #[inline(always)]
    fn stage(&mut self, terms: &[f64; BUFFER]) {
        let mut largest = 0;
        let places = self.bins.iter_mut().zip(&mut self.halves);
        for (term, (bin, halves)) in terms.iter().zip(places) {
            let bits = term.to_bits();
            let exponent = (bits >> 52) & 0x7ff;
            largest = largest.max(exponent);
            let fraction = bits & ((1 << 52) - 1);
            // A subnormal has no hidden bit and the weight of exponent 1.
            let normal = u64::from(exponent != 0);
            let biased = exponent + (1 - normal);
            let magnitude = ((fraction | (normal << 52)) << (biased % 8)).cast_signed();
            let sign = bits.cast_signed() >> 63;
            let value = (magnitude ^ sign) - sign;
            *bin = (biased / 8) as u32;
            *halves = [value & ((1 << LOW_BITS) - 1), value >> LOW_BITS];
        }
        self.largest = self.largest.max(largest);
    }

    /// Drops the terms into their bins, even and odd ones into different sets.
    #[inline(always)]
    fn drop_into(&self, sets: &mut [Bins; 2]) {
        for i in 0..BUFFER {
            let bin = &mut sets[i % 2][self.bins[i] as usize % BINS];
            let [low, high] = self.halves[i];
            *bin = [bin[0] + low, bin[1] + high];
        }
    }
}

fn empty_into<F: Format>(bins: &Bins, acc: &mut Superacc<F>) {
    for (i, [low, high]) in bins.iter().enumerate() {
        if (*low, *high) != (0, 0) {
            let exponent = 8 * i as i32 - 1075;
            let value = i128::from(*low) + (i128::from(*high) << LOW_BITS);
            acc.deposit_wide(value, exponent);
        }
    }
}

impl<T: Terms, F: Format> Kernel for WideSum<'_, T, F> {
    /// The outcome; unless it is [`Exact`](Outcome::Exact), nothing was added to the
    /// sum.
    type Out = Outcome;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> Outcome {
        let mut bins = [[[0i64; 2]; BINS]; 2];
        let mut terms = [[0f64; BUFFER]; 2];
        let mut staged = Staged::EMPTY;
        let step = 2 * S::LANES;
        let mut padded;
        let mut at = 0;
        let (items, others) = (self.slices.items(), self.slices.others());
        while at < items.len() {
            let count = (items.len() - at).min(BUFFER);
            let mut filled = 0;
            while filled < count {
                let left = count - filled;
                let (p, q) = if left >= step {
                    let row = &items[at + filled..at + filled + step];
                    prefetch::ahead(row);
                    let paired = &others[at + filled..at + filled + step];
                    (row.as_ptr(), paired.as_ptr())
                } else {
                    padded = [[<T::Item as bytemuck::Zeroable>::zeroed(); 16]; 2];
                    padded[0][..left].copy_from_slice(&items[at + filled..at + count]);
                    if T::PAIRED {
                        padded[1][..left].copy_from_slice(&others[at + filled..at + count]);
                    }
                    (padded[0].as_ptr(), padded[1].as_ptr())
                };
                // SAFETY: `p` and `q` have `step` elements, in the slices or in
                // the padded copies; `BUFFER` is a multiple of `step`, so that
                // the stores fit.
                unsafe {
                    if T::SPLIT {
                        for (i, term) in T::load_split::<S>(p, q).into_iter().enumerate() {
                            let to = filled + i * S::LANES;
                            let [a, b] = term.factors;
                            let error = S::or_lost(term.error, term.product, a, b);
                            S::store(term.product, terms[0].as_mut_ptr().add(to));
                            S::store(error, terms[1].as_mut_ptr().add(to));
                        }
                    } else {
                        for (i, t) in T::load::<S>(p, q).into_iter().enumerate() {
                            S::store(t, terms[0].as_mut_ptr().add(filled + i * S::LANES));
                        }
                    }
                }
                filled += step;
            }
            // What is left of the last, longer, buffer must not count again.
            terms.iter_mut().for_each(|t| t[count..].fill(0.0));
            if T::SPLIT {
                // Below 2^-968 the error may be inexact, above the top the
                // product is infinite; a lost product has a NaN here.
                let exact = terms[0].iter().zip(&terms[1]).fold(true, |all, (term, error)| {
                    let size = term.to_bits() & (u64::MAX >> 1);
                    let inside = ((1023 - 968) << 52..0x7ff << 52).contains(&size);
                    all & (inside | ((size == 0) & (error.to_bits() << 1 == 0)))
                });
                if !exact {
                    return Outcome::Inexact;
                }
                staged.stage(&terms[1]);
                staged.drop_into(&mut bins);
            }
            staged.stage(&terms[0]);
            staged.drop_into(&mut bins);
            at += count;
        }
        if staged.largest == SPECIAL {
            return Outcome::Special;
        }
        for set in &bins {
            empty_into(set, self.acc);
        }
        Outcome::Exact
    }
}
