//! The common case: a slice in, a number out.

use warpfold_core::element::{Bool8, bf16, f16};
use warpfold_core::exact::to_i128;
use warpfold_core::op::{
    Counts, Extrema, FloatElement, FloatProd, Kind, Moments, Squares, State, Sums,
};
use warpfold_core::{Element, Op, Result, Rules, Scalar, Value, fpenv};
use warpfold_cpu::isa::Isa;
use warpfold_cpu::{Accelerate, CpuElement, Slices, Threads, accelerated};

/// Elements that the functions of this crate take.
pub trait Number: CpuElement {
    /// What sums answer in: floats in their own type; integers in 128 bits,
    /// which no slice can overflow.
    type Total;
    /// What means, variances and Euclidean norms answer in: floats in their own
    /// type, integers in f64.
    type Real;

    #[doc(hidden)]
    fn short_total(_items: &[Self]) -> Option<Self::Total> {
        None
    }
    #[doc(hidden)]
    fn total(sums: &Sums<Self>, op: Op) -> Self::Total;
    #[doc(hidden)]
    fn real(scalar: Option<Scalar>) -> Self::Real;
}

/// Floating-point numbers.
pub trait FloatNumber: Number<Total = Self, Real = Self> + FloatElement {}

macro_rules! float {
    ($($t:ident, $variant:ident;)*) => {$(
        impl Number for $t {
            type Total = $t;
            type Real = $t;
            #[inline]
            fn short_total(items: &[$t]) -> Option<$t> {
                Self::short_sum(items, Isa::active().ok()?)
            }
            fn total(sums: &Sums<$t>, op: Op) -> $t {
                Self::real(finished(sums, op))
            }
            fn real(scalar: Option<Scalar>) -> $t {
                match scalar {
                    Some(Scalar::$variant(x)) => x,
                    _ => $t::NAN,
                }
            }
        }
        impl FloatNumber for $t {}
    )*};
}
float! { f16, F16; bf16, BF16; f32, F32; f64, F64; }

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Total = i128;
            type Real = f64;
            fn total(sums: &Sums<$t>, _: Op) -> i128 {
                // Fits: a slice has fewer than 2^63 elements of 64 bits.
                to_i128(&sums.acc.canonical_limbs()).unwrap_or(i128::MAX)
            }
            fn real(scalar: Option<Scalar>) -> f64 {
                scalar.map_or(f64::NAN, Scalar::to_f64)
            }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64, Bool8);

/// The state of a slice. `WARPFOLD_CPU` is honoured where it makes sense; a
/// name that makes none is reported by [`Reduction`](crate::Reduction), which
/// can fail.
#[inline]
fn state<S: Accelerate>(kind: Kind, slices: Slices<'_, S::Item>) -> S {
    accelerated(kind, slices, Isa::active().unwrap_or(Isa::BASELINE), Threads::All)
}

/// What rounds on the way rounds as usual, whatever other code has set.
fn value<S: State>(state: &S, op: Op) -> Option<Value> {
    fpenv::usual(|| state.finish(op, &Rules::default())).ok()
}

#[inline]
fn finished<S: State>(state: &S, op: Op) -> Option<Scalar> {
    value(state, op).map(Value::first)
}

/// The exact sum, rounded once. `+0` of nothing.
///
/// ```
/// assert_eq!(warpfold::sum(&[0.1f64; 10]), 1.0);
/// assert_eq!(warpfold::sum(&[u64::MAX, 1]), 1i128 << 64);
/// ```
#[must_use]
#[inline]
pub fn sum<T: Number>(items: &[T]) -> T::Total {
    T::short_total(items)
        .unwrap_or_else(|| T::total(&state(Kind::Sum, Slices::one(items)), Op::Sum))
}

/// The exact mean, rounded once. NaN of nothing.
///
/// ```
/// assert_eq!(warpfold::mean(&[1, 2, 4]), 7.0 / 3.0);
/// ```
#[must_use]
pub fn mean<T: Number>(items: &[T]) -> T::Real {
    T::real(finished(&state::<Sums<T>>(Kind::Sum, Slices::one(items)), Op::Mean))
}

/// The exact sum of absolute values, rounded once.
///
/// ```
/// assert_eq!(warpfold::norm1(&[i64::MIN, 1]), (1i128 << 63) + 1);
/// ```
#[must_use]
pub fn norm1<T: Number>(items: &[T]) -> T::Total {
    T::total(&state(Kind::AbsSum, Slices::one(items)), Op::Norm1)
}

/// The square root of the exact sum of squares, rounded once: no overflow, no
/// underflow on the way.
///
/// ```
/// let far = 2f64.powi(700);
/// assert_eq!(warpfold::norm2(&[3.0 * far, 4.0 * far]), 5.0 * far);
/// ```
#[must_use]
pub fn norm2<T: Number>(items: &[T]) -> T::Real {
    T::real(finished(&state::<Squares<T>>(Kind::SquareSum, Slices::one(items)), Op::Norm2))
}

/// The exact sum of squares, rounded once. For integers, whose squares may
/// outgrow 128 bits, ask a [`Reduction`](crate::Reduction).
///
/// ```
/// assert_eq!(warpfold::sumsq(&[3.0f32, 4.0]), 25.0);
/// ```
#[must_use]
pub fn sumsq<T: FloatNumber>(items: &[T]) -> T {
    T::real(finished(&state::<Squares<T>>(Kind::SquareSum, Slices::one(items)), Op::SumSq))
}

/// The exact sum of products, rounded once.
///
/// # Errors
/// [`Error::ShapeMismatch`](crate::Error::ShapeMismatch) if the slices differ in length.
///
/// ```
/// // 1e200^2 - 1e200^2 + 1
/// let x = [1e200, 1e200, 1.0];
/// let y = [1e200, -1e200, 1.0];
/// assert_eq!(warpfold::dot(&x, &y)?, 1.0);
/// # Ok::<(), warpfold::Error>(())
/// ```
pub fn dot<T: FloatNumber>(left: &[T], right: &[T]) -> Result<T> {
    let pairs = Slices::pair(left, right)?;
    Ok(T::real(finished(&state::<Squares<T>>(Kind::Dot, pairs), Op::Dot)))
}

/// The variance (divided by n), from exact moments, rounded once.
///
/// ```
/// // Without cancellation, however far from zero.
/// assert_eq!(warpfold::var(&[1e9 + 1.0, 1e9 + 3.0]), 1.0);
/// ```
#[must_use]
pub fn var<T: Number>(items: &[T]) -> T::Real {
    T::real(finished(&state::<Moments<T>>(Kind::Moments, Slices::one(items)), Op::Var))
}

/// The standard deviation (divided by n), rounded once.
///
/// ```
/// assert_eq!(warpfold::std(&[1, 3]), 1.0);
/// ```
#[must_use]
pub fn std<T: Number>(items: &[T]) -> T::Real {
    T::real(finished(&state::<Moments<T>>(Kind::Moments, Slices::one(items)), Op::Std))
}

fn extreme<T: Number>(items: &[T], op: Op) -> Option<Value> {
    value(&state::<Extrema<T>>(Kind::Extrema, Slices::one(items)), op)
}

fn element<T: Element>(scalar: Scalar) -> T {
    T::from_bits(scalar.to_bits())
}

/// The smallest element; NaN if there is one; `-0` is smaller than `+0`.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::min(&[2.0, 0.5]), Some(0.5));
/// assert!(warpfold::min(&[2.0, f64::NAN]).is_some_and(f64::is_nan));
/// ```
#[must_use]
pub fn min<T: Number>(items: &[T]) -> Option<T> {
    extreme(items, Op::Min).map(|v| element(v.first()))
}

/// The largest element; NaN if there is one. `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::max(&[2i8, -3]), Some(2));
/// ```
#[must_use]
pub fn max<T: Number>(items: &[T]) -> Option<T> {
    extreme(items, Op::Max).map(|v| element(v.first()))
}

/// The smallest and the largest element. `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::minmax(&[2, -3, 7]), Some((-3, 7)));
/// ```
#[must_use]
pub fn minmax<T: Number>(items: &[T]) -> Option<(T, T)> {
    let value = extreme(items, Op::MinMax)?;
    Some((element(value.first()), element(value.second()?)))
}

/// The largest absolute value. `+0` of nothing.
///
/// ```
/// assert_eq!(warpfold::norm_inf(&[2.0f32, -3.0]), 3.0);
/// ```
#[must_use]
pub fn norm_inf<T: FloatNumber>(items: &[T]) -> T {
    T::real(extreme(items, Op::NormInf).map(Value::first))
}

fn place<T: Number>(items: &[T], op: Op) -> Option<usize> {
    let state = state::<Extrema<T>>(Kind::ArgExtrema, Slices::one(items));
    match value(&state, op)?.first() {
        Scalar::UInt(index, _) => usize::try_from(index).ok(),
        _ => None,
    }
}

/// The index of the first smallest element; of the first NaN if there is one.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::argmin(&[4, 2, 7, 2]), Some(1));
/// ```
#[must_use]
pub fn argmin<T: Number>(items: &[T]) -> Option<usize> {
    place(items, Op::ArgMin)
}

/// The index of the first largest element; of the first NaN if there is one.
/// `None` of nothing.
///
/// ```
/// assert_eq!(warpfold::argmax(&[1.0, f64::NAN, 3.0]), Some(1));
/// ```
#[must_use]
pub fn argmax<T: Number>(items: &[T]) -> Option<usize> {
    place(items, Op::ArgMax)
}

/// How many elements are not zero; NaN is not.
///
/// ```
/// assert_eq!(warpfold::count_nonzero(&[0.0, -0.0, f64::NAN]), 1);
/// ```
#[must_use]
pub fn count_nonzero<T: Number>(items: &[T]) -> u64 {
    state::<Counts<T>>(Kind::Counts, Slices::one(items)).nonzero
}

/// Whether any element is not zero.
///
/// ```
/// assert!(warpfold::any(&[0, 0, 5]));
/// ```
#[must_use]
pub fn any<T: Number>(items: &[T]) -> bool {
    count_nonzero(items) > 0
}

/// Whether all elements are not zero; true of nothing.
///
/// ```
/// assert!(!warpfold::all(&[1, 0]));
/// ```
#[must_use]
pub fn all<T: Number>(items: &[T]) -> bool {
    count_nonzero(items) == items.len() as u64
}

/// The product, folded in a fixed tree: the same bits for any number of
/// threads, without overflow or underflow on the way. `1` of nothing.
///
/// ```
/// assert_eq!(warpfold::prod(&[1e300, 1e300, 1e-300, 1e-300]), 1.0);
/// ```
#[must_use]
pub fn prod<T: FloatNumber>(items: &[T]) -> T {
    T::real(finished(&state::<FloatProd<T>>(Kind::Prod, Slices::one(items)), Op::Prod))
}
