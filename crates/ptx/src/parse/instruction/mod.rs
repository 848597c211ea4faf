//! Instructions: from an opcode and written operands to an [`Op`].

mod arithmetic;
mod barrier;
mod bits;
mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod fragment;
mod matrix;
mod memory;
mod stack;
mod texture;
mod warp;

pub(super) use control::Jump;

use super::{argument::Arg, operands::Operands, suffix::Opcode};
use crate::ir::{Op, Type};

/// Why an instruction is not decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// PTX has it, perhaps; the interpreter has not.
    Unsupported(Option<String>),
    /// It contradicts PTX or the declarations.
    Invalid(String, Option<String>),
}

impl Fault {
    pub(super) fn unsupported(what: impl Into<String>) -> Self {
        Fault::Unsupported(Some(what.into()))
    }

    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Fault::Invalid(what.into(), None)
    }

    #[must_use]
    pub(super) fn with_hint(self, hint: &str) -> Self {
        match self {
            Fault::Invalid(what, _) => Fault::Invalid(what, Some(hint.into())),
            other => other,
        }
    }
}

/// A decoded instruction. Branches know their labels, not yet where those are.
pub(super) enum Decoded<'a> {
    Op(Op),
    /// One instruction that is carried out element by element.
    Ops(Vec<Op>),
    Jump(Jump<'a>),
}

const INTEGERS: [Type; 6] = [Type::U16, Type::U32, Type::U64, Type::S16, Type::S32, Type::S64];
const WORDS: [Type; 4] = [Type::U32, Type::U64, Type::S32, Type::S64];

pub(super) fn decode<'a>(
    text: &'a str,
    args: &[Arg<'a>],
    operands: &mut Operands<'_, 'a>,
) -> Result<Decoded<'a>, Fault> {
    let mut op = Opcode::new(text)?;
    if let "bra" | "brx" = op.name {
        return control::jump(op, args, operands).map(Decoded::Jump);
    }
    if let "atom" | "red" = op.name
        && let Some(length) = op.take_one(&[("v2", 2), ("v4", 4), ("v8", 8)])
    {
        return memory::atomics(op, length, args, operands).map(Decoded::Ops);
    }
    if op.name == "mov" && op.take("b128") {
        op.finish()?;
        return convert::mov_pair(args, operands).map(Decoded::Ops);
    }
    let decoded = match decode_op(&mut op, args, operands) {
        // With a suffix that is not known, the operands are those of another form.
        Err(Fault::Invalid(..)) if op.has_unknown_suffix() => return Err(unknown_suffix(op)),
        decoded => decoded?,
    };
    op.finish()?;
    Ok(Decoded::Op(decoded))
}

fn unknown_suffix(op: Opcode<'_>) -> Fault {
    op.finish().err().unwrap_or(Fault::Unsupported(None))
}

fn decode_op<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "add" | "addc" | "sub" | "subc" | "mul" | "mad" | "madc" | "mul24" | "mad24" | "div"
        | "rem" | "min" | "max" | "abs" | "neg" | "sad" => arithmetic::decode(op, args, o),
        "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" | "shf" | "popc" | "clz"
        | "bfind" | "brev" | "bfe" | "bfi" | "fns" | "bmsk" | "szext" | "prmt" | "lop3"
        | "dp4a" | "dp2a" => bits::decode(op, args, o),
        "fma" | "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" | "copysign"
        | "testp" => float::decode(op, args, o),
        "mov" | "cvt" | "cvta" | "isspacep" => convert::decode(op, args, o),
        "setp" | "set" | "selp" | "slct" => compare::decode(op, args, o),
        "st" | "red" if op.has("async") => copy::store(op, args, o),
        "ld" | "ldu" | "st" | "atom" | "red" | "fence" | "membar" | "prefetch" | "prefetchu"
        | "discard" | "applypriority" | "createpolicy" => memory::decode(op, args, o),
        "call" | "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "griddepcontrol" | "pmevent"
        | "setmaxnreg" => control::decode(op, args, o),
        "shfl" | "vote" | "match" | "redux" | "activemask" | "elect" => warp::decode(op, args, o),
        "bar" | "barrier" | "mbarrier" | "mapa" | "getctarank" => barrier::decode(op, args, o),
        "cp" => copy::decode(op, args, o),
        "mma" if op.has("sync") => matrix::decode(op, args, o),
        "ldmatrix" | "stmatrix" | "movmatrix" => matrix::decode(op, args, o),
        "wmma" => fragment::decode(op, args, o),
        "tex" | "txq" | "suq" | "suld" | "sust" => texture::decode(op, args, o),
        "alloca" | "stacksave" | "stackrestore" => stack::decode(op, args, o),
        _ => Err(Fault::Unsupported(None)),
    }
}
