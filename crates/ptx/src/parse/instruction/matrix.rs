//! Tables that the lanes of a warp hold together, and their products.

use super::Fault;
use crate::{
    ir::{MatrixProduct, MatrixType, Op, Type},
    parse::{
        argument::Arg,
        operands::{Operands, destinations, exactly, sources},
        suffix::Opcode,
    },
    value::eight::Eight,
};

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("sync", ())])?;
    op.expect(&[("aligned", ())])?;
    match op.name {
        "mma" => multiply(op, args, o),
        name => {
            op.expect(&[("m8n8", ())])?;
            if name == "movmatrix" {
                op.expect(&[("trans", ())])?;
                op.ty(&[Type::B16])?;
                let [d, a] = exactly(args)?;
                return Ok(Op::MatrixTranspose {
                    dst: o.dst(d, Type::B32)?,
                    a: o.src(a, Type::B32)?,
                });
            }
            move_tables(op, args, o)
        }
    }
}

fn move_tables<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let count = op.expect(&[("x1", 1), ("x2", 2), ("x4", 4)])?;
    let transposed = op.take("trans");
    let space = op.space();
    op.ty(&[Type::B16])?;
    let each = (count, Type::B32);
    if op.name == "ldmatrix" {
        let [d, address] = exactly(args)?;
        let dsts = destinations(d, each, o)?;
        return Ok(Op::MatrixLoad { space, transposed, dsts, address: o.address(address, space)? });
    }
    let [address, values] = exactly(args)?;
    let values = sources(values, each, o)?;
    Ok(Op::MatrixStore { space, transposed, values, address: o.address(address, space)? })
}

fn element(op: &mut Opcode<'_>) -> Result<MatrixType, Fault> {
    let plain = MatrixType::Plain;
    op.expect(&[
        ("f16", plain(Type::F16)),
        ("bf16", plain(Type::Bf16)),
        ("tf32", plain(Type::Tf32)),
        ("f64", plain(Type::F64)),
        ("s8", plain(Type::S8)),
        ("u8", plain(Type::U8)),
        ("s4", MatrixType::Four { signed: true }),
        ("u4", MatrixType::Four { signed: false }),
        ("b1", MatrixType::Bit),
        ("e4m3", MatrixType::Eight(Eight::E4m3)),
        ("e5m2", MatrixType::Eight(Eight::E5m2)),
    ])
}

fn multiply<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let shape = op.expect(&[
        ("m8n8k4", (8, 8, 4)),
        ("m8n8k16", (8, 8, 16)),
        ("m8n8k32", (8, 8, 32)),
        ("m8n8k128", (8, 8, 128)),
        ("m16n8k4", (16, 8, 4)),
        ("m16n8k8", (16, 8, 8)),
        ("m16n8k16", (16, 8, 16)),
        ("m16n8k32", (16, 8, 32)),
        ("m16n8k64", (16, 8, 64)),
        ("m16n8k128", (16, 8, 128)),
        ("m16n8k256", (16, 8, 256)),
    ])?;
    op.expect(&[("row", ())])?;
    op.expect(&[("col", ())])?;
    let saturate = op.take("satfinite");
    let sums = [Type::F16, Type::F32, Type::F64, Type::S32];
    // The types stand in the order of the operands, and are told apart by that.
    let d_type = op.first_type(&sums)?;
    let (a_type, b_type) = (element(op)?, element(op)?);
    let c_type = op.first_type(&sums)?;
    let counted = op.take_one(&[("and", false), ("xor", true)]);
    if counted.is_some() {
        op.expect(&[("popc", ())])?;
    }
    let (m, _, k) = shape;
    let bits = a_type.bits();
    let integers = a_type.is_integer();
    let single = a_type == MatrixType::Bit;
    let doubles = a_type == MatrixType::Plain(Type::F64);
    let sound = d_type == c_type
        && bits == b_type.bits()
        && (integers || a_type == b_type || bits == 8)
        && integers == (d_type == Type::S32)
        && doubles == (d_type == Type::F64)
        && (integers && !single || !saturate)
        && counted.is_some() == single
        // A register of each factor, or with 16 rows two.
        && match (doubles, m) {
            (true, 8) => k == 4,
            (true, _) => k <= 16,
            (false, 8) => integers && k == 128 / bits,
            (false, _) => k == 128 / bits || k == 256 / bits,
        };
    if !sound {
        return Err(Fault::unsupported("there is no such product"));
    }
    // Four lanes share a row of `a`, and a lane has rows 8 apart.
    let register = if doubles { 64 } else { 32 };
    let of = |elements: u32, bits: u32| (elements / 32 * bits).div_ceil(register) as usize;
    let word = if doubles { Type::B64 } else { Type::B32 };
    let [d, a, b, c] = exactly(args)?;
    let sum = (of(m * 8, d_type.bits()), word);
    Ok(Op::MatrixMultiply(Box::new(MatrixProduct {
        shape,
        a_type,
        b_type,
        c_type,
        ty: d_type,
        saturate,
        differing: counted.unwrap_or(false),
        a: sources(a, (of(m * k, bits), word), o)?,
        b: sources(b, (of(8 * k, bits), word), o)?,
        c: sources(c, sum, o)?,
        dsts: destinations(d, sum, o)?,
    })))
}
