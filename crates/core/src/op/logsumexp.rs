//! The logarithm of a sum of exponentials, `ln(e^x1 + ... + e^xn)`.
//!
//! Floats are folded by the fixed tree. A node is a reference and the sum of
//! `e^(x - reference)`. The reference is the largest element, so that the sum
//! is at least 1 and cannot overflow; or, where sums are in one f64 and the
//! largest element is not beyond 256, it is 0: then one pass over the elements
//! is enough. What the answer is worth:
//!
//! | elements | sums in | absolute error before the last rounding | within 1 ulp of the true value if |
//! |---|---|---|---|
//! | f64 | two f64 | below 2^-89 | the answer's magnitude is at least 2^-35 |
//! | f32 | f64 | below 2^-44 | it is at least 2^-19 |
//! | f16, bf16 | f64 | below 2^-44 | it is at least 2^-32 |
//! | integers, bool | counts | below 2^-93 | it is at least 2^-39, or 0 |
//!
//! Smaller answers, which arise when the largest element and the logarithm of
//! the sum nearly cancel, keep the absolute error. An f32's state answers in
//! f64, too, with f32's absolute error.
//!
//! Integers differ by integers, so counting how often each difference from the
//! largest occurs is exact and needs no order: the exponentials come at the
//! end.
//!
//! # The error of the tree
//!
//! Let t bound the relative error of a term, e that of the exponential on the
//! levels above, a that of an addition and m that of a product. A term is
//! rounded by its exponential, by 64 + 6 additions in the leaf, and on each of
//! at most 52 levels above by a factor, its product and an addition. Sums of
//! positive numbers do not amplify, so the sum's relative error, which is the
//! absolute error of its logarithm, is at most `t + 70 a + 52 (e + m + a)` up to
//! higher powers.
//!
//! In one f64, e = 2^-51.8, a = m = u = 2^-53 and `t = (25 + 0.31 |d|) u`, where
//! d is what the exponential is taken of. Differences are rounded too, by u of
//! themselves; along a term's path they add up to its distance from the
//! maximum. Of that, and of d with the maximum as reference, at most 50 matters,
//! since all terms beyond weigh less than 2^64 e^-50; with 0 as reference nothing
//! is subtracted and |d| up to 306 matters. The larger of the two is
//! `u (25 + 95 + 70 + 52 * 4.3) < 2^-44.2`. With two f64 (e = t = 2^-96,
//! a = 2^-104.4, m = 2^-103.6) it is below 2^-90.1, and the logarithm and the
//! last addition add 2^-94. Half an ulp of an answer y with p bits is at least
//! 2^(-p-1) |y|, which gives the last column.

use super::answer::{float_answer, nan_wins};
pub use super::double_double::Double;
use super::double_double::INV_E;
use super::exponential;
use super::float::{FloatElement, Wide};
use super::tree::{BLOCK, FixedTree, LANES, Reader, TreeOp, fold_lanes};
use super::{Kind, Op, Rules, Run, State, Value, narrow};
use crate::DType;
use crate::element::{Element, Key, bf16, f16};
use crate::error::{Error, Result};
use core::fmt::Debug;
use core::marker::PhantomData;

/// The state of a `logsumexp` of floats.
pub type FloatLogSumExp<T> = FixedTree<Exponentials<T>>;

/// What sums of exponentials are kept in: an f64, or two for f64 elements.
pub trait ExpSum: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// The lanes of a leaf, laid out so that neighbours share a vector.
    type Lanes: Copy;
    /// Lanes without terms.
    const LANES: Self::Lanes;
    /// Leaves whose largest element is no farther from 0 have it as reference.
    const REACH: f64;
    /// A power of two that is not below `e^REACH`.
    const EXP_REACH: f64;
    /// Adds `e^(x - reference)` to lane `l`.
    fn add_exp(lanes: &mut Self::Lanes, l: usize, x: f64, reference: f64);
    /// The lanes one by one.
    fn lanes(lanes: &Self::Lanes) -> [Self; LANES];
    /// `e^(low - high)` for `low <= high`; 0 if `low` is minus infinity.
    fn exp_of_difference(low: f64, high: f64) -> Self;
    /// The sum.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The product.
    #[must_use]
    fn times(self, other: Self) -> Self;
    /// The same in two f64.
    fn to_double(self) -> Double;
    /// The inverse of [`to_double`](Self::to_double), if there is one.
    fn from_double(double: Double) -> Option<Self>;
}

impl ExpSum for f64 {
    type Lanes = [f64; LANES];
    const LANES: [f64; LANES] = [0.0; LANES];
    const REACH: f64 = 256.0;
    const EXP_REACH: f64 = f64::from_bits((1023 + 370) << 52);
    #[inline(always)]
    fn add_exp(lanes: &mut [f64; LANES], l: usize, x: f64, reference: f64) {
        // Rounds only if the magnitudes differ by 2^29: see the module.
        lanes[l] = exponential::plus_exp(lanes[l], x - reference);
    }
    #[inline(always)]
    fn lanes(lanes: &[f64; LANES]) -> [f64; LANES] {
        *lanes
    }
    #[inline(always)]
    fn exp_of_difference(low: f64, high: f64) -> f64 {
        exponential::exp(low - high)
    }
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline(always)]
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn to_double(self) -> Double {
        Double::new(self)
    }
    fn from_double(double: Double) -> Option<f64> {
        (double.lo.to_bits() == 0).then_some(double.hi)
    }
}

impl ExpSum for Double {
    /// High parts and low parts.
    type Lanes = [[f64; LANES]; 2];
    const LANES: [[f64; LANES]; 2] = [[0.0; LANES]; 2];
    const REACH: f64 = 0.0;
    const EXP_REACH: f64 = 1.0;
    #[inline(always)]
    fn add_exp([hi, lo]: &mut [[f64; LANES]; 2], l: usize, x: f64, reference: f64) {
        let sum = Double { hi: hi[l], lo: lo[l] }.plus(Double::exp_of_difference(x, reference));
        (hi[l], lo[l]) = (sum.hi, sum.lo);
    }
    #[inline(always)]
    fn lanes([hi, lo]: &[[f64; LANES]; 2]) -> [Double; LANES] {
        core::array::from_fn(|l| Double { hi: hi[l], lo: lo[l] })
    }
    #[inline(always)]
    fn exp_of_difference(low: f64, high: f64) -> Double {
        Double::difference(low, high).exp()
    }
    #[inline(always)]
    fn plus(self, other: Double) -> Double {
        Double::plus(self, other)
    }
    #[inline(always)]
    fn times(self, other: Double) -> Double {
        Double::times(self, other)
    }
    fn to_double(self) -> Double {
        self
    }
    fn from_double(double: Double) -> Option<Double> {
        (double.hi + double.lo == double.hi).then_some(double)
    }
}

/// A floating-point element type with the precision of its exponentials.
pub trait ExpElement: FloatElement {
    /// What sums of exponentials of differences are kept in.
    type Total: ExpSum;
}
impl ExpElement for f16 {
    type Total = f64;
}
impl ExpElement for bf16 {
    type Total = f64;
}
impl ExpElement for f32 {
    type Total = f64;
}
impl ExpElement for f64 {
    type Total = Double;
}

/// A sum of exponentials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpNode<S> {
    /// What exponents count from: minus infinity if no element is between the
    /// infinities; 0 if the largest such element of the leaf where it lies is
    /// within [`ExpSum::REACH`]; else that element.
    pub reference: f64,
    /// The sum of `e^(x - reference)`; 0 if that is minus infinity, else about
    /// [`ExpSum::EXP_REACH`]'s inverse or more if it is 0, else about 1 or
    /// more.
    pub sum: S,
    /// How many elements are NaN.
    pub nans: u64,
    /// How many are plus infinity.
    pub pos_infs: u64,
}

/// The fixed tree of sums of exponentials.
#[derive(Clone, Copy, Debug)]
pub struct Exponentials<T>(PhantomData<T>);

impl<T: ExpElement> Exponentials<T> {
    /// The largest element, and whether all are below plus infinity (so that
    /// none is NaN).
    #[inline(always)]
    fn max(items: &[T]) -> (T::Wide, bool) {
        let lowest = T::NEG_INFINITY.widen();
        let mut maxima = [lowest; LANES];
        let mut odd = [0u32; LANES];
        let infinity = lowest.magnitude();
        let mut look = |l: usize, x: T| {
            let x = x.widen();
            maxima[l] = if x > maxima[l] { x } else { maxima[l] };
            odd[l] |= if x < infinity { 0 } else { 1 };
        };
        let (chunks, rest) = items.as_chunks::<LANES>();
        for xs in chunks {
            for (l, &x) in xs.iter().enumerate() {
                look(l, x);
            }
        }
        for (l, &x) in rest.iter().enumerate() {
            look(l, x);
        }
        let max = fold_lanes(maxima, |a, b| if b > a { b } else { a });
        (max, fold_lanes(odd, |a, b| a | b) == 0)
    }

    /// What exponents count from, below a largest element.
    #[inline(always)]
    fn reference(max: f64) -> f64 {
        if max.abs() <= T::Total::REACH { 0.0 } else { max }
    }

    /// The node of elements that are all below plus infinity.
    #[inline(always)]
    fn sum(items: &[T], max: T::Wide) -> ExpNode<T::Total> {
        let reference = Self::reference(max.into());
        let mut lanes = T::Total::LANES;
        // Minus infinity from itself would be NaN; there is nothing to add.
        if reference > f64::NEG_INFINITY {
            let (chunks, rest) = items.as_chunks::<LANES>();
            for xs in chunks {
                for (l, x) in xs.iter().enumerate() {
                    T::Total::add_exp(&mut lanes, l, x.widen().into(), reference);
                }
            }
            for (l, x) in rest.iter().enumerate() {
                T::Total::add_exp(&mut lanes, l, x.widen().into(), reference);
            }
        }
        let sum = fold_lanes(T::Total::lanes(&lanes), |a, b| a.plus(b));
        ExpNode { reference, sum, nans: 0, pos_infs: 0 }
    }

    /// The leaf of a block with NaNs or plus infinities, which are counted and
    /// then stand as minus infinities.
    #[cold]
    #[inline(never)]
    fn leaf_with_specials(items: &[T]) -> ExpNode<T::Total> {
        let mut ordinary = [T::NEG_INFINITY; BLOCK];
        let (mut nans, mut pos_infs) = (0, 0);
        for (to, &x) in ordinary.iter_mut().zip(items) {
            if x.is_nan() {
                nans += 1;
            } else if x.widen() == T::NEG_INFINITY.widen().magnitude() {
                pos_infs += 1;
            } else {
                *to = x;
            }
        }
        let ordinary = &ordinary[..items.len().min(BLOCK)];
        ExpNode { nans, pos_infs, ..Self::sum(ordinary, Self::max(ordinary).0) }
    }
}

impl<T: ExpElement> TreeOp for Exponentials<T> {
    type Item = T;
    type Node = ExpNode<T::Total>;
    const KIND: Kind = Kind::LogSumExp;
    const IDENTITY_ITEM: T = T::NEG_INFINITY;
    const NODE_BYTES: usize = 40;

    #[inline(always)]
    fn leaf(items: &[T]) -> Self::Node {
        match Self::max(items) {
            (max, true) => Self::sum(items, max),
            _ => Self::leaf_with_specials(items),
        }
    }

    fn combine(a: &Self::Node, b: &Self::Node) -> Self::Node {
        let (high, low) = if a.reference >= b.reference { (a, b) } else { (b, a) };
        let sum = if low.reference == f64::NEG_INFINITY {
            high.sum
        } else {
            let factor = T::Total::exp_of_difference(low.reference, high.reference);
            high.sum.plus(low.sum.times(factor))
        };
        ExpNode {
            reference: high.reference,
            sum,
            nans: a.nans.wrapping_add(b.nans),
            pos_infs: a.pos_infs.wrapping_add(b.pos_infs),
        }
    }

    fn put(node: &Self::Node, out: &mut Vec<u8>) {
        let Double { hi, lo } = node.sum.to_double();
        for word in [node.reference.to_bits(), hi.to_bits(), lo.to_bits(), node.nans, node.pos_infs]
        {
            out.extend(word.to_le_bytes());
        }
    }

    fn get(bytes: &[u8], span: u64) -> Option<Self::Node> {
        let mut from = Reader(bytes);
        let mut float = || from.u64().ok().map(f64::from_bits);
        let (reference, hi, lo) = (float()?, float()?, float()?);
        let [nans, pos_infs] = [from.u64().ok()?, from.u64().ok()?];
        let sum = T::Total::from_double(Double { hi, lo })?;
        // A reference that is 0 or a far element; a sum of at most one per
        // element, or as much as 0's reach allows, with room for rounding.
        let known = reference < f64::INFINITY
            && narrow::from_f64(T::DTYPE, reference)?.to_f64() == reference
            && Self::reference(reference).to_bits() == reference.to_bits();
        let empty = reference == f64::NEG_INFINITY && hi.to_bits() == 0 && lo.to_bits() == 0;
        let room = if reference == 0.0 { T::Total::EXP_REACH } else { 1.0 };
        let some =
            reference > f64::NEG_INFINITY && (0.5 / room..=1.5 * room * span as f64).contains(&hi);
        let fits = known && (empty || some) && nans.checked_add(pos_infs)? <= span;
        fits.then_some(ExpNode { reference, sum, nans, pos_infs })
    }

    fn value(root: &Self::Node, _count: u64, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::LogSumExp {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        let ExpNode { reference, sum, nans, pos_infs } = *root;
        let nan = nan_wins(rules, nans, None)?;
        float_answer(op, T::DTYPE, rules, |out| {
            if nan {
                narrow::nan(out)
            } else if pos_infs > 0 {
                narrow::infinity(out, false)
            } else if reference == f64::NEG_INFINITY {
                narrow::infinity(out, true)
            } else {
                rounded(out, Double::new(reference).plus(sum.to_double().ln()))
            }
        })
    }
}

/// A double in the type `out`, rounded once.
fn rounded(out: DType, x: Double) -> Option<super::Scalar> {
    // No -0 and no trace of one.
    let x = if x.hi == 0.0 { Double::ZERO } else { x };
    narrow::from_f64(out, if out == DType::F64 { x.hi } else { x.round_to_odd() })
}

/// How many differences from the maximum are told apart. An element further
/// below weighs less than e^-128, and 2^64 of them less than 2^-120.
const DEPTH: usize = 128;

/// The state of a `logsumexp` of integers or truth values: how many elements
/// lie how far below the largest.
///
/// An element that is too far below some maximum is too far below every later
/// one, so that the counts do not depend on the order.
#[derive(Clone, Debug, PartialEq)]
pub struct IntLogSumExp<T: Element> {
    /// The largest element; `None` if there are none.
    max: Option<T::Key>,
    /// Counts of `max`, `max - 1`, ...; the last one is not 0.
    counts: Vec<u64>,
}

/// `high - low`; exact, as keys are sign- or zero-extended.
#[inline(always)]
fn distance<K: Key>(high: K, low: K) -> u64 {
    high.to_bits64().wrapping_sub(low.to_bits64())
}

impl<T: Element> IntLogSumExp<T> {
    /// Makes `key` the maximum unless there is a larger one.
    fn raise(&mut self, key: T::Key) {
        match self.max {
            Some(max) if key <= max => return,
            Some(max) => {
                let by = usize::try_from(distance(key, max)).unwrap_or(DEPTH).min(DEPTH);
                self.counts.truncate(DEPTH - by);
                if !self.counts.is_empty() {
                    self.counts.splice(0..0, core::iter::repeat_n(0, by));
                }
            }
            None => {}
        }
        self.max = Some(key);
    }

    /// Counts `n` elements `below` the maximum.
    fn count(&mut self, below: usize, n: u64) {
        if below < DEPTH && n > 0 {
            if self.counts.len() <= below {
                self.counts.resize(below + 1, 0);
            }
            self.counts[below] = self.counts[below].saturating_add(n);
        }
    }

    /// Truncation in [`raise`](Self::raise) may leave zeros at the end.
    fn trim(&mut self) {
        while self.counts.pop_if(|n| *n == 0).is_some() {}
    }
}

impl<T: Element> State for IntLogSumExp<T> {
    type Item = T;

    fn kind(&self) -> Kind {
        Kind::LogSumExp
    }

    fn identity(_kind: Kind) -> Self {
        IntLogSumExp { max: None, counts: Vec::new() }
    }

    fn absorb(&mut self, run: Run<'_, T>) {
        for block in run.items.chunks(BLOCK) {
            let Some(largest) = block.iter().map(|x| x.key()).max() else { continue };
            self.raise(largest);
            let max = self.max.unwrap_or(largest);
            // One slot more, for all that is too far below.
            let mut local = [0u64; DEPTH + 1];
            for x in block {
                local[distance(max, x.key()).min(DEPTH as u64) as usize] += 1;
            }
            for (below, &n) in local[..DEPTH].iter().enumerate() {
                self.count(below, n);
            }
        }
        self.trim();
    }

    fn most_bytes(_positions: u64) -> usize {
        // A vector that grows may have doubled.
        size_of::<Self>() + 2 * DEPTH * size_of::<u64>()
    }

    fn merge(&mut self, other: &Self) -> Result<()> {
        let Some(theirs) = other.max else { return Ok(()) };
        self.raise(theirs);
        let apart = distance(self.max.unwrap_or(theirs), theirs);
        let apart = usize::try_from(apart).unwrap_or(DEPTH);
        for (below, &n) in other.counts.iter().enumerate() {
            self.count(below.saturating_add(apart), n);
        }
        self.trim();
        Ok(())
    }

    /// An f64 unless another float type is asked for.
    fn finish(&self, op: Op, rules: &Rules) -> Result<Value> {
        if op != Op::LogSumExp {
            return Err(Error::UnsupportedType { op, dtype: T::DTYPE });
        }
        // Horner's rule in 1/e: the count at distance d goes through d
        // products and sums, and weighs e^-d.
        let sum = self
            .counts
            .iter()
            .rev()
            .fold(Double::ZERO, |sum, &n| sum.times(INV_E).plus(Double::from_u64(n)));
        float_answer(op, T::DTYPE, rules, |out| {
            let Some(max) = self.max else { return narrow::infinity(out, true) };
            let bits = max.to_bits64();
            let max = if T::DTYPE.is_signed_int() && (bits as i64) < 0 {
                Double::from_u64(bits.wrapping_neg()).negated()
            } else {
                Double::from_u64(bits)
            };
            rounded(out, max.plus(sum.ln()))
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.counts.len() as u8);
        out.extend(self.max.map_or(0, T::Key::to_bits64).to_le_bytes());
        for n in &self.counts {
            out.extend(n.to_le_bytes());
        }
    }

    fn read(_kind: Kind, bytes: &[u8]) -> Result<Self> {
        let parse = || -> Result<Self, &'static str> {
            let mut from = Reader(bytes);
            let len = from.uint(1)? as usize;
            let bits = from.u64()?;
            if len > DEPTH {
                return Err("it has too many distinct values");
            }
            let counts = (0..len).map(|_| from.u64()).collect::<Result<Vec<_>, _>>()?;
            if !from.0.is_empty() {
                return Err("it has bytes left over");
            }
            let max = T::Key::from_bits64(bits);
            let (least, greatest) = T::key_range();
            if max.to_bits64() != bits || max < least || max > greatest {
                return Err("its maximum is not of the element type");
            }
            if counts.first() == Some(&0) || counts.last() == Some(&0) || len == 0 && bits != 0 {
                return Err("its counts disagree with its maximum");
            }
            // Nothing lies below the least element.
            if distance(max, least) < (len as u64).saturating_sub(1) {
                return Err("its counts disagree with its element type");
            }
            Ok(IntLogSumExp { max: (len > 0).then_some(max), counts })
        };
        parse().map_err(|why| Error::DamagedState { why: why.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The root over `x`, straight from the definition of the tree.
    fn definition(x: &[f32]) -> (f64, f64) {
        let leaf = |x: &[f32]| {
            let max = x.iter().fold(f64::NEG_INFINITY, |m, &v| m.max(v.into()));
            let reference = if (-256.0..=256.0).contains(&max) { 0.0 } else { max };
            let mut lanes = [0.0; 64];
            for (i, &v) in x.iter().enumerate() {
                lanes[i % 64] = exponential::plus_exp(lanes[i % 64], f64::from(v) - reference);
            }
            for width in [32, 16, 8, 4, 2, 1] {
                for l in 0..width {
                    lanes[l] += lanes[l + width];
                }
            }
            (reference, lanes[0])
        };
        if x.len() <= BLOCK {
            return leaf(x);
        }
        let mut half = BLOCK;
        while 2 * half < x.len() {
            half *= 2;
        }
        let ((r0, s0), (r1, s1)) = (definition(&x[..half]), definition(&x[half..]));
        let high = r0.max(r1);
        (high, s0 * exponential::exp(r0 - high) + s1 * exponential::exp(r1 - high))
    }

    #[test]
    fn the_tree_is_the_one_defined() {
        for n in [1usize, 2, 63, 64, 65, 4095, 4096, 4097, 8193, 12289, 20000] {
            for scale in [0.01, 1.0, -1.0] {
                let x: Vec<f32> = (0..n)
                    .map(|i| {
                        (((i * 7919) % 1013) as f32 - 500.0 + (i / BLOCK) as f32 * 170.0) * scale
                    })
                    .collect();
                let root = FixedTree::<Exponentials<f32>>::root_of(&x, Exponentials::leaf);
                assert_eq!((root.reference, root.sum), definition(&x), "{n} {scale}");
            }
        }
    }
}
