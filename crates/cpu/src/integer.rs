//! Exact sums of integers, of their absolute values, squares and products.
//!
//! Short terms are added in 32 or 64 bits, as many as fit. A sum of terms of 64
//! bits is kept as two sums per lane, of the terms' low 32 bits and of the
//! rest; they hold 2^31 terms.

use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use core::marker::PhantomData;
use warpfold_core::Element;
use warpfold_core::element::Bool8;
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::prefetch;

/// The lanes of the loops that the compiler vectorises.
const LANES: usize = 32;
/// Rows added in 32 bits.
const ROWS: usize = 1 << 10;

/// An integer type, and how its terms are made.
pub(crate) trait Integer: Element {
    /// Whether terms have at most 16 bits and products at most 32.
    const SHORT: bool;
    /// Whether terms have 64 bits, so that products have 128.
    const LONG: bool;
    /// The value; of unsigned 64-bit integers the bits.
    fn wide(self) -> i64;
    /// Whether values are never negative.
    const UNSIGNED: bool;
}

macro_rules! integer {
    ($($t:ty, $short:literal, $long:literal, $unsigned:literal;)*) => {$(
        impl Integer for $t {
            const SHORT: bool = $short;
            const LONG: bool = $long;
            const UNSIGNED: bool = $unsigned;
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
        }
    )*};
}
integer! {
    i8, true, false, false;
    i16, true, false, false;
    i32, false, false, false;
    i64, false, true, false;
    u8, true, false, true;
    u16, true, false, true;
    u32, false, false, true;
    u64, false, true, true;
}
impl Integer for Bool8 {
    const SHORT: bool = true;
    const LONG: bool = false;
    const UNSIGNED: bool = true;
    #[inline(always)]
    fn wide(self) -> i64 {
        i64::from(self.0 != 0)
    }
}

/// What is added up. A term has 64 bits, signed unless `unsigned` says
/// otherwise.
pub(crate) trait Term: Copy + 'static {
    /// Whether terms are products.
    const PRODUCT: bool;
    /// Whether terms are never negative.
    fn unsigned<T: Integer>() -> bool;
    /// The term of two elements.
    fn of<T: Integer>(x: T, y: T) -> i64;
}

/// The elements.
#[derive(Clone, Copy)]
pub(crate) struct Plain;
/// The absolute values.
#[derive(Clone, Copy)]
pub(crate) struct Absolute;
/// Products with the second array.
#[derive(Clone, Copy)]
pub(crate) struct Product;

impl Term for Plain {
    const PRODUCT: bool = false;
    #[inline(always)]
    fn unsigned<T: Integer>() -> bool {
        T::UNSIGNED
    }
    #[inline(always)]
    fn of<T: Integer>(x: T, _: T) -> i64 {
        x.wide()
    }
}
impl Term for Absolute {
    const PRODUCT: bool = false;
    #[inline(always)]
    fn unsigned<T: Integer>() -> bool {
        true
    }
    #[inline(always)]
    fn of<T: Integer>(x: T, _: T) -> i64 {
        if T::UNSIGNED { x.wide() } else { x.wide().unsigned_abs().cast_signed() }
    }
}
impl Term for Product {
    const PRODUCT: bool = true;
    #[inline(always)]
    fn unsigned<T: Integer>() -> bool {
        T::UNSIGNED
    }
    #[inline(always)]
    fn of<T: Integer>(x: T, y: T) -> i64 {
        // Of types up to 32 bits: in range as bits, if not as an i64.
        x.wide().wrapping_mul(y.wide())
    }
}

struct IntegerSum<'a, T, M> {
    /// At most [`LARGEST_RUN`].
    slices: Slices<'a, T>,
    term: PhantomData<M>,
}

impl<T: Integer, M: Term> IntegerSum<'_, T, M> {
    /// Hands each term of a range to `add`, with its lane.
    #[inline(always)]
    fn for_each_row(&self, range: core::ops::Range<usize>, mut add: impl FnMut(usize, i64)) {
        let part = self.slices.range(range);
        let y = if M::PRODUCT { part.others() } else { part.items() };
        let (mut xs, mut ys) = (part.items().chunks_exact(LANES), y.chunks_exact(LANES));
        for (x, y) in (&mut xs).zip(&mut ys) {
            prefetch::ahead(x);
            if M::PRODUCT {
                prefetch::ahead(y);
            }
            for i in 0..LANES {
                add(i, M::of(x[i], y[i]));
            }
        }
        for (i, (&x, &y)) in xs.remainder().iter().zip(ys.remainder()).enumerate() {
            add(i, M::of(x, y));
        }
    }
}

impl<T: Integer, M: Term> Kernel for IntegerSum<'_, T, M> {
    type Out = (i128, i128);

    /// The sum as `low + high * 2^64`.
    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> (i128, i128) {
        let n = self.slices.len();
        if T::LONG && M::PRODUCT {
            let (mut low, mut high) = (0u128, 0i128);
            for (&x, &y) in self.slices.items().iter().zip(self.slices.others()) {
                let product = if T::UNSIGNED {
                    (u128::from(x.bits()) * u128::from(y.bits())).cast_signed()
                } else {
                    i128::from(x.wide()) * i128::from(y.wide())
                };
                low += u128::from(product as u64);
                // The upper half is unsigned if the factors are.
                high += if T::UNSIGNED {
                    (product.cast_unsigned() >> 64).cast_signed()
                } else {
                    product >> 64
                };
            }
            return (low.cast_signed(), high);
        }
        // A term of 8 or 16 bits: 2^10 of them a lane in 32 bits.
        if T::SHORT && (!M::PRODUCT || size_of::<T>() == 1) {
            let mut total = 0i128;
            for at in (0..n).step_by(LANES * ROWS) {
                let mut sums = [0i32; LANES];
                self.for_each_row(at..n.min(at + LANES * ROWS), |i, term| {
                    sums[i] = sums[i].wrapping_add(term as i32);
                });
                // No sum has wrapped.
                total += sums.iter().map(|&s| i128::from(s)).sum::<i128>();
            }
            return (total, 0);
        }
        // A term below 2^32 in magnitude: 2^30 of them in 64 bits.
        if !(T::LONG || M::PRODUCT && size_of::<T>() == 4) {
            let mut sums = [0i64; LANES];
            self.for_each_row(0..n, |i, term| sums[i] = sums[i].wrapping_add(term));
            return (sums.iter().map(|&s| i128::from(s)).sum(), 0);
        }
        let mut lows = [0u64; LANES];
        let mut highs = [0i64; LANES];
        self.for_each_row(0..n, |i, term| {
            lows[i] += u64::from(term as u32);
            highs[i] += if M::unsigned::<T>() {
                (term.cast_unsigned() >> 32).cast_signed()
            } else {
                term >> 32
            };
        });
        let low: i128 = lows.iter().map(|&s| i128::from(s)).sum();
        let high: i128 = highs.iter().map(|&s| i128::from(s)).sum();
        (low + (high << 32), 0)
    }
}

/// The most elements of one call of the kernel: what a lane's halves hold, and
/// more than any block.
const LARGEST_RUN: usize = 1 << 30;

/// Adds the terms of the elements to an exact sum.
pub(crate) fn absorb<T: Integer, M: Term, F: Format>(
    acc: &mut Superacc<F>,
    slices: Slices<'_, T>,
    isa: Isa,
) {
    for slices in slices.chunks(LARGEST_RUN) {
        let kernel = IntegerSum::<T, M> { slices, term: PhantomData };
        let (low, high) = dispatch(isa, kernel);
        acc.deposit_wide(low, 0);
        if high != 0 {
            acc.deposit_wide(high, 64);
        }
        acc.count += slices.len() as i64;
    }
}
