//! A tensor in global memory, and the tiles that bulk copies move.

use super::{DescriptorError, Reader, Writer, refuse};
use crate::ir::Type;

/// Bytes of an encoded tensor map.
pub const TENSOR_MAP_BYTES: usize = 128;

/// What encoded tensor maps have behind their address.
const MARK: u32 = u32::from_le_bytes(*b"WFtm");

/// Directions of a tensor.
const RANKS: usize = 5;

/// Directions of an image.
const SPATIAL: usize = RANKS - 2;

/// Pixels of a tile.
const MOST_PIXELS: u32 = 1024;

/// The types of elements, by their numbers in an encoded map, which are those of `CUtensorMapDataType`.
const TYPES: [Type; 10] = [
    Type::U8,
    Type::U16,
    Type::U32,
    Type::S32,
    Type::U64,
    Type::S64,
    Type::F16,
    Type::F32,
    Type::F64,
    Type::Bf16,
];

/// How the pieces of 16 bytes of a tile are mixed in shared memory, so that columns lie in different banks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Swizzle {
    /// They lie in their order.
    #[default]
    None,
    /// Within 32 bytes.
    B32,
    /// Within 64 bytes.
    B64,
    /// Within 128 bytes.
    B128,
}

impl Swizzle {
    const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// The swizzle with this span in bytes; 0 for none.
    #[must_use]
    pub fn of_span(bytes: u64) -> Option<Swizzle> {
        match bytes {
            0 => Some(Swizzle::None),
            32 => Some(Swizzle::B32),
            64 => Some(Swizzle::B64),
            128 => Some(Swizzle::B128),
            _ => None,
        }
    }

    /// The bits of an address that change: each by the bit three above it.
    fn bits(self) -> u64 {
        match self {
            Swizzle::None => 0,
            Swizzle::B32 => 0x10,
            Swizzle::B64 => 0x30,
            Swizzle::B128 => 0x70,
        }
    }

    /// Where the byte of a shared address lies.
    #[must_use]
    pub fn apply(self, address: u64) -> u64 {
        address ^ (address >> 3 & self.bits())
    }
}

/// A tensor of images whose tiles are pixels, as convolutions need them: what `cuTensorMapEncodeIm2col` is told. The innermost direction are the
/// channels of a pixel, the outermost the images, and those between are *spatial*, the rows' first.
///
/// A tile has some channels of some pixels, one after the other as they lie in a box: along a row up to its end, then the next row, then the next
/// image. The box may reach over the image's borders, and what is outside is filled up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Im2col {
    /// For each spatial direction the box's first place.
    pub lower: Vec<i32>,
    /// For each spatial direction how far the box's end is from that of the image: -2 leaves the last two out.
    pub upper: Vec<i32>,
}

impl Im2col {
    /// What corners must be, for so many spatial directions: they have 16, 8 or 5 bits.
    fn corners(spatial: usize) -> core::ops::RangeInclusive<i32> {
        let half = 1 << [15, 15, 7, 4][spatial.min(3)];
        -half..=half - 1
    }
}

/// A tensor, and the tiles of it that a copy moves: what `cuTensorMapEncodeTiled` is told. Directions are counted from the innermost.
///
/// ```
/// use warpfold_ptx::{descriptor::TensorMap, ir::Type};
///
/// // A table of 100 rows of 64 floats at an address, in tiles of 8 rows of 16.
/// let map = TensorMap::tight(0x7_0000_0000_0000, Type::F32, &[64, 100], &[16, 8]);
/// let bytes: [u8; 128] = map.encode()?;
/// assert_eq!(TensorMap::decode(&bytes)?, map);
/// # Ok::<(), warpfold_ptx::descriptor::DescriptorError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Where the first element is.
    pub address: u64,
    /// `.u8`, `.u16`, `.u32`, `.s32`, `.u64`, `.s64`, `.f16`, `.f32`, `.f64` or `.bf16`.
    pub element: Type,
    /// Elements along each direction, 1 to 5 of these.
    pub extent: Vec<u64>,
    /// Bytes from an element to the next along each direction but the innermost.
    pub strides: Vec<u64>,
    /// The elements along each direction over which a tile reaches. With [`im2col`](Self::im2col) two numbers: the channels of a pixel, and the pixels.
    pub tile: Vec<u32>,
    /// Of these elements every which one is in the tile. With [`im2col`](Self::im2col) the distance of pixels, which changes nothing in their number.
    pub steps: Vec<u32>,
    /// How a tile lies in shared memory.
    pub swizzle: Swizzle,
    /// Elements of floating point outside of the tensor are NaN in shared memory, instead of zero.
    pub nan_outside: bool,
    /// Tiles are pixels of images; `None`: they are boxes.
    pub im2col: Option<Im2col>,
}

impl TensorMap {
    /// A map of a tensor without gaps, in tiles without gaps, not swizzled, with zeros outside.
    #[must_use]
    pub fn tight(address: u64, element: Type, extent: &[u64], tile: &[u32]) -> TensorMap {
        let mut stride = u64::from(element.bytes());
        let mut strides = Vec::new();
        for &n in extent {
            stride = stride.saturating_mul(n);
            strides.push(stride);
        }
        strides.pop();
        TensorMap {
            address,
            element,
            extent: extent.into(),
            strides,
            tile: tile.into(),
            steps: vec![1; extent.len()],
            swizzle: Swizzle::None,
            nan_outside: false,
            im2col: None,
        }
    }

    /// Elements of a tile along one of its directions.
    pub(crate) fn length(&self, direction: usize) -> u64 {
        let step = if self.im2col.is_some() { 1 } else { self.steps[direction] };
        u64::from(self.tile[direction].div_ceil(step))
    }

    /// Bytes of a tile in shared memory.
    #[must_use]
    pub fn tile_bytes(&self) -> u64 {
        let elements: u64 = (0..self.tile.len()).map(|d| self.length(d)).product();
        elements * u64::from(self.element.bytes())
    }

    /// What `cuTensorMapEncodeTiled` and `cuTensorMapEncodeIm2col` refuse.
    fn check(&self) -> Result<(), DescriptorError> {
        let rank = self.extent.len();
        if !TYPES.contains(&self.element) {
            return refuse(format!("tensors have no elements of type {}", self.element));
        }
        if !(1..=RANKS).contains(&rank) {
            return refuse(format!("a tensor has 1 to {RANKS} directions, not {rank}"));
        }
        let lengths = if self.im2col.is_some() { 2 } else { rank };
        if (self.strides.len(), self.tile.len(), self.steps.len()) != (rank - 1, lengths, rank) {
            return refuse(format!(
                "a tensor of {rank} directions has {} strides, a tile of {lengths} and steps of {rank}",
                rank - 1
            ));
        }
        if let Some(Im2col { lower, upper }) = &self.im2col {
            if rank < 3 {
                return refuse(format!("images have 3 to {RANKS} directions, not {rank}"));
            }
            let spatial = rank - 2;
            if (lower.len(), upper.len()) != (spatial, spatial) {
                return refuse(format!("the box of pixels has {spatial} numbers for each corner"));
            }
            let range = Im2col::corners(spatial);
            if let Some(n) = lower.iter().chain(upper).find(|n| !range.contains(*n)) {
                return refuse(format!(
                    "a corner of {n}: {} to {} in a tensor of {rank} directions",
                    range.start(),
                    range.end()
                ));
            }
        }
        if !self.address.is_multiple_of(16) {
            return refuse(format!(
                "the tensor's address {:#x} is no multiple of 16",
                self.address
            ));
        }
        if let Some(n) = self.extent.iter().find(|n| !(1..=1 << 32).contains(*n)) {
            return refuse(format!("{n} elements along a direction: 1 to 2^32"));
        }
        if let Some(n) = self.strides.iter().find(|n| !n.is_multiple_of(16) || **n >= 1 << 40) {
            return refuse(format!("a stride of {n} bytes: a multiple of 16 below 2^40"));
        }
        for (direction, n) in self.tile.iter().enumerate() {
            let most = if self.im2col.is_some() && direction == 1 { MOST_PIXELS } else { 256 };
            if !(1..=most).contains(n) {
                return refuse(format!("a tile of {n} elements along a direction: 1 to {most}"));
            }
        }
        if let Some(n) = self.steps.iter().find(|n| !(1..=8).contains(*n)) {
            return refuse(format!("every {n}th element along a direction: 1 to 8"));
        }
        let row = self.length(0) * u64::from(self.element.bytes());
        if !row.is_multiple_of(16) {
            return refuse(format!("rows of a tile have {row} bytes: a multiple of 16"));
        }
        let span = self.swizzle.bits() + 16;
        if self.swizzle != Swizzle::None && row > span {
            return refuse(format!("rows of a tile have {row} bytes: at most {span} are swizzled"));
        }
        if self.nan_outside && !self.element.is_float() {
            return refuse(format!("{} has no NaN for what is outside", self.element));
        }
        Ok(())
    }

    /// The bytes that a kernel gets.
    ///
    /// # Errors
    ///
    /// What a driver refuses: addresses and strides that are no multiples of 16, tiles that are too large, and the like.
    pub fn encode(&self) -> Result<[u8; TENSOR_MAP_BYTES], DescriptorError> {
        self.check()?;
        let padded = |n: u64, list: &[u64]| {
            let mut all = [n; RANKS];
            all[..list.len()].copy_from_slice(list);
            all
        };
        let small = |list: &[u32]| padded(1, &list.iter().map(|&n| n.into()).collect::<Vec<_>>());
        let mut corners = [0_i16; 2 * SPATIAL];
        if let Some(Im2col { lower, upper }) = &self.im2col {
            for (corner, list) in corners.chunks_mut(SPATIAL).zip([lower, upper]) {
                corner.iter_mut().zip(list).for_each(|(to, &n)| *to = n as i16);
            }
        }
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let mut to = Writer(&mut bytes);
        to.put(&self.address.to_le_bytes());
        to.put(&MARK.to_le_bytes());
        let number = |found: Option<usize>| found.unwrap_or(0) as u8;
        to.put(&[
            number(TYPES.iter().position(|ty| *ty == self.element)),
            self.extent.len() as u8,
            number(Swizzle::ALL.iter().position(|s| *s == self.swizzle)),
            self.nan_outside.into(),
        ]);
        small(&self.steps).iter().for_each(|&n| to.put(&[n as u8]));
        to.put(&[self.im2col.is_some().into()]);
        small(&self.tile).iter().for_each(|&n| to.put(&(n as u16).to_le_bytes()));
        padded(1, &self.extent).iter().for_each(|n| to.put(&n.to_le_bytes()));
        padded(0, &self.strides)[..RANKS - 1].iter().for_each(|n| to.put(&n.to_le_bytes()));
        corners.iter().for_each(|n| to.put(&n.to_le_bytes()));
        Ok(bytes)
    }

    /// The map that bytes are.
    ///
    /// # Errors
    ///
    /// They are none.
    pub fn decode(bytes: &[u8; TENSOR_MAP_BYTES]) -> Result<TensorMap, DescriptorError> {
        let mut from = Reader(bytes);
        let address = from.u64();
        if from.u32() != MARK {
            return refuse("no tensor map of this interpreter");
        }
        let [element, rank, swizzle, nan] = from.take();
        let (Some(&element), Some(&swizzle)) =
            (TYPES.get(usize::from(element)), Swizzle::ALL.get(usize::from(swizzle)))
        else {
            return refuse("a tensor map that is damaged");
        };
        let rank = usize::from(rank).clamp(1, RANKS);
        let mut steps: Vec<u32> = (0..RANKS).map(|_| from.u8().into()).collect();
        let by_pixels = from.u8() != 0;
        let mut tile: Vec<u32> =
            (0..RANKS).map(|_| u16::from_le_bytes(from.take()).into()).collect();
        let mut extent: Vec<u64> = (0..RANKS).map(|_| from.u64()).collect();
        let mut strides: Vec<u64> = (0..RANKS - 1).map(|_| from.u64()).collect();
        let spatial = rank.saturating_sub(2);
        let mut corner = || -> Vec<i32> {
            let all: Vec<i32> =
                (0..SPATIAL).map(|_| i16::from_le_bytes(from.take()).into()).collect();
            all[..spatial].into()
        };
        let (lower, upper) = (corner(), corner());
        steps.truncate(rank);
        tile.truncate(if by_pixels { 2 } else { rank });
        extent.truncate(rank);
        strides.truncate(rank - 1);
        let nan_outside = nan != 0;
        let im2col = by_pixels.then_some(Im2col { lower, upper });
        let map = TensorMap {
            address,
            element,
            extent,
            strides,
            tile,
            steps,
            swizzle,
            nan_outside,
            im2col,
        };
        map.check().map(|()| map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap::tight(0x1000, Type::F16, &[64, 10, 3], &[16, 4, 2])
    }

    /// Four images of 6 times 9 pixels.
    fn images() -> TensorMap {
        TensorMap {
            im2col: Some(Im2col { lower: vec![-1, -128], upper: vec![-2, 127] }),
            tile: vec![32, 1024],
            steps: vec![1, 2, 1, 1],
            ..TensorMap::tight(0, Type::F16, &[64, 9, 6, 4], &[])
        }
    }

    #[test]
    fn maps_are_read_back() {
        let changed = TensorMap {
            strides: vec![256, 4096],
            steps: vec![2, 1, 8],
            swizzle: Swizzle::B32,
            nan_outside: true,
            ..map()
        };
        let one = TensorMap::tight(16, Type::U8, &[1 << 32], &[256]);
        let five = TensorMap::tight(0, Type::S64, &[2, 3, 4, 5, 6], &[2, 1, 1, 1, 1]);
        for map in [map(), changed, one, five, images()] {
            assert_eq!(TensorMap::decode(&map.encode().unwrap()), Ok(map));
        }
        assert_eq!(map().strides, [128, 1280]);
        assert_eq!(map().tile_bytes(), 16 * 4 * 2 * 2);
    }

    #[test]
    fn what_a_driver_refuses_is_refused() {
        let refused = |change: &dyn Fn(&mut TensorMap), part: &str| {
            let mut map = map();
            change(&mut map);
            let why = map.encode().unwrap_err().to_string();
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        };
        refused(&|m| m.address = 8, "multiple of 16");
        refused(&|m| m.element = Type::B128, ".b128");
        refused(&|m| m.extent[1] = 0, "1 to 2^32");
        refused(&|m| m.strides[0] = 24, "a stride of 24");
        refused(&|m| m.strides.clear(), "2 strides");
        refused(&|m| m.tile[2] = 257, "1 to 256");
        refused(&|m| m.tile[0] = 4, "rows of a tile have 8 bytes");
        refused(&|m| m.steps[0] = 9, "9th");
        refused(&|m| (m.swizzle, m.tile[0]) = (Swizzle::B32, 32), "at most 32");
        refused(&|m| (m.element, m.nan_outside) = (Type::U16, true), "no NaN");
        let refused = |change: &dyn Fn(&mut TensorMap, &mut Im2col), part: &str| {
            let (mut map, mut pixels) = (images(), images().im2col.unwrap());
            change(&mut map, &mut pixels);
            let why = TensorMap { im2col: Some(pixels), ..map }.encode().unwrap_err().to_string();
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        };
        refused(&|m, _| m.tile.push(1), "a tile of 2");
        refused(&|m, _| m.tile[1] = 1025, "1 to 1024");
        refused(&|m, _| m.tile[0] = 257, "1 to 256");
        refused(&|_, p| p.lower[0] = -129, "-128 to 127");
        refused(&|_, p| p.upper[1] = 128, "-128 to 127");
        refused(&|_, p| p.lower.truncate(1), "2 numbers for each corner");
        let plain = TensorMap { im2col: Some(Im2col::default()), tile: vec![16, 4], ..map() };
        let flat = TensorMap::tight(0, Type::F16, &[64, 10], &[16, 4]);
        assert!(plain.encode().is_err());
        assert!(TensorMap { im2col: Some(Im2col::default()), ..flat }.encode().is_err());
        let mut bytes = map().encode().unwrap();
        bytes[8] ^= 1;
        assert!(TensorMap::decode(&bytes).is_err());
    }

    #[test]
    fn swizzles_mix_pieces_within_their_span() {
        for (swizzle, span) in [(Swizzle::B32, 32), (Swizzle::B64, 64), (Swizzle::B128, 128)] {
            assert_eq!(Swizzle::of_span(span), Some(swizzle));
            // Every address is taken once, and none leaves its span.
            let mut all: Vec<u64> = (0..1024).map(|at| swizzle.apply(at)).collect();
            assert!((0..1024).zip(&all).all(|(at, to)| at / span == to / span));
            all.sort_unstable();
            assert!(all.into_iter().eq(0..1024));
        }
        // Row 3 of rows of 128 bytes: its pieces are exchanged by 3.
        assert_eq!(Swizzle::B128.apply(3 * 128 + 16), 3 * 128 + (1 ^ 3) * 16);
    }
}
