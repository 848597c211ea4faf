//! Whether the first row names the columns.

use super::missing::Missing;
use super::number::{self, Whole, trimmed, whole};
use super::sniff::Look;
use crate::columns::ColumnSelector;
use crate::open::OpenOptions;
use warpfold_core::DType;

/// What the first row turned out to be.
pub(super) struct Heading {
    /// Whether it names the columns.
    pub(super) names: bool,
    /// What to tell where the row could be read the other way.
    pub(super) remark: Option<String>,
}

impl Heading {
    fn plain(names: bool) -> Heading {
        Heading { names, remark: None }
    }
}

/// The first row, and what was seen below it.
pub(super) struct First<'a> {
    pub(super) cells: &'a [&'a [u8]],
    pub(super) looks: &'a [Look],
    /// Whether the cells of the first column below are 0, 1, 2, ...
    pub(super) counts: bool,
    pub(super) missing: &'a Missing,
}

impl First<'_> {
    /// Whether this row names the columns: it holds something other than a
    /// number where the rows below hold numbers, or it numbers the columns as
    /// programs do that have no names for them.
    pub(super) fn heading(&self, columns: &[ColumnSelector], options: &OpenOptions) -> Heading {
        if let Some(asked) = options.header {
            return Heading::plain(asked);
        }
        // Only a header can have names.
        if columns.iter().any(|column| matches!(column, ColumnSelector::Name(_))) {
            return Heading::plain(true);
        }
        let dtype = options.dtype.unwrap_or(DType::F64);
        self.numbered().unwrap_or_else(|| Heading::plain(self.is_names(columns, dtype)))
    }

    /// Whether cells that are no numbers tell that the row is a header.
    fn is_names(&self, columns: &[ColumnSelector], dtype: DType) -> bool {
        let is_name = |cell: &[u8]| is_name(trimmed(cell), dtype, self.missing);
        let width = self.cells.len();
        if !columns.is_empty() {
            let places = columns.iter().filter_map(|column| match *column {
                ColumnSelector::Index(i) => Some(i..=i),
                ColumnSelector::Range(a, b) => Some(a..=b.min(width)),
                ColumnSelector::Name(_) => None,
            });
            let cells: Vec<&[u8]> = places
                .flatten()
                .filter_map(|i| self.cells.get(i.wrapping_sub(1)).copied())
                .collect();
            if cells.iter().any(|cell| is_name(cell)) {
                return true;
            }
            if cells.iter().any(|cell| number::is_number(trimmed(cell), dtype)) {
                return false;
            }
            // Without a name or a number, as over the index that pandas writes.
        }
        // With text columns in the table, only the columns of numbers can tell; those
        // with text among the numbers, where there are no others.
        let named = |of: &dyn Fn(&Look) -> bool| {
            let mut cells = self.looks.iter().zip(self.cells).filter(|(look, _)| of(look));
            let mut cells = cells.by_ref().peekable();
            cells.peek().is_some().then(|| cells.any(|(_, cell)| is_name(cell)))
        };
        named(&|look| look.numbers && look.is_readable())
            .or_else(|| named(&|look| look.numbers))
            .unwrap_or_else(|| {
                let number = |cell: &&[u8]| number::is_number(trimmed(cell), dtype);
                self.cells.iter().copied().any(is_name) && !self.cells.iter().any(number)
            })
    }

    /// Whether the row numbers the columns, as pandas does where a frame has no
    /// names; `None` if it does not look like that.
    ///
    /// Such a row could be one of data. So there must be a second sign:
    /// - an empty cell stands over an index, which has no missing value. One
    ///   number beside it is no sequence: it must be 0, and the index must count
    ///   from 0 or be text. Others than 0 to n must be three at least.
    /// - Without an index the numbers are 0 to n, and a column below is of text,
    ///   or there are three columns at least and every number below has a
    ///   decimal: a program writes all rows of data alike.
    fn numbered(&self) -> Option<Heading> {
        let index = usize::from(trimmed(self.cells.first()?).is_empty());
        let numbers = self.cells[index..].iter().map(|cell| match whole(trimmed(cell)) {
            Whole::I64(n) => Some(n),
            _ => None,
        });
        let numbers: Vec<i64> = numbers.collect::<Option<_>>()?;
        let (&first, &last) = (numbers.first()?, numbers.last()?);
        if numbers.windows(2).any(|pair| pair[0].checked_add(1) != Some(pair[1])) {
            return None;
        }
        let (count, looks) = (numbers.len(), &self.looks[index..]);
        let is_text = |look: &Look| !look.numbers && look.text.is_some();
        let names = if index == 1 {
            let index = &self.looks[0];
            let seen = index.numbers || index.text.is_some();
            seen && !index.missing
                && match count {
                    1 => first == 0 && (self.counts || is_text(index)),
                    _ => first == 0 || count >= 3,
                }
        } else if first == 0 && count >= 2 {
            let decimal = |look: &Look| look.is_readable() && look.decimals && !look.integers;
            looks.iter().any(is_text) || count >= 3 && looks.iter().all(decimal)
        } else {
            return None;
        };
        // Two columns that begin with 0 and 1 are no reason for a remark.
        if !names && (index == 1 || count < 3) {
            return None;
        }
        let row = if count == 1 { first.to_string() } else { format!("{first} to {last}") };
        let remark = match names {
            true => format!("the first row, {row}, names the columns; if it is data: --no-header"),
            false => format!("the first row, {row}, is data; if it names the columns: --header"),
        };
        Some(Heading { names, remark: Some(remark) })
    }
}

/// Whether a cell, without white space and quotes around it, holds something
/// other than a number.
fn is_name(cell: &[u8], dtype: DType, missing: &Missing) -> bool {
    !cell.is_empty() && !missing.is(cell) && !number::is_number(cell, dtype)
}

/// Whether text of a single column begins with the column's name: a line with
/// a letter that neither is nor begins as a number does, over lines of one
/// number each.
///
/// Lines with several numbers are no column, and a first line with a number in
/// it may be one of data that is damaged.
pub(super) fn names_a_column(text: &[u8], options: &OpenOptions) -> bool {
    let dtype = options.dtype.unwrap_or(DType::F64);
    let missing = Missing::new(options.na.as_deref());
    let mut lines = text.split(|&b| b == b'\n').map(trimmed).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return false };
    let begins_as_number =
        matches!(first, [b'0'..=b'9', ..] | [b'+' | b'-' | b'.', b'0'..=b'9' | b'.', ..]);
    let letter = |c: char| c.is_alphabetic() || c == '_';
    is_name(first, dtype, &missing)
        && !begins_as_number
        && String::from_utf8_lossy(first).chars().any(letter)
        && !first.split(u8::is_ascii_whitespace).any(|word| number::is_number(word, dtype))
        && lines.find(|line| !missing.is(line)).is_some_and(|line| number::is_number(line, dtype))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_names_a_column_of_lines() {
        let is = |text: &str| names_a_column(text.as_bytes(), &OpenOptions::default());
        for text in [
            "id\n1\n2\n",
            "\"id\"\r\n1\r\n",
            "a b\n1\n",
            "\n\nid\n\n1\n",
            "id\nNA\n\n-0.5\n",
            "é\nnan\n",
            "# x\n1\n",
            "id\n1",
            "x1\n2 \n",
        ] {
            assert!(is(text), "{text:?}");
        }
        for text in [
            "",
            "id",
            "id\n",
            "id\nNA\n",
            "1\n2\n",
            "NA\n1\n",
            "nan\n1\n",
            "inf\n1\n",
            "-\n1\n",
            "1O\n2\n",
            "-1x\n2\n",
            ".5x\n1\n",
            "id\nx\n1\n",
            "a b\n1 2\n",
            "total 5\n1\n",
            "--\n1\n",
        ] {
            assert!(!is(text), "{text:?}");
        }
    }
}
