//! Exact sums of iterators.

use crate::functions::isa;
use crate::number::{Number, finished, finished_by};
use warpfold_core::Rules;
use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::op::{Kind, Moments, Op, Sums};
use warpfold_cpu::{Accelerate, Context, Slices};

/// Numbers gathered before they are reduced: small enough for the cache.
const BLOCK: usize = 4096;

mod sealed {
    pub trait Sealed {}
}

/// A number, or a reference to one: what iterators yield.
///
/// Sealed: nobody else implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is neither a number nor a reference to one",
    note = "map what the iterator yields to numbers first"
)]
pub trait Term: sealed::Sealed {
    /// The number.
    type Number: Number;

    /// The number itself.
    #[doc(hidden)]
    fn number(self) -> Self::Number;
}

// Type by type: a downstream crate might make a number of a reference.
macro_rules! terms {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl sealed::Sealed for &$t {}

        impl Term for $t {
            type Number = $t;

            #[inline(always)]
            fn number(self) -> $t {
                self
            }
        }

        impl Term for &$t {
            type Number = $t;

            #[inline(always)]
            fn number(self) -> $t {
                *self
            }
        }
    )*};
}
terms!(f16, bf16, f32, f64, bool, Bool8, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
#[cfg(feature = "half")]
terms!(half::f16, half::bf16);

/// The numbers of an iterator.
type Of<I> = <<I as Iterator>::Item as Term>::Number;

/// Exact sums of iterators over numbers or references to numbers.
///
/// [`Accumulator`](crate::Accumulator) takes numbers one by one where there is no
/// iterator, and answers all operations. Slices are quicker where they lie: see
/// [`sum`](crate::sum).
///
/// ```
/// use warpfold::ExactSum;
///
/// let parts = [("a", 1e16), ("b", 1.0), ("c", -1e16)];
/// assert_eq!(parts.iter().map(|&(_, x)| x).exact_sum(), 1.0);
/// assert_eq!((1..=4).exact_mean(), 2.5);
/// ```
///
/// The parallel iterators of rayon are not iterators. They have exact sums by way of
/// [`Accumulator`](crate::Accumulator), the same bits however rayon cuts them up:
/// ```
/// use rayon::prelude::*;
/// use warpfold::Accumulator;
///
/// let prices = vec![0.1; 1000];
/// let total: f64 = prices.par_iter().sum::<Accumulator<f64>>().finish()?.try_into()?;
/// assert_eq!(total, 100.0);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub trait ExactSum: Iterator<Item: Term> + Sized {
    /// The exact sum, rounded once. `+0` of nothing; integers answer as in
    /// [`sum`](crate::sum).
    fn exact_sum(self) -> <Of<Self> as Number>::Total {
        Of::<Self>::sum_of(&state(Kind::Sum, self.map(Term::number)), Op::Sum)
    }

    /// The exact mean, rounded once. NaN of nothing.
    fn exact_mean(self) -> <Of<Self> as Number>::Real {
        let sums = state::<Sums<_>, Of<Self>>(Kind::Sum, self.map(Term::number));
        Of::<Self>::real(finished(&sums, Op::Mean))
    }

    /// The variance, divided by the number of elements less `ddof`, as
    /// [`var`](crate::var) has it.
    fn exact_var(self, ddof: u64) -> <Of<Self> as Number>::Real {
        spread(self, Op::Var, ddof)
    }

    /// The standard deviation, divided as [`std`](crate::std) has it.
    fn exact_std(self, ddof: u64) -> <Of<Self> as Number>::Real {
        spread(self, Op::Std, ddof)
    }
}

impl<I: Iterator<Item: Term>> ExactSum for I {}

fn spread<I: Iterator<Item: Term>>(numbers: I, op: Op, ddof: u64) -> <Of<I> as Number>::Real {
    let moments = state::<Moments<_>, Of<I>>(Kind::Moments, numbers.map(Term::number));
    Of::<I>::real(finished_by(&moments, op, &Rules::new().ddof(ddof)))
}

/// The state of all numbers of an iterator.
pub(crate) fn state<S, T>(kind: Kind, numbers: impl Iterator<Item = T>) -> S
where
    S: Accelerate,
    T: Number<Element = S::Item>,
{
    let mut state = S::identity(kind);
    let mut context = Context::new(isa());
    let mut start = 0;
    let mut absorb = |block: &mut Vec<S::Item>| {
        state.accelerate(start, Slices::one(block), &mut context);
        start += block.len() as u64;
        block.clear();
    };
    let mut block = Vec::with_capacity(numbers.size_hint().0.clamp(8, BLOCK));
    for number in numbers {
        block.push(number.to_element());
        if block.len() == BLOCK {
            absorb(&mut block);
        }
    }
    absorb(&mut block);
    state
}
