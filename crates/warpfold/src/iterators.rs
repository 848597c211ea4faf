//! Exact sums of iterators.

use crate::functions::isa;
use crate::number::{Number, finished};
use warpfold_core::Item;
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
pub trait ExactSum: Iterator<Item: Term> + Sized {
    /// The exact sum, rounded once. `+0` of nothing; integers answer as in
    /// [`sum`](crate::sum).
    fn exact_sum(self) -> <Of<Self> as Number>::Total {
        Of::<Self>::sum_of(&state(Kind::Sum, self), Op::Sum)
    }

    /// The exact mean, rounded once. NaN of nothing.
    fn exact_mean(self) -> <Of<Self> as Number>::Real {
        Of::<Self>::real(finished(&state::<Sums<_>, _>(Kind::Sum, self), Op::Mean))
    }

    /// The variance (divided by n), from exact moments, rounded once. NaN of
    /// nothing.
    fn exact_var(self) -> <Of<Self> as Number>::Real {
        Of::<Self>::real(finished(&state::<Moments<_>, _>(Kind::Moments, self), Op::Var))
    }

    /// The standard deviation (divided by n), rounded once. NaN of nothing.
    fn exact_std(self) -> <Of<Self> as Number>::Real {
        Of::<Self>::real(finished(&state::<Moments<_>, _>(Kind::Moments, self), Op::Std))
    }
}

impl<I: Iterator<Item: Term>> ExactSum for I {}

/// The state of all elements of an iterator.
fn state<S: Accelerate, I>(kind: Kind, numbers: I) -> S
where
    I: Iterator<Item: Term>,
    <I::Item as Term>::Number: Number<Element = S::Item>,
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
        block.push(number.number().to_element());
        if block.len() == BLOCK {
            absorb(&mut block);
        }
    }
    absorb(&mut block);
    state
}
