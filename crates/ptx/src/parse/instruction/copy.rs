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
    let mode = op.take_one(&[
        ("tile", Mode::Tile),
        ("im2col", Mode::Pixels { shifted: true }),
        ("im2col_no_offs", Mode::Pixels { shifted: false }),
    ]);
    let mode = mode.unwrap_or(Mode::Tile);
    if mode != Mode::Tile && rank < 3 {
        return Err(Fault::invalid("pixels are of tensors of 3 to 5 directions"));
    }
    if op.take("prefetch") {
        op.expect(&[("L2", ())])?;
        op.expect(&[("global", ())])?;
        let policy = op.drop_cache_hints();
        let [place, offsets @ ..] = without_policy(policy, args, o)? else {
            return Err(wrong_count(args, "at least 1"));
        };
        tensor_place(place, rank, o)?;
        let (_, []) = pixel_offsets(mode, offsets, rank, o)? else {
            return Err(wrong_count(args, "fewer"));
        };
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
            let (offsets, _) = match mode {
                Mode::Pixels { shifted: true } => {
                    return Err(Fault::invalid("stores have .im2col_no_offs"));
                }
                _ => pixel_offsets(mode, &[], rank, o)?,
            };
            let tile = o.address(tile, Space::Shared)?;
            let copy = BulkCopy::SharedToGlobal;
            Ok(Op::CopyTensor { copy, map, at, offsets, tile, reduce })
        }
        (
            Space::SharedCluster | Space::Shared,
            Space::Global,
            false,
            [tile, place, barrier, rest @ ..],
        ) if reduce.is_none() => {
            let (map, at) = tensor_place(place, rank, o)?;
            let (offsets, mask) = pixel_offsets(mode, rest, rank, o)?;
            if mask.len() != usize::from(multicast) {
                return Err(Fault::unsupported("there is no such copy"));
            }
            let mbarrier = o.address(barrier, to)?;
            let multicast = mask.first().map(|m| o.src(m, Type::B16)).transpose()?;
            let copy = BulkCopy::GlobalToShared { mbarrier, multicast };
            Ok(Op::CopyTensor { copy, map, at, offsets, tile: o.address(tile, to)?, reduce })
        }
        _ => Err(Fault::unsupported("there is no such copy")),
    }
}

/// What a tile of a tensor is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A box.
    Tile,
    /// Some channels of some pixels, which offsets may shift.
    Pixels { shifted: bool },
}

/// What is added to the coordinates of pixels; `None` where a tile is a box.
type Offsets = Option<Box<[Operand]>>;

/// The offsets of pixels, and the operands behind them.
fn pixel_offsets<'a, 'b>(
    mode: Mode,
    args: &'b [Arg<'a>],
    rank: usize,
    o: &mut Operands<'_, 'a>,
) -> Result<(Offsets, &'b [Arg<'a>]), Fault> {
    match mode {
        Mode::Tile => Ok((None, args)),
        Mode::Pixels { shifted: false } => Ok((Some(Box::default()), args)),
        Mode::Pixels { shifted: true } => {
            let [offsets, rest @ ..] = args else { return Err(wrong_count(args, "more")) };
            let all = parts(offsets);
            if all.len() + 2 != rank {
                let what = format!("{} offsets where {} are expected", all.len(), rank - 2);
                return Err(Fault::invalid(what));
            }
            let all = all.iter().map(|x| o.src(x, Type::U16)).collect::<Result<_, _>>()?;
            Ok((Some(all), rest))
        }
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
