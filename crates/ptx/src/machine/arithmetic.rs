//! Chooses the loop for an arithmetic instruction.
//!
//! The frequent ones have loops of their own, for one operation and one type each; the others share loops that decide in every lane.

use super::lanes::{Binary, Ternary, Test, Unary, binary, ternary, test, test_pairs, unary};
use crate::ir::{
    Class, Compare, FloatBinary, FloatMode, FloatUnary, IntBinary, IntTernary, IntUnary, Rounding,
    Type,
};
use crate::value::real::Format;
use crate::value::{compare, float, int};

/// A loop for the types of 32 and 64 bits each, and one for the rest.
macro_rules! by_width {
    ($lift:ident, $ty:expr, $call:path, $which:expr, ($($x:ident),+)) => {
        match $ty {
            Type::U32 | Type::B32 => $lift(|$($x),+| $call($which, Type::U32, $($x),+)),
            Type::S32 => $lift(|$($x),+| $call($which, Type::S32, $($x),+)),
            Type::U64 | Type::B64 => $lift(|$($x),+| $call($which, Type::U64, $($x),+)),
            Type::S64 => $lift(|$($x),+| $call($which, Type::S64, $($x),+)),
            other => $lift(move |$($x),+| $call($which, other, $($x),+)),
        }
    };
}

/// A match on an operation with an arm for each.
macro_rules! each_operation {
    ($op:expr, $enum:ident, [$($name:ident)+], $lift:ident, $ty:expr, $call:path, $sources:tt) => {
        match $op {
            $($enum::$name => by_width!($lift, $ty, $call, $enum::$name, $sources),)+
        }
    };
}

/// Integer operations with two sources.
pub(crate) fn int_binary(op: IntBinary, ty: Type) -> Binary {
    each_operation!(
        op, IntBinary,
        [Add AddSat Sub SubSat MulLo MulHi MulWide Mul24Lo Mul24Hi Div Rem Min Max MinRelu MaxRelu And Or Xor Shl Shr],
        binary, ty, int::binary, (a, b)
    )
}

/// Integer operations with three sources.
pub(crate) fn int_ternary(op: IntTernary, ty: Type) -> Ternary {
    each_operation!(
        op, IntTernary,
        [MadLo MadHi MadHiSat MadWide Mad24Lo Mad24Hi Mad24HiSat Sad],
        ternary, ty, int::ternary, (a, b, c)
    )
}

/// Integer operations with one source.
pub(crate) fn int_unary(op: IntUnary, ty: Type) -> Unary {
    each_operation!(op, IntUnary, [Abs Neg Not CNot Popc Clz Brev], unary, ty, int::unary, (a))
}

/// Whether a mode asks for nothing but rounding to nearest.
fn is_plain(mode: FloatMode) -> bool {
    FloatMode { explicit: false, ..mode } == FloatMode::default()
}

/// Floating-point operations with two sources.
pub(crate) fn float_binary(op: FloatBinary, ty: Type, mode: FloatMode) -> Binary {
    const NEAREST: Rounding = Rounding::Nearest;
    if is_plain(mode) {
        match (op, ty) {
            (FloatBinary::Add, Type::F32) => {
                return binary(|a, b| float::add(Format::F32, NEAREST, a, b));
            }
            (FloatBinary::Mul, Type::F32) => {
                return binary(|a, b| float::mul(Format::F32, NEAREST, a, b));
            }
            (FloatBinary::Add, Type::F64) => {
                return binary(|a, b| float::add(Format::F64, NEAREST, a, b));
            }
            (FloatBinary::Mul, Type::F64) => {
                return binary(|a, b| float::mul(Format::F64, NEAREST, a, b));
            }
            _ => {}
        }
    }
    binary(move |a, b| float::binary(op, ty, mode, a, b))
}

/// `fma`.
pub(crate) fn fma(ty: Type, mode: FloatMode) -> Ternary {
    ternary(move |a, b, c| float::fma(ty, mode, a, b, c))
}

/// Floating-point operations with one source.
pub(crate) fn float_unary(op: FloatUnary, ty: Type, mode: FloatMode) -> Unary {
    unary(move |a| float::unary(op, ty, mode, a))
}

/// Comparisons.
pub(crate) fn comparison(how: Compare, ty: Type, ftz: bool) -> Test {
    if matches!(ty.class(), Class::FloatPair | Class::IntegerPair) {
        return test_pairs(move |a, b| compare::compare_pair(how, ty, ftz, a, b));
    }
    macro_rules! for_integers {
        ($($name:ident)+) => {
            match (how, ty) {
                $((Compare::$name, Type::U32 | Type::B32 | Type::U64 | Type::B64 | Type::U16 | Type::B16) => {
                    test(|a, b| compare::compare(Compare::$name, Type::U64, false, a, b))
                })+
                $((Compare::$name, Type::S32) => {
                    test(|a, b| compare::compare(Compare::$name, Type::S32, false, a, b))
                })+
                _ => test(move |a, b| compare::compare(how, ty, ftz, a, b)),
            }
        };
    }
    for_integers!(Eq Ne Lt Le Gt Ge)
}
