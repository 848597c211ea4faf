//! Textures, surfaces and tensor maps as they are written on the command line: what is said of a buffer, and the buffer.
//!
//! `texture:64x32:in:f32:2048=range`, `tensormap:64x100/16x8,swizzle=128:in:f32:6400`. Directions are named from the innermost.

use anyhow::{Result, anyhow, ensure};
use std::str::FromStr;
use warpfold::DType;
use warpfold_ptx::descriptor::{Addressing, Im2col, Image, Swizzle, TensorMap, Texel};
use warpfold_ptx::device::Device;
use warpfold_ptx::ir::Type;

/// What a kernel is told of a buffer besides its address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Described {
    /// The bytes of a tensor map, by value.
    TensorMap {
        extent: Vec<u64>,
        tile: Vec<u32>,
        steps: Vec<u32>,
        swizzle: Swizzle,
        nan: bool,
        im2col: Option<Im2col>,
    },
    /// The handle of a texture or a surface.
    Image { extent: Vec<u32>, parts: u32, addressing: Addressing, normalized: bool, unit: bool },
}

/// What the kernel gets.
pub(crate) enum Given {
    Bytes(Vec<u8>),
    Handle(u64),
}

/// Reads what stands before the buffer, and gives the rest; `None` for other words.
///
/// # Errors
/// What is wrong with it and how it would be right.
pub(crate) fn parse(word: &str) -> Option<Result<(Described, &str), String>> {
    let (kind, rest) = word.split_once(':')?;
    if !matches!(kind, "tensormap" | "texture" | "surface") {
        return None;
    }
    let usual = match kind {
        "tensormap" => "tensormap:64x100/16x8:in:f32:6400",
        _ => "texture:64x32:in:f32:2048",
    };
    Some(match rest.split_once(':') {
        Some((what, buffer)) => {
            let read = if kind == "tensormap" { tensor_map(what) } else { image(kind, what) };
            read.map(|described| (described, buffer)).map_err(|why| format!("{why}, as in {usual}"))
        }
        None => Err(format!("of which buffer? {usual}")),
    })
}

/// `64x100`.
fn numbers<T: FromStr>(word: &str, most: usize) -> Result<Vec<T>, String> {
    let all: Result<Vec<T>, _> = word.split('x').map(str::parse).collect();
    match all {
        Ok(all) if all.len() <= most => Ok(all),
        _ => Err(format!("{word:?} is not 1 to {most} numbers")),
    }
}

fn tensor_map(what: &str) -> Result<Described, String> {
    let mut words = what.split(',');
    let (extent, tile) = words
        .next()
        .and_then(|first| first.split_once('/'))
        .ok_or("a tensor map has an extent and a tile")?;
    let (extent, tile): (_, Vec<u32>) = (numbers(extent, 5)?, numbers(tile, 5)?);
    let (mut steps, mut swizzle, mut nan) = (vec![1; extent.len()], Swizzle::None, false);
    let (mut lower, mut upper) = (None, None);
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("swizzle", span) => {
                let found = span.parse().ok().and_then(Swizzle::of_span);
                swizzle = found.ok_or_else(|| format!("{span:?} is not 32, 64 or 128"))?;
            }
            ("steps", word) => steps = numbers(word, 5)?,
            ("lower", word) => lower = Some(numbers(word, 3)?),
            ("upper", word) => upper = Some(numbers(word, 3)?),
            ("nan", "") => nan = true,
            _ => {
                return Err(format!(
                    "{word:?} is not swizzle=BYTES, steps=STEPS, lower=CORNER, upper=CORNER or nan"
                ));
            }
        }
    }
    let im2col = match (lower, upper) {
        (None, None) => None,
        (Some(lower), Some(upper)) => Some(Im2col { lower, upper }),
        _ => return Err("a box of pixels has a lower and an upper corner".into()),
    };
    Ok(Described::TensorMap { extent, tile, steps, swizzle, nan, im2col })
}

fn image(kind: &str, what: &str) -> Result<Described, String> {
    let mut words = what.split(',');
    let extent = numbers(words.next().unwrap_or_default(), 3)?;
    let (mut parts, mut addressing) = (1, Addressing::Clamp);
    let (mut normalized, mut unit) = (false, false);
    for word in words {
        if let (Some(how), "texture") = (Addressing::from_name(word), kind) {
            addressing = how;
            continue;
        }
        match (word, kind) {
            ("parts=1" | "parts=2" | "parts=4", _) => {
                parts = u32::from(word.as_bytes()[6] - b'0');
            }
            ("normalized", "texture") => normalized = true,
            ("unit", "texture") => unit = true,
            ("linear", "texture") => {
                return Err("textures are sampled at points: there are no filters".into());
            }
            (_, "texture") => {
                return Err(format!(
                    "{word:?} is not parts=2, parts=4, clamp, wrap, mirror, border, normalized or unit"
                ));
            }
            _ => return Err(format!("{word:?} is not parts=2 or parts=4")),
        }
    }
    Ok(Described::Image { extent, parts, addressing, normalized, unit })
}

impl Described {
    /// Makes it for a buffer of `count` elements.
    ///
    /// # Errors
    /// Types that there are not, buffers that are too small, what does not go together.
    pub(crate) fn make(
        &self,
        device: &mut Device,
        address: u64,
        dtype: DType,
        count: u64,
    ) -> Result<Given> {
        let ty = element(dtype)
            .ok_or_else(|| anyhow!("textures and tensors have no elements of type {dtype}"))?;
        let fits = |elements: Option<u64>| {
            let elements = elements.unwrap_or(u64::MAX);
            ensure!(elements <= count, "{elements} elements in a buffer of {count}");
            Ok(())
        };
        let product = |mut all: Box<dyn Iterator<Item = u64> + '_>| {
            all.try_fold(1_u64, |product, n| product.checked_mul(n))
        };
        match self {
            Described::TensorMap { extent, tile, steps, swizzle, nan, im2col } => {
                fits(product(Box::new(extent.iter().copied())))?;
                let map = TensorMap {
                    steps: steps.clone(),
                    swizzle: *swizzle,
                    nan_outside: *nan,
                    im2col: im2col.clone(),
                    ..TensorMap::tight(address, ty, extent, tile)
                };
                Ok(Given::Bytes(map.encode()?.into()))
            }
            Described::Image { extent, parts, addressing, normalized, unit } => {
                let all = extent.iter().chain([parts]).map(|&n| n.into());
                fits(product(Box::new(all)))?;
                let image = Image {
                    addressing: [*addressing; 3],
                    normalized: *normalized,
                    unit: *unit,
                    ..Image::tight(address, Texel { part: ty, parts: *parts }, extent)
                };
                Ok(Given::Handle(device.image(&image)?))
            }
        }
    }
}

/// The type that PTX has for elements.
fn element(dtype: DType) -> Option<Type> {
    Some(match dtype {
        DType::U8 => Type::U8,
        DType::U16 => Type::U16,
        DType::U32 => Type::U32,
        DType::U64 => Type::U64,
        DType::I8 => Type::S8,
        DType::I16 => Type::S16,
        DType::I32 => Type::S32,
        DType::I64 => Type::S64,
        DType::F16 => Type::F16,
        DType::BF16 => Type::Bf16,
        DType::F32 => Type::F32,
        DType::F64 => Type::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_a_buffer_is_read() {
        let read = |word| parse(word).unwrap().unwrap();
        assert_eq!(parse("in:f32:4=ones"), None);
        assert_eq!(parse("in"), None);
        let (map, rest) = read("tensormap:64x100/16x8,swizzle=128,steps=2x1,nan:in:f32:6400=range");
        let expected = Described::TensorMap {
            extent: vec![64, 100],
            tile: vec![16, 8],
            steps: vec![2, 1],
            swizzle: Swizzle::B128,
            nan: true,
            im2col: None,
        };
        assert_eq!((map, rest), (expected, "in:f32:6400=range"));
        let (map, _) = read("tensormap:64x9x14x64/8x64,lower=-1x0,upper=-2x-3:in");
        let expected = Described::TensorMap {
            extent: vec![64, 9, 14, 64],
            tile: vec![8, 64],
            steps: vec![1; 4],
            swizzle: Swizzle::None,
            nan: false,
            im2col: Some(Im2col { lower: vec![-1, 0], upper: vec![-2, -3] }),
        };
        assert_eq!(map, expected);
        let (image, rest) = read("texture:64x32x2,parts=4,wrap,normalized,unit:in");
        let expected = Described::Image {
            extent: vec![64, 32, 2],
            parts: 4,
            addressing: Addressing::Wrap,
            normalized: true,
            unit: true,
        };
        assert_eq!((image, rest), (expected, "in"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (word, part) in [
            ("texture:64", "of which buffer"),
            ("texture:64x:in", "is not 1 to 3 numbers"),
            ("texture:1x2x3x4:in", "is not 1 to 3 numbers"),
            ("texture:64,parts=3:in", "\"parts=3\""),
            ("texture:64,linear:in", "no filters"),
            ("surface:64,wrap:in", "\"wrap\" is not parts=2"),
            ("tensormap:64:in", "an extent and a tile"),
            ("tensormap:64/16,swizzle=16:in", "is not 32, 64 or 128"),
            ("tensormap:64/16,zeros:in", "\"zeros\""),
            ("tensormap:64x9x4/16x4,lower=0:in", "a lower and an upper corner"),
        ] {
            let why = parse(word).unwrap().unwrap_err();
            assert!(why.contains(part), "{word}: {part:?} is not in {why:?}");
        }
    }

    #[test]
    fn images_and_tensors_fit_their_buffers() {
        let mut device = Device::new(warpfold_ptx::device::Setup::default());
        let address = device.allocate(4096).unwrap();
        let mut made = |word: &str, dtype, count| {
            let (described, _) = parse(word).unwrap().unwrap();
            described.make(&mut device, address, dtype, count).map(|given| match given {
                Given::Bytes(bytes) => bytes.len() as u64,
                Given::Handle(handle) => handle,
            })
        };
        assert_eq!(made("tensormap:64x16/16x8:in", DType::F32, 1024).unwrap(), 128);
        assert_ne!(made("texture:16x16,parts=4:in", DType::F32, 1024).unwrap(), 0);
        for (word, dtype, count, part) in [
            ("tensormap:64x16/16x8:in", DType::F32, 1023, "1024 elements in a buffer of 1023"),
            ("texture:16x16,parts=4:in", DType::F32, 256, "1024 elements in a buffer of 256"),
            ("texture:16:in", DType::F64, 16, "no texels"),
            ("texture:16:in", DType::Bool, 16, "bool"),
            ("texture:16,wrap:in", DType::F32, 16, "normalized"),
            ("tensormap:6x6/4x4:in", DType::F32, 36, "a stride of 24"),
            ("tensormap:8x6x2/4x4,lower=0x0,upper=0x0:in", DType::F32, 96, "1 numbers"),
        ] {
            let why = made(word, dtype, count).unwrap_err().to_string();
            assert!(why.contains(part), "{word}: {part:?} is not in {why:?}");
        }
    }
}
