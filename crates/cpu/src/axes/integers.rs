//! Sums of integers for many outputs, in 64 bits.

use super::lanes::Lanes;
use super::round::Interval;
use crate::integer::Integer;
use core::marker::PhantomData;

/// What integer sums are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Sum,
    Mean,
}

/// Sums of elements. The second word's top bit says whether a sum has overflowed.
#[derive(Clone, Copy)]
pub(super) struct Totals<T> {
    pub(super) asked: Asked,
    /// Elements of an output, fewer than 2^31.
    pub(super) len: u64,
    pub(super) item: PhantomData<T>,
}

/// The sum of two sums, and whether it is beyond 64 bits in the top bit.
#[inline(always)]
fn add<T: Integer>(a: i64, b: i64) -> (i64, u64) {
    let sum = a.wrapping_add(b);
    let beyond = if !T::LONG {
        0
    } else if T::UNSIGNED {
        u64::from(sum.cast_unsigned() < a.cast_unsigned()) << 63
    } else {
        ((a ^ sum) & (b ^ sum)).cast_unsigned()
    };
    (sum, beyond)
}

impl<T: Integer> Lanes for Totals<T> {
    type Item = T;
    type Out = u64;
    type A = i64;
    type B = u64;
    type C = ();
    const START: (i64, u64, ()) = (0, 0, ());

    #[inline(always)]
    fn take(a: &mut i64, b: &mut u64, (): &mut (), x: T, _: u32) {
        let (sum, beyond) = add::<T>(*a, x.wide());
        *a = sum;
        if T::LONG {
            *b |= beyond;
        }
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (i64, u64, ()), others: (i64, u64, ())) {
        let (sum, beyond) = add::<T>(*a, others.0);
        *a = sum;
        *b |= beyond | others.1;
    }

    #[inline(always)]
    fn answer(&self, (sum, beyond, ()): (i64, u64, ())) -> Option<u64> {
        if beyond >> 63 == 1 {
            return None;
        }
        match self.asked {
            Asked::Sum => Some(sum.cast_unsigned()),
            Asked::Mean => {
                let (mean, sure) = Interval::of_integer(value::<T>(sum))?.divided(self.len);
                mean.rounded::<f64>().filter(|_| sure).map(f64::to_bits)
            }
        }
    }
}

/// The value of a sum by its bits.
#[inline(always)]
fn value<T: Integer>(sum: i64) -> i128 {
    if T::UNSIGNED { i128::from(sum.cast_unsigned()) } else { i128::from(sum) }
}

/// Sums of elements and of their squares: these in two words, of their low 32 bits and
/// of the rest. The top bit of the latter says that some element has more than 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Powers<T> {
    /// Elements of an output, fewer than 2^31.
    pub(super) len: u64,
    pub(super) ddof: u64,
    /// Whether the square root of the variance is asked for.
    pub(super) root: bool,
    pub(super) item: PhantomData<T>,
}

const TOP: u64 = 1 << 63;

impl<T: Integer> Lanes for Powers<T> {
    type Item = T;
    type Out = u64;
    type A = i64;
    type B = u64;
    type C = u64;
    const START: (i64, u64, u64) = (0, 0, 0);

    #[inline(always)]
    fn take(a: &mut i64, b: &mut u64, c: &mut u64, x: T, _: u32) {
        let wide = x.wide();
        *a = a.wrapping_add(wide);
        if T::SHORT {
            // Below 2^32 each.
            *b += wide.wrapping_mul(wide).cast_unsigned();
            return;
        }
        // The bits of a large u64 are those of a negative number.
        let (square, whole) = if T::UNSIGNED {
            let short = u64::from(wide as u32);
            (short * short, short == wide.cast_unsigned())
        } else {
            let short = i64::from(wide as i32);
            ((short * short).cast_unsigned(), short == wide)
        };
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

    #[inline(always)]
    fn answer(&self, (sum, low, high): (i64, u64, u64)) -> Option<u64> {
        if high & TOP != 0 {
            return None;
        }
        let squares = i128::from(low) + (i128::from(high) << 32);
        let sum = Interval::of_integer(i128::from(sum))?;
        let squares = Interval::of_integer(squares)?;
        let (variance, sure) = Interval::variance(sum, squares, self.len, self.ddof);
        let (found, real) = if self.root { variance.root() } else { (variance, true) };
        found.rounded::<f64>().filter(|_| sure & real).map(f64::to_bits)
    }
}
