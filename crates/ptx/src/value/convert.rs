//! `cvt`: between every two types.
//!
//! A result that is narrower than its register is extended by its sign. Floating-point numbers converted to integers are rounded to an integer
//! and clamped; NaN becomes 0, or, where `.f64`, `.s64` or `.u64` is involved, the number whose top bit alone is set.

use super::float::{rectify, saturate};
use super::int::sign_extend;
use super::real::{Format, Real};
use crate::ir::{FloatMode, Rounding, Type};

/// Converts one value; `register_bits` is the width of the register that gets it.
#[must_use]
pub fn convert(
    to: Type,
    from: Type,
    register_bits: u32,
    mode: FloatMode,
    integral: bool,
    a: u64,
) -> u64 {
    let a = a & from.mask();
    match (Format::of(from), Format::of(to)) {
        (None, None) => integer_to_integer(to, from, register_bits, mode, a),
        (None, Some(format)) => placed(to, integer_to_float(format, from, mode, a)),
        (Some(format), None) => {
            extended(to, register_bits, float_to_integer(to, from, format, mode, a))
        }
        (Some(source), Some(format)) => {
            placed(to, float_to_float(format, source, mode, integral, a))
        }
    }
}

/// `cvt.rn.f16x2.f32` and its kin: `a` in the high half, `b` in the low one.
#[must_use]
pub fn convert_pair(to: Type, from: Type, mode: FloatMode, a: u64, b: u64) -> u64 {
    let half = if to == Type::Bf16x2 { Type::Bf16 } else { Type::F16 };
    let [high, low] = [a, b].map(|x| convert(half, from, 16, mode, false, x));
    (high << 16) | low
}

/// A `.tf32` lives in the upper 19 bits of its register.
fn placed(to: Type, bits: u64) -> u64 {
    if to == Type::Tf32 { bits << 13 } else { bits }
}

/// The bits of a register of this width.
pub(crate) fn register_mask(register_bits: u32) -> u64 {
    u64::MAX >> (64 - register_bits.clamp(1, 64))
}

/// An integer in its register.
fn extended(to: Type, register_bits: u32, value: u64) -> u64 {
    let register = register_mask(register_bits);
    if to.is_signed() { sign_extend(value, to.bits()) as u64 & register } else { value & to.mask() }
}

/// The least and the largest number of an integer type.
fn range(ty: Type) -> (i128, i128) {
    if ty.is_signed() {
        (-(1i128 << (ty.bits() - 1)), (1i128 << (ty.bits() - 1)) - 1)
    } else {
        (0, (1i128 << ty.bits()) - 1)
    }
}

fn number(ty: Type, a: u64) -> i128 {
    if ty.is_signed() { i128::from(sign_extend(a, ty.bits())) } else { i128::from(a) }
}

fn integer_to_integer(to: Type, from: Type, register_bits: u32, mode: FloatMode, a: u64) -> u64 {
    let value = number(from, a);
    let (low, high) = range(to);
    let value = if mode.sat { value.clamp(low, high) } else { value };
    extended(to, register_bits, value as u64)
}

fn integer_to_float(format: Format, from: Type, mode: FloatMode, a: u64) -> u64 {
    let value = number(from, a);
    let real = Real::integer(value < 0, value.unsigned_abs() as u64);
    finish(format, mode, real.round(format, mode.rounding))
}

fn float_to_integer(to: Type, from: Type, format: Format, mode: FloatMode, a: u64) -> u64 {
    let a = if mode.ftz { format.flush(a) } else { a };
    let (low, high) = range(to);
    if format.is_nan(a) {
        let wide = from == Type::F64 || to.bits() == 64;
        return if wide { 1 << (to.bits() - 1) } else { 0 };
    }
    let value = if format.is_infinite(a) {
        if format.is_negative(a) { low } else { high }
    } else {
        format.unpack(a).to_clamped(mode.rounding, low, high)
    };
    value as u64 & to.mask()
}

fn float_to_float(format: Format, source: Format, mode: FloatMode, integral: bool, a: u64) -> u64 {
    // `.ftz` speaks of single precision only, on either side.
    let a = if mode.ftz && source == Format::F32 { source.flush(a) } else { a };
    if source.is_nan(a) {
        // The payload survives only where nothing is converted.
        return finish(
            format,
            mode,
            if source == format { quiet(format, a) } else { format.nan() },
        );
    }
    let negative = source.is_negative(a);
    if source.is_infinite(a) {
        let bits = format.infinity() | if negative { format.sign() } else { 0 };
        return finish(format, mode, bits);
    }
    let mut real = source.unpack(a);
    if integral {
        real = real.to_integral(mode.rounding);
    }
    let rounding = if integral { Rounding::Nearest } else { mode.rounding };
    finish(format, mode, real.round(format, rounding))
}

/// The NaN of a conversion that converts nothing.
fn quiet(format: Format, a: u64) -> u64 {
    if format == Format::F64 { a | (format.min_normal() >> 1) } else { format.nan() }
}

fn finish(format: Format, mode: FloatMode, bits: u64) -> u64 {
    let bits = if mode.ftz && format == Format::F32 { format.flush(bits) } else { bits };
    if mode.sat {
        saturate(format, bits)
    } else if mode.relu {
        rectify(format, bits)
    } else {
        bits
    }
}
/// Two 32-bit integers, clamped to so many bits, `a` above `b`, and the low bits of `c` above them.
#[must_use]
pub fn pack(bits: u32, signed: bool, a: u64, b: u64, c: u64) -> u64 {
    let (least, most) = match signed {
        true => (-(1_i32 << (bits - 1)), (1_i32 << (bits - 1)) - 1),
        false => (0, (1_i32 << bits) - 1),
    };
    let mask = (1_u32 << bits) - 1;
    let clamped = |x: u64| (x as u32 as i32).clamp(least, most) as u32 & mask;
    let pair = clamped(a) << bits | clamped(b);
    let above = if bits == 16 { 0 } else { (c as u32) << (2 * bits) };
    (above | pair).into()
}
