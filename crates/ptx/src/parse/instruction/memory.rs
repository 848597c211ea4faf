//! Loads, stores, atomics and fences.

use super::Fault;
use crate::{
    ir::{AtomicOp, Class, FenceOrder, Op, Operand, Order, Scope, Space, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, halves, parts, wrong_count},
        suffix::Opcode,
    },
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "ld" | "ldu" => load(op, args, o),
        "st" => store(op, args, o),
        "atom" | "red" => atomic(op, args, o),
        "fence" | "membar" => fence(op, args, o),
        "createpolicy" => policy(op, args, o),
        _ => hint(op, args, o),
    }
}

/// The operands without the cache policy that may follow them.
pub(super) fn without_policy<'x, 'a>(
    policy: bool,
    args: &'x [Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<&'x [Arg<'a>], Fault> {
    if !policy {
        return Ok(args);
    }
    let (last, rest) = args.split_last().ok_or_else(|| wrong_count(args, "more"))?;
    o.src(last, Type::B64)?;
    Ok(rest)
}

/// The suffixes that loads and stores have in common.
struct Access {
    space: Space,
    order: Order,
    scope: Scope,
    length: usize,
    ty: Type,
    policy: bool,
}

fn access(op: &mut Opcode<'_>) -> Result<Access, Fault> {
    let order = op.order().unwrap_or(Order::Weak);
    let scope = op.scope();
    let strong = matches!(order, Order::Relaxed | Order::Acquire | Order::Release);
    if strong && scope.is_none() {
        return Err(Fault::invalid("a scope is missing: .cta, .cluster, .gpu or .sys"));
    }
    let space = op.space();
    let policy = op.drop_cache_hints();
    let length = op.take_one(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = op.optional_type().ok_or_else(|| Fault::unsupported("a type is missing"))?;
    // 128 bits are two registers.
    let (ty, length) = if ty == Type::B128 { (Type::B64, 2 * length) } else { (ty, length) };
    let plain = !matches!(ty.class(), Class::Predicate | Class::IntegerPair | Class::FloatPair);
    if !plain || matches!(ty, Type::B128 | Type::Tf32) {
        return Err(Fault::unsupported(format!("{ty} is not a type of `{}`", op.name)));
    }
    if ty.bytes() as usize * length > 32 {
        return Err(Fault::invalid("a vector has at most 32 bytes"));
    }
    Ok(Access { space, order, scope: scope.unwrap_or(Scope::Sys), length, ty, policy })
}

fn check_length(arg: &Arg<'_>, access: &Access) -> Result<(), Fault> {
    let found = parts(arg).len();
    if found == access.length {
        return Ok(());
    }
    let what = format!("{} was given for {} elements", arg.describe(), access.length);
    Err(Fault::invalid(what))
}

fn load<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let read_only = op.name == "ldu" || op.take("nc");
    let access = access(op)?;
    if matches!(access.order, Order::Release | Order::AcqRel) {
        return Err(Fault::invalid("a load does not release"));
    }
    let [d, address] = exactly(without_policy(access.policy, args, o)?)?;
    check_length(d, &access)?;
    let mut dsts = Vec::with_capacity(access.length);
    let mut width = None;
    for part in parts(d) {
        let (reg, bits) = o.wide_dst(part, access.ty)?;
        dsts.push(reg);
        // `_` has no width of its own.
        if *part != Arg::Name("_", 0) && *width.get_or_insert(bits) != bits {
            return Err(Fault::invalid("the registers of a vector have different widths"));
        }
    }
    Ok(Op::Load {
        ty: access.ty,
        space: access.space,
        order: access.order,
        scope: access.scope,
        read_only,
        register_bits: width.unwrap_or(access.ty.bits()),
        dsts: dsts.into(),
        address: o.address(address, access.space)?,
    })
}

fn store<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let access = access(op)?;
    if matches!(access.order, Order::Acquire | Order::AcqRel) {
        return Err(Fault::invalid("a store does not acquire"));
    }
    if access.space == Space::Const {
        return Err(Fault::invalid("constant memory is not written"));
    }
    let [address, values] = exactly(without_policy(access.policy, args, o)?)?;
    check_length(values, &access)?;
    let values =
        parts(values).iter().map(|v| o.wide_src(v, access.ty)).collect::<Result<_, _>>()?;
    Ok(Op::Store {
        ty: access.ty,
        space: access.space,
        order: access.order,
        scope: access.scope,
        address: o.address(address, access.space)?,
        values,
    })
}

/// The operations that combine what is in memory with an operand.
pub(super) const COMBINING: [(&str, AtomicOp); 8] = [
    ("add", AtomicOp::Add),
    ("min", AtomicOp::Min),
    ("max", AtomicOp::Max),
    ("inc", AtomicOp::Inc),
    ("dec", AtomicOp::Dec),
    ("and", AtomicOp::And),
    ("or", AtomicOp::Or),
    ("xor", AtomicOp::Xor),
];

fn atomic<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let order = op.order().unwrap_or(Order::Relaxed);
    let scope = op.scope().unwrap_or(Scope::Gpu);
    let space = op.space();
    let policy = op.drop_cache_hints();
    let others = [("exch", AtomicOp::Exchange), ("cas", AtomicOp::CompareAndSwap)];
    let which = op.expect(&[&COMBINING[..], &others].concat())?;
    let keeps_subnormals = op.take("noftz");
    let swaps = matches!(which, AtomicOp::Exchange | AtomicOp::CompareAndSwap);
    let wide = swaps && op.take("b128");
    let ty = if wide { Type::B64 } else { op.ty(atomic_types(which))? };
    if keeps_subnormals != (ty.is_float() && !matches!(ty, Type::F32 | Type::F64)) {
        return Err(Fault::invalid("16-bit floating-point types need .noftz"));
    }
    if !matches!(space, Space::Generic | Space::Global | Space::Shared | Space::SharedCluster) {
        return Err(Fault::invalid(format!("there are no atomics in {space} memory")));
    }
    if matches!(order, Order::Weak | Order::Volatile) {
        return Err(Fault::invalid("an atomic operation is neither weak nor volatile"));
    }
    let args = without_policy(policy, args, o)?;
    if wide {
        return atomic_pair(which, (space, order, scope), args, o);
    }
    let (dst, args) = match args {
        [d, rest @ ..] if op.name == "atom" => (Some(o.dst(d, ty)?), rest),
        rest => (None, rest),
    };
    let (address, a, b) = match args {
        [address, a] if which != AtomicOp::CompareAndSwap => (address, a, None),
        [address, a, b] if which == AtomicOp::CompareAndSwap && dst.is_some() => {
            (address, a, Some(o.src(b, ty)?))
        }
        _ => return Err(Fault::invalid("it has too few or too many operands")),
    };
    let address = o.address(address, space)?;
    Ok(Op::Atomic { op: which, ty, space, order, scope, dst, address, a: o.src(a, ty)?, b })
}

/// `atom.exch.b128` and `atom.cas.b128`: each value is two registers.
fn atomic_pair<'a>(
    op: AtomicOp,
    (space, order, scope): (Space, Order, Scope),
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let (d, address, a, b) = match args {
        [d, address, a] if op == AtomicOp::Exchange => (d, address, a, None),
        [d, address, a, b] if op == AtomicOp::CompareAndSwap => (d, address, a, Some(b)),
        _ => return Err(Fault::invalid("it has too few or too many operands")),
    };
    let mut sources = |arg: &Arg<'a>| -> Result<[Operand; 2], Fault> {
        let [low, high] = halves(arg)?;
        Ok([o.src(low, Type::B64)?, o.src(high, Type::B64)?])
    };
    let (a, b) = (sources(a)?, b.map(sources).transpose()?);
    let [low, high] = halves(d)?;
    let dsts = [o.dst(low, Type::B64)?, o.dst(high, Type::B64)?];
    let address = o.address(address, space)?;
    Ok(Op::AtomicPair { op, space, order, scope, dsts, address, a, b })
}

/// `atom.v2`, `red.v4` and their kin: each element is an atomic of its own.
pub(super) fn atomics<'a>(
    op: Opcode<'a>,
    length: usize,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Vec<Op>, Fault> {
    let ty = op.clone().optional_type().ok_or_else(|| Fault::unsupported("a type is missing"))?;
    let elements = |arg: &Arg<'a>| match parts(arg).len() == length {
        true => Ok(parts(arg).to_vec()),
        false => Err(Fault::invalid(format!("{} was given for {length} elements", arg.describe()))),
    };
    let (dsts, address, values) = match args {
        [d, Arg::Address(name, at), values] if op.name == "atom" => {
            (Some(elements(d)?), (*name, *at), elements(values)?)
        }
        [Arg::Address(name, at), values] if op.name == "red" => {
            (None, (*name, *at), elements(values)?)
        }
        _ => return Err(Fault::unsupported("a vector of atomics with these operands")),
    };
    // One after the other they would read what the ones before have written.
    if dsts.iter().flatten().any(|d| *d != Arg::Name("_", 0) && values.contains(d)) {
        return Err(Fault::unsupported("a vector of atomics that writes its own sources"));
    }
    let mut all = Vec::with_capacity(length);
    for (i, value) in values.into_iter().enumerate() {
        let at = address.1.wrapping_add(i as i64 * i64::from(ty.bytes()));
        let mut one = vec![Arg::Address(address.0, at), value];
        if let Some(dsts) = &dsts {
            one.insert(0, dsts[i].clone());
        }
        let mut op = op.clone();
        all.push(atomic(&mut op, &one, o)?);
        op.finish()?;
    }
    Ok(all)
}

fn atomic_types(op: AtomicOp) -> &'static [Type] {
    match op {
        AtomicOp::Add => &[
            Type::U32,
            Type::S32,
            Type::U64,
            Type::F32,
            Type::F64,
            Type::F16,
            Type::F16x2,
            Type::Bf16,
            Type::Bf16x2,
        ],
        AtomicOp::Min | AtomicOp::Max => &[Type::U32, Type::S32, Type::U64, Type::S64],
        AtomicOp::Inc | AtomicOp::Dec => &[Type::U32],
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor | AtomicOp::Exchange => {
            &[Type::B32, Type::B64]
        }
        AtomicOp::CompareAndSwap => &[Type::B16, Type::B32, Type::B64],
    }
}

fn fence<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    if op.take("proxy") {
        return proxy_fence(op, args, o);
    }
    let [] = exactly(args)?;
    if op.name == "membar" {
        let scope = op.expect(&[("cta", Scope::Cta), ("gl", Scope::Gpu), ("sys", Scope::Sys)])?;
        return Ok(Op::Fence { order: FenceOrder::SequentiallyConsistent, scope });
    }
    op.take("mbarrier_init");
    op.take("sync_restrict::shared::cta");
    op.take("sync_restrict::shared::cluster");
    let order = op.take_one(&[
        ("sc", FenceOrder::SequentiallyConsistent),
        ("acq_rel", FenceOrder::AcqRel),
        ("acquire", FenceOrder::Acquire),
        ("release", FenceOrder::Release),
    ]);
    let scope = op.scope().ok_or_else(|| Fault::invalid("a scope is missing"))?;
    Ok(Op::Fence { order: order.unwrap_or(FenceOrder::AcqRel), scope })
}

fn proxy_fence<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let is_async = op.expect(&[
        ("alias", false),
        ("async", true),
        ("async::generic", true),
        ("tensormap::generic", false),
    ])?;
    let space = op.take_one(&[("global", false), ("shared::cta", true), ("shared::cluster", true)]);
    op.take("sync_restrict::shared::cta");
    op.take("sync_restrict::shared::cluster");
    op.order();
    let scope = op.scope().unwrap_or(Scope::Cta);
    match args {
        [] => {}
        [address, size] => {
            o.address(address, Space::Generic)?;
            o.src(size, Type::U32)?;
        }
        _ => return Err(wrong_count(args, "0 or 2")),
    }
    let order = FenceOrder::Proxy {
        shared: is_async && space != Some(false),
        global: is_async && space != Some(true),
    };
    Ok(Op::Fence { order, scope })
}

/// A cache policy: a number that the interpreter ignores.
fn policy<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("fractional", ()), ("range", ()), ("cvt", ())])?;
    op.take("L2");
    op.space();
    op.drop_cache_hints();
    let ty = op.ty(&[Type::B64])?;
    let (d, rest) = args.split_first().ok_or_else(|| wrong_count(args, "at least 1"))?;
    if rest.len() > 3 {
        return Err(wrong_count(args, "at most 4"));
    }
    Ok(Op::Mov { ty, dst: o.dst(d, ty)?, a: Operand::Imm(0) })
}

/// Prefetches and the like: their address must be one, and that is all.
fn hint<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let space = op.space();
    op.take_one(&[("L1", ()), ("L2", ())]);
    op.take("tensormap");
    op.drop_cache_hints();
    let (address, rest) = args.split_first().ok_or_else(|| wrong_count(args, "1 or 2"))?;
    if rest.len() > 1 {
        return Err(wrong_count(args, "1 or 2"));
    }
    o.address(address, space)?;
    Ok(Op::Hint)
}
