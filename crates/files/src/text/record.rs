//! The grammar of CSV: where cells and records end.
//!
//! A cell that begins with a quote runs to the quote that closes it, a
//! doubled quote standing for one; whatever follows the closing quote up to
//! the next delimiter belongs to the cell. A quote anywhere else is a
//! character like any other. Records end with a line feed; the carriage
//! return before it is white space of the last cell.

pub(crate) const QUOTE: u8 = b'"';

/// A record whose last quote is not closed where the text ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenQuote;

/// Takes the record that `text` begins with apart: hands each cell, quotes
/// included, to `cell` and gives the record's length with its line feed. The
/// second value says whether there was one.
#[inline]
pub(crate) fn scan<'a>(
    text: &'a [u8],
    delimiter: u8,
    mut cell: impl FnMut(&'a [u8]),
) -> Result<(usize, bool), OpenQuote> {
    let mut start = 0;
    loop {
        let mut at = start;
        if text.get(start) == Some(&QUOTE) {
            at += 1;
            loop {
                at += memchr::memchr(QUOTE, &text[at..]).ok_or(OpenQuote)? + 1;
                if text.get(at) != Some(&QUOTE) {
                    break;
                }
                at += 1;
            }
        }
        match memchr::memchr2(delimiter, b'\n', &text[at..]) {
            None => {
                cell(&text[start..]);
                return Ok((text.len(), false));
            }
            Some(n) => {
                at += n;
                cell(&text[start..at]);
                if text[at] == b'\n' {
                    return Ok((at + 1, true));
                }
                start = at + 1;
            }
        }
    }
}

/// Where the last whole record of `text` ends.
pub(crate) fn last_end(text: &[u8], delimiter: u8) -> Option<usize> {
    let Some(quote) = memchr::memchr(QUOTE, text) else {
        return memchr::memrchr(b'\n', text).map(|i| i + 1);
    };
    // Up to the line of the first quote nothing needs care.
    let mut end = memchr::memrchr(b'\n', &text[..quote]).map_or(0, |i| i + 1);
    while let Ok((len, true)) = scan(&text[end..], delimiter, |_| {}) {
        end += len;
    }
    (end > 0).then_some(end)
}

/// Whether the record is an empty line. An empty line is no row, though it
/// might be a row with one empty cell: editors leave them behind.
#[inline]
pub(crate) fn is_blank(record: &[u8], delimiter: u8) -> bool {
    record.iter().all(|&b| matches!(b, b' ' | b'\t' | b'\r' | b'\n') && b != delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records as a reader that knows nothing of ours sees them.
    fn by_csv_core(text: &[u8], delimiter: u8) -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv_core::ReaderBuilder::new()
            .delimiter(delimiter)
            .terminator(csv_core::Terminator::Any(b'\n'))
            .build();
        let mut records = Vec::new();
        let (mut record, mut cell) = (Vec::new(), Vec::new());
        let mut rest = text;
        let mut field = vec![0; text.len() + 1];
        loop {
            let (result, read, written) = reader.read_field(rest, &mut field);
            rest = &rest[read..];
            cell.extend(&field[..written]);
            match result {
                csv_core::ReadFieldResult::InputEmpty => {}
                csv_core::ReadFieldResult::OutputFull => panic!("the field buffer is large enough"),
                csv_core::ReadFieldResult::Field { record_end } => {
                    record.push(core::mem::take(&mut cell));
                    if record_end {
                        records.push(core::mem::take(&mut record));
                    }
                }
                csv_core::ReadFieldResult::End => return records,
            }
        }
    }

    /// A cell as the grammar above reads it.
    fn unquoted(cell: &[u8]) -> Vec<u8> {
        let Some(inner) = cell.strip_prefix(b"\"") else { return cell.to_vec() };
        let mut out = Vec::new();
        let mut i = 0;
        loop {
            match (inner.get(i), inner.get(i + 1)) {
                (Some(b'"'), Some(b'"')) => {
                    out.push(b'"');
                    i += 2;
                }
                (Some(b'"'), _) => {
                    out.extend(&inner[i + 1..]);
                    return out;
                }
                (Some(&b), _) => {
                    out.push(b);
                    i += 1;
                }
                (None, _) => panic!("the quote is closed"),
            }
        }
    }

    fn by_us(mut text: &[u8], delimiter: u8) -> Result<Vec<Vec<Vec<u8>>>, OpenQuote> {
        let mut records = Vec::new();
        while !text.is_empty() {
            let mut record = Vec::new();
            let (len, _) = scan(text, delimiter, |c| record.push(unquoted(c)))?;
            // csv-core passes over empty lines.
            if text[..len] != b"\n"[..] {
                records.push(record);
            }
            text = &text[len..];
        }
        Ok(records)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn cells_are_those_of_csv_core(text in "[\",\n1a ]{0,40}") {
            if let Ok(ours) = by_us(text.as_bytes(), b',') {
                prop_assert_eq!(ours, by_csv_core(text.as_bytes(), b','));
            }
        }

        #[test]
        fn cutting_anywhere_loses_no_record(text in "([\",1a ]{0,6}\n){0,8}", tail in "[\",1]{0,5}") {
            let text = text + &tail;
            let bytes = text.as_bytes();
            if let (Some(end), Ok(whole)) = (last_end(bytes, b','), by_us(bytes, b',')) {
                let mut parts = by_us(&bytes[..end], b',').unwrap();
                parts.extend(by_us(&bytes[end..], b',').unwrap());
                prop_assert_eq!(parts, whole);
                // What is left has no whole record in it.
                prop_assert_eq!(last_end(&bytes[end..], b','), None);
            }
        }
    }

    #[test]
    fn a_quote_that_never_closes_is_found() {
        assert_eq!(scan(b"1,\"2\n3", b',', |_| {}), Err(OpenQuote));
        assert_eq!(last_end(b"1\n\"2\n3\n", b','), Some(2));
        assert_eq!(last_end(b"\"2\n3\n", b','), None);
    }

    #[test]
    fn a_tab_is_no_blank_where_it_separates() {
        assert!(is_blank(b" \t\r\n", b','));
        assert!(!is_blank(b"\t\r\n", b'\t'));
        assert!(!is_blank(b"\"\"\n", b','));
    }
}
