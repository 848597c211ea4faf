//! Answers of groups: a row for each group, its keys first.
//!
//! With several columns of values the column's name comes before the keys. What has no
//! value, a key that is missing or the smallest of nothing, is a dash for people and
//! shells, an empty cell of CSV and `null` in JSON. No key that is there looks like that:
//! an empty text is `""`.

use super::{Format, Row, grid, json, quoted};
use crate::number::{self, Style};
use crate::printable::{printable, printable_key};
use std::borrow::Cow;
use std::io::{Result, Write};
use std::ops::Range;
use warpfold::{GroupColumn, KeyValues, Op, Scalar, Threads, Unit};
use warpfold_threads::Pieces;

/// The answers of all groups.
#[derive(Debug)]
pub(crate) struct GroupReport {
    /// What the columns of keys are called, and their keys.
    pub(crate) key_names: Vec<String>,
    pub(crate) keys: Vec<KeyValues>,
    /// How many groups there are.
    pub(crate) groups: usize,
    /// The columns of values.
    pub(crate) arrays: Vec<GroupRows>,
}

/// The answers over one column of values.
#[derive(Debug)]
pub(crate) struct GroupRows {
    pub(crate) name: String,
    /// What the values count.
    pub(crate) unit: Option<Unit>,
    pub(crate) columns: Vec<GroupColumn>,
}

impl GroupRows {
    /// What the answers to an operation count, if they are elements that do.
    pub(super) fn unit_of(&self, op: Op) -> Option<&Unit> {
        self.unit.as_ref().filter(|unit| unit.is_kept_by(op))
    }
}

/// A number, and what it counts.
type Counted<'a> = (Scalar, Option<&'a Unit>);

fn text((number, unit): Counted<'_>, style: Style) -> String {
    let mut text = String::new();
    number::push_counted(&mut text, number, unit, style);
    text
}

impl GroupReport {
    /// How many rows a table has.
    pub(crate) fn rows(&self) -> usize {
        self.groups * self.arrays.len()
    }

    fn is_named(&self) -> bool {
        self.arrays.len() > 1
    }

    /// What the columns of a table are called, but for the keys and what precedes them.
    fn fields(&self) -> Vec<&'static str> {
        let columns = self.arrays.first().map_or(&[][..], |array| &array.columns);
        columns.iter().flat_map(|column| names(column.op())).collect()
    }

    fn header(&self) -> Vec<&str> {
        let name = self.is_named().then_some("name");
        let keys = self.key_names.iter().map(String::as_str);
        name.into_iter().chain(keys).chain(self.fields()).collect()
    }

    /// Calls `row` with the place of each group of a range and its answers.
    fn for_each_row(
        &self,
        array: &GroupRows,
        groups: Range<usize>,
        mut row: impl FnMut(usize, &[Option<Counted<'_>>]) -> Result<()>,
    ) -> Result<()> {
        let mut answers = Vec::new();
        for group in groups {
            answers.clear();
            for column in &array.columns {
                let value = column.get(group);
                let unit = array.unit_of(column.op());
                answers.push(value.map(|value| (value.first(), unit)));
                if column.op().pair().is_some() {
                    let second = value.and_then(|value| value.second());
                    answers.push(second.map(|second| (second, unit)));
                }
            }
            row(group, &answers)?;
        }
        Ok(())
    }

    /// Writes what `row` makes of each array, the place of each group and its answers: threads make
    /// the text of rows side by side.
    fn write_rows(
        &self,
        out: &mut dyn Write,
        row: impl Fn(&mut Vec<u8>, &GroupRows, usize, &[Option<Counted<'_>>]) -> Result<()> + Sync,
    ) -> Result<()> {
        let at_once = ROWS * 4 * Threads::All.count();
        for array in &self.arrays {
            for first in (0..self.groups).step_by(at_once) {
                let end = self.groups.min(first + at_once);
                let pieces = Pieces::new((end - first).div_ceil(ROWS));
                let made = Threads::All.run(pieces.count(), || {
                    let mut made = Vec::new();
                    while let Some(piece) = pieces.take() {
                        let from = first + piece * ROWS;
                        let (mut text, rows) = (Vec::new(), from..end.min(from + ROWS));
                        let done = self.for_each_row(array, rows, |group, answers| {
                            row(&mut text, array, group, answers)
                        });
                        made.push((piece, done.map(|()| text)));
                    }
                    made
                });
                let mut made: Vec<_> = made.into_iter().flatten().collect();
                made.sort_unstable_by_key(|&(piece, _)| piece);
                made.into_iter().try_for_each(|(_, text)| out.write_all(&text?))?;
            }
        }
        Ok(())
    }
}

/// Rows whose text one thread makes at once.
const ROWS: usize = 1 << 12;

fn names(op: Op) -> Vec<&'static str> {
    op.pair().map_or_else(|| vec![op.name()], |(first, second)| vec![first.name(), second.name()])
}

/// A key for people; a dash for none.
fn key(keys: &KeyValues, group: usize) -> Cow<'_, str> {
    match (keys.number(group), keys.text_bytes(group)) {
        (Some(number), _) => text((number, keys.unit()), Style::Text).into(),
        (_, Some(bytes)) => printable_key(bytes),
        _ => "-".into(),
    }
}

pub(super) fn write(
    report: &GroupReport,
    format: Format,
    hex: bool,
    out: &mut dyn Write,
) -> Result<()> {
    match format {
        Format::Plain => write_plain(report, hex, out),
        Format::Table => write_table(report, hex, out),
        Format::Csv => write_csv(report, b',', hex, out),
        Format::Tsv => write_csv(report, b'\t', hex, out),
        Format::Json | Format::Jsonl => write_json(report, format == Format::Jsonl, hex, out),
    }
}

/// Lines with tabs between; the names first where there are several answers.
fn write_plain(report: &GroupReport, hex: bool, out: &mut dyn Write) -> Result<()> {
    if report.fields().len() > 1 || report.is_named() {
        let header: Vec<_> = report.header().into_iter().map(printable).collect();
        writeln!(out, "{}", header.join("\t"))?;
    }
    report.write_rows(out, |line, array, group, answers| {
        if report.is_named() {
            line.extend(printable(&array.name).as_bytes());
            line.push(b'\t');
        }
        for keys in &report.keys {
            line.extend(key(keys, group).as_bytes());
            line.push(b'\t');
        }
        for (i, answer) in answers.iter().enumerate() {
            if i > 0 {
                line.push(b'\t');
            }
            match answer {
                Some(number) => line.extend(text(*number, Style::text(hex)).as_bytes()),
                None => line.push(b'-'),
            }
        }
        line.push(b'\n');
        Ok(())
    })
}

fn write_table(report: &GroupReport, hex: bool, out: &mut dyn Write) -> Result<()> {
    let dash = || "-".to_string();
    let mut rows = Vec::new();
    for array in &report.arrays {
        report.for_each_row(array, 0..report.groups, |group, answers| {
            let mut row = Vec::new();
            row.extend(report.is_named().then(|| array.name.clone()));
            row.extend(report.keys.iter().map(|keys| key(keys, group).into_owned()));
            let shown = |number: &Counted<'_>| text(*number, Style::text(hex));
            row.extend(answers.iter().map(|answer| answer.as_ref().map_or_else(dash, shown)));
            rows.push(row);
            Ok(())
        })?;
    }
    let names = usize::from(report.is_named()) + report.keys.len();
    let header: Vec<_> = report.header().into_iter().map(printable).collect();
    writeln!(out, "{}", grid(&header, rows, names))
}

fn write_csv(report: &GroupReport, delimiter: u8, hex: bool, out: &mut dyn Write) -> Result<()> {
    let mut row = Row::new(out, delimiter);
    report.header().into_iter().try_for_each(|name| row.cell(name))?;
    row.end()?;
    report.write_rows(out, |out, array, group, answers| {
        let mut row = Row::new(out, delimiter);
        if report.is_named() {
            row.cell(&array.name)?;
        }
        for keys in &report.keys {
            match (keys.number(group), keys.text_bytes(group)) {
                (Some(number), _) => row.cell(&text((number, keys.unit()), Style::Text))?,
                (_, Some(bytes)) => row.text(bytes)?,
                _ => row.cell("")?,
            }
        }
        for answer in answers {
            let number = answer.map(|number| text(number, Style::text(hex)));
            row.cell(&number.unwrap_or_default())?;
        }
        row.end()
    })
}

/// A list of objects, or one on each line:
/// `{"by":{"region":"north"},"mean":1.5}`.
fn write_json(report: &GroupReport, lines: bool, hex: bool, out: &mut dyn Write) -> Result<()> {
    let fields = report.fields();
    let begins = |array, group| group == 0 && core::ptr::eq(array, &raw const report.arrays[0]);
    if !lines {
        out.write_all(b"[")?;
    }
    report.write_rows(out, |out, array, group, answers| {
        if !lines && !begins(array, group) {
            out.write_all(b",\n ")?;
        }
        out.write_all(b"{")?;
        if report.is_named() {
            write!(out, "\"name\":{},", quoted(&array.name))?;
        }
        out.write_all(b"\"by\":{")?;
        for (i, (label, keys)) in report.key_names.iter().zip(&report.keys).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            let key = match (keys.number(group), keys.text_bytes(group)) {
                (Some(number), _) => text((number, keys.unit()), Style::Json),
                (_, Some(bytes)) => json::key(bytes),
                _ => "null".into(),
            };
            write!(out, "{comma}{}:{key}", quoted(label))?;
        }
        out.write_all(b"}")?;
        for (field, answer) in fields.iter().zip(answers) {
            let number = answer.map_or_else(|| "null".into(), |n| text(n, Style::json(hex)));
            write!(out, ",\"{field}\":{number}")?;
        }
        out.write_all(if lines { b"}\n" } else { b"}" })
    })?;
    if lines { Ok(()) } else { writeln!(out, "]") }
}
