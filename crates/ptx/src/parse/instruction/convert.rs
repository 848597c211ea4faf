//! Moves and conversions.

use super::Fault;
use crate::{
    ir::{Class, FloatMode, Op, Operand, Rounding, Space, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, expected, halves},
        scope::new_register,
        suffix::Opcode,
    },
    value::eight::Eight,
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "mov" => mov(op, args, o),
        "cvt" => cvt(op, args, o),
        "cvta" => cvta(op, args, o),
        _ => is_space(op, args, o),
    }
}

fn mov<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let ty = op.ty(&[
        Type::Pred,
        Type::B16,
        Type::B32,
        Type::B64,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::S16,
        Type::S32,
        Type::S64,
        Type::F16,
        Type::Bf16,
        Type::F16x2,
        Type::Bf16x2,
        Type::F32,
        Type::F64,
    ])?;
    match exactly(args)? {
        [Arg::Vector(parts), a] => {
            let part = part_type(ty, parts.len())?;
            let dsts = parts.iter().map(|p| o.dst(p, part)).collect::<Result<_, _>>()?;
            Ok(Op::Unpack { ty, dsts, a: o.src(a, ty)? })
        }
        [d, Arg::Vector(parts)] => {
            let part = part_type(ty, parts.len())?;
            let parts = parts.iter().map(|p| o.src(p, part)).collect::<Result<_, _>>()?;
            Ok(Op::Pack { ty, dst: o.dst(d, ty)?, parts })
        }
        [d, a] => Ok(Op::Mov { ty, dst: o.dst(d, ty)?, a: o.src(a, ty)? }),
    }
}

/// `mov.b128`: registers of 128 bits are two of 64, so that both sides are pairs.
pub(super) fn mov_pair<'a>(args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Vec<Op>, Fault> {
    let [d, a] = exactly(args)?;
    let ([low, high], [first, second]) = (halves(d)?, halves(a)?);
    let ty = Type::B64;
    let (low, high) = (o.dst(low, ty)?, o.dst(high, ty)?);
    let (first, mut second) = (o.src(first, ty)?, o.src(second, ty)?);
    let mut moves = Vec::with_capacity(3);
    if second == Operand::Reg(low) {
        // The first move would change what the second one takes.
        let kept = new_register(&mut o.body.registers, "", ty);
        moves.push(Op::Mov { ty, dst: kept, a: second });
        second = Operand::Reg(kept);
    }
    moves.push(Op::Mov { ty, dst: low, a: first });
    moves.push(Op::Mov { ty, dst: high, a: second });
    Ok(moves)
}

/// The type of a part when a value is one of so many.
fn part_type(ty: Type, count: usize) -> Result<Type, Fault> {
    match (ty.bits(), count) {
        (64, 2) => Ok(Type::B32),
        (64, 4) | (32, 2) => Ok(Type::B16),
        (32, 4) | (16, 2) => Ok(Type::B8),
        _ => Err(Fault::invalid(format!("{ty} does not have {count} parts"))),
    }
}

/// The rounding of a conversion, and whether it is to integer values.
fn rounding(op: &mut Opcode<'_>) -> Option<(Rounding, bool)> {
    op.take_one(&[
        ("rn", (Rounding::Nearest, false)),
        ("rz", (Rounding::Zero, false)),
        ("rm", (Rounding::Down, false)),
        ("rp", (Rounding::Up, false)),
        ("rna", (Rounding::NearestAway, false)),
        ("rni", (Rounding::Nearest, true)),
        ("rzi", (Rounding::Zero, true)),
        ("rmi", (Rounding::Down, true)),
        ("rpi", (Rounding::Up, true)),
    ])
}

/// To and from pairs of eight bits: `.e4m3x2`, `.e5m2x2`.
fn eight<'a>(
    op: &mut Opcode<'a>,
    mode: FloatMode,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Option<Result<Op, Fault>> {
    let to_eight = !op.begins_with("f16x2");
    let format = op.take_one(&[("e4m3x2", Eight::E4m3), ("e5m2x2", Eight::E5m2)])?;
    let clamps = op.take("satfinite");
    let mut decode = || {
        let from = op.ty(&[Type::F32, Type::F16x2])?;
        if mode.rounding != Rounding::Nearest || !mode.explicit || mode.ftz || mode.sat {
            return Err(Fault::invalid("it needs .rn, and nothing else"));
        }
        let relu = mode.relu;
        if !to_eight {
            let [d, a] = exactly(args)?;
            let (dst, a) = (o.dst(d, Type::F16x2)?, o.src(a, Type::B16)?);
            return Ok(Op::CvtFromEight { from: format, relu, dst, a });
        }
        if !clamps {
            return Err(Fault::invalid("it needs .satfinite"));
        }
        let (d, a, b) = match (from, args) {
            (Type::F32, [d, a, b]) => (d, o.src(a, from)?, o.src(b, from)?),
            (Type::F16x2, [d, a]) => (d, o.src(a, from)?, Operand::Imm(0)),
            _ => return Err(Fault::invalid("it has too few or too many operands")),
        };
        Ok(Op::CvtToEight { to: format, from, relu, dst: o.dst(d, Type::B16)?, a, b })
    };
    Some(decode())
}

/// `cvt.pack`: two clamped integers in one word.
fn pack<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    op.expect(&[("sat", ())])?;
    let (bits, signed) = op.expect(&[
        ("u16", (16, false)),
        ("s16", (16, true)),
        ("u8", (8, false)),
        ("s8", (8, true)),
        ("u4", (4, false)),
        ("s4", (4, true)),
        ("u2", (2, false)),
        ("s2", (2, true)),
    ])?;
    op.ty(&[Type::S32])?;
    let (d, a, b, c) = match args {
        [d, a, b] if bits == 16 => (d, a, b, Operand::Imm(0)),
        [d, a, b, c] if bits < 16 => {
            op.ty(&[Type::B32])?;
            (d, a, b, o.src(c, Type::B32)?)
        }
        _ => return Err(Fault::invalid("it has too few or too many operands")),
    };
    let (a, b) = (o.src(a, Type::S32)?, o.src(b, Type::S32)?);
    Ok(Op::CvtPack { bits, signed, dst: o.dst(d, Type::U32)?, a, b, c })
}

fn cvt<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    if op.take("pack") {
        return pack(op, args, o);
    }
    let rounding = rounding(op);
    let mode = FloatMode {
        rounding: rounding.map_or(Rounding::Nearest, |(rounding, _)| rounding),
        explicit: rounding.is_some(),
        ftz: op.take("ftz"),
        sat: op.take("sat"),
        relu: op.take("relu"),
        ..FloatMode::default()
    };
    if let Some(eights) = eight(op, mode, args, o) {
        return eights;
    }
    let convertible = |ty: &Type| {
        ty.bits() <= 64 && matches!(ty.class(), Class::Unsigned | Class::Signed | Class::Float)
    };
    let types: Vec<_> = Type::ALL.into_iter().filter(convertible).collect();
    let to = op.ty(&[&types[..], &[Type::F16x2, Type::Bf16x2]].concat())?;
    let from = op.ty(&types)?;
    if from == Type::Tf32 {
        return Err(Fault::unsupported("tf32 is converted to, not from"));
    }
    if to.class() == Class::FloatPair {
        return pair(to, from, mode, args, o);
    }
    let integral = rounding.is_some_and(|(_, integral)| integral);
    check(to, from, mode, rounding)?;
    let [d, a] = exactly(args)?;
    let a = o.wide_src(a, from)?;
    let (dst, register_bits) = o.wide_dst(d, to)?;
    Ok(Op::Cvt { to, from, register_bits, dst, a, mode, integral })
}

/// What a conversion must say and what it cannot say.
fn check(
    to: Type,
    from: Type,
    mode: FloatMode,
    rounding: Option<(Rounding, bool)>,
) -> Result<(), Fault> {
    let float = |ty: Type| ty.class() == Class::Float;
    let narrows = float(to) && float(from) && (to.bits() < from.bits() || is_other(to, from));
    let wrong = match rounding {
        None if float(from) && !float(to) => Some("it needs .rni, .rzi, .rmi or .rpi"),
        None if float(to) && !float(from) || narrows => Some("it needs .rn, .rz, .rm or .rp"),
        Some((_, true)) if !float(from) => Some("integers have no rounding to integers"),
        Some((_, true)) if float(to) && (narrows || to.bits() > from.bits()) => {
            Some("rounding to integers keeps the type")
        }
        Some((_, false)) if float(from) && !float(to) => {
            Some("a conversion to integers needs .rni, .rzi, .rmi or .rpi")
        }
        Some((_, false)) if !float(from) && !float(to) => Some("integers are not rounded"),
        _ if mode.relu && !float(to) => Some(".relu is for floating-point results"),
        _ => None,
    };
    match wrong {
        Some(what) => Err(Fault::invalid(what)),
        None => Ok(()),
    }
}

/// Formats of one width that differ: f16 and bf16, f32 and tf32.
fn is_other(to: Type, from: Type) -> bool {
    to.bits() == from.bits() && to != from
}

fn pair<'a>(
    to: Type,
    from: Type,
    mode: FloatMode,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    if from != Type::F32 {
        return Err(Fault::unsupported(format!("{to} is made of two .f32")));
    }
    if !mode.explicit {
        return Err(Fault::invalid("it needs .rn or .rz"));
    }
    let [d, a, b] = exactly(args)?;
    Ok(Op::CvtPair { to, from, dst: o.dst(d, to)?, a: o.src(a, from)?, b: o.src(b, from)?, mode })
}

fn cvta<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let to_space = op.take("to");
    let space = op.space();
    if space == Space::Generic {
        return Err(Fault::invalid("a state space is missing"));
    }
    let ty = op.ty(&[Type::U64, Type::U32])?;
    let [d, a] = exactly(args)?;
    Ok(Op::Cvta { space, to_space, dst: o.dst(d, ty)?, a: o.src(a, ty)? })
}

fn is_space<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let space = op.space();
    if space == Space::Generic {
        return Err(Fault::invalid("a state space is missing"));
    }
    let [d, a] = exactly(args)?;
    if !matches!(a, Arg::Name(..)) {
        return Err(expected("a generic address", a));
    }
    Ok(Op::IsSpace { space, dst: o.dst(d, Type::Pred)?, a: o.src(a, Type::U64)? })
}
