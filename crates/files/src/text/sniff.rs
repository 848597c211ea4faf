//! What the first rows of a CSV file tell: delimiter, header, columns and what
//! these hold.

use super::heading::{First, Heading};
use super::missing::Missing;
use super::number::{self, Whole, comma_hint, shown, trimmed, whole};
use super::record::{OpenQuote, is_blank, scan};
use super::{BOM, check_encoding, check_line_ends, first_line};
use crate::columns::{self, ColumnSelector};
use crate::open::OpenOptions;
use crate::table::LeftOut;
use crate::{Error, Format, Result};
use std::collections::HashSet;
use warpfold_core::DType;

/// A row longer than this is not data.
pub(crate) const LONGEST_ROW: usize = 64 << 20;

/// The first bytes of a text, of which more can be had.
pub(crate) trait Head {
    fn bytes(&self) -> &[u8];
    /// Whether nothing follows.
    fn whole(&self) -> bool;
    /// Makes it at least twice as long, or whole.
    fn grow(&mut self) -> Result<()>;
}

/// A CSV file as far as its first rows show it.
#[derive(Clone, Debug)]
pub(crate) struct Sniffed {
    pub(crate) delimiter: u8,
    /// The header's cells, of which some may be empty; the columns' numbers, from
    /// 1, without a header.
    pub(crate) names: Vec<String>,
    /// What to call each column: its name, or its number if it has none.
    pub(crate) labels: Vec<String>,
    pub(crate) has_header: bool,
    /// What to tell of the first row where it could be read the other way.
    pub(crate) remark: Option<String>,
    /// Where the first data row begins, in bytes and as a line.
    pub(crate) start: u64,
    pub(crate) line: u64,
    /// What the first cells of each column hold.
    pub(crate) looks: Vec<Look>,
    /// The bytes of the longest of the first rows.
    pub(crate) row_bytes: usize,
}

/// What the first cells of a column hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Look {
    /// Whether there is a number.
    pub(crate) numbers: bool,
    /// Whether one of them is no integer.
    pub(crate) decimals: bool,
    /// Whether one of them is an integer.
    pub(crate) integers: bool,
    /// Whether one of them is beyond i64.
    pub(crate) large: bool,
    /// Whether one of them is missing.
    pub(crate) missing: bool,
    /// The first cell that is neither a number nor missing: its line and text.
    pub(crate) text: Option<(u64, String)>,
}

impl Look {
    /// Looks at one more cell, without white space and quotes around it.
    fn add(&mut self, cell: &[u8], line: u64, dtype: Option<DType>, missing: &Missing) {
        if missing.is(cell) {
            self.missing = true;
            return;
        }
        match whole(cell) {
            Whole::I64(_) | Whole::NegativeZero => (self.numbers, self.integers) = (true, true),
            Whole::U64(_) | Whole::Huge => {
                (self.numbers, self.integers, self.large) = (true, true, true);
            }
            Whole::No if number::is_number(cell, dtype.unwrap_or(DType::F64)) => {
                (self.numbers, self.decimals) = (true, true);
            }
            Whole::No => {
                self.text.get_or_insert_with(|| (line, shown(cell)));
            }
        }
    }

    /// Whether it can be a column of numbers.
    pub(crate) fn is_readable(&self) -> bool {
        self.text.is_none()
    }

    /// The type that the first cells show.
    pub(crate) fn dtype(&self) -> DType {
        match self {
            Look { decimals: true, .. } | Look { numbers: false, .. } => DType::F64,
            Look { large: true, .. } => DType::U64,
            _ => DType::I64,
        }
    }

    /// Why it is not a column of numbers.
    pub(crate) fn why_not(&self) -> Option<String> {
        self.text.as_ref().map(|(line, text)| format!("text: line {line} holds {text}"))
    }
}

/// The columns to read.
pub(crate) struct Choice {
    /// Their places, from 0.
    pub(crate) places: Vec<usize>,
    /// Whether nobody asked for them, and there were others.
    pub(crate) by_default: bool,
    /// Those that were left out because they hold text.
    pub(crate) left_out: Vec<LeftOut>,
}

/// One of the first rows.
struct Row<'a> {
    cells: Vec<&'a [u8]>,
    /// Where it begins and ends.
    start: usize,
    end: usize,
    line: u64,
}

/// What follows in the head.
enum Next<'a> {
    Row(Row<'a>),
    End,
    /// A row whose end was not seen yet; it begins in this line, and whether a
    /// quote in it is open.
    Cut(u64, bool),
}

impl Sniffed {
    /// Reads the first rows, of which at least the header and a row of data are
    /// there as a whole.
    pub(crate) fn new(
        name: &str,
        head: &mut dyn Head,
        format: Format,
        columns: &[ColumnSelector],
        options: &OpenOptions,
    ) -> Result<Sniffed> {
        check_encoding(head.bytes(), name)?;
        let missing = Missing::new(options.na.as_deref());
        loop {
            check_line_ends(head.bytes(), name)?;
            let delimiter = match options.delimiter {
                Some(b'\n' | b'\r' | b'"') => {
                    return Err(Error::format(name, "a line end or quote cannot separate cells"));
                }
                Some(delimiter) => delimiter,
                None if format == Format::Tsv => b'\t',
                None => guess_delimiter(first_line(head.bytes())),
            };
            let scan = Scan { name, head: head.bytes(), whole: head.whole(), delimiter };
            match scan.table(columns, options, &missing)? {
                Ok(table) => return Ok(table),
                Err((line, open)) if head.bytes().len() >= LONGEST_ROW => {
                    let what = format!(
                        "line {line}: the row that begins here does not end within {} MiB",
                        LONGEST_ROW >> 20
                    );
                    let hint =
                        if open { "a quote is never closed" } else { "is this text at all?" };
                    return Err(Error::format(name, what).with_hint(hint));
                }
                Err(_) => head.grow()?,
            }
        }
    }

    /// Finds the columns to read.
    pub(crate) fn choose(
        &self,
        name: &str,
        columns: &[ColumnSelector],
        options: &OpenOptions,
    ) -> Result<Choice> {
        if !columns.is_empty() {
            let places = columns::resolve(columns, &self.names, name).map_err(|e| {
                if self.has_header {
                    e
                } else {
                    e.with_hint("there is no header row; to use the first row as one: --header")
                }
            })?;
            return Ok(Choice { places, by_default: false, left_out: Vec::new() });
        }
        let all = 0..self.looks.len();
        if all.len() == 1 {
            return Ok(Choice { places: vec![0], by_default: false, left_out: Vec::new() });
        }
        let commas = || {
            let text = |look: &Look| Some(look.text.as_ref()?.1.trim_matches('"').to_string());
            self.looks.iter().filter_map(text).find_map(|text| comma_hint(text.as_bytes()))
        };
        let numeric = |&i: &usize| self.looks[i].numbers;
        let places: Vec<usize> = if options.all_columns {
            all.clone().filter(|&i| self.looks[i].is_readable()).collect()
        } else {
            // Numbers with text among them may be numbers with an error among
            // them: not to be passed over.
            let mut candidates: Vec<usize> = all.clone().filter(numeric).collect();
            if candidates.is_empty() {
                candidates = all.clone().filter(|&i| self.looks[i].is_readable()).collect();
            }
            columns::only_numeric(&candidates, &self.labels, name).map_err(
                |error| match commas().filter(|_| candidates.is_empty()) {
                    Some(hint) => error.with_hint(hint),
                    None => error,
                },
            )?
        };
        let taken = |i: &usize| places.binary_search(i).is_ok();
        let out: Vec<LeftOut> = all
            .filter(|i| !taken(i))
            .map(|i| {
                let why = self.looks[i].why_not();
                let why = why.unwrap_or_else(|| "no value in the first rows".into());
                LeftOut { name: self.labels[i].clone(), why }
            })
            .collect();
        if places.is_empty() {
            let list = columns::list(&self.labels);
            let what = format!("no column has only numbers; the columns are {list}");
            let error = Error::format(name, what);
            if let Some(hint) = commas() {
                return Err(error.with_hint(hint));
            }
            return Err(match out.first() {
                Some(LeftOut { name, why }) => error.with_hint(format!(
                    "{name} is {why}; what stands for a missing value is named by --na"
                )),
                None => error,
            });
        }
        Ok(Choice { places, by_default: true, left_out: out })
    }

    /// The columns of numbers but for some: the only one, or all where that is asked for.
    pub(crate) fn numeric_without(
        &self,
        name: &str,
        without: &[usize],
        options: &OpenOptions,
    ) -> Result<Vec<usize>> {
        let others = (0..self.looks.len()).filter(|place| !without.contains(place));
        let numbers = |place: &usize| self.looks[*place].numbers;
        let readable = |place: &usize| self.looks[*place].is_readable();
        if options.all_columns {
            let all: Vec<usize> = others.filter(numbers).filter(readable).collect();
            return match all.is_empty() {
                true => columns::only_numeric(&all, &self.labels, name),
                false => Ok(all),
            };
        }
        columns::only_numeric(&others.filter(numbers).collect::<Vec<_>>(), &self.labels, name)
    }

    /// How to choose the columns at some places in another table with such columns.
    pub(crate) fn selectors(&self, places: &[usize]) -> Vec<ColumnSelector> {
        if self.has_header {
            return columns::selectors(places, &self.names);
        }
        places.iter().map(|&place| ColumnSelector::Range(place + 1, place + 1)).collect()
    }
}

/// Rows at the front of a text.
struct Scan<'a> {
    name: &'a str,
    head: &'a [u8],
    whole: bool,
    delimiter: u8,
}

impl<'a> Scan<'a> {
    /// The table; the line of a row that needs more of the text otherwise.
    fn table(
        &self,
        columns: &[ColumnSelector],
        options: &OpenOptions,
        missing: &Missing,
    ) -> Result<Result<Sniffed, (u64, bool)>> {
        let start = if self.head.starts_with(BOM) { BOM.len() } else { 0 };
        let first = match self.next_row(start, 1)? {
            Next::Row(row) => row,
            Next::End => return Err(Error::format(self.name, "the file has no rows")),
            Next::Cut(line, open) => return Ok(Err((line, open))),
        };
        let width = first.cells.len();
        let after = first.line + lines(&self.head[first.start..first.end]);
        let mut looks = vec![Look::default(); width];
        let (mut at, mut line, mut rows) = (first.end, after, 0);
        let mut longest = first.end - first.start;
        let mut counts = true;
        loop {
            // Only a help to tell numbers from names: what is damaged here,
            // reading it in earnest will tell.
            let row = match self.next_row(at, line) {
                Ok(Next::Row(row)) => row,
                Ok(Next::Cut(line, open)) if rows == 0 => return Ok(Err((line, open))),
                Ok(Next::End | Next::Cut(..)) | Err(_) => break,
            };
            // Where a test wants short chunks, the first rows are few, too.
            let enough = options.chunk.is_some_and(|bytes| at - first.end >= bytes);
            if row.cells.len() != width || enough {
                break;
            }
            for (look, cell) in looks.iter_mut().zip(&row.cells) {
                look.add(trimmed(cell), row.line, options.dtype, missing);
            }
            counts &= whole(trimmed(row.cells[0])) == Whole::I64(rows);
            line = row.line + lines(&self.head[row.start..row.end]);
            longest = longest.max(row.end - row.start);
            (at, rows) = (row.end, rows + 1);
        }
        let Heading { names: has_header, remark } =
            First { cells: &first.cells, looks: &looks, counts, missing }.heading(columns, options);
        let numbered = (1..=width).map(|i| i.to_string());
        let names: Vec<String> = if has_header {
            first.cells.iter().map(|c| unquoted(c)).collect()
        } else {
            for (look, cell) in looks.iter_mut().zip(&first.cells) {
                let mut earlier = Look::default();
                earlier.add(trimmed(cell), first.line, options.dtype, missing);
                look.numbers |= earlier.numbers;
                look.decimals |= earlier.decimals;
                look.integers |= earlier.integers;
                look.large |= earlier.large;
                look.missing |= earlier.missing;
                look.text = earlier.text.or(look.text.take());
            }
            numbered.clone().collect()
        };
        let taken: HashSet<&str> = names.iter().map(String::as_str).collect();
        let label = |(name, number): (&String, String)| match name.as_str() {
            "" if taken.contains(&*number) => format!("column {number}"),
            "" => number,
            name => name.to_string(),
        };
        let labels = names.iter().zip(numbered).map(label).collect();
        Ok(Ok(Sniffed {
            delimiter: self.delimiter,
            labels,
            names,
            has_header,
            remark,
            start: if has_header { first.end } else { first.start } as u64,
            line: if has_header { after } else { first.line },
            looks,
            row_bytes: longest,
        }))
    }

    /// The next row that is not blank.
    fn next_row(&self, mut start: usize, mut line: u64) -> Result<Next<'a>> {
        loop {
            if start >= self.head.len() {
                return Ok(if self.whole { Next::End } else { Next::Cut(line, false) });
            }
            let mut cells = Vec::new();
            let (len, ended) = match scan(&self.head[start..], self.delimiter, |c| cells.push(c)) {
                Ok(found) => found,
                Err(OpenQuote) if self.whole => {
                    let what = format!("line {line}: a quote in this row is never closed");
                    return Err(Error::format(self.name, what));
                }
                Err(OpenQuote) => return Ok(Next::Cut(line, true)),
            };
            if !ended && !self.whole {
                return Ok(Next::Cut(line, false));
            }
            let end = start + len;
            if !is_blank(&self.head[start..end], self.delimiter) {
                return Ok(Next::Row(Row { cells, start, end, line }));
            }
            line += u64::from(ended);
            start = end;
        }
    }
}

fn lines(row: &[u8]) -> u64 {
    super::chunks::count_lines(row)
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
