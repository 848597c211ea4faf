//! Answers as a npz archive: an array for each, by its name.
//!
//! NumPy's arrays have no missing values. Where there are some, a second array says where:
//! `price_mean.missing` is true for these rows, of which `price_mean` has a NaN, no time or a
//! zero.

use super::GroupReport;
use super::columns::{Column, Columns, Values, distinct};
use super::npy;
use crate::failure::Usage;
use crate::report::Report;
use anyhow::Result;
use std::io::{self, Cursor, ErrorKind, Seek, SeekFrom, Write};
use warpfold::{DType, KeyValues, Numbers, Scalar};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// An archive, in memory: sizes stand before what is in it.
type Archive = ZipWriter<Memory>;

/// Bytes in memory. Where the system refuses more of it, that is an error of writing.
#[derive(Default)]
struct Memory(Cursor<Vec<u8>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.0.position() as usize + bytes.len();
        let held = self.0.get_mut();
        held.try_reserve(end.saturating_sub(held.len())).map_err(|_| ErrorKind::OutOfMemory)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Memory {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// # Errors
/// Answers of one name, types that NumPy lacks, and what the system says.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> Result<()> {
    let arrays = report.arrays.iter();
    let columns = arrays.clone().map(|array| Column::of_array(report, array));
    let columns: Vec<Vec<_>> = columns.collect();
    let mut archive = ZipWriter::new(Memory::default());
    distinct(columns.iter().flatten())?;
    for (array, columns) in arrays.zip(&columns) {
        columns.iter().try_for_each(|column| add(column, &array.shape, &mut archive))?;
    }
    Ok(out.write_all(&archive.finish()?.0.into_inner())?)
}

/// # Errors
/// As for [`write`], and texts that NumPy would change.
pub(super) fn write_groups(report: &GroupReport, out: &mut dyn Write) -> Result<()> {
    let Columns { rows, columns } = Columns::of_groups(report)?;
    let mut archive = ZipWriter::new(Memory::default());
    columns.iter().try_for_each(|column| add(column, &[rows], &mut archive))?;
    Ok(out.write_all(&archive.finish()?.0.into_inner())?)
}

/// Adds a column, and where it has no values.
fn add(column: &Column<'_>, shape: &[usize], archive: &mut Archive) -> Result<()> {
    let name = format!("{}.npy", column.name);
    match &column.values {
        Values::Texts(texts) => add_texts(&name, column, texts, archive)?,
        Values::Numbers(numbers) => add_numbers(&name, column, numbers, shape, archive)?,
    }
    if !column.missing.is_empty() {
        let rows = shape.iter().product();
        let missing = column.valid(0..rows).into_iter().map(|valid| !valid);
        let missing = Numbers::of(&missing.collect::<Vec<_>>());
        let name = format!("{}.missing.npy", column.name);
        archive.start_file(name, options(CompressionMethod::Stored))?;
        archive.write_all(&npy::header(missing.dtype(), shape)?)?;
        archive.write_all(missing.bytes())?;
    }
    Ok(())
}

/// Members without a date, so that the same answers are the same bytes.
fn options(method: CompressionMethod) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(method)
        .last_modified_time(DateTime::default())
        .large_file(true)
}

fn add_numbers(
    name: &str,
    column: &Column<'_>,
    numbers: &Numbers,
    shape: &[usize],
    archive: &mut Archive,
) -> Result<()> {
    archive.start_file(name, options(CompressionMethod::Stored))?;
    // NumPy counts in 64 bits.
    let wide = |counts: Vec<i128>| counts.iter().map(|&count| count as i64).collect::<Vec<_>>();
    let counts = column.counts().map(|(_, counts)| Numbers::of(&wide(counts)));
    let numbers = counts.as_ref().unwrap_or(numbers);
    archive.write_all(&npy::counted_header(numbers.dtype(), column.unit, shape)?)?;
    let mut missing = column.missing.iter().peekable();
    for (row, number) in numbers.iter().enumerate() {
        let none = missing.next_if(|&&first| first == row).is_some();
        // What NumPy calls not a time.
        let number = match none && counts.is_some() {
            true => Scalar::from_bits(DType::I64, i64::MIN.cast_unsigned()),
            false => number,
        };
        let none = none && counts.is_none();
        archive.write_all(&npy::bytes(number, none)[..numbers.dtype().size()])?;
    }
    Ok(())
}

/// Texts of the width of the longest: in UTF-32, or as bytes where they are no UTF-8.
fn add_texts(
    name: &str,
    column: &Column<'_>,
    texts: &KeyValues,
    archive: &mut Archive,
) -> Result<()> {
    let all = || (0..texts.len()).map(|row| texts.text_bytes(row).unwrap_or_default());
    if all().any(|text| text.ends_with(&[0])) {
        let what = format!("a key of {} ends with a zero byte, which NumPy drops", column.name);
        return Err(Usage::new(what).hint("write .parquet, .arrow, .csv or .json").into());
    }
    let utf8 = texts.are_utf8();
    let width =
        |text: &[u8]| if utf8 { String::from_utf8_lossy(text).chars().count() } else { text.len() };
    let width = all().map(width).max().unwrap_or(0).max(1);
    let descr = if utf8 { format!("<U{width}") } else { format!("|S{width}") };
    // Most of a short text among long ones is padding.
    archive.start_file(name, options(CompressionMethod::Deflated))?;
    archive.write_all(&npy::header_of(&descr, &[texts.len()])?)?;
    let mut padded = Vec::new();
    for text in all() {
        padded.clear();
        if utf8 {
            let chars = String::from_utf8_lossy(text);
            padded.extend(chars.chars().flat_map(|c| u32::from(c).to_le_bytes()));
            padded.resize(4 * width, 0);
        } else {
            padded.extend_from_slice(text);
            padded.resize(width, 0);
        }
        archive.write_all(&padded)?;
    }
    Ok(())
}
