//! Columns as a Parquet file.

use super::columns::{Column, Columns, Values, is_128_bits};
use crate::failure::Usage;
use anyhow::Result;
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use warpfold::internal::Known;
use warpfold::{DType, Decimal, KeyValues, Numbers, Scalar, Tick, Unit};

/// Rows of a row group: as many as other writers take.
const ROW_GROUP: usize = 1 << 20;

/// # Errors
/// bf16, which Parquet lacks, and what the system says.
pub(super) fn write(columns: &Columns<'_>, out: &mut dyn Write) -> Result<()> {
    let columns = Columns {
        rows: columns.rows,
        columns: columns.columns.iter().map(stored).collect::<Result<_>>()?,
    };
    let fields = columns.columns.iter().map(field).collect::<Result<Vec<TypePtr>>>()?;
    let schema = Type::group_type_builder("warpfold").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("warpfold ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::SNAPPY)
        // Keys differ, and answers nearly always: a dictionary of them is given up in the end, and takes
        // most of the time until then.
        .set_dictionary_enabled(false)
        .build();
    // The writer wants what can go to other threads, which stdout cannot: it has a vector,
    // that is emptied behind each row group.
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    for begin in (0..columns.rows).step_by(ROW_GROUP) {
        let rows = begin..columns.rows.min(begin + ROW_GROUP);
        let mut group = file.next_row_group()?;
        for column in &columns.columns {
            if let Some(mut writer) = group.next_column()? {
                write_rows(column, rows.clone(), &mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        file.flush()?;
        out.write_all(&std::mem::take(file.inner_mut()))?;
    }
    Ok(out.write_all(&file.into_inner()?)?)
}

/// The column in the steps that Parquet has: milliseconds for seconds, days for dates.
///
/// # Errors
/// Durations, which Parquet lacks, and what does not fit its types.
fn stored<'a>(column: &Column<'a>) -> Result<Column<'a>> {
    if let Some((digits, decimals)) = column.decimals() {
        let few = |decimal: i128| decimal.unsigned_abs() < 10u128.pow(18);
        if digits > 18 || !decimals.iter().all(|decimal| decimal.to_i128().is_some_and(few)) {
            let numbers = Numbers::of_decimals(decimals);
            return Ok(Column { values: Values::Numbers(Cow::Owned(numbers)), ..column.clone() });
        }
    }
    let Some((unit, mut counts)) = column.counts() else { return Ok(column.clone()) };
    let (times, by) = match unit {
        Unit::Duration(_) => {
            let what = format!("Parquet has no durations, which {} are", column.name);
            return Err(Usage::new(what).hint("write .arrow, .csv or .json").into());
        }
        Unit::Date(tick) => (1, i128::from(Tick::Day.nanoseconds() / tick.nanoseconds())),
        Unit::Time(Tick::Second) | Unit::Timestamp(Tick::Second, _) => (1000, 1),
        _ => (1, 1),
    };
    let narrow = matches!(unit, Unit::Date(_) | Unit::Time(Tick::Second | Tick::Milli));
    for (row, count) in counts.iter_mut().enumerate() {
        if column.missing.binary_search(&row).is_ok() {
            *count = 0;
            continue;
        }
        let fits = |count: &i128| match unit {
            _ if narrow => i32::try_from(*count).is_ok(),
            _ => i64::try_from(*count).is_ok(),
        };
        let stored = count.checked_mul(times).filter(|_| *count % by == 0).map(|n| n / by);
        let what = || beyond("Parquet", column, &unit.to_string());
        *count = stored.filter(fits).ok_or_else(what)?;
    }
    let numbers = match narrow {
        true => Numbers::of(&counts.iter().map(|&count| count as i32).collect::<Vec<_>>()),
        false => Numbers::of(&counts.iter().map(|&count| count as i64).collect::<Vec<_>>()),
    };
    Ok(Column { values: Values::Numbers(Cow::Owned(numbers)), ..column.clone() })
}

/// The type of a column that [`stored`] has made.
fn counted_type(unit: &Unit) -> Option<LogicalType> {
    let tick = match unit.tick() {
        Some(Tick::Second | Tick::Milli) => TimeUnit::MILLIS,
        Some(Tick::Micro) => TimeUnit::MICROS,
        _ => TimeUnit::NANOS,
    };
    Some(match unit {
        Unit::Date(_) => LogicalType::Date,
        Unit::Time(_) => LogicalType::time(false, tick),
        Unit::Timestamp(_, zone) => LogicalType::timestamp(zone.is_some(), tick),
        Unit::Decimal(digits) => LogicalType::decimal(i32::from(*digits), 18),
        _ => return None,
    })
}

/// The error that a column holds what a format's type for it has no room for.
pub(super) fn beyond(format: &str, column: &Column<'_>, of: &str) -> anyhow::Error {
    let what = format!("{} holds {of} that {format}'s type for them does not have", column.name);
    Usage::new(what).hint("write .csv or .json").into()
}

/// What a column is called, its type, and whether rows may have no value.
fn field(column: &Column<'_>) -> Result<TypePtr> {
    let integer = |bits, signed| Some(LogicalType::integer(bits, signed));
    let wide = wide_decimals(column).map(|(digits, decimals)| (digits, decimal_bytes(decimals)));
    let (physical, logical) = match &column.values {
        Values::Numbers(_) if wide.is_some() => (Physical::FIXED_LEN_BYTE_ARRAY, None),
        Values::Texts(texts) => {
            (Physical::BYTE_ARRAY, texts.are_utf8().then_some(LogicalType::String))
        }
        Values::Numbers(numbers) => match numbers.dtype().known() {
            Known::Bool => (Physical::BOOLEAN, None),
            Known::I8 => (Physical::INT32, integer(8, true)),
            Known::I16 => (Physical::INT32, integer(16, true)),
            Known::I32 => (Physical::INT32, None),
            Known::I64 => (Physical::INT64, None),
            Known::U8 => (Physical::INT32, integer(8, false)),
            Known::U16 => (Physical::INT32, integer(16, false)),
            Known::U32 => (Physical::INT32, integer(32, false)),
            Known::U64 => (Physical::INT64, integer(64, false)),
            Known::F16 => (Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Float16)),
            Known::F32 => (Physical::FLOAT, None),
            Known::F64 => (Physical::DOUBLE, None),
            Known::BF16 => return Err(lacks_bf16("Parquet", column)),
        },
    };
    let of_wide = wide.map(|(digits, bytes)| {
        LogicalType::decimal(digits.into(), if bytes == 16 { 38 } else { 76 })
    });
    let logical = match column.unit.and_then(counted_type) {
        _ if wide.is_some() => of_wide,
        Some(counted) if matches!(physical, Physical::INT32 | Physical::INT64) => Some(counted),
        _ => logical,
    };
    let repetition =
        if column.missing.is_empty() { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let length = match wide {
        Some((_, bytes)) => bytes as i32,
        None if physical == Physical::FIXED_LEN_BYTE_ARRAY => 2,
        None => -1,
    };
    let builder = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical.clone())
        .with_length(length);
    let builder = match logical {
        Some(LogicalType::Decimal(decimal)) => {
            builder.with_precision(decimal.precision).with_scale(decimal.scale)
        }
        _ => builder,
    };
    Ok(Arc::new(builder.build()?))
}

/// Decimals that [`stored`] has made, which are not all of 64 bits.
fn wide_decimals<'a>(column: &'a Column<'_>) -> Option<(u8, &'a [Decimal])> {
    match (&column.values, column.unit) {
        (Values::Numbers(numbers), Some(Unit::Decimal(digits))) => {
            numbers.decimals().map(|decimals| (*digits, decimals))
        }
        _ => None,
    }
}

/// The bytes of each of them.
fn decimal_bytes(decimals: &[Decimal]) -> usize {
    if is_128_bits(decimals) { 16 } else { 32 }
}

/// The error of a format without bf16.
pub(super) fn lacks_bf16(format: &str, column: &Column<'_>) -> anyhow::Error {
    Usage::new(format!("{format} has no bf16, which {} is", column.name))
        .hint("use --out f32")
        .into()
}

fn write_rows(
    column: &Column<'_>,
    rows: Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    if let Some((_, decimals)) = wide_decimals(column) {
        let bytes = decimal_bytes(decimals);
        let stored = |decimal: &Decimal| {
            let little = decimal.to_le_bytes();
            let mut all = vec![if little[23] >= 0x80 { 0xff } else { 0 }; 32];
            all[..24].copy_from_slice(&little);
            all.truncate(bytes);
            all.reverse();
            FixedLenByteArray::from(all)
        };
        let present = decimals[rows.clone()].iter().zip(column.valid(rows.clone()));
        let values: Vec<_> = present.filter(|(_, valid)| *valid).map(|(x, _)| stored(x)).collect();
        return write_values::<FixedLenByteArrayType>(&values, column, rows, writer);
    }
    match &column.values {
        Values::Texts(texts) => write_texts(column, texts, rows, writer),
        Values::Numbers(numbers) => write_numbers(column, numbers, rows, writer),
    }
}

fn write_texts(
    column: &Column<'_>,
    texts: &KeyValues,
    rows: Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    let present = || rows.clone().filter_map(|row| texts.text_bytes(row));
    // Parts of one buffer: memory of its own for each text takes longer than all else.
    let mut all = Vec::with_capacity(present().map(<[u8]>::len).sum());
    present().for_each(|text| all.extend_from_slice(text));
    let (all, mut from) = (Bytes::from(all), 0);
    let part = |text: &[u8]| {
        let start = from;
        from += text.len();
        ByteArray::from(all.slice(start..from))
    };
    let values: Vec<ByteArray> = present().map(part).collect();
    write_values::<ByteArrayType>(&values, column, rows, writer)
}

fn write_numbers(
    column: &Column<'_>,
    numbers: &Numbers,
    rows: Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    macro_rules! as_they_are {
        ($written:ty) => {{
            let size = numbers.dtype().size();
            let bytes = &numbers.bytes()[rows.start * size..rows.end * size];
            return write_values::<$written>(bytemuck::cast_slice(bytes), column, rows, writer);
        }};
    }
    match numbers.dtype() {
        _ if !column.missing.is_empty() => {}
        DType::I32 | DType::U32 => as_they_are!(Int32Type),
        DType::I64 | DType::U64 => as_they_are!(Int64Type),
        DType::F32 => as_they_are!(FloatType),
        DType::F64 => as_they_are!(DoubleType),
        _ => {}
    }
    let valid = column.valid(rows.clone());
    let present = rows.clone().zip(valid).filter(|(_, valid)| *valid);
    let bits = present.filter_map(|(row, _)| numbers.get(row)).map(|number| match number {
        // Those of a longer type, too.
        Scalar::Int(integer, _) => integer.cast_unsigned(),
        number => number.to_bits(),
    });
    macro_rules! write {
        ($written:ty, $to:expr) => {
            write_values::<$written>(&bits.map($to).collect::<Vec<_>>(), column, rows, writer)
        };
    }
    match numbers.dtype() {
        DType::Bool => write!(BoolType, |bits| bits != 0),
        DType::I64 | DType::U64 => write!(Int64Type, u64::cast_signed),
        DType::F16 => write!(FixedLenByteArrayType, |bits| {
            FixedLenByteArray::from((bits as u16).to_le_bytes().to_vec())
        }),
        DType::F32 => write!(FloatType, |bits| f32::from_bits(bits as u32)),
        DType::F64 => write!(DoubleType, f64::from_bits),
        DType::BF16 => Err(lacks_bf16("Parquet", column)),
        _ => write!(Int32Type, |bits| bits as i32),
    }
}

/// Writes values, and which of the rows have them.
fn write_values<T: DataType>(
    values: &[T::T],
    column: &Column<'_>,
    rows: Range<usize>,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    let levels: Option<Vec<i16>> = (!column.missing.is_empty())
        .then(|| column.valid(rows).into_iter().map(i16::from).collect());
    writer.typed::<T>().write_batch(values, levels.as_deref(), None)?;
    Ok(())
}
