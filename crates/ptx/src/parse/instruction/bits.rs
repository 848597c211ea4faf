//! Operations on bits: logic, shifts, fields, bytes.

use super::Fault;
use crate::{
    ir::{BoolOp, IntBinary, IntUnary, Op, PermuteMode, Type},
    parse::{
        argument::Arg,
        operands::{Operands, constant, exactly, expected, wrong_count},
        suffix::Opcode,
    },
};

const LOGIC: [Type; 4] = [Type::Pred, Type::B16, Type::B32, Type::B64];
const B32_B64: [Type; 2] = [Type::B32, Type::B64];
const WORDS: [Type; 4] = [Type::U32, Type::U64, Type::S32, Type::S64];
const COUNT: Type = Type::U32;

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "and" => binary(op, IntBinary::And, &LOGIC, args, o),
        "or" => binary(op, IntBinary::Or, &LOGIC, args, o),
        "xor" => binary(op, IntBinary::Xor, &LOGIC, args, o),
        "shl" => shift(op, IntBinary::Shl, args, o),
        "shr" => shift(op, IntBinary::Shr, args, o),
        "not" => unary(op, IntUnary::Not, &LOGIC, args, o),
        "cnot" => unary(op, IntUnary::CNot, &LOGIC[1..], args, o),
        "brev" => unary(op, IntUnary::Brev, &B32_B64, args, o),
        "popc" => unary(op, IntUnary::Popc, &B32_B64, args, o),
        "clz" => unary(op, IntUnary::Clz, &B32_B64, args, o),
        "shf" => funnel(op, args, o),
        "bfind" => find(op, args, o),
        "bfe" => extract(op, args, o),
        "bfi" => insert(op, args, o),
        "fns" => find_nth(op, args, o),
        "bmsk" | "szext" => masked(op, args, o),
        "prmt" => permute(op, args, o),
        "lop3" => lop3(op, args, o),
        _ => dot(op, args, o),
    }
}

fn binary<'a>(
    op: &mut Opcode<'a>,
    which: IntBinary,
    types: &[Type],
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(types)?;
    let [d, a, b] = exactly(args)?;
    Ok(Op::IntBinary { op: which, ty, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, ty)? })
}

fn shift<'a>(
    op: &mut Opcode<'a>,
    which: IntBinary,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let mut types = vec![Type::B16, Type::B32, Type::B64];
    if which == IntBinary::Shr {
        types.extend(super::INTEGERS);
    }
    let ty = op.ty(&types)?;
    let [d, a, b] = exactly(args)?;
    Ok(Op::IntBinary { op: which, ty, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, COUNT)? })
}

fn unary<'a>(
    op: &mut Opcode<'a>,
    which: IntUnary,
    types: &[Type],
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(types)?;
    let result = if matches!(which, IntUnary::Popc | IntUnary::Clz) { COUNT } else { ty };
    let [d, a] = exactly(args)?;
    Ok(Op::IntUnary { op: which, ty, dst: o.dst(d, result)?, a: o.src(a, ty)? })
}

fn funnel<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let left = op.expect(&[("l", true), ("r", false)])?;
    let wrap = op.expect(&[("wrap", true), ("clamp", false)])?;
    let ty = op.ty(&[Type::B32])?;
    let [d, a, b, c] = exactly(args)?;
    let (a, b, c) = (o.src(a, ty)?, o.src(b, ty)?, o.src(c, COUNT)?);
    Ok(Op::FunnelShift { left, wrap, dst: o.dst(d, ty)?, a, b, c })
}

fn find<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let shift_amount = op.take("shiftamt");
    let ty = op.ty(&WORDS)?;
    let [d, a] = exactly(args)?;
    Ok(Op::BitFind { ty, shift_amount, dst: o.dst(d, COUNT)?, a: o.src(a, ty)? })
}

fn extract<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&WORDS)?;
    let [d, a, start, length] = exactly(args)?;
    let (start, length) = (o.src(start, COUNT)?, o.src(length, COUNT)?);
    Ok(Op::BitExtract { ty, dst: o.dst(d, ty)?, a: o.src(a, ty)?, start, length })
}

fn insert<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&B32_B64)?;
    let [d, a, b, start, length] = exactly(args)?;
    let (start, length) = (o.src(start, COUNT)?, o.src(length, COUNT)?);
    let (a, b) = (o.src(a, ty)?, o.src(b, ty)?);
    Ok(Op::BitInsert { ty, dst: o.dst(d, ty)?, a, b, start, length })
}

fn find_nth<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&[Type::B32])?;
    let [d, mask, base, n] = exactly(args)?;
    let (mask, base, n) = (o.src(mask, ty)?, o.src(base, ty)?, o.src(n, Type::S32)?);
    Ok(Op::FindNthSet { dst: o.dst(d, ty)?, mask, base, n })
}

fn masked<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let wrap = op.expect(&[("wrap", true), ("clamp", false)])?;
    let [d, a, b] = exactly(args)?;
    if op.name == "bmsk" {
        let ty = op.ty(&[Type::B32])?;
        return Ok(Op::BitMask { wrap, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, COUNT)? });
    }
    let ty = op.ty(&[Type::U32, Type::S32])?;
    Ok(Op::SignExtend { ty, wrap, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, COUNT)? })
}

fn permute<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let mode = op.take_one(&[
        ("f4e", PermuteMode::Forward4),
        ("b4e", PermuteMode::Backward4),
        ("rc8", PermuteMode::Replicate8),
        ("ecl", PermuteMode::ClampLeft),
        ("ecr", PermuteMode::ClampRight),
        ("rc16", PermuteMode::Replicate16),
    ]);
    let mode = mode.unwrap_or(PermuteMode::Index);
    let ty = op.ty(&[Type::B32])?;
    let [d, a, b, c] = exactly(args)?;
    let (a, b, c) = (o.src(a, ty)?, o.src(b, ty)?, o.src(c, ty)?);
    Ok(Op::Permute { mode, dst: o.dst(d, ty)?, a, b, c })
}

fn lop3<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let join = op.take_one(&[("or", BoolOp::Or), ("and", BoolOp::And)]);
    let ty = op.ty(&[Type::B32])?;
    let (d, a, b, c, table, q) = match args {
        [d, a, b, c, table] if join.is_none() => (d, a, b, c, table, None),
        [d, a, b, c, table, q] if join.is_some() => (d, a, b, c, table, Some(q)),
        _ => return Err(wrong_count(args, if join.is_some() { "6" } else { "5" })),
    };
    let table = u8::try_from(constant(table)?)
        .map_err(|_| Fault::invalid("the truth table of lop3 has 8 bits"))?;
    let (dst, dst_pred) = o.dst_and_predicate(d, ty)?;
    let test = match (join, dst_pred, q) {
        (Some(join), Some(pred), Some(q)) => Some((join, pred, o.predicate(q)?)),
        (None, None, None) => None,
        _ => return Err(expected("a register and a predicate", d)),
    };
    Ok(Op::Lop3 { table, dst, a: o.src(a, ty)?, b: o.src(b, ty)?, c: o.src(c, ty)?, test })
}

fn dot<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let high = match op.name {
        "dp2a" => Some(op.expect(&[("lo", false), ("hi", true)])?),
        _ => None,
    };
    let types = [Type::U32, Type::S32];
    let (left, right) = (op.ty(&types)?, op.ty(&types)?);
    let [d, a, b, c] = exactly(args)?;
    let ty = if left.is_signed() || right.is_signed() { Type::S32 } else { Type::U32 };
    Ok(Op::DotProduct {
        a_signed: left.is_signed(),
        b_signed: right.is_signed(),
        high,
        dst: o.dst(d, ty)?,
        a: o.src(a, Type::B32)?,
        b: o.src(b, Type::B32)?,
        c: o.src(c, ty)?,
    })
}
