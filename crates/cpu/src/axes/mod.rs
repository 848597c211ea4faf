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
mod finish;
mod floats;
mod fold;
mod integers;
mod lanes;
mod products;
mod round;
mod run;
mod side;
mod states;
mod tables;
mod walk;
mod words;

use crate::exact::Widen;
use crate::integer::Integer;
use crate::isa::Isa;
use crate::plan::Plan;
use crate::walks;
use core::marker::PhantomData;
use counts::{Found, Nonzero};
use extremes::{Ends, First, Least, Order, Real, Truth, Whole};
use finish::Asked;
use floats::{Absolute, Both, Floats, Measure, Plain, RoughBoth, RoughPlain, Square};
use fold::Fold;
use integers::{LongTotals, Powers, ShortPowers, Totals};
use lanes::{Laned, Lanes};
use products::Products;
use round::Narrow;
use run::{Folds, Run};
pub(crate) use states::Spread;
use walk::{Form, Walk};
use warpfold_core::element::{Key, Known, bf16, f16};
use warpfold_core::layout::Traversal;
use warpfold_core::op::{FloatElement, Numbers, Rules};
use warpfold_core::{
    DType, Element, NanPolicy, Op, Result, fpenv, with_element, with_float_element,
};
use warpfold_threads::Threads;
use words::{Word, flip, with_word};

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
        let dtype = self.plan.dtype();
        match self.op {
            Op::ArgMin | Op::ArgMax | Op::CountNonzero | Op::Any | Op::All if !nans => Ok(None),
            Op::CountNonzero | Op::Any | Op::All => {
                with_word!(dtype.size(), W => self.counts::<W>())
            }
            Op::ArgMin | Op::ArgMax => self.positions(),
            Op::Min | Op::Max => self.extremes(),
            Op::NormInf if dtype.is_float() => self.extremes(),
            Op::Prod if nans => {
                with_float_element!(dtype, T => self.products::<T>(), else => Ok(None))
            }
            _ => match dtype.known() {
                Known::F16 => self.floats::<f16>(),
                Known::BF16 => self.floats::<bf16>(),
                Known::F32 => self.floats::<f32>(),
                Known::F64 => self.doubles(),
                Known::Bool => match self.sums_of_integers() {
                    Some((asked, len)) => self.lanes(Nonzero { bits: -1i8, asked, len }),
                    None => Ok(None),
                },
                Known::I8 | Known::U8 => self.short_integers::<i8>(),
                Known::I16 | Known::U16 => self.short_integers::<i16>(),
                Known::I32 => self.integers::<i32>(),
                Known::U32 => self.integers::<u32>(),
                Known::I64 => self.long_integers::<i64, false>(),
                Known::U64 => self.long_integers::<u64, true>(),
            },
        }
    }

    /// By a quick measure, and by another where that is not enough.
    fn floats<T: Widen + Narrow>(&self) -> Result<Option<Numbers>> {
        let ddof = self.rules.ddof;
        let (plain, both) = (RoughPlain, RoughBoth);
        match self.op {
            Op::Sum => self.sums::<T, _, _, 2, 3>(Asked::Sum, plain, Plain),
            Op::Mean => self.sums::<T, _, _, 2, 3>(Asked::Mean, plain, Plain),
            Op::Norm1 => self.sums::<T, _, _, 2, 3>(Asked::Second, plain, Absolute),
            Op::SumSq => self.sums::<T, _, _, 2, 6>(Asked::Second, both, Both::<false>),
            Op::Norm2 => self.sums::<T, _, _, 2, 6>(Asked::Root, both, Both::<false>),
            Op::Var | Op::Std => {
                let asked = Asked::Variance { ddof, root: self.op == Op::Std };
                self.sums::<T, _, _, 2, 6>(asked, both, Both::<false>)
            }
            _ => Ok(None),
        }
    }

    fn doubles(&self) -> Result<Option<Numbers>> {
        let ddof = self.rules.ddof;
        match self.op {
            Op::Sum => self.sum::<f64, _, 3>(Asked::Sum, Plain),
            Op::Mean => self.sum::<f64, _, 3>(Asked::Mean, Plain),
            Op::Norm1 => self.sum::<f64, _, 3>(Asked::Second, Absolute),
            Op::SumSq => self.sum::<f64, _, 3>(Asked::Second, Square),
            Op::Norm2 => self.sum::<f64, _, 3>(Asked::Root, Square),
            Op::Var | Op::Std => {
                let asked = Asked::Variance { ddof, root: self.op == Op::Std };
                self.sum::<f64, _, 6>(asked, Both::<true>)
            }
            _ => Ok(None),
        }
    }

    fn sum<T: Widen + Narrow, M: Measure<P>, const P: usize>(
        &self,
        asked: Asked,
        measure: M,
    ) -> Result<Option<Numbers>> {
        if !fpenv::is_usual() {
            return Ok(None);
        }
        let fold = Floats::<T, M, P>::new(self.isa, self.plan.len(), asked, measure);
        self.answers(&fold, None, self.plan.plain())
    }

    fn sums<T: Widen + Narrow, M: Measure<P>, N: Measure<Q>, const P: usize, const Q: usize>(
        &self,
        asked: Asked,
        measure: M,
        another: N,
    ) -> Result<Option<Numbers>> {
        if !fpenv::is_usual() {
            return Ok(None);
        }
        let len = self.plan.len();
        let again = Floats::<T, N, Q>::new(self.isa, len, asked, another);
        if len <= if M::SQUARES { OFTEN_ZERO } else { OFTEN_HALF_WAY } {
            return self.answers(&again, None, self.plan.plain());
        }
        let fold = Floats::<T, M, P>::new(self.isa, len, asked, measure);
        self.answers(&fold, Some(&again), self.plan.plain())
    }

    fn products<T: FloatElement>(&self) -> Result<Option<Numbers>> {
        if !fpenv::is_usual() {
            return Ok(None);
        }
        let fold = Products::<T> { isa: self.isa, item: PhantomData };
        self.answers(&fold, None, self.plan.plain())
    }

    /// Of elements as wide as `W`.
    fn counts<W: Word>(&self) -> Result<Option<Numbers>> {
        let dtype = self.plan.dtype();
        // Zeros of both signs are zero.
        let bits = if dtype.is_float() { W::GREATEST } else { W::of(u64::MAX) };
        match self.op {
            Op::CountNonzero => {
                self.lanes(Nonzero { bits, asked: Asked::Sum, len: self.plan.len() as u64 })
            }
            Op::Any => self.lanes(Found { bits, zeros: 0 }),
            _ => self.lanes(Found { bits, zeros: 1 }),
        }
    }

    /// What is asked for, of integers.
    fn sums_of_integers(&self) -> Option<(Asked, u64)> {
        let (len, ddof) = (self.plan.len() as u64, self.rules.ddof);
        let asked = match self.op {
            Op::Sum => Asked::Sum,
            Op::Mean => Asked::Mean,
            Op::Var | Op::Std => Asked::Variance { ddof, root: self.op == Op::Std },
            _ => return None,
        };
        Some((asked, len))
    }

    fn totals<W: Word>(&self, asked: Asked, len: u64) -> Result<Option<Numbers>> {
        let bias = W::of(flip(self.plan.dtype()));
        self.lanes(Totals { asked, len, bias })
    }

    /// Of at most 16 bits, with a sign or without.
    fn short_integers<W: Word>(&self) -> Result<Option<Numbers>> {
        match self.sums_of_integers() {
            Some((asked @ Asked::Variance { .. }, len)) => {
                self.lanes(ShortPowers { asked, len, flip: W::of(flip(self.plan.dtype())) })
            }
            Some((asked, len)) => self.totals::<W>(asked, len),
            None => Ok(None),
        }
    }

    /// Of 32 bits.
    fn integers<T: Integer>(&self) -> Result<Option<Numbers>> {
        match self.sums_of_integers() {
            Some((asked @ Asked::Variance { .. }, len)) => self.lanes(Powers::<T>::new(asked, len)),
            Some((asked, len)) => self.totals::<i32>(asked, len),
            None => Ok(None),
        }
    }

    fn long_integers<T: Integer, const UNSIGNED: bool>(&self) -> Result<Option<Numbers>> {
        match self.sums_of_integers() {
            Some((asked @ Asked::Variance { .. }, len)) => self.lanes(Powers::<T>::new(asked, len)),
            Some((asked, len)) => self.lanes(LongTotals::<UNSIGNED> { asked, len }),
            None => Ok(None),
        }
    }

    fn extremes(&self) -> Result<Option<Numbers>> {
        use extremes::Asked;
        let dtype = self.plan.dtype();
        let asked = match self.op {
            Op::Min => Asked::Min,
            Op::Max => Asked::Max,
            _ => Asked::Magnitude,
        };
        let bits = flip(dtype) ^ if asked == Asked::Max { u64::MAX } else { 0 };
        let truth = dtype == DType::Bool;
        match dtype.known() {
            Known::F16 | Known::BF16 => {
                self.lanes(Ends { asked, infinity: infinity::<i16>(dtype) })
            }
            Known::F32 => self.lanes(Ends { asked, infinity: infinity::<i32>(dtype) }),
            Known::F64 => self.lanes(Ends { asked, infinity: infinity::<i64>(dtype) }),
            Known::Bool | Known::I8 | Known::U8 => self.lanes(Least { flip: i8::of(bits), truth }),
            Known::I16 | Known::U16 => self.lanes(Least { flip: i16::of(bits), truth }),
            Known::I32 | Known::U32 => self.lanes(Least { flip: i32::of(bits), truth }),
            Known::I64 | Known::U64 => self.lanes(Least { flip: i64::of(bits), truth }),
        }
    }

    /// Positions are indices: the reduced axes are walked in their own order.
    fn positions(&self) -> Result<Option<Numbers>> {
        let dtype = self.plan.dtype();
        let opposite = if self.op == Op::ArgMax { u64::MAX } else { 0 };
        let bits = flip(dtype) ^ opposite;
        match dtype.known() {
            Known::F16 | Known::BF16 => self.first(real::<i16>(dtype, opposite)),
            Known::F32 => self.first(real::<i32>(dtype, opposite)),
            Known::F64 => self.first(real::<i64>(dtype, opposite)),
            Known::Bool => self.first(Truth(i8::of(opposite))),
            Known::I8 | Known::U8 => self.first(Whole(i8::of(bits))),
            Known::I16 | Known::U16 => self.first(Whole(i16::of(bits))),
            Known::I32 | Known::U32 => self.first(Whole(i32::of(bits))),
            Known::I64 | Known::U64 => self.first(Whole(i64::of(bits))),
        }
    }

    fn first<O: Order>(&self, order: O) -> Result<Option<Numbers>> {
        let fold = Laned { isa: self.isa, lanes: First { order } };
        self.answers(&fold, None, &self.plan.in_index_order())
    }

    fn lanes<L: Lanes>(&self, lanes: L) -> Result<Option<Numbers>> {
        self.answers(&Laned { isa: self.isa, lanes }, None, self.plan.plain())
    }

    fn answers(
        &self,
        fold: &dyn Fold,
        again: Option<&dyn Fold>,
        traversal: &Traversal,
    ) -> Result<Option<Numbers>> {
        let Question { plan, threads, otherwise, .. } = *self;
        let item = fold.item();
        let kept: Vec<(usize, isize)> = plan.kept().iter().map(|&(n, [s, _])| (n, s)).collect();
        let reduced: Vec<(usize, isize)> =
            traversal.dims.iter().map(|d| (d.len, d.strides[0])).collect();
        let origin = plan.origin().wrapping_byte_offset(traversal.offsets[0]);
        let strides = kept.iter().chain(&reduced);
        let aligned = origin.addr().is_multiple_of(item.align())
            && strides.map(|&(_, s)| s.unsigned_abs()).all(|s| s.is_multiple_of(item.align()));
        if !aligned {
            return Ok(None);
        }
        let walk = Walk::new(&kept, &reduced, item.size());
        walks::note(match (walk.form, walk.copied) {
            (Form::Rows, false) => walks::Walk::Rows,
            (Form::Columns, false) => walks::Walk::Columns,
            (Form::Rows, true) => walks::Walk::CopiedRows,
            (Form::Columns, true) => walks::Walk::CopiedColumns,
        });
        let mut numbers = Numbers::zeros(self.op.answer_type(plan.dtype()), plan.outputs());
        // SAFETY: the plan's elements, which may be read; the kept axes and the walk over
        // the reduced ones lead to no others.
        let run = unsafe { Run::new(walk, origin, item, plan.has_readable_gaps(), threads) };
        run.answers(Folds { fold, again, otherwise }, &mut numbers)?;
        Ok(Some(numbers))
    }
}

/// The bits of infinity.
fn infinity<W: Word>(dtype: DType) -> W {
    // The largest key of a float that is no NaN is that of infinity, and its bits.
    with_element!(dtype, T => W::of(T::key_range().1.to_bits64()))
}

/// Floats in their order, or in the opposite one.
fn real<W: Word>(dtype: DType, opposite: u64) -> Real<W> {
    Real { infinity: infinity(dtype), flip: W::of(opposite) }
}
