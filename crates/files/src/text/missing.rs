//! Which texts say that a value is missing.

use super::number::TextNumber;

/// What stands for a missing value if nobody says otherwise.
///
/// An empty cell is what pandas, Polars, DuckDB and R's `na = ""` write. The others
/// are those that pandas reads as missing, but for the spellings of NaN: Polars,
/// DuckDB, R and NumPy write these for the number and read them as the number, and
/// so they are here.
pub const USUAL: [&str; 11] =
    ["", "NA", "N/A", "NULL", "null", "None", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>"];

/// The texts that stand for missing values.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    tokens: Vec<Vec<u8>>,
    /// Whether one of them reads as a number, such as -999: then cells are
    /// compared before they are parsed.
    numbers: bool,
    /// Whether somebody named them.
    asked: bool,
}

impl Missing {
    /// These texts, or the usual ones.
    pub(crate) fn new(asked: Option<&[String]>) -> Missing {
        let tokens: Vec<Vec<u8>> = match asked {
            Some(asked) => asked.iter().map(|t| t.trim().as_bytes().to_vec()).collect(),
            None => USUAL.iter().map(|t| t.as_bytes().to_vec()).collect(),
        };
        let number = |t: &Vec<u8>| f64::parse(t).is_ok() || matches!(&t[..], b"true" | b"false");
        let numbers = tokens.iter().any(number);
        Missing { tokens, numbers, asked: asked.is_some() }
    }

    /// Whether a cell, without white space and quotes around it, stands for a
    /// missing value.
    pub(crate) fn is(&self, cell: &[u8]) -> bool {
        self.tokens.iter().any(|token| token == cell)
    }

    /// Whether a text stands for a missing value, from a cell with quotes around it or
    /// without: who writes a text in quotes means that text, unless told otherwise.
    pub(crate) fn is_text(&self, text: &[u8], quoted: bool) -> bool {
        (self.asked || !quoted) && self.is(text)
    }

    /// Whether cells that read as numbers may stand for missing values, too.
    pub(crate) fn has_numbers(&self) -> bool {
        self.numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_replaces_the_usual_tokens() {
        let usual = Missing::new(None);
        for token in ["", "NA", "N/A", "NULL", "null", "#N/A"] {
            assert!(usual.is(token.as_bytes()), "{token}");
        }
        for number in ["NaN", "nan", "0", "na", "-"] {
            assert!(!usual.is(number.as_bytes()), "{number}");
        }
        assert!(!usual.has_numbers());
        let own = Missing::new(Some(&["-".into(), "-999".into()]));
        assert!(own.is(b"-") && own.is(b"-999") && !own.is(b"") && own.has_numbers());
        assert!(Missing::new(Some(&["NaN".into()])).has_numbers());
    }
}
