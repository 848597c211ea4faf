//! Numbers written as text.

mod cells;
mod chunks;
pub(crate) mod csv;
mod grid;
mod heading;
mod missing;
mod number;
pub(crate) mod plain;
mod record;
mod sniff;

use crate::columns::ColumnSelector;
use crate::open::OpenOptions;
use crate::{Error, Format, Result};
use missing::Missing;
use warpfold_core::DType;

pub(crate) use csv::FileHead;
pub use missing::USUAL as USUAL_MISSING;
use number::TextNumber;
pub(crate) use sniff::Head;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Which kind of text this is: plain numbers, or a table if columns were
/// asked for, or the first line has something that separates them or is the
/// name of the only column.
///
/// # Errors
/// JSON, whose commas would make it a table of nonsense.
pub(crate) fn format(
    head: &[u8],
    name: &str,
    columns: &[ColumnSelector],
    options: &OpenOptions,
) -> Result<Format> {
    if options.delimiter.is_none() {
        refuse_json(head, name)?;
    }
    let asks = !columns.is_empty() || options.delimiter.is_some() || options.header.is_some();
    let line = first_line(head);
    let tabs = line.contains(&b'\t');
    Ok(if line.iter().any(|b| matches!(b, b',' | b';' | b'|')) {
        Format::Csv
    } else if tabs && (asks || !line.split(u8::is_ascii_whitespace).all(is_blank_or_number)) {
        Format::Tsv
    } else if asks || heading::names_a_column(head.strip_prefix(BOM).unwrap_or(head), options) {
        Format::Csv
    } else {
        Format::Text
    })
}

/// Refuses what begins as a JSON array or object does.
fn refuse_json(head: &[u8], name: &str) -> Result<()> {
    let text = head.strip_prefix(BOM).unwrap_or(head).trim_ascii_start();
    let Some((&open, rest)) = text.split_first() else { return Ok(()) };
    let next = rest.trim_ascii_start().first().copied().unwrap_or(0);
    let (what, filter) = match (open, next) {
        (b'[', b'0'..=b'9' | b'-' | b'"' | b'[' | b'{' | b']') => ("a JSON array", ".[]"),
        (b'{', b'"' | b'}') => ("a JSON object", ".NAME"),
        _ => return Ok(()),
    };
    Err(Error::format(name, format!("this looks like {what}, and JSON is not read")).with_hint(
        format!("pipe its numbers: jq '{filter}' FILE | warpfold ...; as a table: --format csv"),
    ))
}

/// Whether there is a word, and each is a number or stands for a missing value.
pub(crate) fn holds_values(text: &[u8], options: &OpenOptions) -> bool {
    let missing = Missing::new(options.na.as_deref());
    let dtype = options.dtype.unwrap_or(DType::F64);
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).peekable();
    let is_value = |word: &[u8]| missing.is(word) || number::is_number(word, dtype);
    words.peek().is_some() && words.all(|word| is_value(number::trimmed(word)))
}

fn is_blank_or_number(cell: &[u8]) -> bool {
    cell.is_empty() || f64::parse(cell).is_ok()
}

/// The first line with anything on it.
fn first_line(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    text.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or_default()
}

/// Refuses a table whose lines end as they did on old Macs: to a reader of other line ends
/// it is a single row.
fn check_line_ends(head: &[u8], name: &str) -> Result<()> {
    let goes_on = |pair: &[u8]| pair[0] == b'\r' && !pair[1].is_ascii_whitespace();
    if memchr::memchr(b'\n', head).is_none() && head.windows(2).any(goes_on) {
        return Err(Error::format(name, "its lines end with a carriage return alone")
            .with_hint("turn it into a line feed: tr '\\r' '\\n' < FILE"));
    }
    Ok(())
}

/// Refuses text in an encoding whose digits are not ASCII bytes.
fn check_encoding(head: &[u8], name: &str) -> Result<()> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Error::format(name, "this text is UTF-16")
            .with_hint("convert it: iconv -f UTF-16 -t UTF-8"));
    }
    Ok(())
}
