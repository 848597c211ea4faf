//! Sums of elements of any exponent, by a bin for every sign and exponent.
//!
//! The upper end of an element's bits, its sign and its biased exponent, is the
//! number of a bin, to which the bits are added as they are, and one to a count
//! above them. That is a load, a shift and an add in memory for each element, without
//! a branch, and needs no vectors. When the bins are emptied, the count
//! says how often sign and exponent are in the sum and how many hidden bits are
//! not. Infinities and NaNs have bins of their own and do not disturb the others.
//!
//! *Exact.* A bin is emptied after fewer than `2^16` adds, [`MOST`] and a few. Types of up to 32 bits
//! have bins of 64 bits: the bits add up to less than `2^(32 + 16)`, below
//! the count, which begins at bit 48 and ends below bit 64. An f64 is
//! added in two halves of 32 bits, each to 64 bits of its own, and the count is
//! above the upper one.
//!
//! Neighbours go into different sets of bins: where they have the same exponent, they do
//! not wait for each other's store.
//!
//! Source: warpfold's own; a bin for every sign and exponent is Neal's (2015), whose
//! bins have counters beside them.

use super::specials;
use super::terms::Widen;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};

use warpfold_core::element::{bf16, f16};
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::prefetch;

/// The most adds that a set of bins takes before it is emptied, but for those of an
/// incomplete row.
const MOST: usize = (1 << 16) - 2 * ROW;
/// Elements that are looked at together.
const ROW: usize = 16;
/// Where the count begins.
const COUNT: u32 = 48;

/// A float whose sum can be had from bins.
pub(crate) trait Binned: Widen {
    /// Bits of the fraction.
    const FRACTION: u32;
    /// The exponent of the unit of subnormals.
    const LOWEST: i32;
    /// A set of bins.
    type Bins: Bins;
    /// Sets that neighbours take turns with, four or one: those of f64 fill the L1 cache.
    type Sets: AsMut<[Self::Bins]>;
    /// How many these are.
    const SETS: usize;
    /// All of them empty.
    const EMPTY: Self::Sets;
    /// From how many elements on emptying the bins costs less than what they save.
    const WORTH: usize;
}

macro_rules! binned {
    ($($t:ty, $fraction:literal, $lowest:literal, $bins:ty, $sets:literal, $worth:literal;)*) => {$(
        impl Binned for $t {
            const FRACTION: u32 = $fraction;
            const LOWEST: i32 = $lowest;
            type Bins = $bins;
            type Sets = [$bins; $sets];
            const SETS: usize = $sets;
            const EMPTY: [$bins; $sets] = [<$bins as Bins>::EMPTY; $sets];
            const WORTH: usize = $worth;
        }
    )*};
}
binned! {
    f16, 10, -24, [u64; 64], 4, 256;
    bf16, 7, -133, [u64; 512], 4, 256;
    f32, 23, -149, [u64; 512], 4, 256;
    f64, 52, -1074, [[u64; 2]; 4096], 1, 1024;
}

/// What a bin has added up.
#[derive(Clone, Copy, Default)]
pub(crate) struct Content {
    /// The elements.
    count: u64,
    /// The sum of what their bits have below the word with the exponent.
    low: u64,
    /// The sum of the words with the exponent.
    high: u64,
}

/// A bin for every sign and exponent.
pub(crate) trait Bins {
    /// Empty bins.
    const EMPTY: Self;
    /// Bits below the word with the exponent.
    const LOW_BITS: u32;
    /// Adds the element at `p` to a bin, whose number is taken modulo the number of
    /// bins.
    ///
    /// # Safety
    /// See [`Simd`]; `p` is valid for reads of an element.
    unsafe fn add<S: Simd, T: Binned>(&mut self, bin: usize, p: *const T);
    /// What is in a bin.
    fn content(&self, bin: usize) -> Content;
}

impl<const N: usize> Bins for [u64; N] {
    const EMPTY: Self = [0; N];
    const LOW_BITS: u32 = 0;
    #[inline(always)]
    unsafe fn add<S: Simd, T: Binned>(&mut self, bin: usize, p: *const T) {
        // SAFETY: the caller guarantees an element.
        self[bin % N] += unsafe { (*p).bits() } + (1 << COUNT);
    }
    #[inline(always)]
    fn content(&self, bin: usize) -> Content {
        Content { count: self[bin] >> COUNT, low: 0, high: self[bin] & ((1 << COUNT) - 1) }
    }
}

impl<const N: usize> Bins for [[u64; 2]; N] {
    const EMPTY: Self = [[0; 2]; N];
    const LOW_BITS: u32 = 32;
    #[inline(always)]
    unsafe fn add<S: Simd, T: Binned>(&mut self, bin: usize, p: *const T) {
        const { assert!(size_of::<T>() == 8) };
        // SAFETY: the caller has the instructions and guarantees an element of 64 bits.
        unsafe { S::add_words(&mut self[bin % N], p.cast(), [0, 1 << COUNT]) };
    }
    #[inline(always)]
    fn content(&self, bin: usize) -> Content {
        let [low, high] = self[bin];
        Content { count: high >> COUNT, low, high: high & ((1 << COUNT) - 1) }
    }
}

/// Asks for what comes after a row, on every machine: adds in memory fill the window
/// in which a processor looks for loads, so that it does not come to the next row's in time.
#[inline(always)]
fn ask_ahead<T>(row: &[T]) {
    /// Bytes ahead.
    const AHEAD: usize = 1 << 10;
    let start: *const u8 = row.as_ptr().cast();
    for line in (0..size_of_val(row)).step_by(64) {
        prefetch::near(start.wrapping_add(AHEAD + line));
    }
}

/// Fills bins with up to [`MOST`] elements.
struct Fill<'a, T: Binned> {
    items: &'a [T],
    sets: &'a mut [T::Bins],
}

impl<T: Binned> Kernel for Fill<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let bin = |x: &T| (x.bits() >> T::FRACTION) as usize;
        // Zeros need no bin, and where most elements are zeros they would wait for each
        // other.
        let zeros = |row: &[T]| row.iter().fold(0, |any, x| any | x.bits() << 1) == 0;
        let mut rows = self.items.chunks_exact(ROW);
        // SAFETY: the caller has the instructions; references are valid for reads.
        unsafe {
            if let [a, b, c, d] = self.sets {
                for row in &mut rows {
                    ask_ahead(row);
                    if zeros(row) {
                        continue;
                    }
                    for x in row.chunks_exact(4) {
                        a.add::<S, T>(bin(&x[0]), &raw const x[0]);
                        b.add::<S, T>(bin(&x[1]), &raw const x[1]);
                        c.add::<S, T>(bin(&x[2]), &raw const x[2]);
                        d.add::<S, T>(bin(&x[3]), &raw const x[3]);
                    }
                }
            } else {
                for row in &mut rows {
                    ask_ahead(row);
                    if zeros(row) {
                        continue;
                    }
                    // Loaded again: the look at all of them has them in vectors, from
                    // which it takes longer to extract them one by one.
                    let row = core::hint::black_box(row);
                    for x in row {
                        self.sets[0].add::<S, T>(bin(x), x);
                    }
                }
            }
            for x in rows.remainder() {
                self.sets[0].add::<S, T>(bin(x), x);
            }
        }
    }
}

/// Adds elements, or their absolute values, to a sum, and counts them.
pub(super) fn absorb<T: Binned, F: Format>(
    acc: &mut Superacc<F>,
    items: &[T],
    absolute: bool,
    isa: Isa,
) {
    let mut sets = T::EMPTY;
    let sets = sets.as_mut();
    // Of one length, so that no short part is left.
    let parts = items.len().div_ceil(MOST * T::SETS);
    for part in items.chunks(items.len().div_ceil(parts.max(1)).next_multiple_of(ROW).max(1)) {
        dispatch(isa, Fill { items: part, sets });
        acc.count += part.len() as i64;
        if empty_into::<T, F>(sets, absolute, acc) {
            count_specials(part, absolute, acc, isa);
        }
    }
}

/// Empties the bins into a sum, but for those of infinities and NaNs, and says
/// whether these had anything in them.
fn empty_into<T: Binned, F: Format>(
    sets: &mut [T::Bins],
    absolute: bool,
    acc: &mut Superacc<F>,
) -> bool {
    /// Neighbouring exponents that are added before they are deposited.
    const TOGETHER: usize = 8;
    let exponents = 1usize << (8 * size_of::<T>() as u32 - 1 - T::FRACTION);
    let hidden = 1u64 << (T::FRACTION - T::Bins::LOW_BITS);
    // The sums of the low words and of the rest of the significands, of up to 2^18
    // elements of all sets: below 2^48 if there are low words, which are of one set, and
    // below 2^24 times 2^18.
    let significands = |exponent: usize, bin: usize| -> [i64; 2] {
        let mut all = Content::default();
        for set in sets.iter() {
            let Content { count, low, high } = set.content(bin);
            all.count += count;
            all.low += low;
            all.high += high;
        }
        // Sign and exponent go, the hidden bits come. Subnormals have none.
        let beside = bin as u64 - u64::from(exponent != 0);
        [all.low, all.high - all.count * beside * hidden].map(u64::cast_signed)
    };
    for first in (0..exponents - 1).step_by(TOGETHER) {
        let mut sums = [0i64; 2];
        for exponent in first..(first + TOGETHER).min(exponents - 1) {
            let [a, b] = significands(exponent, exponent);
            let [c, d] = significands(exponent, exponents + exponent);
            let sign = if absolute { 1 } else { -1 };
            // Subnormals have the weight of exponent 1. Shifted by 7 at most, 8 of these
            // stay below 2^59.
            let shift = exponent.max(1) - first.max(1);
            sums = [sums[0] + ((a + sign * c) << shift), sums[1] + ((b + sign * d) << shift)];
        }
        if sums != [0; 2] {
            let sum = i128::from(sums[0]) + (i128::from(sums[1]) << T::Bins::LOW_BITS);
            acc.deposit_wide(sum, T::LOWEST - 1 + first.max(1) as i32);
        }
    }
    let special = |bin: usize| sets.iter().any(|set| set.content(bin).count > 0);
    let specials = special(exponents - 1) || special(2 * exponents - 1);
    sets.iter_mut().for_each(|set| *set = T::Bins::EMPTY);
    specials
}

#[cold]
fn count_specials<T: Binned, F: Format>(
    items: &[T],
    absolute: bool,
    acc: &mut Superacc<F>,
    isa: Isa,
) {
    /// Elements of a copy, which stays in the first cache.
    const COPIED: usize = 2048;
    let mut clean = vec![<T as bytemuck::Zeroable>::zeroed(); items.len().min(COPIED)];
    for items in items.chunks(COPIED) {
        specials::without(items, &mut clean[..items.len()], isa).add_to(acc, absolute);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::exact::format::{F16Sum, F32Sum, F64Sum};

    /// The sum by bins on every instruction set, and element by element.
    fn check<T: Binned, F: Format>(items: &[T], note: &str) {
        for absolute in [false, true] {
            let mut expected = Superacc::<F>::new();
            for &x in items {
                if absolute { expected.absorb_abs(x) } else { expected.absorb(x) }
            }
            for isa in Isa::available() {
                let mut found = Superacc::<F>::new();
                absorb(&mut found, items, absolute, isa);
                found.canonicalise();
                expected.canonicalise();
                assert!(found == expected, "{note}, {}, {absolute}, {isa}", T::DTYPE);
            }
        }
    }

    fn every_hazard<T: Binned, F: Format>() {
        let infinity = T::from_key(T::key_range().1).bits();
        let sign = 1u64 << (8 * size_of::<T>() - 1);
        let mut random = fastrand::Rng::with_seed(3);
        let full = MOST * T::SETS;
        // One bin as full as it gets, of the largest bits that it may have.
        for n in [full - 1, full, full + 1, full + 15, 2 * full + 17] {
            for bits in [infinity - 1, (infinity - 1) | sign, 1, sign | 1, sign | infinity] {
                check::<T, F>(&vec![T::from_bits(bits); n], "one bin");
            }
        }
        // Every bin, the specials' included; rows of zeros of both signs between.
        let any: Vec<T> = (0..3 * MOST)
            .map(|i| match i / 40 % 3 {
                0 => T::from_bits(if i % 5 == 0 { sign } else { 0 }),
                _ => T::from_bits(random.u64(..) >> (64 - 8 * size_of::<T>() as u32)),
            })
            .collect();
        for n in [0, 1, 15, 16, 17, 1000, any.len()] {
            check::<T, F>(&any[..n], "random bits");
        }
        // Subnormals and the least normals, whose exponents weigh the same.
        let low: Vec<T> = (0..5000)
            .map(|_| {
                T::from_bits(random.u64(..) & ((4 << T::FRACTION) - 1) | (random.u64(..) & sign))
            })
            .collect();
        check::<T, F>(&low, "subnormals");
    }

    #[test]
    fn bins_hold_whatever_falls_into_them() {
        every_hazard::<f16, F16Sum>();
        every_hazard::<bf16, F32Sum>();
        every_hazard::<f32, F32Sum>();
        every_hazard::<f64, F64Sum>();
    }
}
