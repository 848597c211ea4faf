//! Numbers of one type as those of another, where these are equal.

use crate::dense::Dense;
use crate::numpy::long_name;
use crate::walk::Walk;
use pyo3::exceptions::{PyMemoryError, PyOverflowError};
use pyo3::prelude::*;
use warpfold::{DType, Scalar, bf16, f16};

/// The type that numbers of two types are brought to: NumPy's, but for integers of 64 bits with and
/// without a sign, which meet in those with one.
pub(crate) fn common(a: DType, b: DType) -> DType {
    let (large, small) = if rank(a) >= rank(b) { (a, b) } else { (b, a) };
    let of_size = |bytes: usize, sizes: [DType; 3]| match bytes {
        0..=2 => sizes[0],
        3..=4 => sizes[1],
        _ => sizes[2],
    };
    match (large, small) {
        _ if large == small => large,
        (DType::F16 | DType::BF16, DType::F16 | DType::BF16) => DType::F32,
        _ if small == DType::Bool || small.is_float() => large,
        // A float that holds all integers of the type.
        _ if large.is_float() => {
            let wide = of_size(2 * small.size(), [DType::F16, DType::F32, DType::F64]);
            if wide.size() <= large.size() { large } else { wide }
        }
        _ if large.is_signed_int() == small.is_signed_int() => large,
        _ => {
            let unsigned = if large.is_signed_int() { small } else { large };
            let wide = of_size(2 * unsigned.size(), [DType::I16, DType::I32, DType::I64]);
            let signed = if large.is_signed_int() { large } else { small };
            if wide.size() > signed.size() { wide } else { signed }
        }
    }
}

/// Floats before integers before truth values, and the larger of each first.
fn rank(dtype: DType) -> usize {
    let kind = match dtype {
        DType::Bool => 0,
        _ if dtype.is_float() => 2,
        _ => 1,
    };
    16 * kind + dtype.size()
}

/// The bits of an element.
#[inline]
pub(crate) fn bits_of(item: &[u8]) -> u64 {
    let mut bits = [0; 8];
    let at = if cfg!(target_endian = "little") { 0 } else { 8 - item.len() };
    bits[at..at + item.len()].copy_from_slice(item);
    u64::from_ne_bytes(bits)
}

/// Writes the bits of an element, which has as many bytes as `to`.
#[inline]
pub(crate) fn put(to: &mut [u8], bits: u64) {
    let at = if cfg!(target_endian = "little") { 0 } else { 8 - to.len() };
    to.copy_from_slice(&bits.to_ne_bytes()[at..at + to.len()]);
}

/// The bits of a number as one of another type; `None` if no number of that type is equal to it.
pub(crate) fn cast(bits: u64, from: DType, to: DType) -> Option<u64> {
    let whole = match Scalar::from_bits(from, bits) {
        Scalar::Bool(b) => i128::from(b),
        Scalar::Int(i, _) => i128::from(i),
        Scalar::UInt(u, _) => i128::from(u),
        float => return real(float.to_f64(), to),
    };
    if to.is_float() {
        return if (whole as f64) as i128 == whole { real(whole as f64, to) } else { None };
    }
    Scalar::integer(whole, to).map(Scalar::to_bits)
}

fn real(x: f64, to: DType) -> Option<u64> {
    let made = match to {
        DType::F64 => Scalar::F64(x),
        DType::F32 => Scalar::F32(x as f32),
        DType::F16 => Scalar::F16(f16::from_f64(x)),
        DType::BF16 => Scalar::BF16(bf16::from_f64(x)),
        _ => return None,
    };
    (made.to_f64() == x || x.is_nan()).then(|| made.to_bits())
}

/// Room for some elements of 0.
///
/// # Errors
/// `MemoryError`.
pub(crate) fn room(dtype: DType, elements: usize) -> PyResult<Vec<u64>> {
    let mut words = Vec::new();
    let needed = elements.checked_mul(dtype.size()).map(|bytes| bytes.div_ceil(8));
    needed.and_then(|needed| words.try_reserve_exact(needed).ok()).ok_or_else(|| {
        PyMemoryError::new_err(format!("no memory for a copy of {elements} elements"))
    })?;
    words.resize(needed.unwrap_or(0), 0);
    Ok(words)
}

/// A number that another type has not.
pub(crate) fn lost(bits: u64, from: DType, to: DType) -> PyErr {
    let number = match Scalar::from_bits(from, bits) {
        Scalar::Int(i, _) => i.to_string(),
        Scalar::UInt(u, _) => u.to_string(),
        other => other.to_f64().to_string(),
    };
    let (from, to) = (long_name(from), long_name(to));
    PyOverflowError::new_err(format!(
        "the {from} {number} meets {to}, but no {to} is equal to it\nhint: cast the {from} array yourself, if rounding is meant: x.astype(\"float64\")"
    ))
}

/// A copy of an array whose elements are of another type, in C order.
///
/// # Errors
/// `OverflowError` for an element that the type has not; `MemoryError`.
pub(crate) fn copied(array: &Dense, to: DType) -> PyResult<Dense> {
    let (from, size) = (array.dtype, to.size());
    let mut words = room(to, array.len())?;
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    let steps = Walk::of(&array.shape, &array.strides);
    for (item, (step, _)) in bytes.chunks_exact_mut(size).zip(steps) {
        let at = array.origin().wrapping_offset(step);
        // SAFETY: it is the element of an index within the shape.
        let bits = bits_of(unsafe { std::slice::from_raw_parts(at, from.size()) });
        put(item, cast(bits, from, to).ok_or_else(|| lost(bits, from, to))?);
    }
    Dense::of_words(to, words, array.shape.clone())
}
