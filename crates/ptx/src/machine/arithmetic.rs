//! Chooses the loop for an arithmetic instruction.
//!
//! The frequent ones have loops of their own, for one operation and one type each; the others share loops that decide in every lane.

use super::lanes::{Binary, Ternary, Test, Unary, binary, ternary, test, test_pairs, unary};
use crate::ir::{
    Class, Compare, FloatBinary, FloatMode, FloatUnary, IntBinary, IntTernary, IntUnary, Type,
};
use crate::value::real::Format;
use crate::value::{compare, convert, float, int};

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
    macro_rules! each {
        ($($op:ident $ty:ident),+) => {
            match (op, ty) {
                $((FloatBinary::$op, Type::$ty) if is_plain(mode) => binary(|a, b| {
                    float::scalar_binary(FloatBinary::$op, Format::$ty, FloatMode::default(), a, b)
                }),)+
                _ => binary(move |a, b| float::binary(op, ty, mode, a, b)),
            }
        };
    }
    each!(Add F32, Add F64, Sub F32, Sub F64, Mul F32, Mul F64, Min F32, Max F32)
}

/// `fma`.
pub(crate) fn fma(ty: Type, mode: FloatMode) -> Ternary {
    match ty {
        Type::F32 if is_plain(mode) => {
            ternary(|a, b, c| float::scalar_fma(Format::F32, FloatMode::default(), a, b, c))
        }
        Type::F64 if is_plain(mode) => {
            ternary(|a, b, c| float::scalar_fma(Format::F64, FloatMode::default(), a, b, c))
        }
        _ => ternary(move |a, b, c| float::fma(ty, mode, a, b, c)),
    }
}

/// `cvt`. Between integers, and between the two formats that the processor has, the loop decides nothing.
pub(crate) fn cvt(
    to: Type,
    from: Type,
    register_bits: u32,
    mode: FloatMode,
    integral: bool,
) -> Unary {
    let plain = is_plain(mode) && !integral;
    match (from, to) {
        (Type::F32, Type::F64) if plain => unary(|a| {
            let wide = f64::from(float::f32_of(a));
            if wide.is_nan() { Format::F64.nan() } else { wide.to_bits() }
        }),
        (Type::F64, Type::F32) if plain => unary(|a| float::canonical(float::f64_of(a) as f32)),
        _ if plain && [from, to].iter().all(|&ty| Format::of(ty).is_none()) => {
            let [from, into] = [from, to].map(|ty| (ty.bits(), ty.mask(), ty.is_signed()));
            let extend = |x: u64, (bits, mask, signed): (u32, u64, bool)| {
                if signed { int::sign_extend(x, bits) as u64 } else { x & mask }
            };
            let register =
                if to.is_signed() { convert::register_mask(register_bits) } else { u64::MAX };
            unary(move |a| extend(extend(a, from), into) & register)
        }
        _ => unary(move |a| convert::convert(to, from, register_bits, mode, integral, a)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::LANES;

    #[test]
    fn loops_convert_as_one_value_is_converted() {
        use Type::{F16, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let special = [0, 1, 1 << 31, 1 << 63, 0x7fc0_0001, 0xff80_0000, 0x7ff0_0000_0000_0001];
        for from in [U8, S8, U16, S16, U32, S32, U64, S64, F16, F32, F64] {
            for to in [U8, S8, U16, S16, U32, S32, U64, S64, F16, F32, F64] {
                let a: [u64; LANES] = core::array::from_fn(|lane| {
                    bits = bits.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                    special.get(lane).copied().unwrap_or(bits) & from.mask()
                });
                let register = to.bits().max(32);
                let mode = FloatMode::default();
                let mut all = [0; LANES];
                cvt(to, from, register, mode, false)(&mut all, &a, u32::MAX);
                let one = a.map(|a| convert::convert(to, from, register, mode, false, a));
                assert_eq!(all, one, "{from:?} to {to:?}");
            }
        }
    }
}
