//! Numbers written as text.

mod chunks;
pub(crate) mod csv;
mod number;
pub(crate) mod plain;
mod record;
mod table;

use crate::columns::ColumnSelector;
use crate::open::OpenOptions;
use crate::{Error, Format, Result};

pub(crate) use number::TextNumber;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Which kind of text this is: plain numbers, or a table if columns were
/// asked for or the first line has something that separates them.
pub(crate) fn format(head: &[u8], columns: &[ColumnSelector], options: &OpenOptions) -> Format {
    let asks = !columns.is_empty() || options.delimiter.is_some() || options.header.is_some();
    let line = first_line(head);
    let tabs = line.contains(&b'\t');
    if line.iter().any(|b| matches!(b, b',' | b';' | b'|')) {
        Format::Csv
    } else if tabs && (asks || !line.split(u8::is_ascii_whitespace).all(is_blank_or_number)) {
        Format::Tsv
    } else if asks {
        Format::Csv
    } else {
        Format::Text
    }
}

fn is_blank_or_number(cell: &[u8]) -> bool {
    cell.is_empty() || f64::parse(cell).is_ok()
}

/// The first line with anything on it.
fn first_line(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    text.split(|&b| b == b'\n').find(|l| !l.trim_ascii().is_empty()).unwrap_or_default()
}

/// Refuses text in an encoding whose digits are not ASCII bytes.
fn check_encoding(head: &[u8], name: &str) -> Result<()> {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Err(Error::format(name, "this text is UTF-16")
            .with_hint("convert it: iconv -f UTF-16 -t UTF-8"));
    }
    Ok(())
}
