//! The Python literals that npy headers are written in.

/// A value of the header: what `ast.literal_eval` would give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Literal {
    Text(String),
    Int(i128),
    Bool(bool),
    None,
    /// A tuple or a list: readers of headers treat them alike.
    Sequence(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// Nesting beyond this is an attack or damage, not a type.
const DEPTH: usize = 64;

/// Reads one literal that fills `text` but for white space around it.
pub(crate) fn parse(text: &str) -> Result<Literal, String> {
    let mut p = Parser { rest: text, len: text.len() };
    let value = p.value(DEPTH)?;
    p.space();
    if p.rest.trim_start_matches('\0').is_empty() {
        Ok(value)
    } else {
        Err(p.unexpected("the end"))
    }
}

struct Parser<'a> {
    rest: &'a str,
    len: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
    }

    fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest.chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        self.space();
        match self.rest.strip_prefix(c) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let at = self.len - self.rest.len();
        match self.rest.chars().next() {
            Some(c) => format!("{wanted} was expected at character {at}, not {c:?}"),
            None => format!("{wanted} was expected, but the text ends"),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Literal, String> {
        if depth == 0 {
            return Err("it is nested too deeply".into());
        }
        match self.peek() {
            Some('{') => self.dict(depth),
            Some('(') => self.sequence('(', ')', depth),
            Some('[') => self.sequence('[', ']', depth),
            Some('\'' | '"') => self.text().map(Literal::Text),
            Some(c) if c.is_ascii_digit() || c == '-' || c == '+' => self.int(),
            Some(c) if c.is_ascii_alphabetic() => self.word(),
            _ => Err(self.unexpected("a value")),
        }
    }

    fn dict(&mut self, depth: usize) -> Result<Literal, String> {
        self.eat('{');
        let mut entries = Vec::new();
        while !self.eat('}') {
            let key = self.value(depth - 1)?;
            if !self.eat(':') {
                return Err(self.unexpected("':'"));
            }
            entries.push((key, self.value(depth - 1)?));
            if !self.eat(',') && self.peek() != Some('}') {
                return Err(self.unexpected("',' or '}'"));
            }
        }
        Ok(Literal::Dict(entries))
    }

    fn sequence(&mut self, open: char, close: char, depth: usize) -> Result<Literal, String> {
        self.eat(open);
        let mut items = Vec::new();
        let mut comma = false;
        while !self.eat(close) {
            items.push(self.value(depth - 1)?);
            comma = self.eat(',');
            if !comma && self.peek() != Some(close) {
                return Err(self.unexpected(&format!("',' or '{close}'")));
            }
        }
        // (x) is x in brackets; only (x,) is a tuple.
        match <[Literal; 1]>::try_from(items) {
            Ok([item]) if open == '(' && !comma => Ok(item),
            Ok(one) => Ok(Literal::Sequence(one.into())),
            Err(items) => Ok(Literal::Sequence(items)),
        }
    }

    fn int(&mut self) -> Result<Literal, String> {
        let digits = |c: char| c.is_ascii_digit() || c == '-' || c == '+';
        let end = self.rest.find(|c| !digits(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        // A file by Python 2 may write 3L.
        let rest = rest.strip_prefix('L').unwrap_or(rest);
        let value = number.parse().map_err(|_| format!("{number:.40} is not a usable number"))?;
        self.rest = rest;
        Ok(Literal::Int(value))
    }

    fn word(&mut self) -> Result<Literal, String> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        // u'...' and b'...' are text to us.
        if matches!(word, "u" | "b") && rest.starts_with(['\'', '"']) {
            self.rest = rest;
            return self.text().map(Literal::Text);
        }
        let value = match word {
            "True" => Literal::Bool(true),
            "False" => Literal::Bool(false),
            "None" => Literal::None,
            _ => return Err(self.unexpected("a value")),
        };
        self.rest = rest;
        Ok(value)
    }

    fn text(&mut self) -> Result<String, String> {
        let mut chars = self.rest.chars();
        let quote = chars.next();
        let mut text = String::new();
        loop {
            match chars.next() {
                None | Some('\n') => return Err("a quote is never closed".into()),
                Some('\\') => text.extend(escape(&mut chars)?),
                c if c == quote => {
                    self.rest = chars.as_str();
                    return Ok(text);
                }
                Some(c) => text.push(c),
            }
        }
    }
}

/// What follows a backslash; `None` for a line continued.
fn escape(chars: &mut core::str::Chars<'_>) -> Result<Option<char>, String> {
    let digits = match chars.next() {
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        Some('n') => return Ok(Some('\n')),
        Some('r') => return Ok(Some('\r')),
        Some('t') => return Ok(Some('\t')),
        Some('\n') => return Ok(None),
        Some(c @ ('\\' | '\'' | '"')) => return Ok(Some(c)),
        Some(c) => return Err(format!("the code \\{c} is not understood")),
        None => return Err("a quote is never closed".into()),
    };
    let mut code = 0_u32;
    for _ in 0..digits {
        let digit = chars.next().and_then(|c| c.to_digit(16));
        code = code << 4 | digit.ok_or("a backslash code is cut short")?;
    }
    char::from_u32(code).map(Some).ok_or_else(|| format!("U+{code:X} is not a character"))
}

#[cfg(test)]
mod tests {
    use super::{Literal::*, parse};
    use proptest::prelude::*;

    #[test]
    fn what_numpy_writes_is_understood() {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }          \n";
        let key = |s: &str| Text(s.into());
        let expected = Dict(vec![
            (key("descr"), key("<f8")),
            (key("fortran_order"), Bool(false)),
            (key("shape"), Sequence(vec![Int(3), Int(4)])),
        ]);
        assert_eq!(parse(text), Ok(expected));
    }

    #[test]
    fn tuples_lists_and_brackets() {
        assert_eq!(parse("()"), Ok(Sequence(vec![])));
        assert_eq!(parse("(7,)"), Ok(Sequence(vec![Int(7)])));
        assert_eq!(parse("(7)"), Ok(Int(7)));
        assert_eq!(parse("[7]"), Ok(Sequence(vec![Int(7)])));
        assert_eq!(parse("[(u'a', \"b\"), None]"), {
            Ok(Sequence(vec![Sequence(vec![Text("a".into()), Text("b".into())]), None]))
        });
    }

    #[test]
    fn old_longs_and_escapes() {
        assert_eq!(parse("10L"), Ok(Int(10)));
        assert_eq!(parse("-3"), Ok(Int(-3)));
        assert_eq!(parse(r"'a\'\\\x41\u00e9\U0001F600\n'"), Ok(Text("a'\\Aé😀\n".into())));
    }

    #[test]
    fn broken_literals_are_refused() {
        let deep = "(".repeat(100_000);
        let digits = "9".repeat(60);
        for text in [
            "",
            "{",
            "{'a'",
            "{'a':",
            "{'a':1",
            "(1",
            "(1 2)",
            "'a",
            r"'\q'",
            r"'\ud800'",
            r"'\x4'",
            "nan",
            "1 2",
            "--",
            "1-2",
            "{1}",
            "'a'b",
            &deep,
            &digits,
        ] {
            assert!(parse(text).is_err(), "{text:.40}");
        }
    }

    proptest! {
        #[test]
        fn random_text_never_panics(text in "[(){}\\[\\],:'\"ubTrueNonL0-9\\\\x \n-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
