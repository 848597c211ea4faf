//! From the cells of a column to a batch.

use super::grid::Grid;
use super::missing::Missing;
use super::number::{Refusal, TextNumber, Whole, comma_hint, shown, trimmed, whole};
use crate::Batch;
use crate::batch::Filler;
use crate::evidence::{Cell, Evidence};
use crate::table::Typing;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use warpfold_core::{DType, with_element};

/// How the cells of one column are read.
pub(crate) struct Cells {
    pub(crate) typing: Typing,
    /// What the column is called in messages: `2 (price)`; nothing in text
    /// without columns.
    pub(crate) label: String,
    missing: Arc<Missing>,
    /// Whether a missing value is an error.
    strict: bool,
    /// Whether a block has shown that the column is of floats: from then on
    /// nobody looks for integers.
    floats: AtomicBool,
}

/// What is wrong with a cell.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The row, counted from the first of the block.
    pub(crate) row: usize,
    /// What a message says of it.
    pub(crate) what: String,
    pub(crate) hint: Option<String>,
}

/// Why a block is not one of integers.
enum NotWhole {
    /// A cell that is a number but no integer: the column is of floats.
    Decimal(usize),
    /// An integer that does not go with the others.
    TooLarge,
    Problem(Problem),
}

/// What the integers of a block are like.
#[derive(Default)]
struct Signs {
    negative: bool,
    /// The row of the first that only u64 holds.
    large: Option<usize>,
}

impl Cells {
    pub(crate) fn new(typing: Typing, label: String, missing: Arc<Missing>, strict: bool) -> Cells {
        Cells { typing, label, missing, strict, floats: AtomicBool::new(false) }
    }

    /// Decodes one column of a grid over `text`. What the cells say about the
    /// column's type goes into the batch's evidence, with lines counted from
    /// `first_line` of `file`.
    pub(crate) fn decode(
        &self,
        grid: &Grid,
        column: usize,
        text: &[u8],
        (file, first_line): (&str, u64),
        batch: &mut Batch,
    ) -> Result<(), Problem> {
        let cells = || grid.column(column, text);
        let rows = grid.rows();
        let open = match self.typing {
            Typing::Fixed(dtype) => {
                return with_element!(dtype, T => self.typed::<T>(dtype, cells(), rows, batch));
            }
            Typing::Open => !self.floats.load(Ordering::Relaxed),
            Typing::Text => return self.texts(cells(), batch),
        };
        if !open {
            return self.typed::<f64>(DType::F64, cells(), rows, batch);
        }
        let cell = |row: usize| {
            let text = cells().nth(row).map(trimmed).unwrap_or_default();
            let line = first_line + grid.line(row);
            let column = self.label.clone();
            Some((0, Box::new(Cell { file: file.into(), line, column, text: shown(text) })))
        };
        match self.whole_numbers(cells(), rows, batch) {
            Ok(signs) => {
                batch.evidence.integers = !batch.is_empty();
                batch.evidence.negative = signs.negative;
                batch.evidence.large = signs.large.and_then(cell);
                if signs.large.is_some() {
                    batch.rename(DType::U64);
                }
                Ok(())
            }
            Err(NotWhole::Decimal(row)) => {
                self.floats.store(true, Ordering::Relaxed);
                self.typed::<f64>(DType::F64, cells(), rows, batch)?;
                batch.evidence.decimal = cell(row);
                Ok(())
            }
            Err(NotWhole::TooLarge) => {
                // No type of integers holds this block. It is an error, unless the
                // column turns out to be of floats.
                self.typed::<f64>(DType::F64, cells(), rows, batch)?;
                batch.evidence = self.witness(cells(), &cell);
                Ok(())
            }
            Err(NotWhole::Problem(problem)) => Err(problem),
        }
    }

    /// Texts, without quotes around them and white space outside of those.
    fn texts<'a>(
        &self,
        cells: impl Iterator<Item = &'a [u8]>,
        batch: &mut Batch,
    ) -> Result<(), Problem> {
        batch.reset(DType::U32);
        for (row, cell) in cells.enumerate() {
            let text = trimmed(cell);
            let cell = cell.trim_ascii();
            if self.missing.is_text(text, matches!(cell, [b'"', .., b'"'])) {
                self.admit(row, text)?;
                batch.skip(1);
                continue;
            }
            let pushed = match cell {
                [b'"', inner @ .., b'"'] if memchr::memchr(b'"', inner).is_some() => {
                    let mut text = Vec::with_capacity(inner.len());
                    let mut rest = inner;
                    while let Some(at) = memchr::memchr(b'"', rest) {
                        text.extend_from_slice(&rest[..=at]);
                        rest = &rest[at + 1..];
                        rest = rest.strip_prefix(b"\"").unwrap_or(rest);
                    }
                    text.extend_from_slice(rest);
                    batch.push_text(&text)
                }
                [b'"', inner @ .., b'"'] => batch.push_text(inner),
                bare => batch.push_text(bare),
            };
            if !pushed {
                let what = "the texts of a block are longer than 4 GiB".into();
                return Err(Problem { row, what, hint: None });
            }
        }
        Ok(())
    }

    /// Elements of a type that is known.
    fn typed<'a, T: TextNumber>(
        &self,
        dtype: DType,
        cells: impl Iterator<Item = &'a [u8]>,
        rows: usize,
        batch: &mut Batch,
    ) -> Result<(), Problem> {
        batch.refill(dtype, rows, |out: &mut Filler<'_, T>| {
            for (row, cell) in cells.enumerate() {
                // Most cells are bare numbers.
                match T::parse(cell) {
                    Ok(value) if !self.missing.has_numbers() => out.push(value),
                    _ => {
                        let text = trimmed(cell);
                        if self.missing.is(text) {
                            self.admit(row, text)?;
                            out.skip();
                        } else {
                            let value = T::parse(text);
                            out.push(value.map_err(|why| refused(row, text, why, dtype))?);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Integers, as i64 or, if one is beyond it and none negative, with the
    /// bits of u64.
    fn whole_numbers<'a>(
        &self,
        cells: impl Iterator<Item = &'a [u8]>,
        rows: usize,
        batch: &mut Batch,
    ) -> Result<Signs, NotWhole> {
        let mut zeros = core::mem::take(&mut batch.negative_zeros);
        zeros.clear();
        let result = batch.refill(DType::I64, rows, |out: &mut Filler<'_, i64>| {
            let mut signs = Signs::default();
            for (row, cell) in cells.enumerate() {
                let mut number = whole(cell);
                if !matches!(number, Whole::I64(_)) || self.missing.has_numbers() {
                    let text = trimmed(cell);
                    if self.missing.is(text) {
                        self.admit(row, text).map_err(NotWhole::Problem)?;
                        out.skip();
                        continue;
                    }
                    number = whole(text);
                    if number == Whole::No {
                        return Err(match f64::parse(text) {
                            Ok(_) => NotWhole::Decimal(row),
                            Err(why) => NotWhole::Problem(refused(row, text, why, DType::F64)),
                        });
                    }
                }
                match number {
                    Whole::I64(n) => {
                        signs.negative |= n < 0;
                        out.push(n);
                    }
                    Whole::NegativeZero => {
                        zeros.push(out.len() as u32);
                        out.push(0);
                    }
                    Whole::U64(n) => {
                        signs.large.get_or_insert(row);
                        out.push(n.cast_signed());
                    }
                    Whole::Huge | Whole::No => return Err(NotWhole::TooLarge),
                }
                if signs.negative && signs.large.is_some() {
                    return Err(NotWhole::TooLarge);
                }
            }
            Ok(signs)
        });
        batch.negative_zeros = zeros;
        result
    }

    /// What the cells of a block say that no type of integers holds.
    #[cold]
    fn witness<'a>(
        &self,
        cells: impl Iterator<Item = &'a [u8]>,
        cell: &dyn Fn(usize) -> Option<(u64, Box<Cell>)>,
    ) -> Evidence {
        let mut evidence = Evidence::default();
        for (row, text) in cells.map(trimmed).enumerate() {
            if self.missing.is(text) {
                continue;
            }
            match whole(text) {
                Whole::I64(n) => evidence.negative |= n < 0,
                Whole::NegativeZero => {}
                Whole::U64(_) if evidence.large.is_none() => evidence.large = cell(row),
                Whole::Huge if evidence.huge.is_none() => evidence.huge = cell(row),
                Whole::U64(_) | Whole::Huge => {}
                Whole::No => {
                    evidence.decimal = cell(row);
                    self.floats.store(true, Ordering::Relaxed);
                    return evidence;
                }
            }
            evidence.integers = true;
        }
        evidence
    }

    /// Refuses a missing value where none may be.
    fn admit(&self, row: usize, text: &[u8]) -> Result<(), Problem> {
        match (self.strict, text) {
            (false, _) => Ok(()),
            (true, b"") => Err(Problem { row, what: "the cell is empty".into(), hint: None }),
            (true, text) => {
                let what = format!("{} stands for a missing value", shown(text));
                Err(Problem { row, what, hint: None })
            }
        }
    }
}

#[cold]
fn refused(row: usize, text: &[u8], why: Refusal, dtype: DType) -> Problem {
    if text.is_empty() {
        let hint = "where empty cells are missing values, too: --na ,TEXT";
        return Problem { row, what: "the cell is empty".into(), hint: Some(hint.into()) };
    }
    let hint = match why {
        Refusal::NotANumber if f64::parse(text).is_ok() && !dtype.is_float() => {
            (dtype != DType::Bool).then_some("for numbers with a fraction: --dtype f64")
        }
        Refusal::NotANumber if comma_hint(text).is_some() => comma_hint(text),
        Refusal::NotANumber => {
            Some("if it stands for a missing value, name it: --na LIST; else this is text")
        }
        Refusal::OutOfRange => None,
    };
    Problem { row, what: why.explain(text, dtype), hint: hint.map(Into::into) }
}
