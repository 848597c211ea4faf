//! Comparisons, and choices by them.

use super::{Fault, INTEGERS};
use crate::{
    ir::{BoolOp, Class, Compare, Op, Predicate, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, wrong_count},
        suffix::Opcode,
    },
};

const COMPARED: [Type; 15] = [
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F32,
    Type::F64,
    Type::F16,
    Type::Bf16,
    Type::F16x2,
    Type::Bf16x2,
];

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "setp" => set_predicate(op, args, o),
        "set" => set(op, args, o),
        "selp" => select(op, args, o),
        _ => select_by_sign(op, args, o),
    }
}

/// What is compared, and how the answer is joined with a predicate.
struct Comparison {
    compare: Compare,
    /// It has a name that only unsigned types use.
    unsigned: bool,
    join: Option<BoolOp>,
    ftz: bool,
}

fn comparison(op: &mut Opcode<'_>) -> Result<Comparison, Fault> {
    let unsigned = op.take_one(&[
        ("lo", Compare::Lt),
        ("ls", Compare::Le),
        ("hi", Compare::Gt),
        ("hs", Compare::Ge),
    ]);
    let compare = match unsigned {
        Some(compare) => compare,
        None => any_comparison(op)?,
    };
    let join = op.take_one(&[("and", BoolOp::And), ("or", BoolOp::Or), ("xor", BoolOp::Xor)]);
    Ok(Comparison { compare, unsigned: unsigned.is_some(), join, ftz: op.take("ftz") })
}

fn any_comparison(op: &mut Opcode<'_>) -> Result<Compare, Fault> {
    op.expect(&[
        ("eq", Compare::Eq),
        ("ne", Compare::Ne),
        ("lt", Compare::Lt),
        ("le", Compare::Le),
        ("gt", Compare::Gt),
        ("ge", Compare::Ge),
        ("equ", Compare::Equ),
        ("neu", Compare::Neu),
        ("ltu", Compare::Ltu),
        ("leu", Compare::Leu),
        ("gtu", Compare::Gtu),
        ("geu", Compare::Geu),
        ("num", Compare::Num),
        ("nan", Compare::Nan),
    ])
}

/// Comparisons that ask about NaN need types that have one; bits have no order.
fn check(comparison: &Comparison, ty: Type) -> Result<(), Fault> {
    if comparison.ftz && !matches!(ty, Type::F32 | Type::F16 | Type::F16x2) {
        return Err(Fault::invalid(format!("{ty} has no .ftz")));
    }
    let fits = match comparison.compare {
        _ if comparison.unsigned => ty.class() == Class::Unsigned,
        Compare::Eq | Compare::Ne => true,
        Compare::Lt | Compare::Le | Compare::Gt | Compare::Ge => ty.class() != Class::Bits,
        _ => ty.is_float(),
    };
    if fits { Ok(()) } else { Err(Fault::invalid(format!("{ty} has no such comparison"))) }
}

fn joined<'a>(
    join: Option<BoolOp>,
    rest: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Option<(BoolOp, Predicate)>, Fault> {
    match (join, rest) {
        (None, []) => Ok(None),
        (Some(join), [c]) => Ok(Some((join, o.predicate(c)?))),
        (Some(_), _) => Err(wrong_count(rest, "one predicate more: 4")),
        (None, _) => Err(Fault::invalid("it takes 3 operands")),
    }
}

fn set_predicate<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let comparison = comparison(op)?;
    let ty = op.ty(&COMPARED)?;
    check(&comparison, ty)?;
    let [d, a, b, rest @ ..] = args else {
        return Err(wrong_count(args, "3"));
    };
    let (dst, dst_pred) = o.dst_and_predicate(d, Type::Pred)?;
    let (a, b) = (o.src(a, ty)?, o.src(b, ty)?);
    let Comparison { compare, join, ftz, .. } = comparison;
    let join = joined(join, rest, o)?;
    Ok(Op::SetPredicate { compare, ty, ftz, dst, dst_pred, a, b, join })
}

fn set<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let comparison = comparison(op)?;
    let to = op.ty(&[
        Type::U32,
        Type::S32,
        Type::F32,
        Type::U16,
        Type::S16,
        Type::F16,
        Type::Bf16,
        Type::F16x2,
        Type::Bf16x2,
    ])?;
    let ty = op.ty(&COMPARED)?;
    check(&comparison, ty)?;
    let pair = |ty: Type| ty.class() == Class::FloatPair;
    if pair(to) && !pair(ty) || pair(ty) && to.bits() != 32 {
        return Err(Fault::invalid(format!("a comparison of {ty} does not give {to}")));
    }
    let [d, a, b, rest @ ..] = args else {
        return Err(wrong_count(args, "3"));
    };
    let (a, b) = (o.src(a, ty)?, o.src(b, ty)?);
    let Comparison { compare, join, ftz, .. } = comparison;
    let join = joined(join, rest, o)?;
    Ok(Op::Set { compare, to, ty, ftz, dst: o.dst(d, to)?, a, b, join })
}

fn select<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&COMPARED[..11])?;
    let [d, a, b, p] = exactly(args)?;
    let pred = o.predicate(p)?;
    if pred.negated {
        return Err(Fault::invalid("selp takes a predicate without a negation"));
    }
    Ok(Op::Select { ty, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, ty)?, pred: pred.reg })
}

fn select_by_sign<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ftz = op.take("ftz");
    let mut types = vec![Type::B16, Type::B32, Type::B64, Type::F32, Type::F64];
    types.extend(INTEGERS);
    let ty = op.ty(&types)?;
    let by = op.ty(&[Type::S32, Type::F32])?;
    let [d, a, b, c] = exactly(args)?;
    let (a, b, c) = (o.src(a, ty)?, o.src(b, ty)?, o.src(c, by)?);
    Ok(Op::SelectBySign { ty, by, ftz, dst: o.dst(d, ty)?, a, b, c })
}
