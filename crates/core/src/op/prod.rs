//! Products.
//!
//! A product of integers does not depend on the order: it is exact until it
//! leaves the answer's type, which is judged on the whole. A product of floats
//! is folded by the fixed tree with significand and exponent kept apart, so
//! that it overflows or underflows only if the whole product does. Each of the
//! `n - 1` multiplications rounds to 53 bits, whatever the element type, which
//! leaves a relative error below `n 2^-53` before the last rounding.
//! Significands lie in `[1, 2^64)` throughout: flush-to-zero finds nothing to flush.

use super::fast::{FloatElement, admit_nans, float_answer};
use super::tree::{FixedTree, LANES, Reader, TreeOp, fold_lanes};
use super::{Kind, Op, Rules, Run, Scalar, State, Value, narrow};
use crate::DType;
use crate::element::{Element, Parts};
use crate::error::{Error, Result};
use crate::prefetch;
use core::marker::PhantomData;

/// The state of a product of floats.
pub type FloatProd<T> = FixedTree<Factors<T>>;

const FRACTION: u64 = (1 << 52) - 1;
const ONE: u64 = 1023 << 52;

/// A product of floats: `(-1)^negative * significand * 2^exponent` for the
/// finite ones that are not zero, and counts of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProdNode {
    /// In `[1, 2)`.
    pub significand: f64,
    /// The power of two.
    pub exponent: i64,
    /// The product of all signs, those of zeros and infinities too.
    pub negative: bool,
    /// How many zeros.
    pub zeros: u64,
    /// How many infinities.
    pub infs: u64,
    /// How many NaNs.
    pub nans: u64,
}

/// The fixed tree of products.
#[derive(Clone, Copy, Debug)]
pub struct Factors<T>(PhantomData<T>);

/// One lane of a block: a product of at most 64 significands in `[1, 2)`, so
/// below 2^64, and the sum of the exponents.
#[derive(Clone, Copy)]
struct Lane {
    significand: f64,
    exponent: i64,
}

impl Lane {
    /// The same number with the significand in `[1, 2)`; exact.
    #[inline(always)]
    fn normalised(self) -> Lane {
        let bits = self.significand.to_bits();
        Lane {
            significand: f64::from_bits(bits & FRACTION | ONE),
            exponent: self.exponent + (bits >> 52) as i64 - 1023,
        }
    }
}

impl<T: FloatElement> Factors<T> {
    /// Folds lanes that are not normalised. 64 normalised ones have a product
    /// below 2^64 again.
    #[inline(always)]
    fn fold(significands: [f64; LANES], exponents: [i64; LANES]) -> Lane {
        let mut lanes = [Lane { significand: 1.0, exponent: 0 }; LANES];
        for l in 0..LANES {
            lanes[l] = Lane { significand: significands[l], exponent: exponents[l] }.normalised();
        }
        fold_lanes(lanes, |a, b| Lane {
            significand: a.significand * b.significand,
            exponent: a.exponent + b.exponent,
        })
        .normalised()
    }

    /// The leaf of a block with subnormals, zeros, infinities or NaNs: taken
    /// apart by integer instructions, then multiplied in the same lanes.
    #[cold]
    #[inline(never)]
    fn leaf_with_specials(items: &[T]) -> ProdNode {
        let mut significands = [1.0; LANES];
        let mut exponents = [0i64; LANES];
        let (mut zeros, mut infs, mut nans, mut negatives) = (0, 0, 0, 0u64);
        for (i, x) in items.iter().enumerate() {
            match x.parts() {
                Parts::Finite { negative, magnitude: 0, .. } => {
                    zeros += 1;
                    negatives += u64::from(negative);
                }
                Parts::Finite { negative, magnitude, exponent } => {
                    negatives += u64::from(negative);
                    // Leading bit at 52: at most 53 bits are there to move.
                    let top = magnitude.ilog2();
                    let fraction = (magnitude << (52 - top)) & FRACTION;
                    significands[i % LANES] *= f64::from_bits(fraction | ONE);
                    exponents[i % LANES] += i64::from(exponent) + i64::from(top);
                }
                Parts::Infinite { negative } => {
                    infs += 1;
                    negatives += u64::from(negative);
                }
                Parts::Nan => nans += 1,
            }
        }
        let Lane { significand, exponent } = Self::fold(significands, exponents);
        ProdNode { significand, exponent, negative: negatives & 1 == 1, zeros, infs, nans }
    }
}

impl<T: FloatElement> TreeOp for Factors<T> {
    type Item = T;
    type Node = ProdNode;
    const KIND: Kind = Kind::Prod;
    const PAIRS: bool = false;
    const IDENTITY_ITEM: T = T::ONE;
    const NODE_BYTES: usize = 41;

    #[inline(always)]
    fn leaf(items: &[T], _others: &[T]) -> ProdNode {
        let mut significands = [1.0f64; LANES];
        let mut exponents = [0i64; LANES];
        let mut signs = [0u64; LANES];
        let mut specials = [0u64; LANES];
        let mut multiply = |l: usize, x: T| {
            // Exact; subnormals of narrower types become normal.
            let wide: f64 = x.widen().into();
            let bits = wide.to_bits();
            let field = (bits >> 52) & 0x7ff;
            significands[l] *= f64::from_bits(bits & FRACTION | ONE);
            exponents[l] += field as i64 - 1023;
            signs[l] ^= bits;
            // Fields 0 and 0x7ff become 0x7ff and 0x7fe, all others less.
            specials[l] |= u64::from(field.wrapping_sub(1) & 0x7ff >= 0x7fe);
        };
        let (chunks, rest) = items.as_chunks::<LANES>();
        for xs in chunks {
            prefetch::ahead(xs);
            for (l, &x) in xs.iter().enumerate() {
                multiply(l, x);
            }
        }
        for (l, &x) in rest.iter().enumerate() {
            multiply(l, x);
        }
        if fold_lanes(specials, |a, b| a | b) != 0 {
            return Self::leaf_with_specials(items);
        }
        let Lane { significand, exponent } = Self::fold(significands, exponents);
        let negative = fold_lanes(signs, |a, b| a ^ b) >> 63 == 1;
        ProdNode { significand, exponent, negative, zeros: 0, infs: 0, nans: 0 }
    }

    #[inline(always)]
    fn combine(a: &ProdNode, b: &ProdNode) -> ProdNode {
        // In [1, 4): rounding cannot reach 4, as (2 - 2^-52)^2 lies below
        // 4 - 2^-51, which is representable.
        let product = a.significand * b.significand;
        let (significand, carry) = if product >= 2.0 { (product * 0.5, 1) } else { (product, 0) };
        ProdNode {
            significand,
            exponent: a.exponent.saturating_add(b.exponent).saturating_add(carry),
            negative: a.negative != b.negative,
            zeros: a.zeros.wrapping_add(b.zeros),
            infs: a.infs.wrapping_add(b.infs),
            nans: a.nans.wrapping_add(b.nans),
        }
    }

    fn put(node: &ProdNode, out: &mut Vec<u8>) {
        out.push(u8::from(node.negative));
        let exponent = node.exponent as u64;
        for word in [node.significand.to_bits(), exponent, node.zeros, node.infs, node.nans] {
            out.extend(word.to_le_bytes());
        }
    }

    fn get(bytes: &[u8], span: u64) -> Option<ProdNode> {
        let mut from = Reader(bytes);
        let sign = from.uint(1).ok()?;
        let significand = f64::from_bits(from.u64().ok()?);
        let exponent = from.u64().ok()? as i64;
        let [zeros, infs, nans] = [from.u64().ok()?, from.u64().ok()?, from.u64().ok()?];
        let specials = zeros.checked_add(infs)?.checked_add(nans)?;
        let fits = sign <= 1 && specials <= span && (1.0..2.0).contains(&significand);
        fits.then_some(ProdNode { significand, exponent, negative: sign == 1, zeros, infs, nans })
    }

    /// Rounded once, from the 53 bits of the significand.
    fn value(root: &ProdNode, _count: u64, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::Prod {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let ProdNode { significand, exponent, negative, zeros, infs, nans } = *root;
        let skip_nans = admit_nans(nans, rules.nan)?;
        float_answer(op, T::DTYPE, rules, |out| {
            if nans > 0 && !skip_nans || zeros > 0 && infs > 0 {
                narrow::nan(out)
            } else if infs > 0 {
                narrow::infinity(out, negative)
            } else if zeros > 0 {
                narrow::from_parts(out, negative, 0, 0)
            } else {
                let magnitude = significand.to_bits() & FRACTION | 1 << 52;
                narrow::from_parts(out, negative, magnitude, exponent.saturating_sub(52))
            }
        })
    }
}

/// The state of a product of integers or truth values.
///
/// The answer is an i64 for signed elements, else a u64. Whether it fits is
/// judged on the whole product: `[2^40, 2^40, 0]` is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntProd<T> {
    /// The product modulo 2^64.
    wrapped: u64,
    /// The magnitude of the product without zeros; `None` from 2^128 on. No
    /// factor shrinks it, so that this does not depend on the order.
    magnitude: Option<u128>,
    /// The sign of the product without zeros.
    negative: bool,
    zero: bool,
    element: PhantomData<T>,
}

impl<T: Element> IntProd<T> {
    fn multiply(&mut self, wrapped: u64, magnitude: Option<u128>, negative: bool, zero: bool) {
        self.wrapped = self.wrapped.wrapping_mul(wrapped);
        self.magnitude = match (self.magnitude, magnitude) {
            (Some(a), Some(b)) => a.checked_mul(b),
            _ => None,
        };
        self.negative ^= negative;
        self.zero |= zero;
    }

    /// The whole product in the integer type `out`, if it fits.
    fn exact(&self, out: DType) -> Option<Scalar> {
        let magnitude = if self.zero { 0 } else { self.magnitude? };
        let value = i128::try_from(magnitude).ok()? * if self.negative { -1 } else { 1 };
        let bits = 8 * out.size() as u32;
        if out.is_signed_int() {
            let half = 1i128 << (bits - 1);
            ((-half..half).contains(&value)).then_some(Scalar::Int(value as i64, out))
        } else {
            ((0..1i128 << bits).contains(&value)).then_some(Scalar::UInt(value as u64, out))
        }
    }
}

impl<T: Element> State for IntProd<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::Prod
    }

    fn identity(_kind: Kind) -> Self {
        IntProd {
            wrapped: 1,
            magnitude: Some(1),
            negative: false,
            zero: false,
            element: PhantomData,
        }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for x in run.items {
            // Every integer is finite.
            let Parts::Finite { negative, magnitude, .. } = x.parts() else { continue };
            if magnitude == 0 {
                self.multiply(0, Some(1), false, true);
            } else {
                let wrapped = if negative { magnitude.wrapping_neg() } else { magnitude };
                self.multiply(wrapped, Some(u128::from(magnitude)), negative, false);
            }
        }
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        self.multiply(other.wrapped, other.magnitude, other.negative, other.zero);
        Ok(())
    }

    /// An integer answer fits or wraps; a float one is the exact product
    /// rounded once, an f64 up to magnitudes of 2^128.
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::Prod {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let own = if T::DTYPE.is_signed_int() { DType::I64 } else { DType::U64 };
        let out = rules.out.unwrap_or(own);
        let overflow = || Error::Overflow {
            op,
            total: match self.magnitude {
                Some(m) => format!("{}{m}", if self.negative { "-" } else { "" }),
                None if self.negative => "below -2^128".into(),
                None => "2^128 or more".into(),
            },
            out,
        };
        if out.is_float() {
            let magnitude = match (self.zero, self.magnitude) {
                (true, _) => 0,
                (false, Some(magnitude)) => magnitude,
                // From 2^128 on every product rounds to infinity in the types
                // whose largest number is below.
                (false, None) if out != DType::F64 => {
                    return narrow::infinity(out, self.negative)
                        .map(Value::One)
                        .ok_or(Error::UnsupportedOut { op, dtype: T::DTYPE, out });
                }
                (false, None) => return Err(overflow()),
            };
            // 64 leading bits, the last one set if any below is: no type has
            // more than 53, so that the rounding sees the same.
            let shift = (128 - magnitude.leading_zeros()).saturating_sub(64);
            let head = (magnitude >> shift) as u64;
            let sticky = u64::from(u128::from(head) << shift != magnitude);
            let negative = self.negative && magnitude != 0;
            return narrow::from_parts(out, negative, head | sticky, i64::from(shift))
                .map(Value::One)
                .ok_or(Error::UnsupportedOut { op, dtype: T::DTYPE, out });
        }
        if out == DType::Bool {
            return Err(Error::UnsupportedOut { op, dtype: T::DTYPE, out });
        }
        if rules.wrap {
            return Ok(Value::One(Scalar::from_bits(out, truncated(self.wrapped, out))));
        }
        self.exact(out).map(Value::One).ok_or_else(overflow)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.negative) | u8::from(self.zero) << 1);
        out.push(u8::from(self.magnitude.is_none()));
        out.extend(self.magnitude.unwrap_or(0).to_le_bytes());
        out.extend(self.wrapped.to_le_bytes());
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        let parse = || -> Result<Self, &'static str> {
            let mut from = Reader(bytes);
            let flags = from.uint(1)?;
            let over = from.uint(1)?;
            let magnitude = u128::from(from.u64()?) | u128::from(from.u64()?) << 64;
            let wrapped = from.u64()?;
            let (negative, zero) = (flags & 1 == 1, flags & 2 == 2);
            if !from.0.is_empty() {
                return Err("it has bytes left over");
            }
            let magnitude = match (over, magnitude) {
                (0, 1..) => Some(magnitude),
                (1, 0) => None,
                _ => return Err("its magnitude is impossible"),
            };
            // What is known twice must agree.
            let expected = match magnitude {
                _ if zero => Some(0),
                Some(m) if negative => Some((m as u64).wrapping_neg()),
                Some(m) => Some(m as u64),
                None => None,
            };
            if flags > 3
                || negative && !T::DTYPE.is_signed_int()
                || expected.is_some_and(|e| e != wrapped)
            {
                return Err("its sign and its product disagree");
            }
            Ok(IntProd { wrapped, magnitude, negative, zero, element: PhantomData })
        };
        parse().map_err(|why| Error::DamagedState { why: why.into() })
    }
}

/// The low bits of `bits` that a number of type `dtype` has.
const fn truncated(bits: u64, dtype: DType) -> u64 {
    bits & (u64::MAX >> (64 - 8 * dtype.size()))
}
