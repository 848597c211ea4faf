//! Text into tokens, one at a time.

use core::fmt;

use super::error::{Error, Result, excerpt};

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name, an opcode with its suffixes, or a directive with its dot: `%r1`, `ld.global.f32`, `shared::cta`, `.reg`.
    Word(&'a str),
    /// A number as it is written, without a sign.
    Number(&'a str),
    /// What stands between quotes.
    Text(&'a str),
    /// Any other character.
    Mark(char),
    /// The text is over.
    End,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(text) | Token::Number(text) => write!(f, "`{}`", excerpt(text)),
            Token::Text(text) => write!(f, "\"{}\"", excerpt(text)),
            Token::Mark(mark) => write!(f, "`{}`", mark.escape_default()),
            Token::End => f.write_str("the end of the text"),
        }
    }
}

/// Reads tokens. A copy of it looks ahead.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    rest: &'a str,
    /// The line where `rest` begins.
    here: u32,
    /// The line of the token read last.
    line: u32,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        // NVRTC counts the zero that ends its text; some callers hand it over.
        Lexer { rest: text.trim_end_matches('\0'), here: 1, line: 1 }
    }

    /// The line of the token read last, from 1.
    pub(super) fn line(&self) -> u32 {
        self.line
    }

    /// The next token, left where it is.
    pub(super) fn peek(&self) -> Result<Token<'a>> {
        self.clone().next()
    }

    pub(super) fn next(&mut self) -> Result<Token<'a>> {
        self.skip_blank()?;
        self.line = self.here;
        let Some(&first) = self.rest.as_bytes().first() else {
            return Ok(Token::End);
        };
        match first {
            b'0'..=b'9' => Ok(Token::Number(self.cut(number_length(self.rest)))),
            b'"' => self.quoted(),
            _ if begins_word(first) => Ok(Token::Word(self.cut(word_length(self.rest)))),
            _ => self.mark(),
        }
    }

    fn cut(&mut self, length: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        token
    }

    fn mark(&mut self) -> Result<Token<'a>> {
        let mut chars = self.rest.chars();
        let mark = chars.next().unwrap_or_default();
        if !mark.is_ascii() || mark.is_ascii_control() {
            let what = format!("`{}` is not a character of PTX", mark.escape_default());
            return Err(Error::invalid(self.line, what));
        }
        self.rest = chars.as_str();
        Ok(Token::Mark(mark))
    }

    fn quoted(&mut self) -> Result<Token<'a>> {
        let inside = &self.rest[1..];
        match inside.find(['"', '\n']) {
            Some(end) if inside.as_bytes()[end] == b'"' => {
                self.rest = &inside[end + 1..];
                Ok(Token::Text(&inside[..end]))
            }
            _ => Err(Error::invalid(self.line, "a quote is never closed")),
        }
    }

    /// White space and comments.
    fn skip_blank(&mut self) -> Result<()> {
        loop {
            // Byte by byte: characters would have to be decoded, and half of a text is white.
            let blank = self.rest.bytes().take_while(|&b| is_blank(b)).count();
            self.count_lines(blank);
            let trimmed = self.rest;
            if trimmed.starts_with("//") {
                let end = trimmed.find('\n').unwrap_or(trimmed.len());
                self.count_lines(end);
            } else if let Some(inside) = trimmed.strip_prefix("/*") {
                let Some(end) = inside.find("*/") else {
                    return Err(Error::invalid(self.here, "a comment is never closed"));
                };
                self.count_lines(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    /// Goes on by this many bytes.
    fn count_lines(&mut self, length: usize) {
        let passed = self.cut(length);
        let lines = passed.bytes().filter(|&b| b == b'\n').count();
        self.here = self.here.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%' | b'.')
}

fn word_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 1;
    loop {
        match bytes[end..] {
            // Directives need no space between them: `.reg.b32 x`.
            [b'.', ..] if bytes[0] == b'.' => return end,
            [b, ..] if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | b'.') => end += 1,
            // Two colons join the parts of a suffix; one ends a label.
            [b':', b':', b, ..] if b.is_ascii_alphanumeric() || b == b'_' => end += 3,
            _ => return end,
        }
    }
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let based = bytes.len() > 1 && bytes[0] == b'0' && bytes[1].is_ascii_alphabetic();
    let mut end = 1;
    while let Some(&b) = bytes.get(end) {
        let sign = matches!(b, b'+' | b'-') && !based && matches!(bytes[end - 1], b'e' | b'E');
        if !(b.is_ascii_alphanumeric() || b == b'.' || sign) {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::{Lexer, Token};
    use proptest::prelude::*;

    fn tokens(text: &str) -> Result<Vec<String>, String> {
        let mut lexer = Lexer::new(text);
        let mut found = Vec::new();
        loop {
            match lexer.next() {
                Ok(Token::End) => return Ok(found),
                Ok(token) => found.push(format!("{}:{token}", lexer.line())),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn an_instruction_and_its_line() {
        let text = "\n// one\n@!%p1 ld.shared::cta.f32 %f1, [x+-8]; /* two\nlines */ L1: \"a b\"";
        let expected = [
            "3:`@`",
            "3:`!`",
            "3:`%p1`",
            "3:`ld.shared::cta.f32`",
            "3:`%f1`",
            "3:`,`",
            "3:`[`",
            "3:`x`",
            "3:`+`",
            "3:`-`",
            "3:`8`",
            "3:`]`",
            "3:`;`",
            "4:`L1`",
            "4:`:`",
            "4:\"a b\"",
        ];
        assert_eq!(tokens(text).unwrap(), expected);
    }

    #[test]
    fn numbers_keep_their_spelling() {
        assert_eq!(
            tokens("0f3F800000 0d3FE+1 1.5e-3 0x1E+2 8.0\0").unwrap(),
            ["1:`0f3F800000`", "1:`0d3FE`", "1:`+`", "1:`1`", "1:`1.5e-3`", "1:`0x1E`"]
                .into_iter()
                .chain(["1:`+`", "1:`2`", "1:`8.0`"])
                .collect::<Vec<_>>()
        );
    }

    #[test]
    fn directives_need_no_space_between_them() {
        assert_eq!(
            tokens(".reg.v4.b32 a.x;").unwrap(),
            ["1:`.reg`", "1:`.v4`", "1:`.b32`", "1:`a.x`", "1:`;`"]
        );
    }

    #[test]
    fn what_is_never_closed_is_refused_with_its_line() {
        assert_eq!(tokens("\n\"abc\n\"").unwrap_err(), "PTX line 2: a quote is never closed");
        assert_eq!(tokens("\n/* abc *").unwrap_err(), "PTX line 2: a comment is never closed");
        assert!(tokens("\u{e9}").is_err());
        assert!(tokens("a\0b").is_err());
    }

    proptest! {
        #[test]
        fn any_text_ends(text in any::<String>()) {
            let _ = tokens(&text);
        }
    }
}
