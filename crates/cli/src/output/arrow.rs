//! Columns as an Arrow file (Feather version 2).

use super::columns::{Column, Columns, Values, is_128_bits};
use super::parquet::{beyond, lacks_bf16};
use anyhow::Result;
use arrow_array::types::{ArrowPrimitiveType, Decimal256Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Decimal256Array, Int32Array,
    Int64Array, LargeBinaryArray, LargeStringArray, RecordBatch, RecordBatchOptions, StringArray,
    UInt8Array, make_array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use warpfold::internal::Known;
use warpfold::{Decimal, KeyValues, Numbers, Tick, Unit};

#[expect(non_camel_case_types, reason = "as Arrow calls it")]
type i256 = <Decimal256Type as ArrowPrimitiveType>::Native;

/// Rows of a batch.
const BATCH: usize = 1 << 20;

/// # Errors
/// bf16, which Arrow lacks, and what the system says.
pub(super) fn write(columns: &Columns<'_>, out: &mut dyn Write) -> Result<()> {
    let types = columns.columns.iter().map(data_type).collect::<Result<Vec<DataType>>>()?;
    let field = |(column, of): (&Column<'_>, &DataType)| {
        Field::new(&column.name, of.clone(), !column.missing.is_empty())
    };
    let fields: Vec<Field> = columns.columns.iter().zip(&types).map(field).collect();
    let schema = Arc::new(Schema::new(fields));
    let mut file = FileWriter::try_new(out, &schema)?;
    for begin in (0..columns.rows).step_by(BATCH) {
        let rows = begin..columns.rows.min(begin + BATCH);
        let arrays = columns.columns.iter().zip(&types);
        let arrays = arrays.map(|(column, of)| array(column, of, rows.clone()));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?;
        file.write(&batch)?;
    }
    Ok(file.finish()?)
}

/// The type of elements that count something, where Arrow has such.
fn counted_type(unit: &Unit) -> Option<DataType> {
    let tick = match unit.tick() {
        Some(Tick::Second) => TimeUnit::Second,
        Some(Tick::Milli) => TimeUnit::Millisecond,
        Some(Tick::Micro) => TimeUnit::Microsecond,
        Some(Tick::Nano) => TimeUnit::Nanosecond,
        _ => return matches!(unit, Unit::Date(Tick::Day)).then_some(DataType::Date32),
    };
    Some(match unit {
        Unit::Date(Tick::Milli) => DataType::Date64,
        Unit::Time(Tick::Second | Tick::Milli) => DataType::Time32(tick),
        Unit::Time(_) => DataType::Time64(tick),
        Unit::Timestamp(_, zone) => DataType::Timestamp(tick, zone.as_deref().map(Arc::from)),
        Unit::Duration(_) => DataType::Duration(tick),
        _ => return None,
    })
}

/// # Errors
/// bf16.
fn data_type(column: &Column<'_>) -> Result<DataType> {
    if let Some((digits, decimals)) = column.decimals() {
        let digits = digits as i8;
        return Ok(match is_128_bits(&decimals) {
            true => DataType::Decimal128(38, digits),
            false => DataType::Decimal256(76, digits),
        });
    }
    if let Some(of) = column.counts().and_then(|(unit, _)| counted_type(unit)) {
        return Ok(of);
    }
    Ok(match &column.values {
        Values::Texts(texts) => {
            // Offsets of 32 bits are for less than 2 GiB in a batch.
            let bytes = |row| texts.text_bytes(row).map_or(0, <[u8]>::len);
            let large = (0..texts.len()).map(bytes).sum::<usize>() > i32::MAX as usize;
            match (column.is_utf8(texts), large) {
                (true, false) => DataType::Utf8,
                (true, true) => DataType::LargeUtf8,
                (false, false) => DataType::Binary,
                (false, true) => DataType::LargeBinary,
            }
        }
        Values::Numbers(numbers) => match numbers.dtype().known() {
            Known::Bool => DataType::Boolean,
            Known::I8 => DataType::Int8,
            Known::I16 => DataType::Int16,
            Known::I32 => DataType::Int32,
            Known::I64 => DataType::Int64,
            Known::U8 => DataType::UInt8,
            Known::U16 => DataType::UInt16,
            Known::U32 => DataType::UInt32,
            Known::U64 => DataType::UInt64,
            Known::F16 => DataType::Float16,
            Known::F32 => DataType::Float32,
            Known::F64 => DataType::Float64,
            Known::BF16 => return Err(lacks_bf16("Arrow", column)),
        },
    })
}

/// Counts of 32 bits, or of 64, as elements of their type.
fn counted_array(
    column: &Column<'_>,
    counts: &[i128],
    of: &DataType,
    rows: Range<usize>,
) -> Result<ArrayRef> {
    let valid = column.valid(rows.clone());
    let counts = counts[rows].iter().zip(valid).map(|(&count, valid)| valid.then_some(count));
    /// The counts, if all fit.
    fn fitting<T: TryFrom<i128>>(
        counts: impl Iterator<Item = Option<i128>>,
    ) -> Result<Vec<Option<T>>, T::Error> {
        counts.map(|count| count.map(T::try_from).transpose()).collect()
    }
    let wide = || beyond("Arrow", column, &of.to_string());
    let data = match of {
        DataType::Date32 | DataType::Time32(_) => {
            Int32Array::from(fitting(counts).map_err(|_| wide())?).into_data()
        }
        _ => Int64Array::from(fitting(counts).map_err(|_| wide())?).into_data(),
    };
    Ok(make_array(data.into_builder().data_type(of.clone()).build()?))
}

/// Decimals as elements of their type, which has all of them.
fn decimal_array(
    column: &Column<'_>,
    decimals: &[Decimal],
    of: &DataType,
    rows: Range<usize>,
) -> Result<ArrayRef> {
    let decimals = decimals[rows.clone()].iter().zip(column.valid(rows));
    let data = match of {
        DataType::Decimal128(..) => {
            let decimal = |(decimal, valid): (&Decimal, bool)| decimal.to_i128().filter(|_| valid);
            Decimal128Array::from(decimals.map(decimal).collect::<Vec<_>>()).into_data()
        }
        _ => {
            let decimal =
                |(decimal, valid): (&Decimal, bool)| valid.then(|| wide(decimal.to_le_bytes()));
            Decimal256Array::from(decimals.map(decimal).collect::<Vec<_>>()).into_data()
        }
    };
    Ok(make_array(data.into_builder().data_type(of.clone()).build()?))
}

fn wide(bytes: [u8; 24]) -> i256 {
    let sign = if bytes[23] >= 0x80 { 0xff } else { 0 };
    let mut all = [sign; 32];
    all[..24].copy_from_slice(&bytes);
    i256::from_le_bytes(all)
}

fn array(column: &Column<'_>, of: &DataType, rows: Range<usize>) -> Result<ArrayRef> {
    if let Some((_, decimals)) = column.decimals() {
        return decimal_array(column, &decimals, of, rows);
    }
    if let Some((_, counts)) = column.counts().filter(|(unit, _)| counted_type(unit).is_some()) {
        return counted_array(column, &counts, of, rows);
    }
    match &column.values {
        Values::Texts(texts) => Ok(text_array(texts, of, rows)),
        Values::Numbers(numbers) => number_array(column, numbers, of, rows),
    }
}

fn text_array(texts: &KeyValues, of: &DataType, rows: Range<usize>) -> ArrayRef {
    let (utf8, bytes) = (|row| texts.text(row), |row| texts.text_bytes(row));
    match of {
        DataType::Utf8 => Arc::new(StringArray::from_iter(rows.map(utf8))),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(rows.map(utf8))),
        DataType::Binary => Arc::new(BinaryArray::from_iter(rows.map(bytes))),
        _ => Arc::new(LargeBinaryArray::from_iter(rows.map(bytes))),
    }
}

fn number_array(
    column: &Column<'_>,
    numbers: &Numbers,
    of: &DataType,
    rows: Range<usize>,
) -> Result<ArrayRef> {
    let valid = column.valid(rows.clone());
    if *of == DataType::Boolean {
        let truths = rows.zip(valid).map(|(row, valid)| {
            valid.then(|| numbers.get(row).is_some_and(|truth| truth.to_bits() != 0))
        });
        return Ok(Arc::new(truths.collect::<BooleanArray>()));
    }
    let (size, len) = (numbers.dtype().size(), rows.len());
    let bytes = numbers.bytes()[size * rows.start..size * rows.end].to_vec();
    let missing = column.missing.first().map(|_| BooleanArray::from(valid).values().clone().into());
    let data = UInt8Array::from(bytes).into_data().into_builder().data_type(of.clone()).len(len);
    Ok(make_array(data.nulls(missing).align_buffers(true).build()?))
}
