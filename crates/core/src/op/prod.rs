//! Products of integers.
//!
//! A product of integers does not depend on the order: it is exact until it
//! leaves the answer's type, which is judged on the whole, and a float answer is the
//! exact product rounded once (`magnitude.rs`).

use super::magnitude::Magnitude;
use super::payload::Reader;
use super::{Kind, Op, Rules, Run, Scalar, State, Value, narrow};
use crate::DType;
use crate::element::{Element, Parts};
use crate::error::{Error, Result};
use core::marker::PhantomData;

/// The state of a product of integers or truth values.
///
/// The answer is an i64 for signed elements, else a u64. Whether it fits is
/// judged on the whole product: `[2^40, 2^40, 0]` is 0. An answer in a float type is
/// the exact product rounded once.
///
/// What a kernel leaves of a product of 2^128 or more, and what earlier versions
/// wrote, [lacks digits](Self::lacks_digits).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntProd<T> {
    product: Product,
    element: PhantomData<T>,
}

/// What it knows, whatever its elements are: compiled once for all types.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Product {
    /// The product modulo 2^64.
    wrapped: u64,
    /// The magnitude of the product without zeros.
    magnitude: Magnitude,
    /// The sign of the product without zeros.
    negative: bool,
    zero: bool,
}

/// Which magnitude a byte form has: see [`IntProd`]'s `write`. Never reused.
mod form {
    /// The 16 bytes.
    pub(super) const SHORT: u8 = 0;
    /// 2^128 or more, and no more known: what kernels leave.
    pub(super) const LOST: u8 = 1;
    /// A long one, whose parts come last.
    pub(super) const LONG: u8 = 2;
    /// 2^1024 or more.
    pub(super) const BEYOND: u8 = 3;
}

impl<T: Element> IntProd<T> {
    /// Whether it lacks digits that an answer in f64 needs.
    ///
    /// Who has the elements can [give them back](Self::take_digits_of).
    #[must_use]
    pub fn lacks_digits(&self) -> bool {
        self.product.magnitude.lacks_digits()
    }

    /// Whether the magnitude without zeros is 2^1024 or more: no further element adds
    /// to what is known of it.
    #[must_use]
    pub fn is_beyond(&self) -> bool {
        self.product.magnitude == Magnitude::Beyond
    }

    /// Takes over the magnitude of a state of the same elements, or of some of them
    /// that [are beyond](Self::is_beyond), if this one lacks digits.
    ///
    /// ```
    /// use warpfold_core::op::{IntProd, Kind, Op, Rules, Run, State};
    /// use warpfold_core::DType;
    ///
    /// let mut whole = IntProd::<i32>::identity(Kind::Prod);
    /// whole.absorb(Run { start: 0, items: &[1 << 30; 5], others: &[] });
    /// // What a kernel leaves of it.
    /// let mut left = vec![0; 26];
    /// left[1] = 1;
    /// let mut state = IntProd::<i32>::read(Kind::Prod, &left)?;
    /// assert!(state.lacks_digits());
    /// state.take_digits_of(&whole);
    /// assert_eq!(state, whole);
    /// # Ok::<(), warpfold_core::Error>(())
    /// ```
    pub fn take_digits_of(&mut self, again: &Self) {
        if self.lacks_digits() {
            self.product.magnitude = again.product.magnitude.clone();
        }
    }
}

impl Product {
    /// The whole product in the integer type `out`, if it fits.
    fn exact(&self, out: DType) -> Option<Scalar> {
        let magnitude = match self.magnitude {
            _ if self.zero => 0,
            Magnitude::Short(magnitude) => magnitude,
            _ => return None,
        };
        let value = i128::try_from(magnitude).ok()? * if self.negative { -1 } else { 1 };
        Scalar::integer(value, out)
    }

    /// The product rounded once to the float type `out`.
    fn rounded(&self, op: Op, dtype: DType, out: DType) -> Result<Scalar> {
        let rounded = match self.magnitude.leading() {
            _ if self.zero => narrow::from_parts(out, false, 0, 0),
            Some((head, exponent)) => narrow::from_parts(out, self.negative, head, exponent),
            // From 2^128 on every product rounds to infinity in the types whose
            // largest number is below.
            None if out != DType::F64 => narrow::infinity(out, self.negative),
            None => return Err(Error::LostDigits { op, total: self.total() }),
        };
        rounded.ok_or(Error::UnsupportedOut { op, dtype, out })
    }

    /// The product without its zeros, for messages: a long one in words.
    fn total(&self) -> String {
        match self.magnitude {
            Magnitude::Short(m) => format!("{}{m}", if self.negative { "-" } else { "" }),
            _ if self.negative => "below -2^128".into(),
            _ => "2^128 or more".into(),
        }
    }

    #[inline]
    fn times(&mut self, negative: bool, magnitude: u64) {
        if magnitude == 0 {
            self.wrapped = 0;
            self.zero = true;
        } else {
            let factor = if negative { magnitude.wrapping_neg() } else { magnitude };
            self.wrapped = self.wrapped.wrapping_mul(factor);
            self.magnitude.times(magnitude);
            self.negative ^= negative;
        }
    }

    fn merge(&mut self, other: &Product) {
        self.wrapped = self.wrapped.wrapping_mul(other.wrapped);
        self.magnitude.merge(&other.magnitude);
        self.negative ^= other.negative;
        self.zero |= other.zero;
    }

    /// An integer answer fits or wraps; a float one is the exact product
    /// rounded once.
    fn finish(&self, op: Op, dtype: DType, rules: &Rules) -> Result<Value> {
        if op != Op::Prod {
            return Err(Error::UnsupportedType { op, dtype });
        }
        let own = if dtype.is_signed_int() { DType::I64 } else { DType::U64 };
        let out = rules.out.unwrap_or(own);
        if out.is_float() {
            return self.rounded(op, dtype, out).map(Value::One);
        }
        if out == DType::Bool {
            return Err(Error::UnsupportedOut { op, dtype, out });
        }
        if rules.wrap {
            return Ok(Value::One(Scalar::from_bits(out, truncated(self.wrapped, out))));
        }
        let overflow = || Error::Overflow { op, total: self.total(), out };
        self.exact(out).map(Value::One).ok_or_else(overflow)
    }

    /// ```text
    /// 0       1      2                        18                   26
    /// ├ flags ┼ form ┼ magnitude, or zeros ───┼ product mod 2^64 ──┤ form 2 only: lost factors, words
    ///   u8      u8     u128                     u64                  u8, u64*
    /// ```
    fn write(&self, out: &mut Vec<u8>) {
        let long = self.magnitude.long_parts();
        let (form, short) = match (&self.magnitude, long) {
            (&Magnitude::Short(short), _) => (form::SHORT, short),
            (Magnitude::Beyond, _) => (form::BEYOND, 0),
            (_, Some((1, [1]))) => (form::LOST, 0),
            _ => (form::LONG, 0),
        };
        out.push(u8::from(self.negative) | u8::from(self.zero) << 1);
        out.push(form);
        out.extend(short.to_le_bytes());
        out.extend(self.wrapped.to_le_bytes());
        if let (form::LONG, Some((lost, words))) = (form, long) {
            out.push(lost);
            words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        }
    }

    fn read(bytes: &[u8], dtype: DType) -> Result<Self> {
        let parse = || -> Result<Self, &'static str> {
            let mut from = Reader(bytes);
            let flags = from.uint(1)?;
            let form = from.uint(1)? as u8;
            let short = u128::from(from.u64()?) | u128::from(from.u64()?) << 64;
            let wrapped = from.u64()?;
            let (negative, zero) = (flags & 1 == 1, flags & 2 == 2);
            let magnitude = match (form, short) {
                (form::SHORT, 1..) => Some(Magnitude::Short(short)),
                (form::LOST, 0) => Some(Magnitude::lost()),
                (form::BEYOND, 0) => Some(Magnitude::Beyond),
                (form::LONG, 0) => {
                    let lost = from.uint(1)? as u8;
                    let mut words = Vec::new();
                    // Not more than a magnitude can have.
                    while !from.0.is_empty() && words.len() <= Magnitude::MOST_BYTES / 8 {
                        words.push(from.u64()?);
                    }
                    // What kernels leave has its own form.
                    Magnitude::from_long_parts(lost, &words).filter(|m| *m != Magnitude::lost())
                }
                _ => None,
            };
            if !from.0.is_empty() {
                return Err("it has bytes left over");
            }
            let magnitude = magnitude.ok_or("its magnitude is impossible")?;
            // What is known twice must agree.
            let expected = match magnitude.low() {
                _ if zero => Some(0),
                Some(low) if negative => Some(low.wrapping_neg()),
                low => low,
            };
            if flags > 3
                || negative && !dtype.is_signed_int()
                || expected.is_some_and(|e| e != wrapped)
            {
                return Err("its sign and its product disagree");
            }
            Ok(Product { wrapped, magnitude, negative, zero })
        };
        parse().map_err(|why| Error::DamagedState { why: why.into() })
    }
}

impl<T: Element> State for IntProd<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Prod
    }

    fn identity(_kind: Kind) -> Self {
        let product =
            Product { wrapped: 1, magnitude: Magnitude::ONE, negative: false, zero: false };
        IntProd { product, element: PhantomData }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for x in run.items {
            // Every integer is finite.
            let Parts::Finite { negative, magnitude, .. } = x.parts() else { continue };
            self.product.times(negative, magnitude);
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.product.merge(&other.product);
        Ok(())
    }

    fn most_bytes(_positions: u64) -> usize {
        size_of::<Self>() + Magnitude::MOST_BYTES
    }

    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        self.product.finish(op, T::DTYPE, rules)
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.product.write(out);
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        Ok(IntProd { product: Product::read(bytes, T::DTYPE)?, element: PhantomData })
    }
}

/// The low bits of `bits` that a number of type `dtype` has.
const fn truncated(bits: u64, dtype: DType) -> u64 {
    bits & (u64::MAX >> (64 - 8 * dtype.size()))
}
