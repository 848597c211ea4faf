//! Arithmetic that IEEE 754 and PTX define bit for bit: the exact result, rounded once, in any direction and format.
//!
//! `.f32` and `.f64` to nearest use the processor, whose results are the same; everything else goes through [`Real`]. Two 16-bit numbers in
//! a register are computed half by half. A `.f32` or 16-bit result that is NaN is PTX's canonical NaN; for `.f64`, where PTX says nothing, it is the
//! first NaN among the sources, made quiet, as the hardware has it.

use super::approx;
use super::real::{Format, Real};
use crate::ir::{Class, FloatBinary, FloatMode, FloatTest, FloatUnary, Rounding, Type};

/// A floating-point operation with two sources.
#[must_use]
#[inline]
pub fn binary(op: FloatBinary, ty: Type, mode: FloatMode, a: u64, b: u64) -> u64 {
    let Some(format) = Format::of(ty) else { return 0 };
    halves(ty, [a, b, 0], |[a, b, _]| scalar_binary(op, format, mode, a, b))
}

/// `a * b + c`, rounded once.
#[must_use]
#[inline]
pub fn fma(ty: Type, mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    let Some(format) = Format::of(ty) else { return 0 };
    halves(ty, [a, b, c], |[a, b, c]| scalar_fma(format, mode, a, b, c))
}

/// A floating-point operation with one source.
#[must_use]
#[inline]
pub fn unary(op: FloatUnary, ty: Type, mode: FloatMode, a: u64) -> u64 {
    let Some(format) = Format::of(ty) else { return 0 };
    halves(ty, [a, 0, 0], |[a, _, _]| scalar_unary(op, format, mode, a))
}

/// `testp`.
#[must_use]
pub fn test(test: FloatTest, ty: Type, a: u64) -> bool {
    let Some(format) = Format::of(ty) else { return false };
    let finite = !format.is_nan(a) && !format.is_infinite(a);
    let small = a & (format.sign() - 1) < format.min_normal();
    match test {
        FloatTest::Finite => finite,
        FloatTest::Infinite => format.is_infinite(a),
        FloatTest::Number => !format.is_nan(a),
        FloatTest::NotANumber => format.is_nan(a),
        FloatTest::Normal => finite && !small,
        FloatTest::Subnormal => small,
    }
}

/// Applies a function to a scalar, or to the halves of a pair.
#[inline(always)]
fn halves(ty: Type, sources: [u64; 3], f: impl Fn([u64; 3]) -> u64) -> u64 {
    if ty.class() != Class::FloatPair {
        return f(sources);
    }
    let bits = ty.bits() / 2;
    let part = |shift: u32| sources.map(|s| (s >> shift) & (u64::MAX >> (64 - bits)));
    f(part(0)) | f(part(bits)) << bits
}

/// An operation on two scalars.
#[inline(always)]
pub(crate) fn scalar_binary(
    op: FloatBinary,
    format: Format,
    mode: FloatMode,
    a: u64,
    b: u64,
) -> u64 {
    let [a, b] = [a, b].map(|x| source(format, mode, x));
    let result = match op {
        FloatBinary::Add => add(format, mode.rounding, a, b),
        // Subtracting is adding the opposite; a NaN keeps its sign.
        FloatBinary::Sub if format.is_nan(b) => add(format, mode.rounding, a, b),
        FloatBinary::Sub => add(format, mode.rounding, a, b ^ format.sign()),
        FloatBinary::Mul => mul(format, mode.rounding, a, b),
        FloatBinary::Div => div(format, mode.rounding, a, b),
        FloatBinary::DivFull => approx::div_full(a, b),
        FloatBinary::DivApprox => approx::div(a, b),
        FloatBinary::Min | FloatBinary::Max => extremum(op, format, mode, a, b),
        FloatBinary::CopySign => {
            return (a & format.sign()) | (b & (format.sign() - 1));
        }
    };
    finish(format, mode, result)
}

fn scalar_unary(op: FloatUnary, format: Format, mode: FloatMode, a: u64) -> u64 {
    let a = source(format, mode, a);
    let result = match op {
        FloatUnary::Abs => a & (format.sign() - 1),
        FloatUnary::Neg => a ^ format.sign(),
        FloatUnary::Rcp => div(format, mode.rounding, format.one(), a),
        FloatUnary::Sqrt => sqrt(format, mode.rounding, a),
        FloatUnary::RsqrtApprox if format == Format::F64 && !mode.ftz => approx::rsqrt(a),
        _ => approx::unary(op, format, a),
    };
    finish(format, mode, result)
}

/// [`fma`] of scalars.
#[inline(always)]
pub(crate) fn scalar_fma(format: Format, mode: FloatMode, a: u64, b: u64, c: u64) -> u64 {
    let [a, b, c] = [a, b, c].map(|x| source(format, mode, x));
    let nearest = mode.rounding == Rounding::Nearest;
    let result = match format {
        Format::F32 if nearest => canonical(f32_of(a).mul_add(f32_of(b), f32_of(c))),
        Format::F64 if nearest => {
            let r = f64_of(a).mul_add(f64_of(b), f64_of(c));
            if r.is_nan() { nan_from(format, &[a, b, c]) } else { r.to_bits() }
        }
        _ => fma_exactly(format, mode.rounding, a, b, c),
    };
    finish(format, mode, result)
}

/// What a source counts as.
#[inline]
fn source(format: Format, mode: FloatMode, bits: u64) -> u64 {
    if mode.ftz { format.flush(bits) } else { bits }
}

/// Flushes and clamps a result. A result is flushed if it is subnormal after rounding.
#[inline]
fn finish(format: Format, mode: FloatMode, bits: u64) -> u64 {
    let bits = if mode.ftz { format.flush(bits) } else { bits };
    if !mode.sat && !mode.relu {
        return bits;
    }
    if mode.sat { saturate(format, bits) } else { rectify(format, bits) }
}

/// `.sat`: into [0, 1]; NaN becomes 0.
#[must_use]
pub fn saturate(format: Format, bits: u64) -> u64 {
    if format.is_nan(bits) || format.is_negative(bits) { 0 } else { bits.min(format.one()) }
}

/// `.relu`: negative numbers become 0, NaN canonical.
#[must_use]
pub fn rectify(format: Format, bits: u64) -> u64 {
    if format.is_nan(bits) {
        format.nan()
    } else if format.is_negative(bits) {
        0
    } else {
        bits
    }
}

#[inline]
pub(crate) fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

#[inline]
pub(crate) fn f64_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The bits of an `.f32` result.
#[inline]
pub(crate) fn canonical(value: f32) -> u64 {
    if value.is_nan() { 0x7fff_ffff } else { u64::from(value.to_bits()) }
}

/// The NaN of a result: see the module's head.
fn nan_from(format: Format, sources: &[u64]) -> u64 {
    if format != Format::F64 {
        return format.nan();
    }
    let quiet = format.min_normal() >> 1;
    sources.iter().find(|&&s| format.is_nan(s)).map_or(format.nan(), |s| s | quiet)
}

/// The sum.
#[must_use]
#[inline(always)]
pub fn add(format: Format, rounding: Rounding, a: u64, b: u64) -> u64 {
    if rounding == Rounding::Nearest {
        match format {
            Format::F32 => return canonical(f32_of(a) + f32_of(b)),
            Format::F64 => {
                let r = f64_of(a) + f64_of(b);
                return if r.is_nan() { nan_from(format, &[a, b]) } else { r.to_bits() };
            }
            _ => {}
        }
    }
    if format.is_nan(a) || format.is_nan(b) {
        return nan_from(format, &[a, b]);
    }
    match (format.is_infinite(a), format.is_infinite(b)) {
        (true, true) if a != b => format.nan(),
        (true, _) => a,
        (_, true) => b,
        _ => format.unpack(a).add(format.unpack(b), rounding).round(format, rounding),
    }
}

/// The product.
#[must_use]
#[inline(always)]
pub fn mul(format: Format, rounding: Rounding, a: u64, b: u64) -> u64 {
    if rounding == Rounding::Nearest {
        match format {
            Format::F32 => return canonical(f32_of(a) * f32_of(b)),
            Format::F64 => {
                let r = f64_of(a) * f64_of(b);
                return if r.is_nan() { nan_from(format, &[a, b]) } else { r.to_bits() };
            }
            _ => {}
        }
    }
    match special_product(format, a, b) {
        Some(bits) => bits,
        None => format.unpack(a).times(format.unpack(b)).round(format, rounding),
    }
}

/// The product where a factor is not finite.
fn special_product(format: Format, a: u64, b: u64) -> Option<u64> {
    if format.is_nan(a) || format.is_nan(b) {
        return Some(nan_from(format, &[a, b]));
    }
    if !format.is_infinite(a) && !format.is_infinite(b) {
        return None;
    }
    if format.is_zero(a) || format.is_zero(b) {
        return Some(format.nan());
    }
    Some(format.infinity() | ((a ^ b) & format.sign()))
}

fn fma_exactly(format: Format, rounding: Rounding, a: u64, b: u64, c: u64) -> u64 {
    if [a, b, c].iter().any(|&x| format.is_nan(x)) {
        return nan_from(format, &[a, b, c]);
    }
    if let Some(product) = special_product(format, a, b) {
        return add(format, rounding, product, c);
    }
    if format.is_infinite(c) {
        return c;
    }
    let product = format.unpack(a).times(format.unpack(b));
    product.add(format.unpack(c), rounding).round(format, rounding)
}

/// The quotient.
#[must_use]
pub fn div(format: Format, rounding: Rounding, a: u64, b: u64) -> u64 {
    let sign = (a ^ b) & format.sign();
    if format.is_nan(a) || format.is_nan(b) {
        return nan_from(format, &[a, b]);
    }
    match (format.is_infinite(a), format.is_infinite(b)) {
        (true, true) => return format.nan(),
        (true, false) => return format.infinity() | sign,
        (false, true) => return sign,
        _ => {}
    }
    if format.is_zero(b) {
        return if format.is_zero(a) { format.nan() } else { format.infinity() | sign };
    }
    if rounding == Rounding::Nearest && format == Format::F32 {
        return canonical(f32_of(a) / f32_of(b));
    }
    format.unpack(a).over(format.unpack(b)).round(format, rounding)
}

/// The square root; of `-0` it is `-0`.
#[must_use]
pub fn sqrt(format: Format, rounding: Rounding, a: u64) -> u64 {
    if format.is_nan(a) {
        return nan_from(format, &[a]);
    }
    if format.is_zero(a) || a == format.infinity() {
        return a;
    }
    if format.is_negative(a) {
        return format.nan();
    }
    format.unpack(a).sqrt().round(format, rounding)
}

/// `min` and `max`: a NaN loses against a number, and `-0` is less than `+0`.
fn extremum(op: FloatBinary, format: Format, mode: FloatMode, a: u64, b: u64) -> u64 {
    let nan = [a, b].map(|x| format.is_nan(x));
    if nan == [true, true] || (mode.nan && nan != [false, false]) {
        return format.nan();
    }
    let magnitude = format.sign() - 1;
    let sign = if mode.xorsign_abs { (a ^ b) & format.sign() } else { 0 };
    let [a, b] = if mode.xorsign_abs { [a & magnitude, b & magnitude] } else { [a, b] };
    let chosen = match nan {
        [true, _] => b,
        [_, true] => a,
        _ => {
            let a_less = order_key(format, a) < order_key(format, b);
            if a_less == (op == FloatBinary::Min) { a } else { b }
        }
    };
    chosen | sign
}

/// An integer that orders numbers as they are ordered, `-0` just below `+0`.
fn order_key(format: Format, bits: u64) -> i64 {
    let magnitude = (bits & (format.sign() - 1)) as i64;
    if format.is_negative(bits) { !magnitude } else { magnitude }
}

/// Whether an `.f32` is zero or more; NaN is not.
#[must_use]
pub fn at_least_zero(a: u64) -> bool {
    f32_of(a) >= 0.0
}

/// The number as an `f64`, exactly, for any format.
#[must_use]
pub fn widen(format: Format, bits: u64) -> f64 {
    match format {
        Format::F64 => f64_of(bits),
        Format::F32 => f64::from(f32_of(bits)),
        _ if format.is_nan(bits) => f64::NAN,
        _ if format.is_infinite(bits) => {
            if format.is_negative(bits) {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        _ => f64_of(format.unpack(bits).round(Format::F64, Rounding::Nearest)),
    }
}

/// An `f64` rounded once to a format.
#[must_use]
pub fn narrow(format: Format, rounding: Rounding, value: f64) -> u64 {
    let bits = value.to_bits();
    if value.is_nan() {
        return format.nan();
    }
    if value.is_infinite() {
        return format.infinity() | if value < 0.0 { format.sign() } else { 0 };
    }
    let real: Real = Format::F64.unpack(bits);
    real.round(format, rounding)
}
