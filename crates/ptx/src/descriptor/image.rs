//! Textures and surfaces.

use super::{DescriptorError, Reader, Writer, refuse};
use crate::ir::{Class, Type};

/// Bytes of an encoded image.
pub const IMAGE_BYTES: usize = 64;

/// What encoded images have behind their address.
const MARK: u32 = u32::from_le_bytes(*b"WFim");

/// The types of a texel's parts, by their numbers in an encoded image.
const TYPES: [Type; 8] =
    [Type::U8, Type::U16, Type::U32, Type::S8, Type::S16, Type::S32, Type::F16, Type::F32];

/// What a texture gives for coordinates outside of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Addressing {
    /// Its last texel in that direction.
    #[default]
    Clamp,
    /// It is repeated; with normalized coordinates.
    Wrap,
    /// It is repeated, every other time turned around; with normalized coordinates.
    Mirror,
    /// Zeros.
    Border,
}

impl Addressing {
    const ALL: [Addressing; 4] =
        [Addressing::Clamp, Addressing::Wrap, Addressing::Mirror, Addressing::Border];

    /// The one with this name: `clamp`, `wrap`, `mirror` or `border`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Addressing> {
        let at = ["clamp", "wrap", "mirror", "border"].iter().position(|n| *n == name)?;
        Some(Addressing::ALL[at])
    }
}

/// What an image consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Texel {
    /// The type of each part: integers of 8, 16 or 32 bits, `.f16` or `.f32`.
    pub part: Type,
    /// 1, 2 or 4.
    pub parts: u32,
}

impl Texel {
    /// Its bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.part.bytes() * self.parts
    }
}

/// A texture or a surface over a buffer: texels lie one after the other, rows from pitch to pitch, planes or layers from slice to slice.
/// Textures are sampled at points, without filters and without smaller versions of themselves.
///
/// ```
/// use warpfold_ptx::device::{Device, Setup};
/// use warpfold_ptx::descriptor::{Image, Texel};
/// use warpfold_ptx::ir::Type;
///
/// let mut device = Device::new(Setup::default());
/// let buffer = device.allocate(64 * 32 * 4)?;
/// let image = Image::tight(buffer, Texel { part: Type::F32, parts: 1 }, &[64, 32]);
/// // The kernel's argument.
/// let handle: u64 = device.image(&image)?;
/// # assert_ne!(handle, buffer);
/// # Ok::<(), warpfold_ptx::device::DeviceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Where the first texel is.
    pub address: u64,
    /// What it consists of.
    pub texel: Texel,
    /// Width, height, and depth or layers; 1 where it has no such direction.
    pub extent: [u32; 3],
    /// Bytes from row to row, and from plane to plane.
    pub pitch: [u64; 2],
    /// What textures give outside.
    pub addressing: [Addressing; 3],
    /// Coordinates of textures are of [0, 1) in each direction.
    pub normalized: bool,
    /// Textures of integers of 8 and 16 bits are read as floating-point numbers of [0, 1] or [-1, 1].
    pub unit: bool,
}

impl Image {
    /// An image without gaps, with 1 to 3 directions, which is clamped, with coordinates that count texels.
    #[must_use]
    pub fn tight(address: u64, texel: Texel, extent: &[u32]) -> Image {
        let along = |at: usize| extent.get(at).copied().unwrap_or(1);
        let row = u64::from(texel.bytes()) * u64::from(along(0));
        Image {
            address,
            texel,
            extent: [along(0), along(1), along(2)],
            pitch: [row, row * u64::from(along(1))],
            addressing: [Addressing::Clamp; 3],
            normalized: false,
            unit: false,
        }
    }

    fn check(&self) -> Result<(), DescriptorError> {
        let Texel { part, parts } = self.texel;
        if !TYPES.contains(&part) || !matches!(parts, 1 | 2 | 4) {
            return refuse(format!("there are no texels of {parts} times {part}"));
        }
        if self.extent.contains(&0) {
            return refuse("an image without texels");
        }
        let size = u64::from(self.texel.bytes());
        if !self.address.is_multiple_of(size) || self.pitch.iter().any(|n| !n.is_multiple_of(size))
        {
            return refuse(format!(
                "rows of an image are not aligned to its texels of {size} bytes"
            ));
        }
        let whole = matches!(part.class(), Class::Unsigned | Class::Signed) && part.bits() < 32;
        if self.unit && !whole {
            return refuse(format!("texels of {part} are not read as numbers of [0, 1]"));
        }
        let repeats = |a: &Addressing| matches!(a, Addressing::Wrap | Addressing::Mirror);
        if !self.normalized && self.addressing.iter().any(repeats) {
            return refuse("only textures with normalized coordinates are repeated");
        }
        Ok(())
    }

    /// The bytes that the handle of an image leads to.
    ///
    /// # Errors
    ///
    /// Texels that there are not, rows that are not aligned to them, and what does not go together.
    pub fn encode(&self) -> Result<[u8; IMAGE_BYTES], DescriptorError> {
        self.check()?;
        let mut bytes = [0; IMAGE_BYTES];
        let mut to = Writer(&mut bytes);
        to.put(&self.address.to_le_bytes());
        to.put(&MARK.to_le_bytes());
        self.extent.iter().for_each(|n| to.put(&n.to_le_bytes()));
        self.pitch.iter().for_each(|n| to.put(&n.to_le_bytes()));
        let number = |found: Option<usize>| found.unwrap_or(0) as u8;
        to.put(&[number(TYPES.iter().position(|ty| *ty == self.texel.part))]);
        to.put(&[self.texel.parts as u8, self.normalized.into(), self.unit.into()]);
        to.put(&self.addressing.map(|a| number(Addressing::ALL.iter().position(|b| *b == a))));
        Ok(bytes)
    }

    /// The image that bytes are.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn decode(bytes: &[u8; IMAGE_BYTES]) -> Result<Image, DescriptorError> {
        let mut from = Reader(bytes);
        let address = from.u64();
        if from.u32() != MARK {
            return refuse("no texture or surface of this interpreter");
        }
        let extent = [from.u32(), from.u32(), from.u32()];
        let pitch = [from.u64(), from.u64()];
        let [part, parts, normalized, unit] = from.take();
        let addressing: [u8; 3] = from.take();
        let known = TYPES.get(usize::from(part));
        let all = addressing.map(|a| Addressing::ALL.get(usize::from(a)).copied());
        let (Some(&part), [Some(x), Some(y), Some(z)]) = (known, all) else {
            return refuse("an image that is damaged");
        };
        let image = Image {
            address,
            texel: Texel { part, parts: parts.into() },
            extent,
            pitch,
            addressing: [x, y, z],
            normalized: normalized != 0,
            unit: unit != 0,
        };
        image.check().map(|()| image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXEL: Texel = Texel { part: Type::U8, parts: 4 };

    #[test]
    fn images_are_read_back() {
        let plain = Image::tight(0x1000, TEXEL, &[7, 5]);
        assert_eq!((plain.extent, plain.pitch), ([7, 5, 1], [28, 140]));
        let changed = Image {
            pitch: [64, 4096],
            addressing: [Addressing::Wrap, Addressing::Mirror, Addressing::Border],
            normalized: true,
            unit: true,
            ..plain.clone()
        };
        for image in [plain, changed] {
            assert_eq!(Image::decode(&image.encode().unwrap()), Ok(image));
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let plain = Image::tight(0x1000, TEXEL, &[7, 5]);
        for bad in [
            Image { address: 0x1001, ..plain.clone() },
            Image { texel: Texel { part: Type::U8, parts: 3 }, ..plain.clone() },
            Image { texel: Texel { part: Type::F64, parts: 1 }, ..plain.clone() },
            Image { texel: Texel { part: Type::F32, parts: 1 }, unit: true, ..plain.clone() },
            Image { pitch: [30, 150], ..plain.clone() },
            Image { extent: [0, 1, 1], ..plain.clone() },
            Image { addressing: [Addressing::Wrap; 3], ..plain.clone() },
        ] {
            assert!(bad.encode().is_err(), "{bad:?}");
        }
        let mut bytes = plain.encode().unwrap();
        bytes[9] = 0;
        assert!(Image::decode(&bytes).is_err());
    }
}
