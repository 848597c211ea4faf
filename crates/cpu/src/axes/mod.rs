//! Answers for many outputs at a time, straight from memory.
//!
//! The general path keeps a state for each output, which costs more than a short row
//! has elements, and copies what does not lie in one piece. Here a [`walk`] says in
//! which order memory is read, [`run`] hands tables of elements to the accumulators of
//! a [`fold`], and these answer, or leave an output to the general path. Walks know
//! layouts and no operations; accumulators know operations and no layouts.

mod columnar;
mod counts;
mod extremes;
mod floats;
mod fold;
mod integers;
mod lanes;
mod round;
mod run;
mod side;
mod states;
mod tables;
mod walk;

use crate::exact::Widen;
use crate::integer::Integer;
use crate::isa::Isa;
use crate::plan::Plan;
use core::marker::PhantomData;
use counts::{Found, Nonzero};
use extremes::{Ends, First};
use floats::{
    Absolute, Both, Floats, Measure, Plain, RoughAbsolute, RoughBoth, RoughPlain, RoughSquare,
    Square,
};
use fold::Fold;
use integers::{Powers, Totals};
use lanes::{Laned, Lanes};
use round::Narrow;
use run::Run;
pub(crate) use states::Spread;
use walk::Walk;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::layout::Traversal;
use warpfold_core::op::{Numbers, Rules};
use warpfold_core::{DType, Element, NanPolicy, Op, Result, fpenv, with_element};
use warpfold_threads::Threads;

/// Positions and counts have 32 bits, and sums of squares of 62 bits another 31.
const MOST_ELEMENTS: usize = 1 << 31;

/// Sums of few short floats often lie in the middle between two: plain sums do not tell.
const OFTEN_HALF_WAY: usize = 256;
/// The variance of so few elements is often 0, or lies there.
const OFTEN_ZERO: usize = 4;

/// A question of every output of a plan over one array.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    pub(crate) plan: &'a Plan<'a>,
    pub(crate) op: Op,
    pub(crate) rules: &'a Rules,
    pub(crate) isa: Isa,
    pub(crate) threads: Threads,
    /// Answers one output, by its index, in the general way.
    pub(crate) otherwise: &'a (dyn Fn(usize) -> Result<u64> + Sync),
}

impl Question<'_> {
    /// The answers; `None` if the general path has to give all of them.
    ///
    /// # Errors
    /// Those of `otherwise`.
    pub(crate) fn numbers(&self) -> Result<Option<Numbers>> {
        // Sums and extremes with a NaN are not answered here; positions and counts are.
        let nans = !self.plan.dtype().is_float() || self.rules.nan == NanPolicy::Propagate;
        let usual = self.rules.out.is_none();
        let len = self.plan.len();
        if !usual || len == 0 || len >= MOST_ELEMENTS || self.plan.outputs() == 0 {
            return Ok(None);
        }
        match self.op {
            Op::ArgMin | Op::ArgMax | Op::CountNonzero | Op::Any | Op::All if !nans => Ok(None),
            Op::Min => with_element!(self.plan.dtype(), T => self.ends::<T>(extremes::Asked::Min)),
            Op::Max => with_element!(self.plan.dtype(), T => self.ends::<T>(extremes::Asked::Max)),
            Op::NormInf if self.plan.dtype().is_float() => {
                with_element!(self.plan.dtype(), T => self.ends::<T>(extremes::Asked::Magnitude))
            }
            Op::ArgMin => with_element!(self.plan.dtype(), T => self.first::<T, false>()),
            Op::ArgMax => with_element!(self.plan.dtype(), T => self.first::<T, true>()),
            Op::CountNonzero | Op::Any | Op::All => match self.plan.dtype() {
                // Whether an integer is zero its bits say, whatever its sign.
                DType::I8 | DType::U8 | DType::Bool => self.counts::<u8>(),
                DType::I16 | DType::U16 => self.counts::<u16>(),
                DType::I32 | DType::U32 => self.counts::<u32>(),
                DType::I64 | DType::U64 => self.counts::<u64>(),
                DType::F16 | DType::BF16 => self.counts::<f16>(),
                DType::F32 => self.counts::<f32>(),
                DType::F64 => self.counts::<f64>(),
                _ => Ok(None),
            },
            _ => match self.plan.dtype() {
                DType::F16 => self.floats::<f16>(),
                DType::BF16 => self.floats::<bf16>(),
                DType::F32 => self.floats::<f32>(),
                DType::F64 => self.doubles(),
                DType::I8 => self.integers::<i8>(),
                DType::I16 => self.integers::<i16>(),
                DType::I32 => self.integers::<i32>(),
                DType::I64 => self.integers::<i64>(),
                DType::U8 => self.integers::<u8>(),
                DType::U16 => self.integers::<u16>(),
                DType::U32 => self.integers::<u32>(),
                DType::U64 => self.integers::<u64>(),
                DType::Bool => self.integers::<Bool8>(),
                _ => Ok(None),
            },
        }
    }

    fn floats<T: Widen + Narrow>(&self) -> Result<Option<Numbers>> {
        use floats::Asked;
        let ddof = self.rules.ddof;
        let narrow = |asked| match asked {
            Asked::Sum if self.op == Op::Norm1 => {
                self.sums::<T, RoughAbsolute, Absolute, 1, 3>(asked)
            }
            Asked::Sum | Asked::Mean if self.op != Op::SumSq => {
                self.sums::<T, RoughPlain, Plain, 2, 3>(asked)
            }
            Asked::Variance { .. } => self.sums::<T, RoughBoth, Both<false>, 2, 6>(asked),
            _ => self.sums::<T, RoughSquare, Square<false>, 1, 3>(asked),
        };
        match self.op {
            Op::Sum | Op::Norm1 | Op::SumSq => narrow(Asked::Sum),
            Op::Mean => narrow(Asked::Mean),
            Op::Norm2 => narrow(Asked::Root),
            Op::Var => narrow(Asked::Variance { ddof, root: false }),
            Op::Std => narrow(Asked::Variance { ddof, root: true }),
            _ => Ok(None),
        }
    }

    fn doubles(&self) -> Result<Option<Numbers>> {
        use floats::Asked;
        let ddof = self.rules.ddof;
        match self.op {
            Op::Sum => self.sum::<f64, Plain, 3>(Asked::Sum),
            Op::Mean => self.sum::<f64, Plain, 3>(Asked::Mean),
            Op::Norm1 => self.sum::<f64, Absolute, 3>(Asked::Sum),
            Op::SumSq => self.sum::<f64, Square<true>, 3>(Asked::Sum),
            Op::Norm2 => self.sum::<f64, Square<true>, 3>(Asked::Root),
            Op::Var => self.sum::<f64, Both<true>, 6>(Asked::Variance { ddof, root: false }),
            Op::Std => self.sum::<f64, Both<true>, 6>(Asked::Variance { ddof, root: true }),
            _ => Ok(None),
        }
    }

    fn fold<T, M, const P: usize>(&self, asked: floats::Asked) -> Floats<T, M, P> {
        let len = self.plan.len() as u64;
        Floats { isa: self.isa, len, asked, measure: PhantomData }
    }

    fn sum<T: Widen + Narrow, M: Measure<P>, const P: usize>(
        &self,
        asked: floats::Asked,
    ) -> Result<Option<Numbers>> {
        if !fpenv::is_usual() {
            return Ok(None);
        }
        self.answers::<_, Floats<T, M, P>>(self.fold::<T, M, P>(asked), None, self.plan.plain())
    }

    /// By a quick measure, and by another where that is not enough.
    fn sums<T: Widen + Narrow, M: Measure<P>, N: Measure<Q>, const P: usize, const Q: usize>(
        &self,
        asked: floats::Asked,
    ) -> Result<Option<Numbers>> {
        if !fpenv::is_usual() {
            return Ok(None);
        }
        if self.plan.len() <= if M::SQUARES { OFTEN_ZERO } else { OFTEN_HALF_WAY } {
            return self.sum::<T, N, Q>(asked);
        }
        let again = Some(self.fold::<T, N, Q>(asked));
        self.answers(self.fold::<T, M, P>(asked), again, self.plan.plain())
    }

    /// Of elements as wide as `T`, and with a sign bit if `T` has one.
    fn counts<T: Element>(&self) -> Result<Option<Numbers>> {
        match self.op {
            Op::CountNonzero => self.lanes(Nonzero::<T> { item: PhantomData }),
            Op::Any => self.lanes(Found::<T, false> { item: PhantomData }),
            _ => self.lanes(Found::<T, true> { item: PhantomData }),
        }
    }

    fn integers<T: Integer>(&self) -> Result<Option<Numbers>> {
        use integers::Asked;
        let (len, ddof, item) = (self.plan.len() as u64, self.rules.ddof, PhantomData);
        match self.op {
            Op::Sum => self.lanes(Totals::<T> { asked: Asked::Sum, len, item }),
            Op::Mean => self.lanes(Totals::<T> { asked: Asked::Mean, len, item }),
            Op::Var => self.lanes(Powers::<T> { len, ddof, root: false, item }),
            Op::Std => self.lanes(Powers::<T> { len, ddof, root: true, item }),
            _ => Ok(None),
        }
    }

    fn ends<T: Element>(&self, asked: extremes::Asked) -> Result<Option<Numbers>> {
        self.lanes(Ends::<T> { asked, item: PhantomData })
    }

    /// Positions are indices: the reduced axes are walked in their own order.
    fn first<T: Element, const LARGEST: bool>(&self) -> Result<Option<Numbers>> {
        let fold = Laned { isa: self.isa, lanes: First::<T, LARGEST> { item: PhantomData } };
        self.answers(fold, None::<Laned<First<T, LARGEST>>>, &self.plan.in_index_order())
    }

    fn lanes<L: Lanes>(&self, lanes: L) -> Result<Option<Numbers>> {
        let fold = Laned { isa: self.isa, lanes };
        self.answers(fold, None::<Laned<L>>, self.plan.plain())
    }

    fn answers<F: Fold, G: Fold<Item = F::Item>>(
        &self,
        fold: F,
        again: Option<G>,
        traversal: &Traversal,
    ) -> Result<Option<Numbers>> {
        let Question { plan, isa, threads, .. } = *self;
        let size = size_of::<F::Item>();
        let kept: Vec<(usize, isize)> = plan.kept().iter().map(|&(n, [s, _])| (n, s)).collect();
        let reduced: Vec<(usize, isize)> =
            traversal.dims.iter().map(|d| (d.len, d.strides[0])).collect();
        let origin = plan.origin().wrapping_byte_offset(traversal.offsets[0]);
        let align = align_of::<F::Item>();
        let strides = kept.iter().chain(&reduced);
        let aligned = origin.addr().is_multiple_of(align)
            && strides.map(|&(_, s)| s.unsigned_abs()).all(|s| s.is_multiple_of(align));
        if !aligned {
            return Ok(None);
        }
        let walk = Walk::new(&kept, &reduced, size);
        let origin = origin.cast();
        let mut numbers = Numbers::zeros(self.op.answer_type(plan.dtype()), plan.outputs());
        // SAFETY: the plan's elements, which may be read; the kept axes and the walk over
        // the reduced ones lead to no others.
        let run = unsafe { Run::new(walk, origin, plan.has_readable_gaps(), isa, threads) };
        run.answers(fold, again, &mut numbers, self.otherwise)?;
        Ok(Some(numbers))
    }
}
