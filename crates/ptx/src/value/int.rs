//! Integers of 8 to 64 bits, and pairs of 16-bit ones.
//!
//! PTX leaves division by zero open; here, as on the hardware, quotient and remainder are then all ones. The quotient of the least
//! number and -1 wraps.

use crate::ir::{CarryOp, Class, IntBinary, IntTernary, IntUnary, Type};

/// The value of the low bits as a two's complement number.
#[must_use]
#[inline(always)]
pub fn sign_extend(value: u64, bits: u32) -> i64 {
    let up = 64 - bits;
    ((value << up) as i64) >> up
}

/// The number that the bits stand for. Every supported type's fits.
#[inline(always)]
fn number(ty: Type, value: u64) -> i128 {
    if ty.class() == Class::Signed {
        i128::from(sign_extend(value, ty.bits()))
    } else {
        i128::from(value & ty.mask())
    }
}

/// The product of two numbers, wrapped to 128 bits: exact for up to 64 bits each.
#[inline(always)]
fn product(ty: Type, a: u64, b: u64) -> u128 {
    if ty.class() == Class::Signed {
        number(ty, a).wrapping_mul(number(ty, b)) as u128
    } else {
        u128::from(a & ty.mask()) * u128::from(b & ty.mask())
    }
}

/// The product of the low 24 bits, 48 bits wide, sign-extended to 64 if signed.
fn product24(ty: Type, a: u64, b: u64) -> u64 {
    if ty.class() == Class::Signed {
        sign_extend(a, 24).wrapping_mul(sign_extend(b, 24)) as u64
    } else {
        (a & 0xff_ffff) * (b & 0xff_ffff)
    }
}

/// A number clamped into `.s32`.
fn clamp_s32(value: i128) -> u64 {
    u64::from(value.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32 as u32)
}

/// An operation with two sources.
#[must_use]
#[inline(always)]
pub fn binary(op: IntBinary, ty: Type, a: u64, b: u64) -> u64 {
    if ty.class() == Class::IntegerPair {
        let half = if ty == Type::S16x2 { Type::S16 } else { Type::U16 };
        let low = binary_scalar(op, half, a & 0xffff, b & 0xffff);
        let high = binary_scalar(op, half, (a >> 16) & 0xffff, (b >> 16) & 0xffff);
        return low | (high << 16);
    }
    binary_scalar(op, ty, a, b)
}

#[inline(always)]
fn binary_scalar(op: IntBinary, ty: Type, a: u64, b: u64) -> u64 {
    let mask = ty.mask();
    match op {
        IntBinary::Add => a.wrapping_add(b) & mask,
        IntBinary::Sub => a.wrapping_sub(b) & mask,
        IntBinary::AddSat => clamp_s32(number(Type::S32, a) + number(Type::S32, b)),
        IntBinary::SubSat => clamp_s32(number(Type::S32, a) - number(Type::S32, b)),
        IntBinary::MulLo => a.wrapping_mul(b) & mask,
        IntBinary::MulHi => (product(ty, a, b) >> ty.bits()) as u64 & mask,
        IntBinary::MulWide => {
            product(ty, a, b) as u64 & (u64::MAX >> (64 - (2 * ty.bits()).min(64)))
        }
        IntBinary::Mul24Lo => product24(ty, a, b) & 0xffff_ffff,
        IntBinary::Mul24Hi => (product24(ty, a, b) >> 16) & 0xffff_ffff,
        IntBinary::Div => divide(ty, a, b).0,
        IntBinary::Rem => divide(ty, a, b).1,
        IntBinary::Min => pick(ty, a, b, true),
        IntBinary::Max => pick(ty, a, b, false),
        IntBinary::MinRelu => pick(ty, pick(ty, a, b, true), 0, false),
        IntBinary::MaxRelu => pick(ty, pick(ty, a, b, false), 0, false),
        IntBinary::And => a & b,
        IntBinary::Or => a | b,
        IntBinary::Xor => a ^ b,
        IntBinary::Shl => {
            let count = b & 0xffff_ffff;
            if count >= u64::from(ty.bits()) { 0 } else { (a << count) & mask }
        }
        IntBinary::Shr => shift_right(ty, a, b & 0xffff_ffff),
    }
}

#[inline(always)]
fn shift_right(ty: Type, a: u64, count: u64) -> u64 {
    if ty.class() == Class::Signed {
        (sign_extend(a, ty.bits()) >> count.min(63)) as u64 & ty.mask()
    } else if count >= u64::from(ty.bits()) {
        0
    } else {
        a >> count
    }
}

#[inline(always)]
fn pick(ty: Type, a: u64, b: u64, smaller: bool) -> u64 {
    let a_less = if ty.class() == Class::Signed {
        sign_extend(a, ty.bits()) < sign_extend(b, ty.bits())
    } else {
        a < b
    };
    if a_less == smaller { a } else { b }
}

/// Quotient and remainder.
#[inline(always)]
fn divide(ty: Type, a: u64, b: u64) -> (u64, u64) {
    let mask = ty.mask();
    if b & mask == 0 {
        return (mask, mask);
    }
    if ty.class() == Class::Signed {
        let (x, y) = (sign_extend(a, ty.bits()), sign_extend(b, ty.bits()));
        (x.wrapping_div(y) as u64 & mask, x.wrapping_rem(y) as u64 & mask)
    } else {
        (a / b, a % b)
    }
}

/// An operation with three sources.
#[must_use]
#[inline(always)]
pub fn ternary(op: IntTernary, ty: Type, a: u64, b: u64, c: u64) -> u64 {
    let mask = ty.mask();
    match op {
        IntTernary::MadLo => a.wrapping_mul(b).wrapping_add(c) & mask,
        IntTernary::MadHi => binary(IntBinary::MulHi, ty, a, b).wrapping_add(c) & mask,
        IntTernary::MadHiSat => {
            let high = binary(IntBinary::MulHi, Type::S32, a, b);
            clamp_s32(number(Type::S32, high) + number(Type::S32, c))
        }
        IntTernary::MadWide => {
            let wide = u64::MAX >> (64 - (2 * ty.bits()).min(64));
            (product(ty, a, b) as u64).wrapping_add(c) & wide
        }
        IntTernary::Mad24Lo => product24(ty, a, b).wrapping_add(c) & 0xffff_ffff,
        IntTernary::Mad24Hi => (product24(ty, a, b) >> 16).wrapping_add(c) & 0xffff_ffff,
        IntTernary::Mad24HiSat => {
            let high = i128::from((product24(Type::S32, a, b) as i64) >> 16);
            clamp_s32(high + number(Type::S32, c))
        }
        IntTernary::Sad => (number(ty, a).abs_diff(number(ty, b)) as u64).wrapping_add(c) & mask,
    }
}

/// An operation with one source.
#[must_use]
#[inline(always)]
pub fn unary(op: IntUnary, ty: Type, a: u64) -> u64 {
    let (mask, bits) = (ty.mask(), ty.bits());
    match op {
        IntUnary::Abs => (sign_extend(a, bits).wrapping_abs() as u64) & mask,
        IntUnary::Neg => a.wrapping_neg() & mask,
        IntUnary::Not => !a & mask,
        IntUnary::CNot => u64::from(a == 0),
        IntUnary::Popc => u64::from(a.count_ones()),
        IntUnary::Clz => u64::from(a.leading_zeros() - (64 - bits)),
        IntUnary::Brev => a.reverse_bits() >> (64 - bits),
    }
}

/// An operation with the carry bit: the result, and the carry or borrow out of it.
#[must_use]
#[inline]
pub fn carry(op: CarryOp, ty: Type, a: u64, b: u64, c: u64, carry: bool) -> (u64, bool) {
    let mask = ty.mask();
    let (x, y) = match op {
        CarryOp::Add => (a, b),
        // The carry of a difference is that of the sum with the complement: set where nothing was borrowed. So a library's long division
        // asks `addc 0, 0` behind a `subc.cc` whether it was large enough.
        CarryOp::Sub => (a, !b & mask),
        CarryOp::MadLo => (a.wrapping_mul(b) & mask, c),
        CarryOp::MadHi => (binary(IntBinary::MulHi, ty, a, b), c),
    };
    let sum = u128::from(x) + u128::from(y) + u128::from(carry);
    (sum as u64 & mask, sum > u128::from(mask))
}

/// `dp4a` and `dp2a`: `high` is `None` for four bytes, else which half of `b` the two bytes come from.
#[must_use]
pub fn dot_product(signed: (bool, bool), high: Option<bool>, a: u64, b: u64, c: u64) -> u64 {
    let part = |value: u64, bits: u32, index: u32, signed: bool| {
        let field = (value >> (bits * index)) & (u64::MAX >> (64 - bits));
        if signed { sign_extend(field, bits) } else { field as i64 }
    };
    let sum: i64 = match high {
        None => (0..4).map(|i| part(a, 8, i, signed.0) * part(b, 8, i, signed.1)).sum(),
        Some(high) => (0..2)
            .map(|i| part(a, 16, i, signed.0) * part(b, 8, i + 2 * u32::from(high), signed.1))
            .sum(),
    };
    (sum as u64).wrapping_add(c) & 0xffff_ffff
}
