//! Tables in fragments: `wmma`.

use super::Fault;
use crate::{
    ir::{FragmentPart, FragmentTable, MatrixProduct, MatrixType, Op, Operand, Type},
    parse::{
        argument::Arg,
        operands::{Operands, destinations, exactly, sources, wrong_count},
        suffix::Opcode,
    },
};

/// What accumulators hold.
const SUMS: [Type; 4] = [Type::F16, Type::F32, Type::F64, Type::S32];

/// What factors hold; those of halves are not named in products.
const FACTORS: [(&str, MatrixType); 9] = [
    ("f16", MatrixType::Plain(Type::F16)),
    ("bf16", MatrixType::Plain(Type::Bf16)),
    ("tf32", MatrixType::Plain(Type::Tf32)),
    ("f64", MatrixType::Plain(Type::F64)),
    ("s8", MatrixType::Plain(Type::S8)),
    ("u8", MatrixType::Plain(Type::U8)),
    ("s4", MatrixType::Four { signed: true }),
    ("u4", MatrixType::Four { signed: false }),
    ("b1", MatrixType::Bit),
];

/// Rows of `a`, columns of `b`, and columns of `a`.
type Shape = (u32, u32, u32);

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let verb = op.expect(&[("load", 0), ("store", 1), ("mma", 2)])?;
    let part = match verb {
        0 => {
            op.expect(&[("a", FragmentPart::A), ("b", FragmentPart::B), ("c", FragmentPart::Sum)])?
        }
        1 => op.expect(&[("d", FragmentPart::Sum)])?,
        _ => FragmentPart::Sum,
    };
    op.expect(&[("sync", ())])?;
    op.expect(&[("aligned", ())])?;
    match verb {
        0 => load(part, op, args, o),
        1 => store(op, args, o),
        _ => multiply(op, args, o),
    }
}

/// Whether columns lie one after the other, instead of rows.
fn by_columns(op: &mut Opcode<'_>) -> Result<bool, Fault> {
    op.expect(&[("row", false), ("col", true)])
}

fn shape(op: &mut Opcode<'_>) -> Result<Shape, Fault> {
    op.expect(&[
        ("m16n16k16", (16, 16, 16)),
        ("m8n32k16", (8, 32, 16)),
        ("m32n8k16", (32, 8, 16)),
        ("m16n16k8", (16, 16, 8)),
        ("m8n8k4", (8, 8, 4)),
        ("m8n8k32", (8, 8, 32)),
        ("m8n8k128", (8, 8, 128)),
    ])
}

/// Whether there are products of this shape whose factors hold this type.
fn has_factor(shape: Shape, ty: MatrixType) -> bool {
    match ty {
        MatrixType::Plain(Type::F64) => shape == (8, 8, 4),
        MatrixType::Plain(Type::Tf32) => shape == (16, 16, 8),
        MatrixType::Four { .. } => shape == (8, 8, 32),
        MatrixType::Bit => shape == (8, 8, 128),
        _ => shape.2 == 16,
    }
}

/// Whether there are products of this shape whose sums have this type.
fn has_sum(shape: Shape, ty: Type) -> bool {
    match ty {
        Type::F64 => shape == (8, 8, 4),
        Type::F32 => matches!(shape.2, 8 | 16),
        Type::S32 => matches!(shape.2, 16 | 32 | 128),
        _ => shape.2 == 16,
    }
}

fn no_such() -> Fault {
    Fault::unsupported("there is no such product")
}

/// The registers of a lane, and their type.
fn registers_of(part: FragmentPart, shape: Shape, ty: MatrixType) -> (usize, Type) {
    let (rows, columns) = part.extent(shape);
    let word = if ty == MatrixType::Plain(Type::F64) { Type::B64 } else { Type::B32 };
    match (part, ty) {
        // A lane has 16 halves of a factor, whatever its shape.
        (FragmentPart::A | FragmentPart::B, MatrixType::Plain(Type::F16)) => (8, word),
        _ => ((rows * columns / 32 * ty.bits() / word.bits()) as usize, word),
    }
}

/// Two operands, and a stride where there is one.
fn with_stride<'x, 'a>(
    args: &'x [Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<([&'x Arg<'a>; 2], Option<Operand>), Fault> {
    match args {
        [first, second] => Ok(([first, second], None)),
        [first, second, stride] => Ok(([first, second], Some(o.src(stride, Type::B32)?))),
        _ => Err(wrong_count(args, "2 or 3")),
    }
}

fn load<'a>(
    part: FragmentPart,
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let (by_columns, shape, space) = (by_columns(op)?, shape(op)?, op.space());
    let (ty, exists) = match part {
        FragmentPart::Sum => {
            let ty = op.first_type(&SUMS)?;
            (MatrixType::Plain(ty), has_sum(shape, ty))
        }
        _ => {
            let ty = op.expect(&FACTORS)?;
            (ty, has_factor(shape, ty))
        }
    };
    if !exists {
        return Err(no_such());
    }
    let ([d, address], stride) = with_stride(args, o)?;
    let dsts = destinations(d, registers_of(part, shape, ty), o)?;
    let address = o.address(address, space)?;
    let table = FragmentTable { shape, ty, by_columns, space, address, stride };
    Ok(Op::FragmentLoad { part, table, dsts })
}

fn store<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let (by_columns, shape, space) = (by_columns(op)?, shape(op)?, op.space());
    let ty = op.first_type(&SUMS)?;
    if !has_sum(shape, ty) {
        return Err(no_such());
    }
    let ty = MatrixType::Plain(ty);
    let ([address, values], stride) = with_stride(args, o)?;
    let values = sources(values, registers_of(FragmentPart::Sum, shape, ty), o)?;
    let address = o.address(address, space)?;
    let table = FragmentTable { shape, ty, by_columns, space, address, stride };
    Ok(Op::FragmentStore { table, values })
}

fn multiply<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    // Single bits are combined and counted; else fragments do not depend on how their tables lay in memory.
    let bits = op.take_one(&[("and", false), ("xor", true)]);
    if bits.is_some() {
        op.expect(&[("popc", ())])?;
    }
    by_columns(op)?;
    by_columns(op)?;
    let shape = shape(op)?;
    op.take("rn");
    let saturate = op.take("satfinite");
    // The types stand in the order of the operands; factors that are halves have none.
    let d_type = op.first_type(&SUMS)?;
    let named = FACTORS[1..].iter().any(|(name, _)| op.begins_with(name));
    let (a_type, b_type) = match named {
        true => (op.expect(&FACTORS[1..])?, op.expect(&FACTORS[1..])?),
        false => (MatrixType::Plain(Type::F16), MatrixType::Plain(Type::F16)),
    };
    let c_type = op.first_type(&SUMS)?;
    let sum_fits = |ty: Type| match a_type {
        MatrixType::Plain(Type::F16) => matches!(ty, Type::F16 | Type::F32),
        MatrixType::Plain(Type::F64) => ty == Type::F64,
        integer if integer.is_integer() => ty == Type::S32,
        _ => ty == Type::F32,
    };
    let exists = has_factor(shape, a_type)
        && (a_type == b_type || a_type.is_integer() && a_type.bits() == b_type.bits())
        && (!saturate || a_type.is_integer() && a_type != MatrixType::Bit)
        && bits.is_some() == (a_type == MatrixType::Bit)
        && sum_fits(d_type)
        && sum_fits(c_type);
    if !exists {
        return Err(no_such());
    }
    let [d, a, b, c] = exactly(args)?;
    let sum = |ty| registers_of(FragmentPart::Sum, shape, MatrixType::Plain(ty));
    Ok(Op::FragmentMultiply(Box::new(MatrixProduct {
        shape,
        a_type,
        b_type,
        c_type,
        ty: d_type,
        saturate,
        differing: bits.unwrap_or(false),
        dsts: destinations(d, sum(d_type), o)?,
        a: sources(a, registers_of(FragmentPart::A, shape, a_type), o)?,
        b: sources(b, registers_of(FragmentPart::B, shape, b_type), o)?,
        c: sources(c, sum(c_type), o)?,
    })))
}
