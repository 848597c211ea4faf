//! Memory that lasts until a function returns.

use super::Fault;
use crate::{
    ir::{Op, Type},
    parse::{
        argument::Arg,
        operands::{Operands, constant, exactly, wrong_count},
        suffix::Opcode,
    },
};

/// The alignment where the text names none.
const ALIGNMENT: u32 = 8;

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let ty = op.ty(&[Type::U32, Type::U64])?;
    match op.name {
        "alloca" => {
            let (dst, size, align) = match args {
                [dst, size] => (dst, size, ALIGNMENT),
                [dst, size, align] => (dst, size, constant(align)?),
                _ => return Err(wrong_count(args, "2 or 3")),
            };
            if !align.is_power_of_two() {
                return Err(Fault::invalid(format!("{align} is not a power of two")));
            }
            Ok(Op::Allocate { dst: o.dst(dst, ty)?, size: o.src(size, ty)?, align: align.into() })
        }
        "stacksave" => {
            let [dst] = exactly(args)?;
            Ok(Op::StackSave { dst: o.dst(dst, ty)? })
        }
        _ => {
            let [a] = exactly(args)?;
            Ok(Op::StackRestore { a: o.src(a, ty)? })
        }
    }
}
