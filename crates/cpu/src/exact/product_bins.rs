//! Sums of products of elements of any exponents, by a bin for every sum of two exponents.
//!
//! An element is an integer, its significand with the hidden bit, times a power of two, and the product of two
//! elements is the product of the integers times the product of the powers. Integers of one
//! power are added in one bin. No product over- or underflows, and rounding modes do not matter.
//!
//! *Exact.* Significands of types of up to 32 bits have 24 bits, and [`MOST_NARROW`] products of 48 bits add
//! up to less than `2^63`. Those of f64 have 53 bits, and [`MOST_WIDE`] products of 106 bits add up to less
//! than `2^127`.
//!
//! Infinities and NaNs are only counted: their products are those of IEEE 754, and what an
//! infinity times 0 makes counts as infinities of both signs.
//!
//! Source: warpfold's own, after the bins of [`bins`](super::bins).

use super::bins::Binned;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use warpfold_core::element::bf16;
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::prefetch;

/// Elements that are looked at together.
const ROW: usize = 16;
/// The most products in a bin of 64 bits.
const MOST_NARROW: usize = 1 << 15;
/// The most products in a bin of 128 bits.
const MOST_WIDE: usize = 1 << 20;

/// What is in a row.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Nothing but normal numbers.
    normal: bool,
    /// Nothing but zeros.
    zeros: bool,
    /// Infinities or NaNs.
    specials: bool,
}

/// A float the products of which can be summed in bins. Those of f16 need none: residues hold all of
/// them ([`residues`](super::residues)).
pub(crate) trait BinnedProduct: Binned {
    /// A bin.
    type Bin: Copy + Into<i128> + 'static;
    /// All bins, set after set: neighbours take turns with the sets.
    type All: AsMut<[Self::Bin]>;
    /// All of them empty.
    const NONE: Self::All;
    /// How many sets, a power of two.
    const TURNS: usize;
    /// Bins in a set: a power of two above twice the largest exponent.
    const BINS: usize;
    /// The most products that all sets together take.
    const CAPACITY: usize;
    /// From how many products on emptying the bins costs less than what they save.
    const FROM: usize;

    /// Looks at a row.
    fn look(row: &[Self; ROW]) -> Look;
    /// Adds the product of two elements, or the square of one, to a bin: to that of the sum of the
    /// biased exponents, or to that of the one exponent. The exponent of subnormals is 1, to which their
    /// unit belongs. `place` is the place in a row. `NORMAL` says that the elements are normal numbers.
    fn put<const NORMAL: bool>(bins: &mut Self::All, place: usize, x: Self, y: Option<Self>);
}

macro_rules! binned_product {
    ($($t:ty, $bits:ident, $bin:ident, $bins:literal, $sets:literal, $most:expr, $from:literal;)*) => {$(
        impl BinnedProduct for $t {
            type Bin = $bin;
            type All = [$bin; $bins * $sets];
            const NONE: Self::All = [0; $bins * $sets];
            const TURNS: usize = $sets;
            const BINS: usize = $bins;
            const CAPACITY: usize = $most * $sets;
            const FROM: usize = $from;

            #[inline(always)]
            fn look(row: &[$t; ROW]) -> Look {
                const SPECIAL: $bits =
                    ($bits::MAX >> 1) & !((1 << <$t as Binned>::FRACTION) - 1);
                let [mut low, mut specials, mut any] = [0; 3];
                for x in row {
                    let exponent = x.to_bits() & SPECIAL;
                    low |= $bits::from(exponent == 0);
                    specials |= $bits::from(exponent == SPECIAL);
                    any |= x.to_bits() << 1;
                }
                Look { normal: low | specials == 0, zeros: any == 0, specials: specials != 0 }
            }

            #[inline(always)]
            fn put<const NORMAL: bool>(bins: &mut Self::All, place: usize, x: $t, y: Option<$t>) {
                const FRACTION: u32 = <$t as Binned>::FRACTION;
                #[inline(always)]
                fn apart<const NORMAL: bool>(x: $t) -> (usize, $bits) {
                    let bits = x.to_bits();
                    let biased = (bits >> FRACTION) & ($bits::MAX >> 1 >> FRACTION);
                    let hidden = if NORMAL { 1 } else { $bits::from(biased != 0) };
                    let significand = (bits & ((1 << FRACTION) - 1)) | (hidden << FRACTION);
                    ((biased + 1 - hidden) as usize, significand)
                }
                let (mut exponent, significand) = apart::<NORMAL>(x);
                let mut product = $bin::from(significand);
                match y {
                    None => product *= product,
                    Some(y) => {
                        let (other, significand) = apart::<NORMAL>(y);
                        exponent += other;
                        product *= $bin::from(significand);
                        let negative = (x.to_bits() ^ y.to_bits()) >> ($bits::BITS - 1);
                        let sign = -$bin::from(negative);
                        product = (product ^ sign) - sign;
                    }
                }
                let set = place & (Self::TURNS - 1);
                bins[exponent % $bins + set * $bins] += product;
            }
        }
    )*};
}
binned_product! {
    bf16, u16, i64, 512, 4, MOST_NARROW, 256;
    f32, u32, i64, 512, 4, MOST_NARROW, 256;
    f64, u64, i128, 4096, 1, MOST_WIDE, 512;
}

/// Fills bins with products, of as many elements as they take.
struct Fill<'a, T: BinnedProduct, F: Format, const PAIRED: bool> {
    slices: Slices<'a, T>,
    bins: &'a mut T::All,
    acc: &'a mut Superacc<F>,
}

impl<T: BinnedProduct, F: Format, const PAIRED: bool> Fill<'_, T, F, PAIRED> {
    #[inline(always)]
    fn add(&mut self, xs: &[T; ROW], ys: &[T; ROW]) {
        let x = T::look(xs);
        let y = if PAIRED { T::look(ys) } else { x };
        // Loaded again: the look has them in vectors, from which it takes longer to extract
        // them one by one.
        let [xs, ys] = core::hint::black_box([xs, ys]);
        if x.normal & y.normal {
            for i in 0..ROW {
                T::put::<true>(self.bins, i, xs[i], PAIRED.then_some(ys[i]));
            }
        } else if x.specials | y.specials {
            let [xs, ys] = count_specials(self.acc, xs, ys);
            for i in 0..ROW {
                T::put::<false>(self.bins, i, xs[i], PAIRED.then_some(ys[i]));
            }
        } else if !(x.zeros | y.zeros) {
            // Zeros need no bin, and where most elements are zeros they would wait for each other.
            for i in 0..ROW {
                T::put::<false>(self.bins, i, xs[i], PAIRED.then_some(ys[i]));
            }
        }
    }
}

impl<T: BinnedProduct, F: Format, const PAIRED: bool> Kernel for Fill<'_, T, F, PAIRED> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(mut self) {
        let (rows, rest) = self.slices.items().as_chunks::<ROW>();
        let (other_rows, other_rest) = self.slices.others().as_chunks::<ROW>();
        for (xs, ys) in rows.iter().zip(other_rows) {
            prefetch::ahead(xs);
            if PAIRED {
                prefetch::ahead(ys);
            }
            self.add(xs, ys);
        }
        let mut padded = [[<T as bytemuck::Zeroable>::zeroed(); ROW]; 2];
        padded[0][..rest.len()].copy_from_slice(rest);
        padded[1][..rest.len()].copy_from_slice(other_rest);
        self.add(&padded[0], &padded[1]);
    }
}

/// Counts the products of infinities and NaNs; the rows with zeros in their places.
#[inline(never)]
fn count_specials<T: BinnedProduct, F: Format>(
    acc: &mut Superacc<F>,
    xs: &[T; ROW],
    ys: &[T; ROW],
) -> [[T; ROW]; 2] {
    let zero = <T as bytemuck::Zeroable>::zeroed();
    let infinity = T::from_key(T::key_range().1).bits();
    let sign = 1 << (8 * size_of::<T>() - 1);
    let mut rows = [*xs, *ys];
    let [mut nans, mut infinities, mut negative] = [0i64; 3];
    for i in 0..ROW {
        let [x, y] = [xs[i].bits(), ys[i].bits()];
        let [a, b] = [x, y].map(|bits| bits & !sign);
        let special = (a >= infinity) | (b >= infinity);
        let nan = (a > infinity) | (b > infinity);
        let infinite = special & !nan;
        // An infinity times 0 is one of either sign.
        let either = infinite & ((a == 0) | (b == 0));
        nans += i64::from(nan);
        infinities += i64::from(infinite) + i64::from(either);
        negative += i64::from(infinite & (either | ((x ^ y) & sign != 0)));
        rows[0][i] = if special { zero } else { xs[i] };
        rows[1][i] = if special { zero } else { ys[i] };
    }
    acc.nans += nans;
    acc.pos_infs += infinities - negative;
    acc.neg_infs += negative;
    rows
}

/// Adds the products of two arrays, or with `paired` false the squares of one, to a sum, and
/// counts them.
pub(super) fn absorb<T: BinnedProduct, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T>,
    paired: bool,
    isa: Isa,
) {
    let mut bins = T::NONE;
    for slices in slices.chunks(T::CAPACITY) {
        if paired {
            dispatch(isa, Fill::<T, F, true> { slices, bins: &mut bins, acc });
        } else {
            dispatch(isa, Fill::<T, F, false> { slices, bins: &mut bins, acc });
        }
        acc.count += slices.len() as i64;
        // An exponent of 1 weighs the unit of subnormals; squares have twice the exponent of
        // their bin.
        let lowest = 2 * (T::LOWEST - 1);
        let weight = if paired { 1 } else { 2 };
        for set in bins.as_mut().chunks_exact_mut(T::BINS) {
            for (exponent, bin) in set.iter().enumerate() {
                let sum: i128 = (*bin).into();
                if sum != 0 {
                    acc.deposit_wide(sum, lowest + weight * exponent as i32);
                }
            }
        }
        bins = T::NONE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::exact::format::{F32Dot, F64Dot};

    /// The sums of products and of squares by bins on every instruction set, and element by
    /// element.
    fn check<T: BinnedProduct, F: Format>(xs: &[T], ys: &[T], note: &str) {
        for (ys, paired) in [(ys, true), (xs, false)] {
            let mut expected = Superacc::<F>::new();
            for (&x, &y) in xs.iter().zip(ys) {
                expected.absorb_product(x, y);
            }
            expected.canonicalise();
            for isa in Isa::available() {
                let mut found = Superacc::<F>::new();
                absorb(&mut found, Slices::pair(xs, ys).unwrap(), paired, isa);
                found.canonicalise();
                assert!(found == expected, "{note}, {}, {paired}, {isa}, {}", T::DTYPE, xs.len());
            }
        }
    }

    fn every_hazard<T: BinnedProduct, F: Format>() {
        let infinity = T::from_key(T::key_range().1).bits();
        let width = 8 * size_of::<T>() as u32;
        let sign = 1u64 << (width - 1);
        let mut random = fastrand::Rng::with_seed(4);
        // As many as a bin holds, of the largest products that it may have, of either sign.
        let full = T::CAPACITY;
        for n in [full - 1, full, full + 1, full + 17] {
            for bits in [infinity - 1, (infinity - 1) | sign, 1, infinity | sign] {
                let ys = vec![T::from_bits(infinity - 1); n];
                check::<T, F>(&vec![T::from_bits(bits); n], &ys, "one bin");
            }
        }
        let mut any = |n: usize, zeros: u32| -> Vec<T> {
            let mut row_of_zeros = false;
            (0..n)
                .map(|i| {
                    if i % 16 == 0 {
                        row_of_zeros = random.u32(..4) < zeros;
                    }
                    let bits = random.u64(..) >> (64 - width);
                    T::from_bits(if row_of_zeros { bits & sign } else { bits })
                })
                .collect()
        };
        for n in [0, 1, 15, 16, 17, 1000, 50_000] {
            for zeros in [0, 1, 3] {
                let [xs, ys] = [any(n, zeros), any(n, zeros)];
                check::<T, F>(&xs, &ys, "random bits");
            }
        }
        // Subnormals and the least normals, whose exponents weigh the same; infinities times 0.
        let fraction = (1 << T::FRACTION) - 1;
        let low = |x: &T| T::from_bits(x.bits() & (sign | (3 * fraction)));
        let [xs, ys] = [any(5000, 0), any(5000, 0)];
        let xs: Vec<T> = xs.iter().map(low).collect();
        check::<T, F>(&xs, &ys, "subnormals");
        let ys: Vec<T> = (0..xs.len() as u64).map(|i| T::from_bits(infinity + i % 2)).collect();
        check::<T, F>(&xs, &ys, "specials");
    }

    #[test]
    fn bins_hold_whatever_falls_into_them() {
        every_hazard::<bf16, F32Dot>();
        every_hazard::<f32, F32Dot>();
        every_hazard::<f64, F64Dot>();
    }
}
