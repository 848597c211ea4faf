//! Textures and surfaces.

use super::Fault;
use crate::{
    ir::{Op, Operand, Outside, SurfacePlace, Type},
    parse::{
        argument::Arg,
        operands::{Operands, exactly, expected, parts, wrong_count},
        suffix::Opcode,
    },
};

/// Directions that are sampled, and whether a layer is chosen besides.
type Geometry = (u32, bool);

pub(super) fn decode<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    match op.name {
        "tex" => texture(op, args, o),
        "txq" | "suq" => query(op, args, o),
        _ => surface(op, args, o),
    }
}

fn geometry(op: &mut Opcode<'_>) -> Result<Geometry, Fault> {
    op.expect(&[
        ("1d", (1, false)),
        ("2d", (2, false)),
        ("3d", (3, false)),
        ("a1d", (1, true)),
        ("a2d", (2, true)),
    ])
}

/// `[handle, {x, y}]`: the handle, and the coordinates along x, along y, and along z or the layer.
fn place<'a>(
    arg: &Arg<'a>,
    (directions, layered): Geometry,
    ty: Type,
    o: &mut Operands<'_, 'a>,
) -> Result<(Operand, [Operand; 3]), Fault> {
    let Arg::Bracket(items) = arg else {
        return Err(expected("a handle and coordinates in brackets", arg));
    };
    let [Arg::Address(Some(handle), 0), coordinates] = &items[..] else {
        return Err(Fault::unsupported("a handle and coordinates are expected in the brackets"));
    };
    let image = o.src(&Arg::Name(handle, 0), Type::U64)?;
    let all = parts(coordinates);
    let first = usize::from(layered);
    let wanted = first + directions as usize;
    // Three coordinates are given as four.
    if all.len() != wanted && (wanted, all.len()) != (3, 4) {
        return Err(Fault::invalid(format!(
            "{} coordinates where {wanted} are expected",
            all.len()
        )));
    }
    let mut at = [Operand::Imm(0); 3];
    for (to, coordinate) in at.iter_mut().zip(&all[first..wanted]) {
        *to = o.src(coordinate, ty)?;
    }
    if layered {
        at[2] = o.src(&all[0], Type::U32)?;
    }
    Ok((image, at))
}

fn texture<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    let level = op.take("level");
    op.take("base");
    let geometry = geometry(op)?;
    op.expect(&[("v4", ())])?;
    let ty = op.expect(&[("u32", Type::U32), ("s32", Type::S32), ("f32", Type::F32)])?;
    // What is left is the type of the coordinates; where both are the same, one is left.
    let coordinates = op.expect(&[("s32", Type::S32), ("f32", Type::F32)])?;
    let (d, at) = match args {
        [d, at] if !level => (d, at),
        // There is one level.
        [d, at, level_of] if level => {
            o.src(level_of, Type::B32)?;
            (d, at)
        }
        _ => return Err(Fault::unsupported("samples with offsets or comparisons")),
    };
    if parts(d).len() != 4 {
        return Err(Fault::invalid(format!("{} registers where 4 are expected", parts(d).len())));
    }
    let (image, at) = place(at, geometry, coordinates, o)?;
    Ok(Op::Texture {
        directions: geometry.0,
        layered: geometry.1,
        by_texels: coordinates == Type::S32,
        ty,
        dsts: parts(d).iter().map(|d| o.dst(d, Type::B32)).collect::<Result<_, _>>()?,
        image,
        at,
    })
}

fn surface<'a>(
    op: &mut Opcode<'a>,
    args: &[Arg<'a>],
    o: &mut Operands<'_, 'a>,
) -> Result<Op, Fault> {
    op.expect(&[("b", ())])?;
    let geometry = geometry(op)?;
    op.drop_cache_hints();
    let length = op.take_one(&[("v2", 2), ("v4", 4)]).unwrap_or(1);
    let ty = op.ty(&[Type::B8, Type::B16, Type::B32, Type::B64])?;
    let outside = op
        .take_one(&[("trap", Outside::Trap), ("clamp", Outside::Clamp), ("zero", Outside::Zero)])
        .unwrap_or(Outside::Trap);
    let [first, second] = exactly(args)?;
    let loads = op.name == "suld";
    let (at, values) = if loads { (second, first) } else { (first, second) };
    if parts(values).len() != length || ty.bytes() as usize * length > 16 {
        let what = format!("{} for {length} elements of {ty}", values.describe());
        return Err(Fault::invalid(what));
    }
    let (image, at) = place(at, geometry, Type::S32, o)?;
    let place = SurfacePlace { ty, outside, image, at };
    if loads {
        let dsts = parts(values).iter().map(|d| Ok(o.wide_dst(d, ty)?.0));
        let dsts = dsts.collect::<Result<_, Fault>>()?;
        return Ok(Op::SurfaceLoad { place, dsts });
    }
    let values = parts(values).iter().map(|v| o.wide_src(v, ty)).collect::<Result<_, _>>()?;
    Ok(Op::SurfaceStore { place, values })
}

/// `txq`, `suq`: how large an image is.
fn query<'a>(op: &mut Opcode<'a>, args: &[Arg<'a>], o: &mut Operands<'_, 'a>) -> Result<Op, Fault> {
    let direction = op.expect(&[("width", 0), ("height", 1), ("depth", 2), ("array_size", 2)])?;
    op.ty(&[Type::B32])?;
    let (dst, image) = match args {
        [dst, Arg::Address(Some(handle), 0)] => (dst, Arg::Name(handle, 0)),
        [_, other] => return Err(expected("a handle in brackets", other)),
        _ => return Err(wrong_count(args, "2")),
    };
    let image = o.src(&image, Type::U64)?;
    Ok(Op::ImageExtent { dst: o.dst(dst, Type::B32)?, image, direction })
}
