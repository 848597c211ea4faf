//! The answer as a NumPy array.

use crate::failure::Usage;
use crate::report::Report;
use anyhow::Result;
use std::io::Write;
use warpfold::internal::Known;
use warpfold::{DType, Scalar, Tick, Unit, f16};

/// # Errors
/// Several answers, types that NumPy lacks, and what the system says.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> Result<()> {
    let one = match &report.arrays[..] {
        [array] => match &array.answers[..] {
            [answer] => {
                let column = answer.column.as_ref().filter(|column| column.second.is_none());
                column.map(|column| (array, column, answer.unit.as_ref()))
            }
            _ => None,
        },
        _ => None,
    };
    let Some((array, column, unit)) = one else {
        return Err(Usage::new("a .npy file holds the answer to one operation over one array")
            .hint("write .csv or .json")
            .into());
    };
    if column.numbers.decimals().is_some() {
        return counted_header(DType::I64, unit, &array.shape).map(drop);
    }
    let own = column.numbers.dtype();
    // NumPy counts in 64 bits.
    let counts = unit.filter(|_| !own.is_float());
    let dtype = if counts.is_some() { DType::I64 } else { own };
    out.write_all(&counted_header(dtype, counts, &array.shape)?)?;
    for number in column.numbers.iter() {
        let number = match number {
            Scalar::Int(count, _) => Scalar::integer(count.into(), dtype).unwrap_or(number),
            number => number,
        };
        out.write_all(&bytes(number, false)[..dtype.size()])?;
    }
    Ok(())
}

/// The bytes of a number, as many of them as its type has; of none at all those of a NaN,
/// or of zero where the type has none.
pub(super) fn bytes(number: Scalar, none: bool) -> [u8; 8] {
    let bits = match (none, number) {
        (false, number) => number.to_bits(),
        (true, Scalar::F16(_)) => Scalar::F16(f16::NAN).to_bits(),
        (true, Scalar::F32(_)) => Scalar::F32(f32::NAN).to_bits(),
        (true, Scalar::F64(_)) => Scalar::F64(f64::NAN).to_bits(),
        (true, _) => 0,
    };
    bits.to_le_bytes()
}

/// The same of elements of 64 bits that may count something: those of `datetime64` and
/// `timedelta64` do.
pub(super) fn counted_header(
    dtype: DType,
    unit: Option<&Unit>,
    shape: &[usize],
) -> Result<Vec<u8>> {
    let kind = match unit {
        Some(Unit::Decimal(_)) => {
            return Err(Usage::new("NumPy has no decimals")
                .hint("use --out f64, or write .parquet, .arrow, .csv or .json")
                .into());
        }
        Some(Unit::Date(_) | Unit::Timestamp(..)) if dtype == DType::I64 => 'M',
        Some(Unit::Duration(_)) if dtype == DType::I64 => 'm',
        _ => return header(dtype, shape),
    };
    let tick = unit.and_then(Unit::tick).map_or("", Tick::symbol);
    header_of(&format!("<{kind}8[{tick}]"), shape)
}

/// What stands before the elements, which follow in C order, the low bytes first.
///
/// # Errors
/// Types that NumPy lacks.
pub(crate) fn header(dtype: DType, shape: &[usize]) -> Result<Vec<u8>> {
    let descr = match dtype.known() {
        Known::Bool => "|b1",
        Known::I8 => "|i1",
        Known::I16 => "<i2",
        Known::I32 => "<i4",
        Known::I64 => "<i8",
        Known::U8 => "|u1",
        Known::U16 => "<u2",
        Known::U32 => "<u4",
        Known::U64 => "<u8",
        Known::F16 => "<f2",
        Known::F32 => "<f4",
        Known::F64 => "<f8",
        Known::BF16 => {
            return Err(Usage::new("NumPy has no bf16").hint("use --out f32").into());
        }
    };
    header_of(descr, shape)
}

/// The same for elements that NumPy describes so.
///
/// # Errors
/// More dimensions than the first version of the format has room for.
pub(super) fn header_of(descr: &str, shape: &[usize]) -> Result<Vec<u8>> {
    let ndim = shape.len();
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    // One length takes its comma along, more do without the last.
    let shape = if ndim == 1 { shape.trim_end() } else { shape.trim_end_matches(", ") };
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version and length take 10 bytes; the data begin at a multiple
    // of 64, after a line end.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    let length = header.len() + padding + 1;
    // 64 dimensions of 20 digits still fit version 1.
    let length = u16::try_from(length).map_err(|_| Usage::new("too many dimensions for .npy"))?;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(length.to_le_bytes());
    writeln!(bytes, "{header}{:padding$}", "")?;
    Ok(bytes)
}
