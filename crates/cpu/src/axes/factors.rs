//! Products of integers for many outputs, in 64 bits.
//!
//! A product of integers is exact, whatever the order, and so is what is beyond 64 bits left out of it.
//! Beside it is one of f64, each factor and each of fewer than 2^31 multiplications rounded by 2^-53: it
//! tells whether the product is within 64 bits, and is 0, or NaN where it was infinite, if a factor is 0.
//! Of outputs that are next to the end of 64 bits, or beyond, the states tell whether they fit.

use super::lanes::{Lanes, ShortAsked};
use super::words::Word;
use crate::simd::Simd;
use core::marker::PhantomData;

/// Integers with a sign, whose products have one.
pub(super) const SIGNED: u8 = 0;
/// Integers without one.
pub(super) const UNSIGNED: u8 = 1;
/// Truth values, which are 1 whatever their bits, or 0.
pub(super) const TRUTH: u8 = 2;

/// Factors of a row that are multiplied side by side: none waits for the one before it.
const CHAINS: usize = 4;

/// Products of integers as wide as `W`, modulo 2^64 and as f64.
#[derive(Clone, Copy)]
pub(super) struct Factors<W, const OF: u8> {
    /// Whether answers leave out what is beyond 64 bits.
    pub(super) wrap: bool,
    pub(super) item: PhantomData<W>,
}

impl<W: Word, const OF: u8> Factors<W, OF> {
    /// An element as 64 bits.
    #[inline(always)]
    fn bits(x: W) -> u64 {
        let wide = x.wide().cast_unsigned();
        match OF {
            SIGNED => wide,
            UNSIGNED => wide & (u64::MAX >> (64 - 8 * size_of::<W>())),
            _ => u64::from(wide != 0),
        }
    }
}

impl<W: Word, const OF: u8> Lanes for Factors<W, OF> {
    type Item = W;
    type Out = u64;
    type A = u64;
    type B = f64;
    type C = ();
    const START: (u64, f64, ()) = (1, 1.0, ());

    #[inline(always)]
    fn take(self, a: &mut u64, b: &mut f64, (): &mut (), x: W, _: u32) {
        let bits = Self::bits(x);
        *a = a.wrapping_mul(bits);
        *b *= if OF == SIGNED { bits.cast_signed() as f64 } else { bits as f64 };
    }

    /// Words of some widths take less time by multiplications that say whether 64 bits hold their
    /// product, as measured with vectors of 256 bits and of 512.
    #[inline(always)]
    unsafe fn row<S: Simd>(self, items: &[W], _: usize) -> Option<(u64, f64, ())> {
        let by_vectors = match size_of::<W>() {
            1 => OF != TRUTH || S::LANES == 8,
            4 => false,
            _ => S::LANES == 8,
        };
        if by_vectors {
            return None;
        }
        let times = |(bits, beyond): (u64, bool), by: u64| {
            let (bits, more) = if OF == SIGNED {
                let (bits, more) = bits.cast_signed().overflowing_mul(by.cast_signed());
                (bits.cast_unsigned(), more)
            } else {
                bits.overflowing_mul(by)
            };
            (bits, beyond | more)
        };
        let (mut chains, mut zero) = ([(1, false); CHAINS], false);
        let (parts, rest) = items.as_chunks::<CHAINS>();
        for part in parts {
            for (chain, &x) in chains.iter_mut().zip(part) {
                let by = Self::bits(x);
                *chain = times(*chain, by);
                zero |= by == 0;
            }
        }
        for &x in rest {
            chains[0] = times(chains[0], Self::bits(x));
            zero |= Self::bits(x) == 0;
        }
        let [one, others @ ..] = chains;
        let join = |one, (bits, beyond)| {
            let (bits, more) = times(one, bits);
            (bits, more | beyond)
        };
        let (bits, beyond) = others.into_iter().fold(one, join);
        let fits = if OF == SIGNED { bits.cast_signed() as f64 } else { bits as f64 };
        let near = if zero { 0.0 } else { fits };
        Some((bits, if beyond & !zero { f64::INFINITY } else { near }, ()))
    }

    #[inline(always)]
    fn merge((a, b, ()): &mut (u64, f64, ()), others: (u64, f64, ())) {
        *a = a.wrapping_mul(others.0);
        *b *= others.1;
    }

    fn neutral(&self) -> Option<W> {
        Some(W::of(1))
    }

    fn short(&self) -> Option<ShortAsked> {
        Some(ShortAsked::Words)
    }

    #[inline(always)]
    fn finish<const MEAN: bool>(self, (bits, near, ()): (u64, f64, ()), _: u64) -> (u64, bool) {
        // All roundings together are below 2^-20.
        let whole =
            if OF == SIGNED { 9_223_372_036_854_775_808.0 } else { 18_446_744_073_709_551_616.0 };
        let fits = near.abs() < whole * (1.0 - 1.0 / 1_048_576.0);
        (bits, fits | near.is_nan() | self.wrap)
    }
}
