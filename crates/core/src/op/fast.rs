//! Accuracy = fast: plain adds in the fixed tree.
//!
//! The same bits for any number of threads and any split of the data, with the
//! rounding errors of a pairwise sum. f64 accumulates in f64; f32, f16 and bf16
//! accumulate in f32. Products and squares are rounded before they are added:
//! no fused operation, so that no target needs one.

use super::tree::{FixedTree, LANES, Reader, TreeOp, fold_lanes};
use super::{Accuracy, Kind, NanPolicy, Op, Rules, Scalar, Value, narrow};
use crate::DType;
use crate::element::{Element, Parts, bf16, f16};
use crate::error::{Error, Result};
use crate::prefetch;
use core::fmt::Debug;
use core::marker::PhantomData;

/// The state of a fast `sum` or `mean` of floats.
pub type FastSum<T> = FixedTree<Plain<T, Itself>>;
/// The state of a fast `norm1` of floats.
pub type FastAbsSum<T> = FixedTree<Plain<T, Abs>>;
/// The state of a fast `sumsq` or `norm2` of floats.
pub type FastSquareSum<T> = FixedTree<Plain<T, Square>>;
/// The state of a fast `dot` of floats.
pub type FastDot<T> = FixedTree<Plain<T, Product>>;

/// What fast sums accumulate in: f32 or f64.
pub trait Accumulator:
    Element
    + Default
    + PartialOrd
    + core::ops::Add<Output = Self>
    + core::ops::Mul<Output = Self>
    + Into<f64>
{
    /// The magnitude.
    #[must_use]
    fn magnitude(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! accumulator {
    ($($t:ty),*) => {$(
        impl Accumulator for $t {
            #[inline(always)]
            fn magnitude(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}
accumulator!(f32, f64);

/// A floating-point element type.
pub trait FloatElement: Element {
    /// What fast sums of it accumulate in.
    type Wide: Accumulator;
    /// Positive zero.
    const ZERO: Self;
    /// One.
    const ONE: Self;
    /// Minus infinity.
    const NEG_INFINITY: Self;
    /// The same value in the accumulator's type; exact.
    fn widen(self) -> Self::Wide;
}

impl FloatElement for f64 {
    type Wide = f64;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = f64::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
}

impl FloatElement for f32 {
    type Wide = f32;
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl FloatElement for bf16 {
    type Wide = f32;
    const ZERO: Self = bf16::ZERO;
    const ONE: Self = bf16::ONE;
    const NEG_INFINITY: Self = bf16::NEG_INFINITY;
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }
}

impl FloatElement for f16 {
    type Wide = f32;
    const ZERO: Self = f16::ZERO;
    const ONE: Self = f16::ONE;
    const NEG_INFINITY: Self = f16::NEG_INFINITY;
    /// Without branches, so that it becomes vector instructions, and without
    /// a subnormal f32 on the way, which flush-to-zero would swallow.
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let rest = bits & 0x7fff;
        // The exponent bias grows from 15 to 127; infinities and NaNs have
        // the largest exponent, which grows from 31 to 255.
        let bias = if rest >= 0x7c00 { 224 << 23 } else { 112 << 23 };
        let normal = (rest << 13) + bias;
        // A subnormal is `rest * 2^-24`, and 2^-24 is the last place of 0.5.
        let subnormal = (f32::from_bits(0x3f00_0000 | rest) - 0.5).to_bits();
        let magnitude = if rest < 0x400 { subnormal } else { normal };
        f32::from_bits(magnitude | (bits & 0x8000) << 16)
    }
}

/// Calls a generic function with the float element type that a
/// [`DType`] names, or else evaluates the other expression:
/// `with_float_element!(dtype, T => f::<T>(x), else => y)`.
#[macro_export]
macro_rules! with_float_element {
    ($dtype:expr, $T:ident => $body:expr, else => $other:expr) => {
        match $dtype {
            $crate::DType::F16 => {
                type $T = $crate::element::f16;
                $body
            }
            $crate::DType::BF16 => {
                type $T = $crate::element::bf16;
                $body
            }
            $crate::DType::F32 => {
                type $T = f32;
                $body
            }
            $crate::DType::F64 => {
                type $T = f64;
                $body
            }
            _ => $other,
        }
    };
}

/// What an element contributes to a sum.
pub trait Term: Copy + Debug + Send + Sync + 'static {
    /// The state that adds it.
    const KIND: Kind;
    /// Whether it takes an element of each of two arrays.
    const PAIRS: bool;
    /// The term; `y` is 0 unless [`PAIRS`](Self::PAIRS).
    fn of<A: Accumulator>(x: A, y: A) -> A;
}

macro_rules! term {
    ($(#[$doc:meta])* $name:ident, $kind:ident, $pairs:literal, |$x:ident, $y:ident| $body:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Term for $name {
            const KIND: Kind = Kind::$kind;
            const PAIRS: bool = $pairs;
            #[inline(always)]
            fn of<A: Accumulator>($x: A, $y: A) -> A {
                $body
            }
        }
    };
}
term!(
    /// The element.
    Itself, FastSum, false, |x, _y| x
);
term!(
    /// Its magnitude.
    Abs, FastAbsSum, false, |x, _y| x.magnitude()
);
term!(
    /// Its square, rounded.
    Square, FastSquareSum, false, |x, _y| x * x
);
term!(
    /// The product with the other array's element, rounded.
    Product, FastDot, true, |x, y| x * y
);

/// A sum of terms and what was not finite among the elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastNode<A> {
    /// The sum of the finite elements' terms; infinite or NaN if they overflow.
    pub sum: A,
    /// NaN terms of elements that are not all finite.
    pub nans: u64,
    /// Infinite terms above zero.
    pub pos_infs: u64,
    /// Infinite terms below zero.
    pub neg_infs: u64,
}

/// The fixed tree of plain adds.
#[derive(Clone, Copy, Debug)]
pub struct Plain<T, M>(PhantomData<(T, M)>);

impl<T: FloatElement, M: Term> Plain<T, M> {
    /// The block's terms, each put through `f`, summed by the lanes.
    #[inline(always)]
    fn sum(items: &[T], others: &[T], mut f: impl FnMut(T, T) -> T::Wide) -> T::Wide {
        // Lanes start at +0 and so are never -0: x + -x = +0 and +0 + -0 = +0
        // in this rounding mode. Hence +0 is an identity.
        let mut lanes = [T::Wide::default(); LANES];
        let (chunks, rest) = items.as_chunks::<LANES>();
        if M::PAIRS {
            let (other_chunks, other_rest) = others.as_chunks::<LANES>();
            for (xs, ys) in chunks.iter().zip(other_chunks) {
                prefetch::ahead(xs);
                prefetch::ahead(ys);
                for l in 0..LANES {
                    lanes[l] = lanes[l] + f(xs[l], ys[l]);
                }
            }
            for ((lane, &x), &y) in lanes.iter_mut().zip(rest).zip(other_rest) {
                *lane = *lane + f(x, y);
            }
        } else {
            for xs in chunks {
                prefetch::ahead(xs);
                for l in 0..LANES {
                    lanes[l] = lanes[l] + f(xs[l], T::ZERO);
                }
            }
            for (lane, &x) in lanes.iter_mut().zip(rest) {
                *lane = *lane + f(x, T::ZERO);
            }
        }
        fold_lanes(lanes, |a, b| a + b)
    }

    /// The leaf of a block whose plain sum is not finite: elements that are
    /// not finite are counted and add nothing.
    #[cold]
    #[inline(never)]
    fn leaf_with_specials(items: &[T], others: &[T]) -> FastNode<T::Wide> {
        let (mut nans, mut pos_infs, mut neg_infs) = (0, 0, 0);
        let sum = Self::sum(items, others, |x, y| {
            let (x, y) = (x.widen(), y.widen());
            let term = M::of(x, y);
            if x.is_finite() && y.is_finite() {
                return term;
            }
            match term.parts() {
                Parts::Infinite { negative: false } => pos_infs += 1,
                Parts::Infinite { negative: true } => neg_infs += 1,
                _ => nans += 1,
            }
            T::Wide::default()
        });
        FastNode { sum, nans, pos_infs, neg_infs }
    }
}

impl<T: FloatElement, M: Term> TreeOp for Plain<T, M> {
    type Item = T;
    type Node = FastNode<T::Wide>;
    const KIND: Kind = M::KIND;
    const PAIRS: bool = M::PAIRS;
    const IDENTITY_ITEM: T = T::ZERO;
    const NODE_BYTES: usize = 32;

    #[inline(always)]
    fn leaf(items: &[T], others: &[T]) -> Self::Node {
        let sum = Self::sum(items, others, |x, y| M::of(x.widen(), y.widen()));
        // An infinity or a NaN cannot add up to something finite.
        if Accumulator::is_finite(sum) {
            FastNode { sum, nans: 0, pos_infs: 0, neg_infs: 0 }
        } else {
            Self::leaf_with_specials(items, others)
        }
    }

    #[inline(always)]
    fn combine(a: &Self::Node, b: &Self::Node) -> Self::Node {
        FastNode {
            sum: a.sum + b.sum,
            nans: a.nans.wrapping_add(b.nans),
            pos_infs: a.pos_infs.wrapping_add(b.pos_infs),
            neg_infs: a.neg_infs.wrapping_add(b.neg_infs),
        }
    }

    fn put(node: &Self::Node, out: &mut Vec<u8>) {
        // The payload of a NaN from an overflow does not matter.
        let sum: f64 = node.sum.into();
        let bits = if node.sum.is_nan() { f64::NAN.to_bits() } else { sum.to_bits() };
        for word in [bits, node.nans, node.pos_infs, node.neg_infs] {
            out.extend(word.to_le_bytes());
        }
    }

    fn get(bytes: &[u8], span: u64) -> Option<Self::Node> {
        let mut from = Reader(bytes);
        let bits = from.u64().ok()?;
        let sum = narrow::from_f64(T::Wide::DTYPE, f64::from_bits(bits))?;
        let [nans, pos_infs, neg_infs] = [from.u64().ok()?, from.u64().ok()?, from.u64().ok()?];
        let specials = nans.checked_add(pos_infs)?.checked_add(neg_infs)?;
        // No sum is -0, which would break the law of the identity.
        let exact = sum.to_f64().to_bits() == bits && bits != (-0.0f64).to_bits();
        let sum = T::Wide::from_bits(sum.to_bits());
        (specials <= span && exact).then_some(FastNode { sum, nans, pos_infs, neg_infs })
    }

    /// `mean` is the sum divided in f64 and then rounded to the answer's type;
    /// `norm2` is the root taken in f64, likewise.
    fn value(root: &Self::Node, count: u64, op: Op, rules: &Rules) -> Result<Value> {
        if op.kind(Accuracy::Fast, T::DTYPE) != M::KIND {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let FastNode { sum, nans, pos_infs, neg_infs } = *root;
        let skip_nans = admit_nans(nans, rules.nan)?;
        let sum: f64 = sum.into();
        let total = if nans > 0 && !skip_nans || pos_infs > 0 && neg_infs > 0 {
            f64::NAN
        } else if pos_infs > 0 {
            f64::INFINITY
        } else if neg_infs > 0 {
            f64::NEG_INFINITY
        } else {
            sum
        };
        let value = match op {
            // 0 / 0 is the NaN that the mean of nothing should be.
            Op::Mean => total / (count.saturating_sub(if skip_nans { nans } else { 0 }) as f64),
            Op::Norm2 => total.sqrt(),
            _ => total,
        };
        float_answer(op, T::DTYPE, rules, |out| narrow::from_f64(out, value))
    }
}

/// Whether NaNs are skipped, or the error that there are NaNs.
pub(super) fn admit_nans(nans: u64, policy: NanPolicy) -> Result<bool> {
    match policy {
        NanPolicy::Propagate => Ok(false),
        NanPolicy::Omit => Ok(true),
        NanPolicy::Error if nans == 0 => Ok(false),
        NanPolicy::Error => Err(Error::NanFound { count: nans, first: None }),
    }
}

/// The answer in the type asked for, or in the element's (f64 for integers).
pub(super) fn float_answer(
    op: Op,
    dtype: DType,
    rules: &Rules,
    scalar: impl Fn(DType) -> Option<Scalar>,
) -> Result<Value> {
    let own = if dtype.is_float() { dtype } else { DType::F64 };
    let out = rules.out.unwrap_or(own);
    scalar(out).map(Value::One).ok_or(Error::UnsupportedOut { op, dtype, out })
}
