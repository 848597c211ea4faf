//! Barriers of warps, blocks and clusters, and those that live in shared memory.

use super::Fault;
use crate::{
    ir::{Address, BarrierFold, BarrierOp, Op, Order, Phase, Scope, Space, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, wrong_count},
        suffix::Opcode,
    },
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let name = op.name;
    match name {
        "mbarrier" => mbarrier(op, args, o),
        "mapa" => map_address(op, args, o),
        "getctarank" => block_rank(op, args, o),
        _ if op.take("warp") => {
            op.expect(&[("sync", ())])?;
            let [mask] = exactly(args)?;
            Ok(Op::WarpBarrier { mask: o.src(mask, Type::B32)? })
        }
        _ if op.take("cluster") => cluster(op, args),
        _ => block(op, args, o),
    }
}

fn cluster(op: &mut Opcode<'_>, args: &[Arg<'_>]) -> Result<Op, Fault> {
    let arrive = op.expect(&[("arrive", true), ("wait", false)])?;
    let aligned = op.take("aligned");
    let [] = exactly(args)?;
    if !arrive {
        op.take("acquire");
        return Ok(Op::ClusterWait { aligned });
    }
    let release = op.take("release") || !op.take("relaxed");
    Ok(Op::ClusterArrive { release, aligned })
}

fn block<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    op.take("cta");
    // `bar` always is; `barrier` may say so.
    let aligned = op.take("aligned") || op.name == "bar";
    if op.take("red") {
        return reduce(op, aligned, args, o);
    }
    let which = op.expect(&[("sync", BarrierOp::Sync), ("arrive", BarrierOp::Arrive)])?;
    let (id, count) = match args {
        [id] if which == BarrierOp::Sync => (id, None),
        [id, count] => (id, Some(o.src(count, Type::U32)?)),
        _ => return Err(wrong_count(args, "a barrier and a number of threads: 2")),
    };
    Ok(Op::Barrier { op: which, id: o.src(id, Type::U32)?, count, aligned })
}

fn reduce<'a>(
    op: &mut Opcode<'a>,
    aligned: bool,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let fold = op.expect(&[
        ("popc", BarrierFold::Popc),
        ("and", BarrierFold::And),
        ("or", BarrierFold::Or),
    ])?;
    let ty = op.ty(&[if fold == BarrierFold::Popc { Type::U32 } else { Type::Pred }])?;
    let (d, id, count, pred) = match args {
        [d, id, pred] => (d, id, None, pred),
        [d, id, count, pred] => (d, id, Some(o.src(count, Type::U32)?), pred),
        _ => return Err(wrong_count(args, "3 or 4")),
    };
    let reduce = BarrierOp::Reduce { fold, dst: o.dst(d, ty)?, pred: o.predicate(pred)? };
    Ok(Op::Barrier { op: reduce, id: o.src(id, Type::U32)?, count, aligned })
}

fn shared_or_generic(op: &mut Opcode<'_>) -> Result<Space, Fault> {
    match op.space() {
        space @ (Space::Generic | Space::Shared | Space::SharedCluster) => Ok(space),
        space => Err(Fault::invalid(format!("{space} memory has none"))),
    }
}

fn map_address<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let space = shared_or_generic(op)?;
    let ty = op.ty(&[Type::U32, Type::U64])?;
    let [d, a, rank] = exactly(args)?;
    let (a, rank) = (o.src(a, ty)?, o.src(rank, Type::U32)?);
    Ok(Op::MapAddress { space, ty, dst: o.dst(d, ty)?, a, rank })
}

fn block_rank<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let space = shared_or_generic(op)?;
    let ty = op.ty(&[Type::U32, Type::U64])?;
    let [d, a] = exactly(args)?;
    Ok(Op::BlockRank { space, dst: o.dst(d, Type::U32)?, a: o.src(a, ty)? })
}

fn mbarrier<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let space = shared_or_generic(op)?;
    let at = |arg: &Arg<'a>, o: &mut Operands<'_, 'a>| o.address(arg, space);
    let decoded = match verb(op)? {
        Verb::Init => {
            let [address, count] = exactly(args)?;
            let address = at(address, o)?;
            Op::MbarrierInit { space, address, count: o.src(count, Type::U32)? }
        }
        Verb::Invalidate => {
            let [address] = exactly(args)?;
            Op::MbarrierInvalidate { space, address: at(address, o)? }
        }
        Verb::Arrive { drop } => arrive(op, space, drop, args, o)?,
        Verb::Transaction { complete } => {
            op.order();
            let scope = op.scope().unwrap_or(Scope::Cta);
            let [address, bytes] = exactly(args)?;
            let address = at(address, o)?;
            let bytes = o.src(bytes, Type::U32)?;
            Op::MbarrierTransaction { space, address, bytes, complete, scope }
        }
        Verb::Wait { may_rest } => wait(op, space, may_rest, args, o)?,
        Verb::Pending => {
            let [d, a] = exactly(args)?;
            Op::MbarrierPending { dst: o.dst(d, Type::U32)?, a: o.src(a, Type::B64)? }
        }
    };
    op.ty(&[Type::B64])?;
    Ok(decoded)
}

#[derive(Clone, Copy)]
enum Verb {
    Init,
    Invalidate,
    Arrive { drop: bool },
    Transaction { complete: bool },
    Wait { may_rest: bool },
    Pending,
}

fn verb(op: &mut Opcode<'_>) -> Result<Verb, Fault> {
    op.expect(&[
        ("init", Verb::Init),
        ("inval", Verb::Invalidate),
        ("arrive", Verb::Arrive { drop: false }),
        ("arrive_drop", Verb::Arrive { drop: true }),
        ("expect_tx", Verb::Transaction { complete: false }),
        ("complete_tx", Verb::Transaction { complete: true }),
        ("test_wait", Verb::Wait { may_rest: false }),
        ("try_wait", Verb::Wait { may_rest: true }),
        ("pending_count", Verb::Pending),
    ])
}

fn arrive<'a>(
    op: &mut Opcode<'a>,
    space: Space,
    drop: bool,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let expects = op.take("expect_tx");
    let no_complete = op.take("noComplete");
    let order = op.order().unwrap_or(Order::Release);
    let scope = op.scope().unwrap_or(Scope::Cta);
    // The state may be left out where it would belong to another block.
    let (dst, rest) = match args {
        [Arg::Name("_", 0), rest @ ..] => (None, rest),
        [d @ Arg::Name(..), rest @ ..] => (Some(o.dst(d, Type::B64)?), rest),
        rest => (None, rest),
    };
    let (address, number) = match rest {
        [address] if !expects && !no_complete => (address, None),
        [address, number] => (address, Some(o.src(number, Type::U32)?)),
        _ => return Err(Fault::invalid("it has too few or too many operands")),
    };
    let address: Address = o.address(address, space)?;
    let (count, expect) = if expects { (None, number) } else { (number, None) };
    Ok(Op::MbarrierArrive { space, address, dst, count, expect, drop, no_complete, order, scope })
}

fn wait<'a>(
    op: &mut Opcode<'a>,
    space: Space,
    may_rest: bool,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let parity = op.take("parity");
    let order = op.order().unwrap_or(Order::Acquire);
    let scope = op.scope().unwrap_or(Scope::Cta);
    let (d, address, phase) = match args {
        [d, address, phase] => (d, address, phase),
        // How long it may rest: as long as the scheduler likes.
        [d, address, phase, limit] if may_rest => {
            o.src(limit, Type::U32)?;
            (d, address, phase)
        }
        _ => return Err(Fault::invalid("it has too few or too many operands")),
    };
    let phase = if parity {
        Phase::Parity(o.src(phase, Type::U32)?)
    } else {
        Phase::State(o.src(phase, Type::B64)?)
    };
    let dst = o.dst(d, Type::Pred)?;
    let address = o.address(address, space)?;
    Ok(Op::MbarrierWait { space, address, dst, phase, may_rest, order, scope })
}
