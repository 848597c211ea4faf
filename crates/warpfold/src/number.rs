//! What slices of numbers answer in.

use core::fmt;
use warpfold_core::element::{bf16, f16};
use warpfold_core::exact::to_i128;
use warpfold_core::op::logsumexp::ExpElement;
use warpfold_core::op::{State, Sums};
use warpfold_core::{Item, Op, Rules, Scalar, Value, fpenv};
use warpfold_cpu::CpuElement;
use warpfold_cpu::isa::Isa;

/// Numbers that the functions of this crate take: floats, integers and `bool`.
///
/// | numbers | [`Total`](Self::Total) | [`Magnitude`](Self::Magnitude) | [`Real`](Self::Real) |
/// |---|---|---|---|
/// | floats | their type | their type | their type |
/// | `i8`, `i16`, `i32` | `i64` | `u64` | `f64` |
/// | `bool`, `u8`, `u16`, `u32` | `u64` | `u64` | `f64` |
/// | `i64`, `u64`, `isize`, `usize` | `i128` | `u64` | `f64` |
///
/// A function that answers a plain number cannot say that it overflows. Totals
/// are therefore wide enough for any slice of at most 2^32 elements, and those of
/// 64-bit integers for any slice. A [`Reduction`](crate::Reduction), which can
/// say so, answers all totals in 64 bits.
///
/// Sealed: nobody else implements it.
///
/// ```compile_fail
/// # use warpfold::Number;
/// #[derive(Clone, Copy, Debug)]
/// struct Metres(f64);
/// impl Number for Metres {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number that warpfold reduces",
    note = "slices and iterators of bool, i8 to i64, u8 to u64, isize, usize, f16, bf16, f32 and f64 are reduced",
    note = "of rows `x` of one length all numbers are `x.as_flattened()`, and `Reduction::sum().axis(0).run(&x)?` has a sum for each column",
    note = "of options the numbers are `x.iter().flatten()`, which `use warpfold::ExactSum;` gives `exact_sum()`"
)]
pub trait Number: Item<Element: CpuElement> {
    /// What sums answer in.
    type Total: Answered;
    /// What absolute values and differences answer in.
    type Magnitude: Answered;
    /// What means, variances and Euclidean norms answer in.
    type Real: Answered;

    /// The sum of a few numbers where that needs no state.
    #[doc(hidden)]
    fn short_total(_items: &[Self]) -> Option<Self::Total> {
        None
    }
    /// `op` of a sum; the nearest total, if it is beyond all of them.
    #[doc(hidden)]
    fn sum_of(sums: &Sums<Self::Element>, op: Op) -> Self::Total;
    #[doc(hidden)]
    fn magnitude(scalar: Option<Scalar>) -> Self::Magnitude;
    #[doc(hidden)]
    fn real(scalar: Option<Scalar>) -> Self::Real;
}

/// What generic code may do with an answer.
///
/// ```
/// use warpfold::Number;
///
/// fn report<T: Number>(items: &[T]) -> String {
///     format!("sum {}, mean {}", warpfold::sum(items), warpfold::mean(items))
/// }
/// assert_eq!(report(&[1u8, 2]), "sum 3, mean 1.5");
/// ```
pub trait Answered:
    Copy + fmt::Debug + fmt::Display + Default + PartialEq + PartialOrd + Send + Sync + 'static
{
}
impl<T> Answered for T where
    T: Copy + fmt::Debug + fmt::Display + Default + PartialEq + PartialOrd + Send + Sync + 'static
{
}

/// Floating-point numbers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point number",
    note = "products of integers outgrow their type: ask `dot_i128`, or `Reduction::of(op).run(&items)`, which can say so"
)]
pub trait FloatNumber:
    Number<Element = Self, Total = Self, Magnitude = Self, Real = Self> + ExpElement
{
}

/// Integers and truth values.
pub trait IntegerNumber: Number<Magnitude = u64, Real = f64> {}

/// What a state answers. What rounds on the way rounds as usual, whatever other code has
/// set.
pub(crate) fn value<S: State>(state: &S, op: Op, rules: &Rules) -> Option<Value> {
    fpenv::usual(|| state.finish(op, rules)).ok()
}

#[inline]
pub(crate) fn finished<S: State>(state: &S, op: Op) -> Option<Scalar> {
    finished_by(state, op, &Rules::new())
}

#[inline]
pub(crate) fn finished_by<S: State>(state: &S, op: Op, rules: &Rules) -> Option<Scalar> {
    value(state, op, rules).map(Value::first)
}

/// A sum of integers: a slice has fewer than 2^63 elements of 64 bits.
pub(crate) fn exact_sum<T: CpuElement>(sums: &Sums<T>) -> i128 {
    to_i128(sums.acc.canonical_limbs().as_ref()).unwrap_or(i128::MAX)
}

macro_rules! float {
    ($($t:ident, $variant:ident;)*) => {$(
        impl Number for $t {
            type Total = $t;
            type Magnitude = $t;
            type Real = $t;

            #[inline]
            fn short_total(items: &[$t]) -> Option<$t> {
                Self::short_sum(items, Isa::active().ok()?)
            }
            fn sum_of(sums: &Sums<$t>, op: Op) -> $t {
                Self::real(finished(sums, op))
            }
            fn magnitude(scalar: Option<Scalar>) -> $t {
                Self::real(scalar)
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

/// The short floats of the crate `half` answer in their own types.
#[cfg(feature = "half")]
macro_rules! half {
    ($($name:ident)*) => {$(
        impl Number for half::$name {
            type Total = half::$name;
            type Magnitude = half::$name;
            type Real = half::$name;

            fn sum_of(sums: &Sums<$name>, op: Op) -> half::$name {
                $name::sum_of(sums, op).into()
            }
            fn magnitude(scalar: Option<Scalar>) -> half::$name {
                $name::magnitude(scalar).into()
            }
            fn real(scalar: Option<Scalar>) -> half::$name {
                $name::real(scalar).into()
            }
        }
    )*};
}
#[cfg(feature = "half")]
half!(f16 bf16);

macro_rules! integer {
    ($($t:ty => $total:ty;)*) => {$(
        impl Number for $t {
            type Total = $total;
            type Magnitude = u64;
            type Real = f64;

            fn sum_of(sums: &Sums<Self::Element>, _: Op) -> $total {
                exact_sum(sums).clamp(<$total>::MIN.into(), <$total>::MAX.into()) as $total
            }
            fn magnitude(scalar: Option<Scalar>) -> u64 {
                scalar.map_or(0, Scalar::to_bits)
            }
            fn real(scalar: Option<Scalar>) -> f64 {
                scalar.map_or(f64::NAN, Scalar::to_f64)
            }
        }
        impl IntegerNumber for $t {}
    )*};
}
integer! {
    bool => u64;
    warpfold_core::element::Bool8 => u64;
    i8 => i64;
    i16 => i64;
    i32 => i64;
    i64 => i128;
    isize => i128;
    u8 => u64;
    u16 => u64;
    u32 => u64;
    u64 => i128;
    usize => i128;
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::op::{Kind, Run};

    /// `2^doublings` elements twice.
    fn sums<T: CpuElement>(item: T, doublings: u32) -> Sums<T> {
        let mut sums = Sums::identity(Kind::Sum);
        sums.absorb(Run { start: 0, items: &[item; 2], others: &[] });
        for _ in 0..doublings {
            let same = sums;
            sums.merge(&same).unwrap();
        }
        sums
    }

    /// More elements than memory holds, but not more than a state does.
    #[test]
    fn totals_of_32_bits_hold_2_to_the_32_elements_and_stop_at_the_end_of_the_range() {
        assert_eq!(i32::sum_of(&sums(i32::MIN, 31), Op::Sum), i64::MIN);
        assert_eq!(i32::sum_of(&sums(i32::MIN, 32), Op::Sum), i64::MIN);
        assert_eq!(i32::sum_of(&sums(i32::MAX, 33), Op::Sum), i64::MAX);
        assert_eq!(u32::sum_of(&sums(u32::MAX, 31), Op::Sum), u64::MAX - ((1 << 32) - 1));
        assert_eq!(u32::sum_of(&sums(u32::MAX, 32), Op::Sum), u64::MAX);
        assert_eq!(exact_sum(&sums(i32::MIN, 32)), -1 << 64);
    }

    #[test]
    fn totals_of_64_bits_hold_any_slice() {
        assert_eq!(i64::sum_of(&sums(i64::MIN, 59), Op::Sum), -1 << 123);
        assert_eq!(u64::sum_of(&sums(u64::MAX, 59), Op::Sum), i128::from(u64::MAX) << 60);
    }
}
