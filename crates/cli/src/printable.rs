//! Text from files and names on its way to a terminal.
//!
//! A column may be called `\x1b]0;…`, and a file may have a line end in its
//! name. Messages and tables show such characters escaped: this is the one
//! place that says how. Data formats keep names as they are and quote by their
//! own rules.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character acts on a terminal, or hides the order of others: the
/// controls of C0 and C1, line and paragraph separators, and the marks,
/// embeddings, overrides and isolates of bidirectional text.
pub(crate) fn is_disturbing(c: char) -> bool {
    let bidirectional = matches!(c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}');
    c.is_control() || bidirectional || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text with disturbing characters escaped as Rust writes them: `\n`,
/// `\u{1b}`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_disturbing(c).then(|| c.escape_default().to_string()))
}

/// The same for text of several lines: line ends and tabs stay.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    let disturbs = |c| is_disturbing(c) && !matches!(c, '\n' | '\t');
    escaped(text, |c| disturbs(c).then(|| c.escape_default().to_string()))
}

/// A string of JSON, which stays the same string: what its rules leave bare is
/// escaped by its rules.
pub(crate) fn printable_json(text: &str) -> Cow<'_, str> {
    escaped(text, |c| {
        is_disturbing(c).then(|| {
            c.encode_utf16(&mut [0; 2]).iter().fold(String::new(), |mut out, unit| {
                let _ = write!(out, "\\u{unit:04x}");
                out
            })
        })
    })
}

/// A text from data as people read it, beside texts that are missing, printed `-`.
///
/// It stands as it is where nothing but it would look like that. Else it is in quotes, with
/// a backslash before quotes and backslashes, and its other characters and bytes escaped:
/// a line end is `"\n"`, and a backslash with an `n` stays `\n`.
pub(crate) fn printable_key(text: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(text)
        && !text.trim().is_empty()
        && text != "-"
        && !text.starts_with('"')
        && !text.chars().any(is_disturbing)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::from("\"");
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend(['\\', c]),
                c if is_disturbing(c) => out.extend(c.escape_default()),
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    Cow::Owned(out)
}

fn escaped(text: &str, escape: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if !text.chars().any(is_disturbing) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match escape(c) {
            Some(escape) => out += &escape,
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_on_a_terminal_is_escaped() {
        for (text, shown) in [
            ("plain, naïve, 数 👩‍🔬", "plain, naïve, 数 👩‍🔬"),
            ("\x1b]0;x\x07", "\\u{1b}]0;x\\u{7}"),
            ("a\nb\tc\r\x7f\0", "a\\nb\\tc\\r\\u{7f}\\u{0}"),
            ("\u{9b}31m", "\\u{9b}31m"),
            (
                "abc\u{202e}cba\u{2066}\u{200f}\u{2028}",
                "abc\\u{202e}cba\\u{2066}\\u{200f}\\u{2028}",
            ),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_lines("a\n\tb\x1b"), "a\n\tb\\u{1b}");
    }

    #[test]
    fn keys_look_different_where_they_are() {
        for (text, shown) in [
            (&b"north"[..], "north"),
            (b"a\\nb", "a\\nb"),
            (b"a\nb", "\"a\\nb\""),
            (b"a\n\\n", "\"a\\n\\\\n\""),
            (b"", "\"\""),
            (b"-", "\"-\""),
            (b"--", "--"),
            (b" ", "\" \""),
            (b"a b ", "a b "),
            (b"\"", "\"\\\"\""),
            (b"a\"", "a\""),
            (b"\xff\\xff", "\"\\xff\\\\xff\""),
            ("数".as_bytes(), "数"),
        ] {
            assert_eq!(printable_key(text), shown);
        }
    }

    #[test]
    fn strings_of_json_stay_the_same() {
        let text = "\u{9b}\u{202e}\x7f";
        let json = format!("\"{}\"", printable_json(text));
        assert!(json.is_ascii(), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
