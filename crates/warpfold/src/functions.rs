//! The common case: numbers in, a number out.

use crate::items::{Items, Token};
use crate::number::{FloatNumber, IntegerNumber, Number, exact_sum, finished, finished_by, value};
use warpfold_core::exact::to_i128;
use warpfold_core::op::{
    Counts, Extrema, FloatLogSumExp, FloatProd, Kind, Moments, Squares, State, Sums,
};
use warpfold_core::{Element, Error, Op, Result, Rules, Scalar, Value, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Accelerate, SMALL, Slices, Threads, accelerated};

/// The instruction set. `WARPFOLD_CPU` is honoured where it makes sense; a name
/// that makes none is reported by [`Reduction`](crate::Reduction), which can
/// fail.
#[inline]
pub(crate) fn isa() -> Isa {
    Isa::active().unwrap_or(Isa::BASELINE)
}

/// The state of all items.
#[inline]
fn state<T: Number, S>(kind: Kind, items: &impl Items<T>) -> S
where
    S: Accelerate<Item = T::Element>,
{
    items.state(kind, Token)
}

/// The state of the pairs of two arrays.
///
/// # Errors
/// Arrays of different shapes.
fn paired<T: Number>(left: &impl Items<T>, right: &impl Items<T>) -> Result<Squares<T::Element>> {
    let counts = [left.count(Token), right.count(Token)];
    let shapes = [left.axes(Token), right.axes(Token)];
    let [l, r] = [0, 1].map(|i| shapes[i].unwrap_or(core::slice::from_ref(&counts[i])));
    if l != r {
        return Err(Error::ShapeMismatch { left: l.to_vec(), right: r.to_vec() });
    }
    let (left, right) = (left.in_order(Token), right.in_order(Token));
    let pairs = Slices::pair(T::elements(&left), T::elements(&right))?;
    Ok(accelerated(Kind::Dot, pairs, isa(), Threads::All))
}

/// The exact sum, rounded once. `+0` of nothing.
///
/// Integers answer in 64 bits, those of 64 bits in 128: see [`Number`]. A slice
/// of more than 2^32 integers of 32 bits may have a total beyond 64 bits; the
/// answer is then the end of the range, and [`sum_i128`] is right. Where nothing
/// but literals says which integers they are, say it: `sum(&[1i32, 2])`.
///
/// ```
/// assert_eq!(warpfold::sum(&[0.1f64; 10]), 1.0);
/// assert_eq!(warpfold::sum(&[i32::MAX, 1]), 1i64 << 31);
/// assert_eq!(warpfold::sum(&[u64::MAX, 1]), 1i128 << 64);
/// assert_eq!(warpfold::sum(&[true, false, true]), 2u64);
/// ```
#[must_use]
#[inline]
pub fn sum<T: Number>(items: impl Items<T>) -> T::Total {
    items.short_total(Token).unwrap_or_else(|| sum_of(Kind::Sum, &items, Op::Sum))
}

fn sum_of<T: Number>(kind: Kind, items: &impl Items<T>, op: Op) -> T::Total {
    T::sum_of(&state(kind, items), op)
}

/// The exact sum of integers in 128 bits, which no slice overflows.
///
/// ```
/// assert_eq!(warpfold::sum_i128(&[u32::MAX; 3]), 3 * i128::from(u32::MAX));
/// ```
#[must_use]
pub fn sum_i128<T: IntegerNumber>(items: impl Items<T>) -> i128 {
    exact_sum(&state::<T, Sums<T::Element>>(Kind::Sum, &items))
}

/// The exact mean, rounded once. NaN of nothing.
///
/// ```
/// assert_eq!(warpfold::mean(&[1, 2, 4]), 7.0 / 3.0);
/// ```
#[must_use]
pub fn mean<T: Number>(items: impl Items<T>) -> T::Real {
    T::real(finished(&state::<T, Sums<T::Element>>(Kind::Sum, &items), Op::Mean))
}

/// The exact sum of absolute values, rounded once. `+0` of nothing; integers
/// answer as in [`sum`].
///
/// ```
/// assert_eq!(warpfold::norm1(&[i64::MIN, 1]), (1i128 << 63) + 1);
/// ```
#[must_use]
pub fn norm1<T: Number>(items: impl Items<T>) -> T::Total {
    sum_of(Kind::AbsSum, &items, Op::Norm1)
}

/// The square root of the exact sum of squares, rounded once: no overflow, no
/// underflow on the way.
///
/// ```
/// let far = 2f64.powi(700);
/// assert_eq!(warpfold::norm2(&[3.0 * far, 4.0 * far]), 5.0 * far);
/// ```
#[must_use]
pub fn norm2<T: Number>(items: impl Items<T>) -> T::Real {
    T::real(finished(&state::<T, Squares<T::Element>>(Kind::SquareSum, &items), Op::Norm2))
}

/// The exact sum of squares, rounded once. For integers, whose squares may
/// outgrow 128 bits, ask a [`Reduction`](crate::Reduction).
///
/// ```
/// assert_eq!(warpfold::sumsq(&[3.0f32, 4.0]), 25.0);
/// ```
#[must_use]
pub fn sumsq<T: FloatNumber>(items: impl Items<T>) -> T {
    T::real(finished(&state::<T, Squares<T>>(Kind::SquareSum, &items), Op::SumSq))
}

/// The exact sum of products, rounded once. `+0` of nothing.
///
/// # Errors
/// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if the arrays differ in shape.
///
/// ```
/// // 1e200^2 - 1e200^2 + 1
/// let x = [1e200, 1e200, 1.0];
/// let y = [1e200, -1e200, 1.0];
/// assert_eq!(warpfold::dot(&x, &y)?, 1.0);
/// assert!(warpfold::dot(&x, &y[..2]).is_err());
/// # Ok::<(), warpfold::Error>(())
/// ```
pub fn dot<T: FloatNumber>(left: impl Items<T>, right: impl Items<T>) -> Result<T> {
    Ok(T::real(finished(&paired(&left, &right)?, Op::Dot)))
}

/// The exact sum of products of integers.
///
/// # Errors
/// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if the arrays differ in shape, [`Error::Overflow`](crate::Error::Overflow) if
/// the total does not fit 128 bits.
///
/// ```
/// assert_eq!(warpfold::dot_i128(&[1, 2, 3], &[4, 5, 6])?, 32);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub fn dot_i128<T: IntegerNumber>(left: impl Items<T>, right: impl Items<T>) -> Result<i128> {
    let products = paired(&left, &right)?;
    match to_i128(products.acc.canonical_limbs().as_ref()) {
        Some(total) => Ok(total),
        // Beyond 128 bits, and so beyond the 64 of this answer, whose error says
        // how large the total is.
        None => match products.finish(Op::Dot, &Rules::new())?.first() {
            Scalar::Int(total, _) => Ok(total.into()),
            total => Ok(total.to_bits().into()),
        },
    }
}

/// The variance, from exact moments, rounded once: divided by the number of elements less
/// `ddof`. NaN of no more elements than that.
///
/// `ddof` is 0 for all of a population, and 1 for a sample of it.
///
/// ```
/// // Without cancellation, however far from zero.
/// assert_eq!(warpfold::var(&[1e9 + 1.0, 1e9 + 3.0], 0), 1.0);
/// assert_eq!(warpfold::var(&[1e9 + 1.0, 1e9 + 3.0], 1), 2.0);
/// ```
#[must_use]
pub fn var<T: Number>(items: impl Items<T>, ddof: u64) -> T::Real {
    spread(&items, Op::Var, ddof)
}

/// The standard deviation, rounded once: the root of [`var`]. NaN of no more than `ddof`
/// elements.
///
/// ```
/// assert_eq!(warpfold::std(&[1, 3], 0), 1.0);
/// assert_eq!(warpfold::std(&[1, 3], 1), 2f64.sqrt());
/// ```
#[must_use]
pub fn std<T: Number>(items: impl Items<T>, ddof: u64) -> T::Real {
    spread(&items, Op::Std, ddof)
}

fn spread<T: Number>(items: &impl Items<T>, op: Op, ddof: u64) -> T::Real {
    let moments = state::<T, Moments<T::Element>>(Kind::Moments, items);
    T::real(finished_by(&moments, op, &Rules::new().ddof(ddof)))
}

fn extreme<T: Number>(items: &impl Items<T>, op: Op) -> Option<Value> {
    value(&state::<T, Extrema<T::Element>>(op.kind(), items), op, &Rules::new())
}

/// The smallest and the largest element.
fn ends<T: Number>(items: &impl Items<T>) -> Option<[T; 2]> {
    let ends = state::<T, Extrema<T::Element>>(Kind::Extrema, items).ends()?;
    Some(ends.map(T::from_element))
}

/// The smallest element; NaN if there is one; `-0` is smaller than `+0`.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::min(&[2.0, 0.5]), Some(0.5));
/// assert!(warpfold::min(&[2.0, f64::NAN]).is_some_and(f64::is_nan));
/// ```
///
/// `?` takes the number out in functions that return an `Option`. In those that return a
/// `Result`, `ok_or` says which error no elements are:
/// ```
/// use warpfold::{Error, Op};
///
/// fn spread(items: &[f64]) -> Option<f64> {
///     Some(warpfold::max(items)? - warpfold::min(items)?)
/// }
/// fn least(items: &[f64]) -> warpfold::Result<f64> {
///     warpfold::min(items).ok_or(Error::Empty { op: Op::Min })
/// }
/// assert_eq!((spread(&[1.0, 4.0]), least(&[]).is_err()), (Some(3.0), true));
/// ```
#[must_use]
pub fn min<T: Number>(items: impl Items<T>) -> Option<T> {
    ends(&items).map(|[min, _]| min)
}

/// The largest element; NaN if there is one. `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::max(&[2i8, -3]), Some(2));
/// ```
#[must_use]
pub fn max<T: Number>(items: impl Items<T>) -> Option<T> {
    ends(&items).map(|[_, max]| max)
}

/// The smallest and the largest element. `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::minmax(&[2, -3, 7]), Some((-3, 7)));
/// ```
#[must_use]
pub fn minmax<T: Number>(items: impl Items<T>) -> Option<(T, T)> {
    ends(&items).map(|[min, max]| (min, max))
}

/// The largest absolute value. `+0` of nothing; integers answer in `u64`.
///
/// ```
/// assert_eq!(warpfold::norm_inf(&[2.0f32, -3.0]), 3.0);
/// assert_eq!(warpfold::norm_inf(&[i64::MIN, 1]), 1u64 << 63);
/// ```
#[must_use]
pub fn norm_inf<T: Number>(items: impl Items<T>) -> T::Magnitude {
    T::magnitude(extreme(&items, Op::NormInf).map(Value::first))
}

/// The largest element minus the smallest, rounded once; NaN if there is one.
/// `None` of nothing; integers answer in `u64`.
///
/// ```
/// assert_eq!(warpfold::range(&[2i8, -128, 127]), Some(255u64));
/// ```
#[must_use]
pub fn range<T: Number>(items: impl Items<T>) -> Option<T::Magnitude> {
    extreme(&items, Op::Range).map(|value| T::magnitude(Some(value.first())))
}

fn place<T: Number>(items: &impl Items<T>, op: Op) -> Option<usize> {
    // Elements that threads do not share: the search ends at a NaN, a state counts them.
    if (1..SMALL / size_of::<T>()).contains(&items.count(Token)) {
        let items = items.in_order(Token);
        let bytes = bytemuck::must_cast_slice(T::elements(&items));
        let find = || warpfold_cpu::position(T::Element::DTYPE, op, bytes, isa());
        return usize::try_from(fpenv::usual(find)?).ok();
    }
    usize::try_from(extreme(items, op)?.first().to_bits()).ok()
}

/// The index of the first smallest element; of the first NaN if there is one.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::argmin(&[4, 2, 7, 2]), Some(1));
/// ```
#[must_use]
pub fn argmin<T: Number>(items: impl Items<T>) -> Option<usize> {
    place(&items, Op::ArgMin)
}

/// The index of the first largest element; of the first NaN if there is one.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::argmax(&[1.0, f64::NAN, 3.0]), Some(1));
/// ```
#[must_use]
pub fn argmax<T: Number>(items: impl Items<T>) -> Option<usize> {
    place(&items, Op::ArgMax)
}

fn counts<T: Number>(items: &impl Items<T>) -> Counts<T::Element> {
    state(Kind::Counts, items)
}

/// How many elements are not zero; NaN is not.
///
/// ```
/// assert_eq!(warpfold::count_nonzero(&[0.0, -0.0, f64::NAN]), 1);
/// ```
#[must_use]
pub fn count_nonzero<T: Number>(items: impl Items<T>) -> u64 {
    counts(&items).nonzero
}

/// How many elements are NaN.
///
/// ```
/// assert_eq!(warpfold::count_nan(&[0.0, f64::NAN]), 1);
/// ```
#[must_use]
pub fn count_nan<T: FloatNumber>(items: impl Items<T>) -> u64 {
    counts(&items).nans
}

/// Whether any element is not zero; NaN is not. False of nothing.
///
/// ```
/// assert!(warpfold::any(&[0, 0, 5]));
/// assert!(warpfold::any(&[false, true]));
/// ```
#[must_use]
pub fn any<T: Number>(items: impl Items<T>) -> bool {
    count_nonzero(items) > 0
}

/// Whether all elements are not zero; true of nothing.
///
/// ```
/// assert!(!warpfold::all(&[1, 0]));
/// ```
#[must_use]
pub fn all<T: Number>(items: impl Items<T>) -> bool {
    let counts = counts(&items);
    counts.nonzero == counts.count
}

/// The product, nearly exact: the same bits in any order, without overflow or
/// underflow on the way. `1` of nothing.
///
/// ```
/// // The square of 1e300 is no f64, and 1e-300 is not quite its reciprocal.
/// assert_eq!(warpfold::prod(&[1e300, 1e300, 1e-300, 1e-300]), 1.0000000000000002);
/// ```
#[must_use]
pub fn prod<T: FloatNumber>(items: impl Items<T>) -> T {
    T::real(finished(&state::<T, FloatProd<T>>(Kind::Prod, &items), Op::Prod))
}

/// The logarithm of the sum of the exponentials, nearly exact: the same bits in any order,
/// without overflow or underflow on the way. `-inf` of nothing. For integers ask a
/// [`Reduction`](crate::Reduction).
///
/// ```
/// assert_eq!(warpfold::logsumexp(&[1000.0, 1000.0]), 1000.0 + 2f64.ln());
/// ```
#[must_use]
pub fn logsumexp<T: FloatNumber>(items: impl Items<T>) -> T {
    T::real(finished(&state::<T, FloatLogSumExp<T>>(Kind::LogSumExp, &items), Op::LogSumExp))
}
