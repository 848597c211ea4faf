//! Operands as they are written, before anybody knows what they should be.

use super::{
    error::{Error, Result},
    lex::{Lexer, Token},
    number::Number,
};

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Arg<'a> {
    /// A name, with what is added to it: `%r1`, `table+8`.
    Name(&'a str, i64),
    /// `!%p1`.
    Not(&'a str),
    /// `%r1|%p1`.
    Two(&'a str, &'a str),
    /// A constant.
    Number(Number),
    /// `[%rd1+8]`, `[table]`, `[16]`: a name or nothing, and an offset.
    Address(Option<&'a str>, i64),
    /// `{%r1, %r2}`.
    Vector(Vec<Arg<'a>>),
    /// `(param0, param1)`.
    List(Vec<Arg<'a>>),
    /// `[texture, {%r1, %r2}]`: brackets of textures and tensors, which hold more than an address.
    Bracket(Vec<Arg<'a>>),
    /// One component of a register that is declared as a vector.
    Component(&'a str, u8),
}

impl<'a> Arg<'a> {
    /// What a message calls it.
    pub(super) fn describe(&self) -> String {
        match self {
            Arg::Name(name, 0) => format!("`{}`", super::error::excerpt(name)),
            Arg::Name(name, offset) => format!("`{}{offset:+}`", super::error::excerpt(name)),
            Arg::Not(name) => format!("`!{}`", super::error::excerpt(name)),
            Arg::Two(a, b) => {
                format!("`{}|{}`", super::error::excerpt(a), super::error::excerpt(b))
            }
            Arg::Number(_) => "a constant".into(),
            Arg::Address(..) => "an address in brackets".into(),
            Arg::Vector(parts) => format!("a vector of {}", parts.len()),
            Arg::List(items) => format!("a list of {}", items.len()),
            Arg::Bracket(items) => format!("brackets around {}", items.len()),
            Arg::Component(name, _) => format!("a component of `{}`", super::error::excerpt(name)),
        }
    }
}

/// Operands up to the semicolon, which is read.
pub(super) fn operands<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<Arg<'a>>> {
    let mut args = Vec::new();
    if lexer.peek()? == Token::Mark(';') {
        lexer.next()?;
        return Ok(args);
    }
    loop {
        args.push(operand(lexer)?);
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(';') => return Ok(args),
            other => {
                let what = format!("`,` or `;` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

fn operand<'a>(lexer: &mut Lexer<'a>) -> Result<Arg<'a>> {
    match lexer.peek()? {
        Token::Mark('{') => Ok(Arg::Vector(enclosed(lexer, '}')?)),
        Token::Mark('(') => Ok(Arg::List(enclosed(lexer, ')')?)),
        Token::Mark('[') => address(lexer),
        _ => simple(lexer),
    }
}

/// Simple operands up to the closing mark. Nothing nests in PTX, so nothing recurses here.
fn enclosed<'a>(lexer: &mut Lexer<'a>, close: char) -> Result<Vec<Arg<'a>>> {
    lexer.next()?;
    let mut parts = Vec::new();
    if lexer.peek()? == Token::Mark(close) {
        lexer.next()?;
        return Ok(parts);
    }
    loop {
        parts.push(simple(lexer)?);
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(mark) if mark == close => return Ok(parts),
            other => {
                let what = format!("`,` or `{close}` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

fn simple<'a>(lexer: &mut Lexer<'a>) -> Result<Arg<'a>> {
    match lexer.next()? {
        Token::Mark('!') => Ok(Arg::Not(word(lexer)?)),
        Token::Mark('-') => Ok(Arg::Number(number(lexer)?.negated())),
        Token::Number(text) => Ok(Arg::Number(read(lexer, text)?)),
        Token::Word("WARP_SZ") => Ok(Arg::Number(Number::Int(32))),
        Token::Word(name) => after_name(lexer, name),
        other => Err(Error::invalid(lexer.line(), format!("an operand was expected, not {other}"))),
    }
}

fn after_name<'a>(lexer: &mut Lexer<'a>, name: &'a str) -> Result<Arg<'a>> {
    match lexer.peek()? {
        Token::Mark('|') => {
            lexer.next()?;
            Ok(Arg::Two(name, word(lexer)?))
        }
        Token::Mark('+' | '-') => Ok(Arg::Name(name, offset(lexer)?)),
        _ => Ok(Arg::Name(name, 0)),
    }
}

fn address<'a>(lexer: &mut Lexer<'a>) -> Result<Arg<'a>> {
    lexer.next()?;
    let arg = match lexer.next()? {
        Token::Word(name) => Arg::Address(Some(name), offset(lexer)?),
        Token::Number(text) => Arg::Address(None, integer(lexer, text)?),
        Token::Mark('-') => Arg::Address(None, integer_after(lexer)?.wrapping_neg()),
        other => {
            let what = format!("an address was expected, not {other}");
            return Err(Error::invalid(lexer.line(), what));
        }
    };
    match lexer.next()? {
        Token::Mark(']') => Ok(arg),
        Token::Mark(',') => bracket(lexer, arg),
        other => Err(Error::invalid(lexer.line(), format!("`]` was expected, not {other}"))),
    }
}

/// What stands in brackets behind the first comma. Vectors do not nest, so nothing recurses here.
fn bracket<'a>(lexer: &mut Lexer<'a>, first: Arg<'a>) -> Result<Arg<'a>> {
    let mut items = vec![first];
    loop {
        items.push(match lexer.peek()? {
            Token::Mark('{') => Arg::Vector(enclosed(lexer, '}')?),
            _ => simple(lexer)?,
        });
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(']') => return Ok(Arg::Bracket(items)),
            other => {
                let what = format!("`,` or `]` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

/// `+8`, `-8`, `+-8`, or nothing.
pub(super) fn offset(lexer: &mut Lexer<'_>) -> Result<i64> {
    let mut negative = match lexer.peek()? {
        Token::Mark('+') => false,
        Token::Mark('-') => true,
        _ => return Ok(0),
    };
    lexer.next()?;
    if lexer.peek()? == Token::Mark('-') {
        lexer.next()?;
        negative = !negative;
    }
    let size = integer_after(lexer)?;
    Ok(if negative { size.wrapping_neg() } else { size })
}

pub(super) fn word<'a>(lexer: &mut Lexer<'a>) -> Result<&'a str> {
    match lexer.next()? {
        Token::Word(name) => Ok(name),
        other => Err(Error::invalid(lexer.line(), format!("a name was expected, not {other}"))),
    }
}

/// A number with a sign or without.
pub(super) fn number(lexer: &mut Lexer<'_>) -> Result<Number> {
    match lexer.next()? {
        Token::Number(text) => read(lexer, text),
        Token::Mark('-') => match lexer.next()? {
            Token::Number(text) => Ok(read(lexer, text)?.negated()),
            other => Err(no_number(lexer, other)),
        },
        other => Err(no_number(lexer, other)),
    }
}

fn no_number(lexer: &Lexer<'_>, found: Token<'_>) -> Error {
    Error::invalid(lexer.line(), format!("a number was expected, not {found}"))
}

fn read(lexer: &Lexer<'_>, text: &str) -> Result<Number> {
    Number::parse(text).ok_or_else(|| {
        let what = format!("`{}` is not a number", super::error::excerpt(text));
        Error::invalid(lexer.line(), what)
    })
}

/// The number that comes next, which must be an integer without a sign.
pub(super) fn unsigned(lexer: &mut Lexer<'_>) -> Result<u64> {
    match number(lexer)? {
        Number::Int(value) => Ok(value),
        _ => Err(Error::invalid(lexer.line(), "an integer was expected")),
    }
}

fn integer_after(lexer: &mut Lexer<'_>) -> Result<i64> {
    unsigned(lexer).map(|value| value as i64)
}

fn integer(lexer: &Lexer<'_>, text: &str) -> Result<i64> {
    match read(lexer, text)? {
        Number::Int(value) => Ok(value as i64),
        _ => Err(Error::invalid(lexer.line(), "an integer was expected")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Arg, operands};
    use crate::parse::{lex::Lexer, number::Number};

    fn read(text: &str) -> Result<Vec<Arg<'_>>, String> {
        operands(&mut Lexer::new(text)).map_err(|e| e.to_string())
    }

    #[test]
    fn every_kind() {
        assert_eq!(
            read("%r1|%p1, !%p2, -1, {%a, %b}, [x+-8], [4], (p, q), t+8, WARP_SZ;").unwrap(),
            [
                Arg::Two("%r1", "%p1"),
                Arg::Not("%p2"),
                Arg::Number(Number::Int(u64::MAX)),
                Arg::Vector(vec![Arg::Name("%a", 0), Arg::Name("%b", 0)]),
                Arg::Address(Some("x"), -8),
                Arg::Address(None, 4),
                Arg::List(vec![Arg::Name("p", 0), Arg::Name("q", 0)]),
                Arg::Name("t", 8),
                Arg::Number(Number::Int(32)),
            ]
        );
        assert_eq!(read(";").unwrap(), []);
    }

    #[test]
    fn broken_ones() {
        for text in [
            "%r1", "%r1 %r2;", "[x;", "[];", "{a b};", "{{a}};", "!1;", "-;", "a|;", ",;", "[x+y];",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
