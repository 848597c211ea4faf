//! What the first rows of a CSV file tell: delimiter, header, columns.

use super::number::{self, trimmed};
use super::record::{OpenQuote, is_blank, scan};
use super::{BOM, check_encoding, first_line};
use crate::columns::{self, ColumnSelector};
use crate::open::OpenOptions;
use crate::{Error, Format, Result};
use warpfold_core::DType;

/// A CSV file as far as its first rows show it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) delimiter: u8,
    /// The header's cells; their numbers, from 1, without a header.
    pub(crate) names: Vec<String>,
    pub(crate) has_header: bool,
    /// Where the first data row begins, in bytes and as a line.
    pub(crate) start: u64,
    pub(crate) line: u64,
    /// For each column its cell in the first data row, if there is a row.
    pub(crate) sample: Option<Vec<Vec<u8>>>,
    /// The columns to read, from 0.
    pub(crate) chosen: Vec<usize>,
}

/// One of the first rows.
struct Row<'a> {
    cells: Vec<&'a [u8]>,
    /// Where it begins and ends.
    start: usize,
    end: usize,
    line: u64,
}

impl Table {
    /// Reads the first rows in `head`; `whole` says that nothing follows.
    pub(crate) fn sniff(
        name: &str,
        head: &[u8],
        whole: bool,
        format: Format,
        options: &OpenOptions,
    ) -> Result<Table> {
        check_encoding(head, name)?;
        let start = if head.starts_with(BOM) { BOM.len() } else { 0 };
        let delimiter = match options.delimiter {
            Some(b'\n' | b'\r' | b'"') => {
                return Err(Error::format(name, "a line end or quote cannot separate cells"));
            }
            Some(delimiter) => delimiter,
            None if format == Format::Tsv => b'\t',
            None => guess_delimiter(first_line(head)),
        };
        let first = next_row(name, head, start, 1, delimiter, whole)?
            .ok_or_else(|| Error::format(name, "the file has no rows"))?;
        // Only a help to tell numbers from names: where it is too long or
        // damaged, reading it in earnest will say so.
        let second = next_row(name, head, first.end, 0, delimiter, whole).ok().flatten();
        let names_row = |row: &Row<'_>| row.cells.iter().map(|c| unquoted(c)).collect::<Vec<_>>();
        let numbered = |n: usize| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>();
        let mut table = Table {
            delimiter,
            names: numbered(first.cells.len()),
            has_header: false,
            start: first.start as u64,
            line: first.line,
            sample: Some(first.cells.iter().map(|c| c.to_vec()).collect()),
            chosen: Vec::new(),
        };
        let has_header = match options.header {
            Some(has_header) => has_header,
            None => first_row_is_header(&first, second.as_ref(), options),
        };
        if has_header {
            table.has_header = true;
            table.names = names_row(&first);
            table.start = first.end as u64;
            table.line = first.line + lines(head, &first);
            table.sample = second.map(|row| row.cells.iter().map(|c| c.to_vec()).collect());
        }
        Ok(table)
    }

    /// Sets the columns to read.
    pub(crate) fn choose(
        &mut self,
        name: &str,
        columns: &[ColumnSelector],
        dtype: DType,
    ) -> Result<()> {
        if !columns.is_empty() {
            self.chosen = columns::resolve(columns, &self.names, name).map_err(|e| {
                if self.has_header {
                    e
                } else {
                    e.with_hint("there is no header row; to use the first row as one: --header")
                }
            })?;
            return Ok(());
        }
        if self.names.len() == 1 {
            self.chosen = vec![0];
            return Ok(());
        }
        let numeric: Vec<usize> =
            (0..self.names.len()).filter(|&i| self.is_numeric(i, dtype)).collect();
        self.chosen = columns::only_numeric(&numeric, &self.names, name)?;
        Ok(())
    }

    /// Whether the first data row has a number in this column.
    pub(crate) fn is_numeric(&self, column: usize, dtype: DType) -> bool {
        let cell = self.sample.as_ref().and_then(|row| row.get(column));
        cell.is_some_and(|c| number::is_number(trimmed(c), dtype))
    }
}

/// The next row that is not blank; `None` at the end.
fn next_row<'a>(
    name: &str,
    head: &'a [u8],
    mut start: usize,
    mut line: u64,
    delimiter: u8,
    whole: bool,
) -> Result<Option<Row<'a>>> {
    loop {
        if start >= head.len() {
            return Ok(None);
        }
        let mut cells = Vec::new();
        let (len, ended) = match scan(&head[start..], delimiter, |c| cells.push(c)) {
            Ok(found) => found,
            Err(OpenQuote) if whole => {
                return Err(Error::format(name, format!("line {line}: a quote is never closed")));
            }
            Err(OpenQuote) => (0, false),
        };
        if !ended && !whole {
            return Err(Error::format(
                name,
                format!(
                    "line {line}: the row does not end within the first {} KiB",
                    head.len() >> 10
                ),
            )
            .with_hint("is a quote never closed, or is this not text?"));
        }
        let end = start + len;
        if !is_blank(&head[start..end], delimiter) {
            return Ok(Some(Row { cells, start, end, line }));
        }
        line += u64::from(ended);
        start = end;
    }
}

fn lines(head: &[u8], row: &Row<'_>) -> u64 {
    super::chunks::count_lines(&head[row.start..row.end])
}

/// What a header's cell says.
fn unquoted(cell: &[u8]) -> String {
    let text = String::from_utf8_lossy(cell.trim_ascii());
    match text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\"").trim().into(),
        None => text.into_owned(),
    }
}

/// The most frequent of the usual delimiters, a comma if none occurs.
fn guess_delimiter(line: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b'\t', 0), (b';', 0), (b'|', 0)];
    let mut quoted = false;
    for &b in line {
        quoted ^= b == b'"';
        for (delimiter, count) in &mut counts {
            *count += usize::from(!quoted && b == *delimiter);
        }
    }
    // Of equals the last is the greatest to `max_by_key`; the order above is
    // that of preference.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| *delimiter)
}

/// Whether the first row names the columns: it holds something other than a
/// number where a number is expected.
fn first_row_is_header(first: &Row<'_>, second: Option<&Row<'_>>, options: &OpenOptions) -> bool {
    let dtype = options.dtype.unwrap_or(DType::F64);
    let is_number = |cell: &[u8]| number::is_number(trimmed(cell), dtype);
    let is_name = |cell: &&[u8]| !trimmed(cell).is_empty() && !is_number(cell);
    let width = first.cells.len();
    let columns = &options.columns;
    if !columns.is_empty() {
        let mut places = Vec::new();
        for column in columns {
            match *column {
                // Only a header can have names.
                ColumnSelector::Name(_) => return true,
                ColumnSelector::Index(i) => places.push(i),
                ColumnSelector::Range(a, b) => places.extend(a..=b.min(width)),
            }
        }
        return places.iter().filter_map(|&i| first.cells.get(i.wrapping_sub(1))).any(is_name);
    }
    // With text columns in the table, only the columns of numbers can tell.
    let numeric = |row: &Row<'_>| {
        (0..row.cells.len().min(width)).filter(|&i| is_number(row.cells[i])).collect::<Vec<_>>()
    };
    match second.map(numeric) {
        Some(columns) if !columns.is_empty() => columns.iter().any(|&i| is_name(&first.cells[i])),
        _ => first.cells.iter().any(is_name) && numeric(first).is_empty(),
    }
}
