//! Declarations of variables and parameters.

use super::{
    argument::{Arg, number, offset, unsigned, word},
    error::{Error, Result, excerpt},
    lex::{Lexer, Token},
    number::Number,
    symbols::{Global, Symbols},
};
use crate::ir::{
    Addressed, InitialAddress, Initialiser, Line, Parameter, ParameterPlace, Reg, Space, Type,
    Variable,
};

/// A variable that a declaration names.
pub(super) struct Declared<'a> {
    pub(super) name: &'a str,
    pub(super) space: Space,
    ty: Type,
    size: u64,
    align: u64,
    pub(super) external: bool,
    dynamic: bool,
    init: Initialiser,
}

impl Declared<'_> {
    pub(super) fn into_variable(self, line: u32) -> Variable {
        Variable {
            name: self.name.to_string(),
            space: self.space,
            ty: self.ty,
            size: self.size,
            align: self.align,
            offset: 0,
            owner: None,
            dynamic: self.dynamic,
            init: self.init,
            line: Line { ptx: line, source: None },
        }
    }
}

/// A formal parameter as it is written.
pub(super) struct Formal<'a> {
    pub(super) name: &'a str,
    pub(super) in_register: bool,
    pub(super) ty: Type,
    pub(super) length: Option<u64>,
    pub(super) align: u64,
    pub(super) pointer: Option<(Space, u64)>,
}

impl<'a> Formal<'a> {
    /// What a call by address can know of it.
    pub(super) fn unplaced(self) -> Parameter {
        self.placed(ParameterPlace::Register(Reg(u32::MAX)), 0)
    }

    pub(super) fn placed(self, place: ParameterPlace, offset: u64) -> Parameter {
        Parameter {
            name: self.name.to_string(),
            ty: self.ty,
            length: self.length,
            align: self.align,
            offset,
            place,
            pointer: self.pointer,
        }
    }

    /// The parameter as a variable of its function.
    pub(super) fn declared(&self) -> Declared<'a> {
        Declared {
            name: self.name,
            space: Space::Param,
            ty: self.ty,
            size: u64::from(self.ty.bytes()).saturating_mul(self.length.unwrap_or(1)),
            align: self.align,
            external: false,
            dynamic: false,
            init: Initialiser::default(),
        }
    }
}

/// The space of a directive; those that have none are not asked.
pub(super) fn space(directive: &str) -> Space {
    match directive {
        ".global" => Space::Global,
        ".const" => Space::Const,
        ".shared" => Space::Shared,
        ".local" => Space::Local,
        _ => Space::Param,
    }
}

pub(super) fn expect(lexer: &mut Lexer<'_>, mark: char) -> Result<()> {
    match lexer.next()? {
        Token::Mark(found) if found == mark => Ok(()),
        other => Err(Error::invalid(lexer.line(), format!("`{mark}` was expected, not {other}"))),
    }
}

/// `"nounroll";` and the like, which steer the compiler.
pub(super) fn pragma(lexer: &mut Lexer<'_>) -> Result<()> {
    loop {
        match lexer.next()? {
            Token::Text(_) | Token::Mark(',') => {}
            Token::Mark(';') => return Ok(()),
            other => {
                let what = format!("a pragma was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

pub(super) fn ty(lexer: &mut Lexer<'_>) -> Result<Type> {
    let token = lexer.next()?;
    match token {
        // Opaque: what a texture or a surface is bound to is a handle.
        Token::Word(".texref" | ".samplerref" | ".surfref") => Some(Type::B64),
        Token::Word(name) => name.strip_prefix('.').and_then(Type::from_name),
        _ => None,
    }
    .ok_or_else(|| Error::invalid(lexer.line(), format!("a type was expected, not {token}")))
}

/// `.v2`, `.v4`, `.v8`, or nothing: the elements of one vector.
pub(super) fn vector(lexer: &mut Lexer<'_>) -> Result<u64> {
    let length = match lexer.peek()? {
        Token::Word(".v2") => 2,
        Token::Word(".v4") => 4,
        Token::Word(".v8") => 8,
        _ => return Ok(1),
    };
    lexer.next()?;
    Ok(length)
}

fn align(lexer: &mut Lexer<'_>) -> Result<u64> {
    let bytes = unsigned(lexer)?;
    if bytes.is_power_of_two() && bytes <= 1 << 20 {
        return Ok(bytes);
    }
    let what = format!("{bytes} is not an alignment");
    Err(Error::invalid(lexer.line(), what).with_hint("alignments are powers of two"))
}

/// The dimensions behind a name: the number of elements, `None` inside for `[]`, which only initialisers tell.
fn length(lexer: &mut Lexer<'_>) -> Result<Option<Option<u64>>> {
    if lexer.peek()? != Token::Mark('[') {
        return Ok(None);
    }
    let mut elements = 1_u64;
    let mut known = true;
    while lexer.peek()? == Token::Mark('[') {
        lexer.next()?;
        if lexer.peek()? == Token::Mark(']') {
            known = false;
        } else {
            let count = unsigned(lexer)?;
            elements = elements
                .checked_mul(count)
                .filter(|&n| n < 1 << 48)
                .ok_or_else(|| Error::invalid(lexer.line(), "an array is too large"))?;
        }
        expect(lexer, ']')?;
    }
    Ok(Some(known.then_some(elements)))
}

/// The variables of one declaration, up to its semicolon. The directive is read.
pub(super) fn variables<'a>(
    lexer: &mut Lexer<'a>,
    symbols: &Symbols<'a>,
    space: Space,
    external: bool,
) -> Result<Vec<Declared<'a>>> {
    let mut alignment = None;
    let mut vector = 1;
    let ty = loop {
        match lexer.peek()? {
            Token::Word(".align") => {
                lexer.next()?;
                alignment = Some(align(lexer)?);
            }
            Token::Word(".attribute") => {
                lexer.next()?;
                skip_attribute(lexer)?;
            }
            Token::Word(".v2" | ".v4" | ".v8") => vector = self::vector(lexer)?,
            _ => break ty(lexer)?,
        }
    };
    if ty == Type::Pred {
        return Err(Error::invalid(lexer.line(), "predicates live in registers only"));
    }
    let mut declared = Vec::new();
    loop {
        let name = word(lexer)?;
        let line = lexer.line();
        let length = length(lexer)?;
        let given = lexer.peek()? == Token::Mark('=');
        let element = u64::from(ty.bytes()) * vector;
        let room = match length {
            None => element,
            Some(Some(count)) => element * count,
            Some(None) => u64::MAX,
        };
        let mut init = Initialiser::default();
        if given {
            if !matches!(space, Space::Global | Space::Const) {
                let what = format!("variables in {space} memory begin without values");
                return Err(Error::invalid(line, what));
            }
            lexer.next()?;
            init = initialiser(lexer, symbols, ty, room, length.is_some())?;
        }
        let open = length == Some(None);
        let dynamic = external && space == Space::Shared && (open || room == 0);
        if open && !given && !dynamic && !external {
            return Err(Error::invalid(
                line,
                format!("the length of `{}` is missing", excerpt(name)),
            ));
        }
        let size = match (open, given) {
            (false, _) => room,
            (true, true) => (init.bytes.len() as u64).next_multiple_of(element),
            (true, false) => 0,
        };
        let align = alignment.unwrap_or(element);
        declared.push(Declared { name, space, ty, size, align, external, dynamic, init });
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(';') => return Ok(declared),
            other => {
                let what = format!("`,` or `;` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

fn skip_attribute(lexer: &mut Lexer<'_>) -> Result<()> {
    expect(lexer, '(')?;
    loop {
        match lexer.next()? {
            Token::Mark(')') => return Ok(()),
            Token::Word(_) | Token::Number(_) | Token::Mark(',') => {}
            other => {
                let what = format!("an attribute was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

/// What stands behind `=`.
fn initialiser<'a>(
    lexer: &mut Lexer<'a>,
    symbols: &Symbols<'a>,
    ty: Type,
    room: u64,
    array: bool,
) -> Result<Initialiser> {
    let mut init = Initialiser { given: true, ..Initialiser::default() };
    let mut depth = 0_usize;
    // Rows of several dimensions are written one after the other; all but the last must be full, which ours need not know.
    loop {
        match lexer.peek()? {
            Token::Mark('{') if array => {
                lexer.next()?;
                depth += 1;
                if depth > 1 {
                    let what = "values in nested braces are not supported";
                    return Err(Error::invalid(lexer.line(), what)
                        .with_hint("compilers write the elements in one row"));
                }
            }
            Token::Mark('}') if depth > 0 && init.bytes.is_empty() => {
                lexer.next()?;
                return Ok(init);
            }
            _ => {
                element(lexer, symbols, ty, &mut init)?;
                if init.bytes.len() as u64 > room {
                    return Err(Error::invalid(
                        lexer.line(),
                        "there are more values than elements",
                    ));
                }
                if depth == 0 {
                    return Ok(init);
                }
                match lexer.next()? {
                    Token::Mark(',') => {}
                    Token::Mark('}') => return Ok(init),
                    other => {
                        let what = format!("`,` or `}}` was expected, not {other}");
                        return Err(Error::invalid(lexer.line(), what));
                    }
                }
            }
        }
    }
}

/// One value: a number, an address, or a byte of an address.
fn element<'a>(
    lexer: &mut Lexer<'a>,
    symbols: &Symbols<'a>,
    ty: Type,
    init: &mut Initialiser,
) -> Result<()> {
    let place = init.bytes.len() as u64;
    let bits = match lexer.peek()? {
        Token::Word(name) => {
            lexer.next()?;
            init.addresses.push(address(lexer, symbols, name, place, ty, 0)?);
            0
        }
        _ => {
            let value = number(lexer)?;
            if lexer.peek()? == Token::Mark('(') {
                init.addresses.push(masked(lexer, symbols, value, place, ty)?);
                0
            } else {
                value.bits(ty).ok_or_else(|| {
                    let what = format!("the value does not have type {ty}");
                    Error::invalid(lexer.line(), what)
                })?
            }
        }
    };
    init.bytes.extend_from_slice(&u128::from(bits).to_le_bytes()[..ty.bytes() as usize]);
    Ok(())
}

/// `0xFF00(x)`: the byte of an address that the mask covers.
fn masked<'a>(
    lexer: &mut Lexer<'a>,
    symbols: &Symbols<'a>,
    mask: Number,
    place: u64,
    ty: Type,
) -> Result<InitialAddress> {
    expect(lexer, '(')?;
    let shift = match mask {
        Number::Int(mask) if mask != 0 && mask >> (mask.trailing_zeros() & !7) == 0xff => {
            mask.trailing_zeros() & !7
        }
        _ => return Err(Error::invalid(lexer.line(), "a mask covers one byte of an address")),
    };
    let name = word(lexer)?;
    let address = address(lexer, symbols, name, place, ty, shift)?;
    expect(lexer, ')')?;
    Ok(InitialAddress { bytes: 1, ..address })
}

/// `x+8`, `generic(x)+8`.
fn address<'a>(
    lexer: &mut Lexer<'a>,
    symbols: &Symbols<'a>,
    name: &'a str,
    place: u64,
    ty: Type,
    shift: u32,
) -> Result<InitialAddress> {
    let generic = name == "generic" && lexer.peek()? == Token::Mark('(');
    let name = if generic {
        expect(lexer, '(')?;
        let name = word(lexer)?;
        let inner = offset(lexer)?;
        expect(lexer, ')')?;
        if inner != 0 {
            return Err(Error::invalid(lexer.line(), "an offset stands behind generic()"));
        }
        name
    } else {
        name
    };
    let of = match symbols.global(name) {
        Some(Global::Variable(id)) => Addressed::Variable(id),
        Some(Global::Function(id)) => Addressed::Function(id),
        None => {
            let what = format!("{} is not declared", Arg::Name(name, 0).describe());
            return Err(Error::invalid(lexer.line(), what));
        }
    };
    let addend = offset(lexer)?;
    Ok(InitialAddress { offset: place, bytes: ty.bytes(), shift, of, addend, generic })
}

/// Formal parameters in brackets.
pub(super) fn parameters<'a>(lexer: &mut Lexer<'a>) -> Result<Vec<Formal<'a>>> {
    expect(lexer, '(')?;
    let mut list = Vec::new();
    if lexer.peek()? == Token::Mark(')') {
        lexer.next()?;
        return Ok(list);
    }
    loop {
        list.push(formal(lexer)?);
        match lexer.next()? {
            Token::Mark(',') => {}
            Token::Mark(')') => return Ok(list),
            other => {
                let what = format!("`,` or `)` was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}

fn formal<'a>(lexer: &mut Lexer<'a>) -> Result<Formal<'a>> {
    let in_register = match lexer.next()? {
        Token::Word(".param") => false,
        Token::Word(".reg") => true,
        other => {
            let what = format!("`.param` or `.reg` was expected, not {other}");
            return Err(Error::invalid(lexer.line(), what));
        }
    };
    let mut own = None;
    let mut kind = None;
    let mut pointer = None;
    loop {
        let token = lexer.next()?;
        match token {
            Token::Word(".align") => {
                let bytes = align(lexer)?;
                // Behind .ptr it is the target's alignment, else the parameter's.
                match &mut pointer {
                    Some((_, target)) => *target = bytes,
                    None => own = Some(bytes),
                }
            }
            Token::Word(".ptr") => pointer = Some((Space::Generic, 4)),
            Token::Word(name @ (".global" | ".const" | ".shared" | ".local")) => match &mut pointer
            {
                Some((target, _)) => *target = space(name),
                None => {
                    let what = format!("`{name}` needs `.ptr`");
                    return Err(Error::invalid(lexer.line(), what));
                }
            },
            Token::Word(".texref" | ".samplerref" | ".surfref") => kind = Some(Type::B64),
            // The space of shared memory is named with its owner by newer compilers.
            Token::Word(".shared::cta" | ".shared::cluster") if pointer.is_some() => {
                pointer = pointer.map(|(_, align)| (Space::Shared, align));
            }
            Token::Word(name) if name.starts_with('.') && kind.is_none() => {
                kind = Type::from_name(&name[1..]);
                if kind.is_none() {
                    let what = format!("`{}` is not a type of a parameter", excerpt(name));
                    return Err(Error::invalid(lexer.line(), what));
                }
            }
            Token::Word(name) => {
                let ty = kind.ok_or_else(|| Error::invalid(lexer.line(), "a type is missing"))?;
                let line = lexer.line();
                let length = match length(lexer)? {
                    None => None,
                    Some(Some(count)) => Some(count),
                    Some(None) => {
                        return Err(Error::invalid(line, "parameters have a known length"));
                    }
                };
                let wrong = ty == Type::Pred && !in_register || in_register && length.is_some();
                if wrong {
                    return Err(Error::invalid(line, "there is no such parameter"));
                }
                let align = own.unwrap_or(u64::from(ty.bytes()));
                return Ok(Formal { name, in_register, ty, length, align, pointer });
            }
            other => {
                let what = format!("a parameter was expected, not {other}");
                return Err(Error::invalid(lexer.line(), what));
            }
        }
    }
}
