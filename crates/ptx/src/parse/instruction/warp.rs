//! What the lanes of a warp do together.

use super::Fault;
use crate::{
    ir::{Op, ReduxOp, ShuffleMode, Type, VoteMode},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, expected, wrong_count},
        suffix::Opcode,
    },
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "shfl" => shuffle(op, args, o),
        "vote" => vote(op, args, o),
        "match" => matching(op, args, o),
        "redux" => redux(op, args, o),
        "elect" => elect(op, args, o),
        _ => {
            let ty = op.ty(&[Type::B32])?;
            let [d] = exactly(args)?;
            Ok(Op::ActiveMask { dst: o.dst(d, ty)? })
        }
    }
}

/// The mask that ends the operands of a `.sync` instruction.
fn split_mask<'x, 'a>(
    op: &mut Opcode<'a>,
    args: &'x [Arg<'a>],
) -> Result<(&'x [Arg<'a>], Option<&'x Arg<'a>>), Fault> {
    if !op.take("sync") {
        return Ok((args, None));
    }
    let (mask, rest) = args.split_last().ok_or_else(|| wrong_count(args, "more"))?;
    Ok((rest, Some(mask)))
}

fn shuffle<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let (args, mask) = split_mask(op, args)?;
    let mode = op.expect(&[
        ("up", ShuffleMode::Up),
        ("down", ShuffleMode::Down),
        ("bfly", ShuffleMode::Butterfly),
        ("idx", ShuffleMode::Index),
    ])?;
    let ty = op.ty(&[Type::B32])?;
    let [d, a, b, c] = exactly(args)?;
    let (dst, dst_pred) = o.dst_and_predicate(d, ty)?;
    let (a, b, c) = (o.src(a, ty)?, o.src(b, Type::U32)?, o.src(c, Type::U32)?);
    let mask = mask.map(|m| o.src(m, Type::B32)).transpose()?;
    Ok(Op::Shuffle { mode, dst, dst_pred, a, b, c, mask })
}

fn vote<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let (args, mask) = split_mask(op, args)?;
    let mode = op.expect(&[
        ("all", VoteMode::All),
        ("any", VoteMode::Any),
        ("uni", VoteMode::Uniform),
        ("ballot", VoteMode::Ballot),
    ])?;
    let ty = op.ty(&[if mode == VoteMode::Ballot { Type::B32 } else { Type::Pred }])?;
    let [d, a] = exactly(args)?;
    let a = o.predicate(a)?;
    let mask = mask.map(|m| o.src(m, Type::B32)).transpose()?;
    Ok(Op::Vote { mode, dst: o.dst(d, ty)?, a, mask })
}

fn must_sync<'x, 'a>(
    op: &mut Opcode<'a>,
    args: &'x [Arg<'a>],
) -> Result<(&'x [Arg<'a>], &'x Arg<'a>), Fault> {
    match split_mask(op, args)? {
        (rest, Some(mask)) => Ok((rest, mask)),
        _ => Err(Fault::invalid("it needs .sync")),
    }
}

fn matching<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let (args, mask) = must_sync(op, args)?;
    let all = op.expect(&[("all", true), ("any", false)])?;
    let ty = op.ty(&[Type::B32, Type::B64])?;
    let [d, a] = exactly(args)?;
    let (dst, dst_pred) = o.dst_and_predicate(d, Type::B32)?;
    if dst_pred.is_some() && !all {
        return Err(Fault::invalid("only match.all gives a predicate"));
    }
    Ok(Op::Match { all, ty, dst, dst_pred, a: o.src(a, ty)?, mask: o.src(mask, Type::B32)? })
}

fn redux<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let (args, mask) = must_sync(op, args)?;
    let which = op.expect(&[
        ("add", ReduxOp::Add),
        ("min", ReduxOp::Min),
        ("max", ReduxOp::Max),
        ("and", ReduxOp::And),
        ("or", ReduxOp::Or),
        ("xor", ReduxOp::Xor),
    ])?;
    let ty = match which {
        ReduxOp::Min | ReduxOp::Max => op.ty(&[Type::U32, Type::S32, Type::F32])?,
        ReduxOp::Add => op.ty(&[Type::U32, Type::S32])?,
        ReduxOp::And | ReduxOp::Or | ReduxOp::Xor => op.ty(&[Type::B32])?,
    };
    let float = ty == Type::F32;
    let (magnitudes, nan) = (float && op.take("abs"), float && op.take("NaN"));
    let [d, a] = exactly(args)?;
    let (a, mask) = (o.src(a, ty)?, o.src(mask, Type::B32)?);
    Ok(Op::Redux { op: which, ty, magnitudes, nan, dst: o.dst(d, ty)?, a, mask })
}

fn elect<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let (args, mask) = must_sync(op, args)?;
    let [d] = exactly(args)?;
    match o.dst_and_predicate(d, Type::B32)? {
        (dst, Some(dst_pred)) => Ok(Op::Elect { dst, dst_pred, mask: o.src(mask, Type::B32)? }),
        _ => Err(expected("a register and a predicate", d)),
    }
}
