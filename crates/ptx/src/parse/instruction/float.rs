//! Floating point: fused products, quotients, roots and approximations.

use super::Fault;
use crate::{
    ir::{FloatBinary, FloatMode, FloatTest, FloatUnary, Op, Rounding, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly},
        suffix::Opcode,
    },
};

const HALVES: [Type; 4] = [Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2];
const REALS: [Type; 2] = [Type::F32, Type::F64];
const ALL: [Type; 7] =
    [Type::F32, Type::F64, Type::F32x2, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2];

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let approx = op.take("approx");
    let (which, types): (_, &[Type]) = match op.name {
        "fma" => {
            let ty = op.ty(&ALL)?;
            return fused(op, ty, args, o);
        }
        "copysign" => {
            let ty = op.ty(&REALS)?;
            return binary(op, FloatBinary::CopySign, ty, args, o);
        }
        "testp" => return test(op, args, o),
        "rcp" if approx => (FloatUnary::RcpApprox, &REALS),
        "rcp" => (FloatUnary::Rcp, &REALS),
        "sqrt" if approx => (FloatUnary::SqrtApprox, &[Type::F32]),
        "sqrt" => (FloatUnary::Sqrt, &REALS),
        "rsqrt" => (FloatUnary::RsqrtApprox, &REALS),
        "ex2" => {
            (FloatUnary::Ex2Approx, &[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])
        }
        "lg2" => (FloatUnary::Lg2Approx, &[Type::F32]),
        "sin" => (FloatUnary::SinApprox, &[Type::F32]),
        "cos" => (FloatUnary::CosApprox, &[Type::F32]),
        _ => {
            (FloatUnary::TanhApprox, &[Type::F32, Type::F16, Type::F16x2, Type::Bf16, Type::Bf16x2])
        }
    };
    let exact = matches!(which, FloatUnary::Rcp | FloatUnary::Sqrt);
    if approx == exact {
        return Err(Fault::invalid("it needs .approx"));
    }
    let ty = op.ty(types)?;
    if exact {
        let mode = rounded(op, ty)?;
        return with_mode(which, ty, mode, args, o);
    }
    unary(op, which, ty, args, o)
}

/// The suffixes that are the same for all operations; each one only where the type can have it.
fn mode(op: &mut Opcode<'_>, ty: Type) -> FloatMode {
    let rounding = op.rounding();
    FloatMode {
        rounding: rounding.unwrap_or(Rounding::Nearest),
        explicit: rounding.is_some(),
        ftz: ty != Type::F64 && op.take("ftz"),
        sat: matches!(ty, Type::F32 | Type::F16 | Type::F16x2) && op.take("sat"),
        ..FloatMode::default()
    }
}

/// The suffixes of an operation that must say how it rounds.
fn rounded(op: &mut Opcode<'_>, ty: Type) -> Result<FloatMode, Fault> {
    let mode = mode(op, ty);
    if mode.explicit { Ok(mode) } else { Err(Fault::invalid("it needs .rn, .rz, .rm or .rp")) }
}

/// Halves round to nearest, always.
fn check_rounding(ty: Type, mode: FloatMode) -> Result<(), Fault> {
    if HALVES.contains(&ty) && mode.rounding != Rounding::Nearest {
        return Err(Fault::invalid(format!("{ty} has no rounding but .rn")));
    }
    Ok(())
}

pub(super) fn unary<'a>(
    op: &mut Opcode<'a>,
    which: FloatUnary,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    // The approximations of f64 are always .ftz, and say so.
    let ftz = op.take("ftz");
    with_mode(which, ty, FloatMode { ftz, ..FloatMode::default() }, args, o)
}

fn with_mode<'a>(
    which: FloatUnary,
    ty: Type,
    mode: FloatMode,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let [d, a] = exactly(args)?;
    Ok(Op::FloatUnary { op: which, ty, mode, dst: o.dst(d, ty)?, a: o.src(a, ty)? })
}

pub(super) fn binary<'a>(
    op: &mut Opcode<'a>,
    which: FloatBinary,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    if !ALL.contains(&ty) {
        return Err(Fault::unsupported(format!("{ty} is not a type of `{}`", op.name)));
    }
    let mode = match which {
        FloatBinary::Min | FloatBinary::Max => FloatMode {
            ftz: ty != Type::F64 && op.take("ftz"),
            nan: ty != Type::F64 && op.take("NaN"),
            xorsign_abs: ty != Type::F64 && op.take("xorsign") && op.take("abs"),
            ..FloatMode::default()
        },
        FloatBinary::CopySign => FloatMode::default(),
        _ => mode(op, ty),
    };
    check_rounding(ty, mode)?;
    let [d, a, b] = exactly(args)?;
    let (dst, a, b) = (o.dst(d, ty)?, o.src(a, ty)?, o.src(b, ty)?);
    Ok(Op::FloatBinary { op: which, ty, mode, dst, a, b })
}

pub(super) fn quotient<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    if !REALS.contains(&ty) {
        return Err(Fault::unsupported(format!("{ty} is not a type of `div`")));
    }
    let approximation = (ty == Type::F32)
        .then(|| op.take_one(&[("full", FloatBinary::DivFull), ("approx", FloatBinary::DivApprox)]))
        .flatten();
    let (which, mode) = match approximation {
        Some(which) => (which, FloatMode { ftz: op.take("ftz"), ..FloatMode::default() }),
        None => (FloatBinary::Div, rounded(op, ty)?),
    };
    let [d, a, b] = exactly(args)?;
    let (dst, a, b) = (o.dst(d, ty)?, o.src(a, ty)?, o.src(b, ty)?);
    Ok(Op::FloatBinary { op: which, ty, mode, dst, a, b })
}

pub(super) fn fused<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    if !ALL.contains(&ty) || op.name == "mad" && HALVES.contains(&ty) {
        return Err(Fault::unsupported(format!("{ty} is not a type of `{}`", op.name)));
    }
    let mut mode = rounded(op, ty)?;
    mode.relu = HALVES.contains(&ty) && op.take("relu");
    check_rounding(ty, mode)?;
    let [d, a, b, c] = exactly(args)?;
    let (a, b, c) = (o.src(a, ty)?, o.src(b, ty)?, o.src(c, ty)?);
    Ok(Op::Fma { ty, mode, dst: o.dst(d, ty)?, a, b, c })
}

fn test<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let test = op.expect(&[
        ("finite", FloatTest::Finite),
        ("infinite", FloatTest::Infinite),
        ("number", FloatTest::Number),
        ("notanumber", FloatTest::NotANumber),
        ("normal", FloatTest::Normal),
        ("subnormal", FloatTest::Subnormal),
    ])?;
    let ty = op.ty(&REALS)?;
    let [d, a] = exactly(args)?;
    Ok(Op::TestFloat { test, ty, dst: o.dst(d, Type::Pred)?, a: o.src(a, ty)? })
}
