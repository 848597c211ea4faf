//! Which accumulators answer an operation.

use super::counts::{Counted, Found};
use super::direct::{Direct, Factor};
use super::exponentials::Exponentials;
use super::extremes::{self, Ends, First, Least, Order, Real, Truth, Whole};
use super::factors::{Factors, SIGNED, TRUTH, UNSIGNED};
use super::finish::Asked;
use super::floats::Floats;
use super::fold::{Fold, RaggedFold, Use};
use super::integers::{LongPowers, LongTotals, MAGNITUDES, Powers, ShortPowers, Totals};
use super::lanes::{Laned, Lanes};
use super::measures::{
    Absolute, Both, BoundedBoth, BoundedPlain, BoundedProducts, BoundedShifted, BoundedSquares,
    DoublyAbsolute, DoublyBoth, DoublyPlain, Measure, Plain, Products as Pairs, Shifted, Squares,
};
use super::products::Products;
use super::ranged::Ranged;
use super::round::Narrow;
use super::short;
use super::sums::{Alone, Operands, Paired, Sums};
use super::words::{Word, flip, with_word};
use crate::exact::Widen;
use crate::integer::Integer;
use crate::isa::Isa;
use core::marker::PhantomData;
use warpfold_core::element::{Key, Known, bf16, f16};
use warpfold_core::exact::FloatFormat;
use warpfold_core::op::{FloatElement, Rules, Several};
use warpfold_core::{DType, Element, NanPolicy, Op, fpenv, with_element};

/// Calls a generic function with the order in which the element is the least that `op` seeks.
macro_rules! with_order {
    ($dtype:expr, $op:expr, $omits:expr, $order:ident => $body:expr) => {{
        let (dtype, omits): (DType, bool) = ($dtype, $omits);
        let opposite = if $op == Op::ArgMax { u64::MAX } else { 0 };
        let bits = flip(dtype) ^ opposite;
        macro_rules! with {
            ($found:expr) => {{
                let $order = $found;
                $body
            }};
        }
        match dtype.known() {
            Known::F16 | Known::BF16 => with!(real::<i16>(dtype, opposite, omits)),
            Known::F32 => with!(real::<i32>(dtype, opposite, omits)),
            Known::F64 => with!(real::<i64>(dtype, opposite, omits)),
            Known::Bool => with!(Truth(i8::of(opposite))),
            Known::I8 | Known::U8 => with!(Whole(i8::of(bits))),
            Known::I16 | Known::U16 => with!(Whole(i16::of(bits))),
            Known::I32 | Known::U32 => with!(Whole(i32::of(bits))),
            Known::I64 | Known::U64 => with!(Whole(i64::of(bits))),
        }
    }};
}

/// Positions and counts have 32 bits, and sums of squares of 62 bits another 31.
const MOST_ELEMENTS: usize = 1 << 31;

/// Sums of few short floats often lie in the middle between two: plain sums do not tell.
const OFTEN_HALF_WAY: usize = 256;
/// Of so few f64 one sum in 32 does, which costs more to find again than finer sums of all.
const OFTEN_IN_THE_MIDDLE: usize = 32;
/// The variance of so few elements is often 0, or lies there.
const OFTEN_ZERO: usize = 4;

/// Of more elements a single output is worth its state, as a rule.
pub(crate) const LONG: usize = 4096;
/// Of more squares of f32 one sum in 64 is not certain.
const MANY_SQUARES: usize = 1 << 22;
/// Of more products of f32 that cancel, one sum in 4 is not.
const MANY_PAIRS: usize = 1 << 18;
/// Sums of more products of f64 are bound by memory, whoever adds them.
const BOUND_BY_MEMORY: usize = 1 << 22;

/// The most elements of a single output that accumulators answer faster than its state; `widened` says
/// whether answers are f64 of shorter floats.
pub(crate) fn most_alone(dtype: DType, op: Op, widened: bool) -> usize {
    match (op, dtype) {
        // They may be settled early.
        (Op::Any | Op::All, _) => usize::MAX,
        // States look for both ends, and for NaNs.
        (Op::Min | Op::Max | Op::NormInf, _) => MOST_ELEMENTS,
        // They may be found at once: a NaN is the answer.
        (Op::ArgMin | Op::ArgMax, _) => MOST_ELEMENTS,
        (Op::Prod, DType::F32) => f32::MANY,
        (Op::Prod, DType::F64) => f64::MANY,
        // States keep all digits, and add magnitudes one by one.
        (Op::Prod, _) if !dtype.is_float() => MOST_ELEMENTS,
        (Op::Norm1, DType::I32) => MOST_ELEMENTS,
        // Elements are brought to f64 in copies, which takes longer than what states do.
        _ if widened => LONG,
        (Op::SumSq | Op::Norm2 | Op::Var | Op::Std, DType::F32) => MANY_SQUARES,
        (Op::SumSq | Op::Norm2 | Op::Var | Op::Std, DType::F16 | DType::BF16) => MOST_ELEMENTS,
        (Op::Dot, DType::F32) => MANY_PAIRS,
        (Op::SumSq | Op::Norm2 | Op::Dot, DType::F64) => BOUND_BY_MEMORY,
        // States round each term by itself.
        (Op::LogSumExp, DType::F64) => MOST_ELEMENTS,
        _ => LONG,
    }
}

/// An operation on one array, and what its accumulators are chosen by.
#[derive(Clone, Copy)]
pub(crate) struct Choice<'a, U> {
    /// What they are asked for.
    pub(crate) of: U,
    pub(crate) dtype: DType,
    pub(crate) op: Op,
    /// Whether the elements are shorter floats, brought to f64.
    pub(crate) widened: bool,
    pub(crate) rules: &'a Rules,
    pub(crate) isa: Isa,
    /// Elements of the longest output, and of most of them.
    pub(crate) most: usize,
    pub(crate) usual: usize,
}

/// Those who answer.
pub(crate) struct Chosen<U: Use> {
    /// At least one; each answers what those before it cannot.
    pub(crate) stages: Several<Box<U::Fold>>,
    /// Whether the elements come in the order of their indices, and not of memory.
    pub(crate) indexed: bool,
}

impl<U: Use> Chosen<U> {
    fn new(of: U, fold: impl Fold + RaggedFold + 'static) -> Chosen<U> {
        Chosen { stages: core::iter::once(of.fold(fold)).collect(), indexed: false }
    }

    /// The same, with others for what these cannot answer.
    fn then(mut self, of: U, fold: impl Fold + RaggedFold + 'static) -> Chosen<U> {
        self.stages.push(of.fold(fold));
        self
    }
}

impl<U: Use> Choice<'_, U> {
    /// The accumulators; `None` if the general path has to answer.
    pub(crate) fn chosen(&self) -> Option<Chosen<U>> {
        let nans = self.nans();
        if self.rules.out.is_some() || self.most >= MOST_ELEMENTS || !self.isa.has_accumulators() {
            return None;
        }
        if self.rules.ddof_fraction != 0 && matches!(self.op, Op::Var | Op::Std) {
            return None;
        }
        let dtype = self.dtype;
        match self.op {
            Op::CountNonzero | Op::Any | Op::All if !nans => None,
            Op::ArgMin | Op::ArgMax if !nans && self.rules.nan != NanPolicy::Omit => None,
            Op::CountNan if dtype.is_float() => Some(with_word!(dtype.size(), W => {
                self.lanes(Counted::<W, true> { bits: infinity(dtype), asked: Asked::Sum })
            })),
            Op::CountNonzero | Op::Any | Op::All => {
                with_word!(dtype.size(), W => self.counts::<W>())
            }
            Op::ArgMin | Op::ArgMax => Some(self.positions()),
            Op::Min | Op::Max => Some(self.extremes()),
            Op::NormInf if dtype.is_float() => Some(self.extremes()),
            Op::LogSumExp => match dtype.known() {
                Known::F32 => self.log_sums::<f32>(),
                Known::F64 => self.log_sums::<f64>(),
                Known::F16 | Known::BF16 => Some(self.widened(self.log_sums::<f32>()?)),
                _ => None,
            },
            Op::Prod => match dtype.known() {
                Known::F32 => self.direct_products::<f32>(),
                Known::F64 => self.direct_products::<f64>(),
                Known::F16 => self.products::<f16>(),
                Known::BF16 => self.products::<bf16>(),
                Known::Bool => Some(self.factors::<i8, TRUTH>()),
                _ => Some(with_word!(dtype.size(), W => if dtype.is_signed_int() {
                    self.factors::<W, SIGNED>()
                } else {
                    self.factors::<W, UNSIGNED>()
                })),
            },
            _ => match dtype.known() {
                Known::F16 | Known::BF16 => Some(self.widened(self.floats::<f32>()?)),
                Known::F32 => self.floats::<f32>(),
                Known::F64 => self.doubles(),
                Known::Bool => self
                    .sums_of_integers()
                    .map(|asked| self.lanes(Counted::<_, false> { bits: -1i8, asked })),
                Known::I8 | Known::U8 => self.short_integers::<i8>(),
                Known::I16 | Known::U16 => self.short_integers::<i16>(),
                Known::I32 => self.integers::<i32>(),
                Known::U32 => self.integers::<u32>(),
                Known::I64 => self.long_integers::<i64, SIGNED>(),
                Known::U64 => self.long_integers::<u64, UNSIGNED>(),
            },
        }
    }

    /// Whether NaNs among the elements are answers, or there are none.
    fn nans(&self) -> bool {
        !self.dtype.is_float() || self.rules.nan == NanPolicy::Propagate
    }

    /// The same of shorter floats, which are brought to f32.
    fn widened(&self, chosen: Chosen<U>) -> Chosen<U> {
        let widened = |fold| self.of.widened(self.isa, [self.dtype, DType::F32], fold);
        Chosen { stages: chosen.stages.into_iter().map(widened).collect(), ..chosen }
    }

    /// By a quick measure, and by another where that is not enough.
    fn floats<T: Widen + Narrow>(&self) -> Option<Chosen<U>> {
        let mut chosen = self.rounded_floats::<T>()?;
        // Short rows of segments have lanes of their own.
        let least = if U::TURNED { 2 } else { short::MOST + 1 };
        if self.dtype != DType::F32 || !(least..=OFTEN_HALF_WAY).contains(&self.usual) {
            return Some(chosen);
        }
        let (asked, sums): (_, &'static dyn Sums<f32>) = match self.op {
            Op::Sum => (Asked::Sum, &Ranged::<false>),
            Op::Mean => (Asked::Mean, &Ranged::<false>),
            Op::Norm1 => (Asked::Second, &Ranged::<true>),
            _ => return Some(chosen),
        };
        let fold = Floats::of_sums(self.isa, asked, DType::F32, sums);
        chosen.stages.insert(0, self.of.fold(fold));
        Some(chosen)
    }

    /// One of the two f64 that sums are, where these hold them exactly.
    pub(crate) fn half_of_sum(&self, half: Asked) -> Option<Chosen<U>> {
        if self.most >= MOST_ELEMENTS || !self.isa.has_accumulators() || !fpenv::is_usual() {
            return None;
        }
        match self.dtype.known() {
            Known::F32 => {
                let fold = Floats::new::<Alone<f32>, _, 3>(self.isa, half, DType::F64, Plain);
                Some(Chosen::new(self.of, fold))
            }
            Known::F64 => {
                let fold = Floats::new::<Alone<f64>, _, 4>(self.isa, half, DType::F64, DoublyPlain);
                Some(Chosen::new(self.of, fold))
            }
            _ => None,
        }
    }

    /// By sums that may be rounded.
    fn rounded_floats<T: Widen + Narrow>(&self) -> Option<Chosen<U>> {
        let ddof = self.rules.ddof;
        let (plain, both) = (BoundedPlain, BoundedBoth);
        let (products, squares) = (BoundedProducts, BoundedSquares);
        match self.op {
            Op::Sum => self.sums::<Alone<T>, _, _, 2, 3>(Asked::Sum, plain, Plain),
            Op::Mean => self.sums::<Alone<T>, _, _, 2, 3>(Asked::Mean, plain, Plain),
            Op::Norm1 => self.sums::<Alone<T>, _, _, 2, 3>(Asked::Second, plain, Absolute),
            Op::SumSq => self.sums::<Alone<T>, _, _, 1, 3>(Asked::Second, squares, Pairs::<false>),
            Op::Norm2 => self.sums::<Alone<T>, _, _, 1, 3>(Asked::Root, squares, Pairs::<false>),
            Op::Var | Op::Std => {
                let asked = Asked::Variance { ddof, root: self.op == Op::Std };
                let shifted = self.measured::<Alone<T>, _, 8>(asked, Shifted::<false>)?;
                let chosen = self.sums::<Alone<T>, _, _, 2, 4>(asked, both, BoundedShifted)?;
                Some(chosen.then(self.of, shifted))
            }
            Op::Dot => self.sums::<Paired<T>, _, _, 2, 3>(Asked::Sum, products, Pairs::<false>),
            _ => None,
        }
    }

    fn doubles(&self) -> Option<Chosen<U>> {
        let ddof = self.rules.ddof;
        match self.op {
            Op::Sum => self.double_sums(Asked::Sum, Plain, DoublyPlain),
            Op::Mean => self.double_sums(Asked::Mean, Plain, DoublyPlain),
            Op::Norm1 => self.double_sums(Asked::Second, Absolute, DoublyAbsolute),
            Op::SumSq => self.squares(Asked::Second),
            Op::Norm2 => self.squares(Asked::Root),
            Op::Var | Op::Std => {
                let asked = Asked::Variance { ddof, root: self.op == Op::Std };
                if self.widened {
                    let doubly = self.measured::<Alone<f64>, _, 8>(asked, DoublyBoth)?;
                    if self.usual <= OFTEN_IN_THE_MIDDLE {
                        return Some(Chosen::new(self.of, doubly));
                    }
                    let both = self.measured::<Alone<f64>, _, 7>(asked, Both)?;
                    return Some(Chosen::new(self.of, both).then(self.of, doubly));
                }
                let shifted = self.measured::<Alone<f64>, _, 8>(asked, Shifted::<true>)?;
                let both = self.measured::<Alone<f64>, _, 7>(asked, Both)?;
                let chosen = Chosen::new(self.of, both).then(self.of, shifted);
                Some(self.with_surveys(chosen, shifted))
            }
            Op::Dot => {
                let fold = self.measured::<Paired<f64>, _, 3>(Asked::Sum, Pairs::<true>)?;
                Some(Chosen::new(self.of, fold))
            }
            _ => None,
        }
    }

    /// The sums of f64, of any size.
    fn double_sums<M: Measure<3>, N: Measure<4>>(
        &self,
        asked: Asked,
        plain: M,
        doubly: N,
    ) -> Option<Chosen<U>> {
        let chosen = self.sums::<Alone<f64>, _, _, 3, 4>(asked, plain, doubly)?;
        let again = self.measured::<Alone<f64>, _, 4>(asked, doubly)?;
        Some(if self.widened { chosen } else { self.with_surveys(chosen, again) })
    }

    /// Accumulators of f64, and what answers outputs of infinities and NaNs, and those of any elements.
    fn with_surveys(&self, mut chosen: Chosen<U>, again: Floats<f64>) -> Chosen<U> {
        chosen.stages.insert(1, self.of.fold(again.specials()));
        chosen.then(self.of, again.surveyed())
    }

    /// The squares of f64, of any size.
    fn squares(&self, asked: Asked) -> Option<Chosen<U>> {
        let exact = self.measured::<Alone<f64>, _, 3>(asked, Pairs::<true>)?;
        let chosen = Chosen::new(self.of, self.measured::<Alone<f64>, _, 2>(asked, Squares)?);
        Some(self.with_surveys(chosen, exact))
    }

    /// The accumulators of a measure, where arithmetic is the usual one.
    fn measured<O: Operands, M: Measure<P>, const P: usize>(
        &self,
        asked: Asked,
        measure: M,
    ) -> Option<Floats<O::Item>> {
        let mut floats = Floats::new::<O, M, P>(self.isa, asked, self.dtype, measure);
        floats.short |= self.widened;
        fpenv::is_usual().then_some(floats)
    }

    fn log_sums<T: Widen + Narrow>(&self) -> Option<Chosen<U>> {
        let fold = self.measured::<Alone<T>, _, 4>(Asked::LogSum, Exponentials)?;
        Some(Chosen::new(self.of, fold).then(self.of, fold.surveyed()))
    }

    fn sums<O: Operands, M: Measure<P>, N: Measure<Q>, const P: usize, const Q: usize>(
        &self,
        asked: Asked,
        measure: M,
        another: N,
    ) -> Option<Chosen<U>> {
        let again = self.measured::<O, N, Q>(asked, another)?;
        let few = if matches!(asked, Asked::Variance { .. }) {
            OFTEN_ZERO
        } else if M::PRODUCTS {
            0
        } else if <O::Item as Element>::DTYPE == DType::F64 {
            OFTEN_IN_THE_MIDDLE
        } else {
            OFTEN_HALF_WAY
        };
        if self.usual <= few {
            return Some(Chosen::new(self.of, again));
        }
        let fold = self.measured::<O, M, P>(asked, measure)?;
        Some(Chosen::new(self.of, fold).then(self.of, again))
    }

    fn products<T: FloatElement>(&self) -> Option<Chosen<U>> {
        if !fpenv::is_usual() {
            return None;
        }
        Some(Chosen::new(self.of, Products::<T> { isa: self.isa, item: PhantomData }))
    }

    /// By multiplications, and by logarithms where these are not certain.
    fn direct_products<T: Factor>(&self) -> Option<Chosen<U>> {
        if self.usual > T::MANY {
            return self.products::<T>();
        }
        let mut chosen = self.products::<T>()?;
        let fold = Direct::<T> { isa: self.isa, item: PhantomData };
        chosen.stages.insert(0, self.of.fold(fold));
        Some(chosen)
    }

    fn factors<W: Word, const OF: u8>(&self) -> Chosen<U> {
        let (wrap, item) = (self.rules.wrap, PhantomData);
        self.lanes(Factors::<W, OF> { wrap, item })
    }

    /// Of elements as wide as `W`.
    fn counts<W: Word>(&self) -> Option<Chosen<U>> {
        let dtype = self.dtype;
        // Zeros of both signs are zero.
        let bits = if dtype.is_float() { W::GREATEST } else { W::of(u64::MAX) };
        match self.op {
            Op::CountNonzero => Some(self.lanes(Counted::<_, false> { bits, asked: Asked::Sum })),
            Op::Any => Some(self.lanes(Found { bits, zeros: 0 })),
            _ => Some(self.lanes(Found { bits, zeros: 1 })),
        }
    }

    /// What is asked for, of integers.
    fn sums_of_integers(&self) -> Option<Asked> {
        let ddof = self.rules.ddof;
        match self.op {
            Op::Sum | Op::Norm1 => Some(Asked::Sum),
            // Truth values are their squares.
            Op::SumSq if self.dtype == DType::Bool => Some(Asked::Sum),
            Op::SumSq => Some(Asked::Second),
            Op::Norm2 => Some(Asked::Root),
            Op::Mean => Some(Asked::Mean),
            Op::Var | Op::Std => Some(Asked::Variance { ddof, root: self.op == Op::Std }),
            _ => None,
        }
    }

    /// Whether the magnitudes of integers are other integers.
    fn has_magnitudes(&self) -> bool {
        self.op == Op::Norm1 && self.dtype.is_signed_int()
    }

    fn totals<W: Word>(&self, asked: Asked) -> Chosen<U> {
        let bias = W::of(flip(self.dtype));
        if self.has_magnitudes() {
            return self.lanes(Totals::<W, true> { asked, bias });
        }
        self.lanes(Totals::<W, false> { asked, bias })
    }

    /// Of at most 16 bits, with a sign or without.
    fn short_integers<W: Word>(&self) -> Option<Chosen<U>> {
        Some(match self.sums_of_integers()? {
            asked if asked.second() => {
                self.lanes(ShortPowers { asked, flip: W::of(flip(self.dtype)) })
            }
            asked => self.totals::<W>(asked),
        })
    }

    /// Of 32 bits.
    fn integers<T: Integer>(&self) -> Option<Chosen<U>> {
        Some(match self.sums_of_integers()? {
            asked if asked.second() => self.lanes(Powers::<T>::new(asked)),
            asked => self.totals::<i32>(asked),
        })
    }

    fn long_integers<T: Integer, const OF: u8>(&self) -> Option<Chosen<U>> {
        Some(match self.sums_of_integers()? {
            asked @ Asked::Second => self.lanes(Powers::<T>::new(asked)),
            asked if asked.second() => {
                let others = Laned { isa: self.isa, lanes: LongPowers::<T>::new(asked) };
                self.lanes(Powers::<T>::new(asked)).then(self.of, others)
            }
            asked if self.has_magnitudes() => self.lanes(LongTotals::<MAGNITUDES> { asked }),
            asked => self.lanes(LongTotals::<OF> { asked }),
        })
    }

    fn extremes(&self) -> Chosen<U> {
        use extremes::Asked;
        let dtype = self.dtype;
        let asked = match self.op {
            Op::Min => Asked::Min,
            Op::Max => Asked::Max,
            _ => Asked::Magnitude,
        };
        let bits = flip(dtype) ^ if asked == Asked::Max { u64::MAX } else { 0 };
        let truth = dtype == DType::Bool;
        match dtype.known() {
            Known::F16 | Known::BF16 => self.ends::<i16>(asked),
            Known::F32 => self.ends::<i32>(asked),
            Known::F64 => self.ends::<i64>(asked),
            Known::Bool | Known::I8 | Known::U8 => self.lanes(Least { flip: i8::of(bits), truth }),
            Known::I16 | Known::U16 => self.lanes(Least { flip: i16::of(bits), truth }),
            Known::I32 | Known::U32 => self.lanes(Least { flip: i32::of(bits), truth }),
            Known::I64 | Known::U64 => self.lanes(Least { flip: i64::of(bits), truth }),
        }
    }

    /// Extremes of floats as wide as `W`.
    fn ends<W: Word>(&self, asked: extremes::Asked) -> Chosen<U> {
        let nan = W::of(nan_bits(self.dtype));
        self.lanes(Ends { asked, own: asked, infinity: infinity::<W>(self.dtype), nan })
    }

    fn positions(&self) -> Chosen<U> {
        with_order!(self.dtype, self.op, !self.nans(), order => self.first(order))
    }

    /// Positions are indices: the reduced axes are walked in their own order.
    fn first<O: Order>(&self, order: O) -> Chosen<U> {
        Chosen { indexed: true, ..self.lanes(First { order }) }
    }

    fn lanes<L: Lanes>(&self, lanes: L) -> Chosen<U> {
        Chosen::new(self.of, Laned { isa: self.isa, lanes })
    }
}

/// The position of the element that `op` seeks, of fewer than 2^32 bytes of them, at least one;
/// `None` if they are not aligned, or if states are the only way of this instruction set.
#[must_use]
pub fn position(dtype: DType, op: Op, items: &[u8], isa: Isa) -> Option<u64> {
    if !isa.has_accumulators() {
        return None;
    }
    with_order!(dtype, op, false, order => {
        let items = bytemuck::try_cast_slice(items).ok()?;
        Some(extremes::position(order, items, isa))
    })
}

/// The bits of infinity.
pub(super) fn infinity_bits(dtype: DType) -> u64 {
    // The largest key of a float that is no NaN is that of infinity, and its bits.
    with_element!(dtype, T => T::key_range().1.to_bits64())
}

fn infinity<W: Word>(dtype: DType) -> W {
    W::of(infinity_bits(dtype))
}

/// The bits of the NaN that answers are.
fn nan_bits(dtype: DType) -> u64 {
    match dtype {
        DType::F16 => f16::NAN_BITS,
        DType::BF16 => bf16::NAN_BITS,
        DType::F32 => f32::NAN_BITS,
        _ => f64::NAN_BITS,
    }
}

/// Floats in their order, or in the opposite one.
fn real<W: Word>(dtype: DType, opposite: u64, omits: bool) -> Real<W> {
    let nan = if omits { W::GREATEST } else { W::LEAST };
    Real { infinity: infinity(dtype), flip: W::of(opposite), nan }
}
