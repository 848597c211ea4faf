//! Exact sums of integers, of their absolute values, squares and products.
//!
//! Short terms are added in 32 or 64 bits, as many as fit; bytes eight at a time. Signed
//! terms of 32 and of 64 bits are made unsigned by flipping their sign, which adds
//! a half of their range to each and is taken out of the sum: widening is then a
//! shift or a mask. A sum of terms of 64 bits is kept as two sums per lane, of the terms
//! modulo `2^64` and of their high 32 bits; they hold 2^30 terms. The sum of the
//! low bits, which is below `2^62`, is what the first has more than `2^32` times the
//! second.

use crate::count;
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use crate::slices::Slices;
use core::marker::PhantomData;
use warpfold_core::element::Bool8;
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::prefetch;
use warpfold_core::{DType, Element};

/// The lanes of the loops that the compiler vectorises.
const LANES: usize = 32;
/// The same for terms of 64 bits, of which a lane has two sums.
const LONG_LANES: usize = 16;
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
    /// Whether terms are the elements themselves.
    const PLAIN: bool = false;
    /// Whether terms are products.
    const PRODUCT: bool = false;
    /// Whether terms are never negative.
    #[inline(always)]
    fn unsigned<T: Integer>() -> bool {
        T::UNSIGNED
    }
    /// The term of two elements.
    fn of<T: Integer>(x: T, y: T) -> i64;
}

/// The elements.
#[derive(Clone, Copy)]
pub(crate) struct Plain;
/// The absolute values, of integers with a sign.
#[derive(Clone, Copy)]
pub(crate) struct Absolute;
/// Products with the second array.
#[derive(Clone, Copy)]
pub(crate) struct Product;

impl Term for Plain {
    const PLAIN: bool = true;
    #[inline(always)]
    fn of<T: Integer>(x: T, _: T) -> i64 {
        x.wide()
    }
}
impl Term for Absolute {
    #[inline(always)]
    fn unsigned<T: Integer>() -> bool {
        true
    }
    #[inline(always)]
    fn of<T: Integer>(x: T, _: T) -> i64 {
        x.wide().unsigned_abs().cast_signed()
    }
}
impl Term for Product {
    const PRODUCT: bool = true;
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
    /// Hands each term of a range to `add`, with its lane of `N`.
    #[inline(always)]
    fn for_each_row<const N: usize>(
        &self,
        range: core::ops::Range<usize>,
        mut add: impl FnMut(usize, i64),
    ) {
        let part = self.slices.range(range);
        let y = if M::PRODUCT { part.others() } else { part.items() };
        let (mut xs, mut ys) = (part.items().chunks_exact(N), y.chunks_exact(N));
        for (x, y) in (&mut xs).zip(&mut ys) {
            prefetch::ahead(x);
            if M::PRODUCT {
                prefetch::ahead(y);
            }
            for i in 0..N {
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
                self.for_each_row::<LANES>(at..n.min(at + LANES * ROWS), |i, term| {
                    sums[i] = sums[i].wrapping_add(term as i32);
                });
                // No sum has wrapped.
                total += total_of(&sums);
            }
            return (total, 0);
        }
        // A term that 32 bits hold, signed or not: 2^30 of them in 64 bits.
        if size_of::<T>() == 4 && !M::PRODUCT {
            let flip = if M::unsigned::<T>() { 0 } else { 1u32 << 31 };
            let mut sums = [0u64; LANES];
            self.for_each_row::<LANES>(0..n, |i, term| {
                sums[i] = sums[i].wrapping_add(u64::from(term as u32 ^ flip));
            });
            return (total_of(&sums) - n as i128 * i128::from(flip), 0);
        }
        // A term below 2^32 in magnitude: 2^30 of them in 64 bits.
        if !(T::LONG || M::PRODUCT && size_of::<T>() == 4) {
            let mut sums = [0i64; LANES];
            self.for_each_row::<LANES>(0..n, |i, term| sums[i] = sums[i].wrapping_add(term));
            return (total_of(&sums), 0);
        }
        // Unknown to compilers: with a 0 that they know they unroll the row, and make no vectors of it.
        let flip = core::hint::black_box(if M::unsigned::<T>() { 0 } else { 1u64 << 63 });
        let mut wrapped = [0u64; LONG_LANES];
        let mut highs = [0u64; LONG_LANES];
        self.for_each_row::<LONG_LANES>(0..n, |i, term| {
            let term = term.cast_unsigned() ^ flip;
            wrapped[i] = wrapped[i].wrapping_add(term);
            highs[i] = highs[i].wrapping_add(term >> 32);
        });
        let mut total = -(n as i128) * i128::from(flip);
        for (&wrapped, &high) in wrapped.iter().zip(&highs) {
            total += i128::from(wrapped.wrapping_sub(high << 32)) + (i128::from(high) << 32);
        }
        (total, 0)
    }
}

/// The sum of lanes. Inlined: what another function sees the address of does not stay in registers.
#[inline(always)]
fn total_of<T: Copy + Into<i128>>(sums: &[T]) -> i128 {
    let mut total = 0;
    for &sum in sums {
        total += sum.into();
    }
    total
}

/// Sums bytes, eight of them in each step of a lane.
struct ByteSum<'a> {
    /// At most [`LARGEST_RUN`].
    bytes: &'a [u8],
    /// Whether they are signed.
    signed: bool,
}

impl Kernel for ByteSum<'_> {
    type Out = i128;

    #[inline(always)]
    unsafe fn run<S: Simd>(self) -> i128 {
        /// Vectors of a row.
        const VECTORS: usize = 4;
        let bytes = 8 * S::LANES;
        // A signed byte with its sign flipped is 128 more, and unsigned.
        let flip = if self.signed { 0x80 } else { 0u8 };
        let mut lanes = [0u64; 8];
        let mut rows = self.bytes.chunks_exact(VECTORS * bytes);
        // SAFETY: rows are whole vectors; `lanes` holds the widest vector.
        unsafe {
            let flips = S::wsplat(u32::from_ne_bytes([flip; 4]));
            let zero = S::wsplat(0);
            let [mut a, mut b, mut c, mut d] = [zero; VECTORS];
            for row in &mut rows {
                prefetch::ahead(row);
                let load = |v: usize| row.as_ptr().add(v * bytes).cast();
                a = S::sum_bytes(a, S::wxor(S::wload(load(0)), flips));
                b = S::sum_bytes(b, S::wxor(S::wload(load(1)), flips));
                c = S::sum_bytes(c, S::wxor(S::wload(load(2)), flips));
                d = S::sum_bytes(d, S::wxor(S::wload(load(3)), flips));
            }
            for sums in [a, b, c, d] {
                let mut words = [0u32; 16];
                S::wstore(sums, words.as_mut_ptr());
                let sums: [u64; 8] = bytemuck::must_cast(words);
                lanes.iter_mut().zip(sums).for_each(|(lane, sum)| *lane += sum);
            }
        }
        let rest: u64 = rows.remainder().iter().map(|&byte| u64::from(byte ^ flip)).sum();
        let total = i128::from(lanes.iter().sum::<u64>() + rest);
        total - self.bytes.len() as i128 * i128::from(flip)
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
        let items = slices.items();
        let (low, high) = if !M::PRODUCT && T::DTYPE == DType::Bool {
            (i128::from(count::count(items, isa).nonzero), 0)
        } else if M::PLAIN && size_of::<T>() == 1 {
            let bytes = bytemuck::must_cast_slice(items);
            (dispatch(isa, ByteSum { bytes, signed: !T::UNSIGNED }), 0)
        } else {
            dispatch(isa, IntegerSum::<T, M> { slices, term: PhantomData })
        };
        acc.deposit_wide(low, 0);
        if high != 0 {
            acc.deposit_wide(high, 64);
        }
        acc.count += slices.len() as i64;
    }
}
