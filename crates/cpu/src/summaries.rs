//! What states of many outputs absorb of all their elements at once: exact sums and extremes, which
//! the accumulators of tables find as fast as memory.

use crate::axes::Question;
use crate::plan::Plan;
use crate::reduce::Job;
use crate::scatter::Scatter;
use std::sync::{Mutex, PoisonError};
use warpfold_core::element::{Element, Parts};
use warpfold_core::exact::{Superacc, format::Format};
use warpfold_core::op::{AnyState, Extrema, Kind, Numbers, Op, Rules, Summary, Sums};
use warpfold_core::{DType, Error, with_element};

/// Outputs of fewer elements are answered without accumulators.
const FEWEST: usize = 32;
/// Where more outputs than one in so many are left, all are: most elements are no numbers, or far
/// apart.
const LEFT: usize = 16;

/// The summaries of all outputs but some.
pub(crate) struct Summaries {
    kind: Kind,
    dtype: DType,
    /// Elements of an output.
    len: usize,
    /// Of each output the smallest element and the largest, or two f64 that are its sum together.
    found: Vec<Numbers>,
    /// The outputs without a summary, ascending.
    pub(crate) left: Vec<usize>,
}

impl Summaries {
    /// Those for states of this kind, if they have some.
    pub(crate) fn of(job: &Job<'_>, plan: &Plan<'_>, kind: Kind) -> Option<Summaries> {
        let (dtype, len) = (plan.dtype(), plan.len());
        if plan.outputs() == 1 || len < FEWEST {
            return None;
        }
        // The sums of more elements are seldom two f64: of f32 no error is kept but that there is one.
        let most = match dtype {
            DType::F32 => 1 << 16,
            DType::F64 => 1 << 20,
            _ => 0,
        };
        let ops = match kind {
            Kind::Sum if len <= most => [Op::Sum; 2],
            Kind::Extrema => [Op::Min, Op::Max],
            _ => return None,
        };
        let (found, mut left) = answers(job, plan, &ops)?;
        if kind == Kind::Extrema && dtype.is_float() {
            let are_nan = found[0].iter().map(|end| end.to_f64().is_nan());
            left.extend(are_nan.enumerate().filter_map(|(output, is)| is.then_some(output)));
        }
        left.sort_unstable();
        left.dedup();
        let few = left.len() <= plan.outputs() / LEFT;
        few.then_some(Summaries { kind, dtype, len, found, left })
    }

    /// Lets each state at `place` absorb its own, but for the outputs that are left.
    pub(crate) fn absorb(&self, states: &mut [Vec<AnyState>], place: usize) {
        with_element!(self.dtype, T => self.absorb_of::<T>(states, place));
    }

    fn absorb_of<T: Element>(&self, states: &mut [Vec<AnyState>], place: usize) {
        let mut left = self.left.iter().peekable();
        for (output, states) in states.iter_mut().enumerate() {
            if left.next_if_eq(&&output).is_some() {
                continue;
            }
            let state = &mut states[place];
            // No other type's sums are found.
            if const { matches!(T::DTYPE, DType::F32 | DType::F64) } && self.kind == Kind::Sum {
                if let Some(sums) = state.downcast_mut::<Sums<T>>() {
                    let halves = self.found.iter().map(|half| items::<f64>(half)[output]);
                    halves.for_each(|half| deposit(&mut sums.acc, half));
                    sums.acc.count += self.len as i64;
                }
            } else if let Some(extrema) = state.downcast_mut::<Extrema<T>>() {
                let key = |end: usize| items::<T>(&self.found[end])[output].key();
                extrema.absorb_summary(Summary {
                    start: 0,
                    count: self.len as u64,
                    nans: 0,
                    first_nan: None,
                    min: Some((key(0), u64::MAX)),
                    max: Some((key(1), u64::MAX)),
                });
            }
        }
    }
}

/// What accumulators answer, and the outputs that they leave; `None` if these are too many.
/// Two sums are asked for as the halves of one.
fn answers(job: &Job<'_>, plan: &Plan<'_>, ops: &[Op; 2]) -> Option<(Vec<Numbers>, Vec<usize>)> {
    let most = plan.outputs() / LEFT;
    let left = Mutex::new(Vec::new());
    // The first error ends the search.
    let leave = |_: usize, output: usize| {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(output);
        let many = left.len() > ops.len() * most;
        if many { Err(Error::TooManyOutputs { outputs: output }) } else { Ok(0) }
    };
    let question = Question {
        plan,
        ops,
        rules: &Rules::default(),
        isa: job.isa,
        threads: job.threads,
        marked: false,
        scatter: Scatter::Near,
        initial: None,
        halves: *ops == [Op::Sum; 2],
        general: &leave,
    };
    let found = question.numbers().ok().and_then(|found| found.into_iter().collect());
    let left = left.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.map(|found: Vec<Numbers>| (found, left))
}

fn items<T: Element>(numbers: &Numbers) -> &[T] {
    bytemuck::cast_slice(numbers.bytes())
}

/// Adds an f64 to a sum. It is finite, and a multiple of the format's last place.
fn deposit<F: Format>(acc: &mut Superacc<F>, x: f64) {
    if let Parts::Finite { negative, magnitude, exponent } = x.parts()
        && magnitude != 0
    {
        // The zeros at its end may be below the format's last place.
        let zeros = magnitude.trailing_zeros();
        acc.deposit(negative, magnitude >> zeros, exponent + zeros.cast_signed());
    }
}
