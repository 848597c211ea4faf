//! One number of a type that is known at run time: from text and to bytes.

use std::str::FromStr;
use warpfold::internal::Known;
use warpfold::{DType, Scalar, bf16, f16};

/// Reads a number.
///
/// # Errors
/// Text that is not a number, and numbers that the type does not hold.
pub(crate) fn parse(dtype: DType, text: &str) -> Result<Scalar, String> {
    match dtype {
        DType::F16 => float(text, dtype, f64::is_infinite).map(|x| Scalar::F16(f16::from_f64(x))),
        DType::BF16 => {
            float(text, dtype, f64::is_infinite).map(|x| Scalar::BF16(bf16::from_f64(x)))
        }
        DType::F32 => float(text, dtype, f32::is_infinite).map(Scalar::F32),
        DType::F64 => float(text, dtype, f64::is_infinite).map(Scalar::F64),
        DType::Bool if text == "true" => Ok(Scalar::Bool(true)),
        DType::Bool if text == "false" => Ok(Scalar::Bool(false)),
        _ => {
            let number = whole(text).ok_or_else(|| format!("{text:?} is not a valid {dtype}"))?;
            from_integer(dtype, number)
        }
    }
}

/// A whole number, decimal or hexadecimal.
pub(crate) fn whole(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The number of this type; floats round.
///
/// # Errors
/// Numbers that the type does not hold.
pub(crate) fn from_integer(dtype: DType, x: i128) -> Result<Scalar, String> {
    let scalar = match dtype.known() {
        Known::F16 => Some(f16::from_f64(x as f64)).filter(|x| x.is_finite()).map(Scalar::F16),
        Known::BF16 => Some(bf16::from_f64(x as f64)).filter(|x| x.is_finite()).map(Scalar::BF16),
        Known::F32 => Some(Scalar::F32(x as f32)),
        Known::F64 => Some(Scalar::F64(x as f64)),
        _ => Scalar::integer(x, dtype),
    };
    scalar.ok_or_else(|| format!("{x} does not fit {dtype}"))
}

fn float<T: FromStr + Copy>(
    text: &str,
    dtype: DType,
    is_infinite: impl Fn(T) -> bool,
) -> Result<T, String> {
    let x = text.parse::<T>().map_err(|_| format!("{text:?} is not a valid {dtype}"))?;
    let meant = text.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("inf");
    if is_infinite(x) && !meant {
        return Err(format!("{text} does not fit {dtype}"));
    }
    Ok(x)
}

/// Appends the number as it lies in memory.
pub(crate) fn push(bytes: &mut Vec<u8>, scalar: Scalar) {
    bytes.extend_from_slice(&scalar.to_bits().to_le_bytes()[..scalar.dtype().size()]);
}

/// The numbers that lie in memory.
pub(crate) fn all(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = Scalar> {
    bytes.chunks_exact(dtype.size()).map(move |chunk| {
        let mut bits = [0; 8];
        bits[..chunk.len()].copy_from_slice(chunk);
        Scalar::from_bits(dtype, u64::from_le_bytes(bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_to_their_type() {
        assert_eq!(parse(DType::I8, "-128"), Ok(Scalar::from_bits(DType::I8, 0x80)));
        assert_eq!(parse(DType::U64, "0xffffffffffffffff").map(Scalar::to_bits), Ok(u64::MAX));
        assert_eq!(parse(DType::F64, "-inf"), Ok(Scalar::F64(f64::NEG_INFINITY)));
        assert_eq!(parse(DType::F16, "0.5"), Ok(Scalar::F16(f16::from_f32(0.5))));
        for (dtype, text) in [
            (DType::I8, "128"),
            (DType::U8, "-1"),
            (DType::Bool, "2"),
            (DType::U32, "0.5"),
            (DType::F32, "1e39"),
            (DType::F32, "one"),
            (DType::F64, ""),
        ] {
            assert!(parse(dtype, text).is_err(), "{dtype} {text}");
        }
    }

    #[test]
    fn numbers_come_back_from_memory() {
        for dtype in DType::ALL {
            let one = from_integer(dtype, 1).unwrap();
            let mut bytes = Vec::new();
            push(&mut bytes, one);
            push(&mut bytes, one);
            assert_eq!(bytes.len(), 2 * dtype.size());
            assert_eq!(all(dtype, &bytes).collect::<Vec<_>>(), [one, one]);
        }
    }
}
