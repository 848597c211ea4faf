//! Copies that go on beside the program.

use super::Fault;
use super::memory::{COMBINING, without_policy};
use crate::{
    ir::{Address, AtomicOp, BulkCopy, Op, Operand, Space, Type},
    parse::{
        argument::Arg,
        operands::{Operands, constant, exactly, expected, parts, wrong_count},
        suffix::Opcode,
    },
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let reduces = op.take("reduce");
    op.expect(&[("async", ())])?;
    if reduces {
        op.expect(&[("bulk", ())])?;
        return bulk(op, args, o, true);
    }
    if op.take("bulk") {
        return bulk(op, args, o, false);
    }
    if op.take("commit_group") {
        let [] = exactly(args)?;
        return Ok(Op::CopyCommit);
    }
    if op.take("wait_all") {
        let [] = exactly(args)?;
        return Ok(Op::CopyWait { pending: None });
    }
    if op.take("wait_group") {
        let [pending] = exactly(args)?;
        return Ok(Op::CopyWait { pending: Some(constant(pending)?) });
    }
    if op.take("mbarrier") {
        return arrive(op, args, o);
    }
    copy(op, args, o)
}

fn arrive<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("arrive", ())])?;
    let no_increment = op.take("noinc");
    let space = op.space();
    if !matches!(space, Space::Generic | Space::Shared) {
        return Err(Fault::invalid(format!("there are no mbarriers in {space} memory")));
    }
    op.ty(&[Type::B64])?;
    let [address] = exactly(args)?;
    Ok(Op::CopyArrive { space, address: o.address(address, space)?, no_increment })
}

fn copy<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let past_l1 = op.expect(&[("ca", false), ("cg", true)])?;
    if (op.space(), op.space()) != (Space::Shared, Space::Global) {
        return Err(Fault::invalid("it copies from .global to .shared"));
    }
    let policy = op.drop_cache_hints();
    let (dst, src, size, more) = match without_policy(policy, args, o)? {
        [dst, src, size] => (dst, src, size, None),
        [dst, src, size, more] => (dst, src, size, Some(more)),
        other => return Err(wrong_count(other, "3 or 4")),
    };
    let size = constant(size)?;
    if !(size == 16 || !past_l1 && matches!(size, 4 | 8)) {
        return Err(Fault::invalid(format!("it does not copy {size} bytes")));
    }
    let dst = o.address(dst, Space::Shared)?;
    let src = o.address(src, Space::Global)?;
    let (src_size, ignore_src) = match more {
        None => (None, None),
        Some(more) => match o.predicate(more) {
            Ok(ignore) => (None, Some(ignore)),
            Err(_) => (Some(o.src(more, Type::U32)?), None),
        },
    };
    Ok(Op::CopyAsync { dst, src, size, src_size, ignore_src })
}

fn bulk<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
    reduces: bool,
) -> Result<Op, Fault> {
    if op.take("tensor") {
        return tensor(op, args, o, reduces);
    }
    if reduces {
        return moved(op, args, o, true);
    }
    if op.take("commit_group") {
        let [] = exactly(args)?;
        return Ok(Op::CopyBulkCommit);
    }
    if op.take("wait_group") {
        let read = op.take("read");
        let [pending] = exactly(args)?;
        return Ok(Op::CopyBulkWait { pending: constant(pending)?, read });
    }
    if op.take("prefetch") {
        return prefetch(op, args, o);
    }
    moved(op, args, o, false)
}

/// What is copied, or with `.reduce` combined.
fn moved<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
    reduces: bool,
) -> Result<Op, Fault> {
    let (to, from) = (op.space(), op.space());
    let mut policy = op.drop_cache_hints();
    let multicast = op.take("multicast::cluster");
    let grouped = op.expect(&[("bulk_group", true), ("mbarrier::complete_tx::bytes", false)])?;
    policy |= op.drop_cache_hints();
    let reduce = if reduces { Some(reduction(op, to)?) } else { None };
    let args = without_policy(policy, args, o)?;
    let (dst, src, size, rest) = match args {
        [dst, src, size, rest @ ..] => (dst, src, size, rest),
        _ => return Err(wrong_count(args, "at least 3")),
    };
    let dst = o.address(dst, to)?;
    let src = o.address(src, from)?;
    let size = o.src(size, Type::U32)?;
    let copy = match (to, from, grouped, rest) {
        (Space::Global, Space::Shared, true, []) => BulkCopy::SharedToGlobal,
        (Space::SharedCluster, Space::Shared, false, [barrier]) => {
            BulkCopy::SharedToCluster { mbarrier: o.address(barrier, to)? }
        }
        (Space::SharedCluster | Space::Shared, Space::Global, false, [barrier, mask @ ..])
            if reduce.is_none() && mask.len() == usize::from(multicast) =>
        {
            let mbarrier = o.address(barrier, to)?;
            let multicast = mask.first().map(|m| o.src(m, Type::B16)).transpose()?;
            BulkCopy::GlobalToShared { mbarrier, multicast }
        }
        _ => return Err(Fault::unsupported("there is no such copy")),
    };
    Ok(Op::CopyBulk { copy, dst, src, size, reduce })
}

/// `cp.async.bulk.tensor`, and with `.reduce` or `.prefetch`.
fn tensor<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
    reduces: bool,
) -> Result<Op, Fault> {
    let rank = op.expect(&[("1d", 1), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)])?;
    op.take("tile");
    if op.take("prefetch") {
        op.expect(&[("L2", ())])?;
        op.expect(&[("global", ())])?;
        let policy = op.drop_cache_hints();
        let [place] = exactly(without_policy(policy, args, o)?)?;
        tensor_place(place, rank, o)?;
        return Ok(Op::Hint);
    }
    let (to, from) = (op.space(), op.space());
    let mut policy = op.drop_cache_hints();
    let multicast = op.take("multicast::cluster");
    let grouped = op.expect(&[("bulk_group", true), ("mbarrier::complete_tx::bytes", false)])?;
    policy |= op.drop_cache_hints();
    let reduce = if reduces { Some(op.expect(&COMBINING)?) } else { None };
    let args = without_policy(policy, args, o)?;
    match (to, from, grouped, args) {
        (Space::Global, Space::Shared, true, [place, tile]) => {
            let (map, at) = tensor_place(place, rank, o)?;
            let tile = o.address(tile, Space::Shared)?;
            Ok(Op::CopyTensor { copy: BulkCopy::SharedToGlobal, map, at, tile, reduce })
        }
        (
            Space::SharedCluster | Space::Shared,
            Space::Global,
            false,
            [tile, place, barrier, mask @ ..],
        ) if reduce.is_none() && mask.len() == usize::from(multicast) => {
            let (map, at) = tensor_place(place, rank, o)?;
            let mbarrier = o.address(barrier, to)?;
            let multicast = mask.first().map(|m| o.src(m, Type::B16)).transpose()?;
            let copy = BulkCopy::GlobalToShared { mbarrier, multicast };
            Ok(Op::CopyTensor { copy, map, at, tile: o.address(tile, to)?, reduce })
        }
        _ => Err(Fault::unsupported("there is no such copy")),
    }
}

/// `[map, {x, y}]`.
fn tensor_place<'a>(
    arg: &Arg<'a>,
    rank: usize,
    o: &mut Operands<'_, 'a>,
) -> Result<(Address, Box<[Operand]>), Fault> {
    let Arg::Bracket(items) = arg else {
        return Err(expected("a tensor map and coordinates in brackets", arg));
    };
    let [map, at] = &items[..] else {
        return Err(expected("a tensor map and coordinates in brackets", arg));
    };
    if parts(at).len() != rank {
        let what = format!("{} coordinates where {rank} are expected", parts(at).len());
        return Err(Fault::invalid(what));
    }
    let at = parts(at).iter().map(|x| o.src(x, Type::S32)).collect::<Result<_, _>>()?;
    Ok((o.address(map, Space::Generic)?, at))
}

/// The operation and the type of `cp.reduce.async.bulk`.
fn reduction(op: &mut Opcode<'_>, to: Space) -> Result<(AtomicOp, Type), Fault> {
    let which = op.expect(&COMBINING)?;
    let keeps_subnormals = op.take("noftz");
    let (words, floats): (&[Type], &[Type]) = match which {
        AtomicOp::Add => (
            &[Type::U32, Type::S32, Type::U64, Type::S64],
            &[Type::F32, Type::F64, Type::F16, Type::Bf16],
        ),
        AtomicOp::Min | AtomicOp::Max => {
            (&[Type::U32, Type::S32, Type::U64, Type::S64], &[Type::F16, Type::Bf16])
        }
        AtomicOp::Inc | AtomicOp::Dec => (&[Type::U32], &[]),
        _ => (&[Type::B32, Type::B64], &[]),
    };
    // Of floating point in global memory only.
    let ty = match to {
        Space::Global => op.ty(&[words, floats].concat())?,
        _ => op.ty(words)?,
    };
    if keeps_subnormals != (which == AtomicOp::Add && ty.bits() == 16) {
        return Err(Fault::invalid("sums of 16-bit floating-point numbers need .noftz"));
    }
    Ok((which, ty))
}

/// `st.async`, `red.async`.
pub(super) fn store<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("async", ())])?;
    let reduces = op.name == "red";
    if reduces {
        op.expect(&[("relaxed", ())])?;
        op.expect(&[("cluster", ())])?;
    } else {
        op.take("weak");
    }
    if op.space() != Space::SharedCluster {
        return Err(Fault::unsupported("it stores to .shared::cluster here"));
    }
    op.expect(&[("mbarrier::complete_tx::bytes", ())])?;
    let [dst, value, mbarrier] = exactly(args)?;
    let (ty, reduce, values) = if reduces {
        let (which, ty) = reduction(op, Space::SharedCluster)?;
        (ty, Some(which), vec![o.src(value, ty)?])
    } else {
        let length = op.take_one(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
        let ty = op.ty(&[
            Type::B32,
            Type::B64,
            Type::U32,
            Type::U64,
            Type::S32,
            Type::S64,
            Type::F32,
            Type::F64,
        ])?;
        let all = parts(value);
        if all.len() != length || ty.bytes() as usize * length > 16 {
            return Err(Fault::invalid(format!("{} for {length} elements", value.describe())));
        }
        (ty, None, all.iter().map(|v| o.src(v, ty)).collect::<Result<_, _>>()?)
    };
    Ok(Op::StoreAsync {
        ty,
        dst: o.address(dst, Space::SharedCluster)?,
        values: values.into(),
        mbarrier: o.address(mbarrier, Space::SharedCluster)?,
        reduce,
    })
}

fn prefetch<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("L2", ())])?;
    let policy = op.drop_cache_hints();
    let space = op.space();
    let [address, size] = exactly(without_policy(policy, args, o)?)?;
    o.address(address, space)?;
    o.src(size, Type::U32)?;
    Ok(Op::Hint)
}
