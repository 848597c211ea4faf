//! Comma- and tab-separated values.
//!
//! Scalars come as rows `op,value`, arrays as a row for each output: its
//! index, then a column for each operation. With several arrays their name
//! comes first. A `stats` record is a row with a column for each operation.

use crate::number::Style;
use crate::report::{Array, Indices, Report};
use std::io::{Result, Write};
use warpfold_files::USUAL_MISSING;

pub(super) fn write(report: &Report, delimiter: u8, hex: bool, out: &mut dyn Write) -> Result<()> {
    let style = Style::text(hex);
    let mut row = Row::new(out, delimiter);
    if report.as_record || !report.is_scalar() {
        write_wide(report, style, &mut row)
    } else {
        write_long(report, style, &mut row)
    }
}

/// A row for each scalar.
fn write_long(report: &Report, style: Style, row: &mut Row<'_>) -> Result<()> {
    if report.is_named() {
        row.cell("name")?;
    }
    row.cell("op")?;
    row.cell("value")?;
    row.end()?;
    for array in &report.arrays {
        for field in array.fields() {
            if report.is_named() {
                row.cell(&array.name)?;
            }
            row.cell(field.name)?;
            row.cell(&field.text(0, style).unwrap_or_default())?;
            row.end()?;
        }
    }
    Ok(())
}

/// A row for each output.
fn write_wide(report: &Report, style: Style, row: &mut Row<'_>) -> Result<()> {
    let dims = report.arrays.iter().map(|a| a.shape.len()).max().unwrap_or(0);
    if report.is_named() {
        row.cell("name")?;
    }
    for axis in 0..dims {
        row.cell(&format!("i{axis}"))?;
    }
    for field in report.arrays.first().map(Array::fields).unwrap_or_default() {
        row.cell(field.name)?;
    }
    let with_missing = report.as_record && report.has_missing();
    if with_missing {
        row.cell("missing")?;
    }
    row.end()?;
    for array in &report.arrays {
        let fields = array.fields();
        for (place, index) in Indices::of(&array.shape).enumerate() {
            if report.is_named() {
                row.cell(&array.name)?;
            }
            for axis in 0..dims {
                row.cell(&index.get(axis).map_or_else(String::new, usize::to_string))?;
            }
            for field in &fields {
                row.cell(&field.text(place, style).unwrap_or_default())?;
            }
            if with_missing {
                row.cell(&array.missing.to_string())?;
            }
            row.end()?;
        }
    }
    Ok(())
}

/// The row that is being written.
pub(crate) struct Row<'a> {
    out: &'a mut dyn Write,
    delimiter: u8,
    begun: bool,
}

impl<'a> Row<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, delimiter: u8) -> Row<'a> {
        Row { out, delimiter, begun: false }
    }

    /// A number or a name, or nothing where there is none.
    pub(crate) fn cell(&mut self, text: &str) -> Result<()> {
        self.put(text.as_bytes(), false)
    }

    /// A text from data, which no reader takes for a value that is missing: `""` is an empty
    /// text. Bytes that are no UTF-8 are written as they are.
    pub(crate) fn text(&mut self, text: &[u8]) -> Result<()> {
        let missing = USUAL_MISSING.iter().any(|token| token.as_bytes() == text);
        self.put(text, missing)
    }

    fn put(&mut self, text: &[u8], quoted: bool) -> Result<()> {
        if self.begun {
            self.out.write_all(&[self.delimiter])?;
        }
        self.begun = true;
        let special = |&b: &u8| b == self.delimiter || matches!(b, b'"' | b'\n' | b'\r');
        // Readers drop white space around a cell.
        if !quoted && !text.iter().any(special) && text.trim_ascii() == text {
            return self.out.write_all(text);
        }
        self.out.write_all(b"\"")?;
        for (i, part) in text.split(|&b| b == b'"').enumerate() {
            if i > 0 {
                self.out.write_all(b"\"\"")?;
            }
            self.out.write_all(part)?;
        }
        self.out.write_all(b"\"")
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        self.begun = false;
        self.out.write_all(b"\n")
    }
}
