//! Sums, products, quotients and their kin, of integers and floating-point numbers.

use super::{Fault, INTEGERS, WORDS, float};
use crate::{
    ir::{
        CarryOp, Class, FloatBinary, FloatUnary, IntBinary, IntTernary, IntUnary, Op, Operand, Type,
    },
    parse::{
        argument::Arg,
        operands::{Operands, exactly},
        suffix::Opcode,
    },
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let carry_out = op.take("cc");
    let carry_in = matches!(op.name, "addc" | "subc" | "madc");
    if carry_in || carry_out {
        return carry(op, carry_in, carry_out, args, o);
    }
    let ty = op.optional_type().ok_or_else(|| Fault::unsupported("a type is missing"))?;
    match ty.class() {
        Class::Float | Class::FloatPair => of_floats(op, ty, args, o),
        Class::Unsigned | Class::Signed => of_integers(op, ty, args, o),
        Class::IntegerPair => of_pairs(op, ty, args, o),
        Class::Bits | Class::Predicate => Err(no_type(op, ty)),
    }
}

fn no_type(op: &Opcode<'_>, ty: Type) -> Fault {
    Fault::unsupported(format!("{ty} is not a type of `{}`", op.name))
}

fn only(op: &Opcode<'_>, ty: Type, allowed: &[Type]) -> Result<(), Fault> {
    if allowed.contains(&ty) { Ok(()) } else { Err(no_type(op, ty)) }
}

fn of_floats<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let binary = match op.name {
        "add" => FloatBinary::Add,
        "sub" => FloatBinary::Sub,
        "mul" => FloatBinary::Mul,
        "min" => FloatBinary::Min,
        "max" => FloatBinary::Max,
        "div" => return float::quotient(op, ty, args, o),
        "mad" => return float::fused(op, ty, args, o),
        "abs" => return float::unary(op, FloatUnary::Abs, ty, args, o),
        "neg" => return float::unary(op, FloatUnary::Neg, ty, args, o),
        _ => return Err(no_type(op, ty)),
    };
    float::binary(op, binary, ty, args, o)
}

fn of_integers<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "mad" | "mad24" | "sad" => return ternary(op, ty, args, o),
        "abs" | "neg" => {
            only(op, ty, &[Type::S16, Type::S32, Type::S64])?;
            let which = if op.name == "abs" { IntUnary::Abs } else { IntUnary::Neg };
            let [d, a] = exactly(args)?;
            return Ok(Op::IntUnary { op: which, ty, dst: o.dst(d, ty)?, a: o.src(a, ty)? });
        }
        _ => {}
    }
    only(op, ty, &INTEGERS)?;
    let which = binary_of_integers(op, ty)?;
    let result = if which == IntBinary::MulWide { twice(op, ty)? } else { ty };
    let [d, a, b] = exactly(args)?;
    Ok(Op::IntBinary { op: which, ty, dst: o.dst(d, result)?, a: o.src(a, ty)?, b: o.src(b, ty)? })
}

fn binary_of_integers(op: &mut Opcode<'_>, ty: Type) -> Result<IntBinary, Fault> {
    let half = [("lo", true), ("hi", false)];
    let sat = ty == Type::S32 && matches!(op.name, "add" | "sub") && op.take("sat");
    let name = op.name;
    Ok(match name {
        "add" if sat => IntBinary::AddSat,
        "add" => IntBinary::Add,
        "sub" if sat => IntBinary::SubSat,
        "sub" => IntBinary::Sub,
        "mul" if op.take("wide") => IntBinary::MulWide,
        "mul" if op.expect(&half)? => IntBinary::MulLo,
        "mul" => IntBinary::MulHi,
        "mul24" => {
            only(op, ty, &[Type::U32, Type::S32])?;
            if op.expect(&half)? { IntBinary::Mul24Lo } else { IntBinary::Mul24Hi }
        }
        "div" => IntBinary::Div,
        "rem" => IntBinary::Rem,
        "min" if ty == Type::S32 && op.take("relu") => IntBinary::MinRelu,
        "min" => IntBinary::Min,
        "max" if ty == Type::S32 && op.take("relu") => IntBinary::MaxRelu,
        "max" => IntBinary::Max,
        _ => return Err(no_type(op, ty)),
    })
}

/// The type with twice the bits.
fn twice(op: &Opcode<'_>, ty: Type) -> Result<Type, Fault> {
    match ty {
        Type::U16 => Ok(Type::U32),
        Type::S16 => Ok(Type::S32),
        Type::U32 => Ok(Type::U64),
        Type::S32 => Ok(Type::S64),
        _ => Err(no_type(op, ty)),
    }
}

fn ternary<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let half = [("lo", true), ("hi", false)];
    only(op, ty, &INTEGERS)?;
    let name = op.name;
    let which = match name {
        "sad" => IntTernary::Sad,
        "mad" if op.take("wide") => IntTernary::MadWide,
        "mad" if op.expect(&half)? => IntTernary::MadLo,
        "mad" if ty == Type::S32 && op.take("sat") => IntTernary::MadHiSat,
        "mad" => IntTernary::MadHi,
        _ => {
            only(op, ty, &[Type::U32, Type::S32])?;
            match op.expect(&half)? {
                true => IntTernary::Mad24Lo,
                false if ty == Type::S32 && op.take("sat") => IntTernary::Mad24HiSat,
                false => IntTernary::Mad24Hi,
            }
        }
    };
    let result = if which == IntTernary::MadWide { twice(op, ty)? } else { ty };
    let [d, a, b, c] = exactly(args)?;
    Ok(Op::IntTernary {
        op: which,
        ty,
        dst: o.dst(d, result)?,
        a: o.src(a, ty)?,
        b: o.src(b, ty)?,
        c: o.src(c, result)?,
    })
}

fn of_pairs<'a>(
    op: &mut Opcode<'a>,
    ty: Type,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let name = op.name;
    let which = match name {
        "add" => IntBinary::Add,
        "min" if ty == Type::S16x2 && op.take("relu") => IntBinary::MinRelu,
        "min" => IntBinary::Min,
        "max" if ty == Type::S16x2 && op.take("relu") => IntBinary::MaxRelu,
        "max" => IntBinary::Max,
        _ => return Err(no_type(op, ty)),
    };
    let [d, a, b] = exactly(args)?;
    Ok(Op::IntBinary { op: which, ty, dst: o.dst(d, ty)?, a: o.src(a, ty)?, b: o.src(b, ty)? })
}

fn carry<'a>(
    op: &mut Opcode<'a>,
    carry_in: bool,
    carry_out: bool,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&WORDS)?;
    let which = match op.name {
        "add" | "addc" => CarryOp::Add,
        "sub" | "subc" => CarryOp::Sub,
        "mad" | "madc" => op.expect(&[("lo", CarryOp::MadLo), ("hi", CarryOp::MadHi)])?,
        _ => return Err(Fault::unsupported("it has no carry")),
    };
    let (d, a, b, c) = if matches!(which, CarryOp::Add | CarryOp::Sub) {
        let [d, a, b] = exactly(args)?;
        (d, a, b, Operand::Imm(0))
    } else {
        let [d, a, b, c] = exactly(args)?;
        (d, a, b, o.src(c, ty)?)
    };
    let (a, b) = (o.src(a, ty)?, o.src(b, ty)?);
    Ok(Op::Carry { op: which, ty, dst: o.dst(d, ty)?, a, b, c, carry_in, carry_out })
}
