//! Bulk copies of tiles of a tensor, which a [`TensorMap`] describes: `cp.async.bulk.tensor`.

use super::block::{Block, BlockMemory};
use super::copy::{PIECE, Site, Undefined, rank_moved, ranks};
use super::grid::Machine;
use super::lanes::indices;
use super::program::{BulkWay, CopyTensor, Slot};
use super::space::{Window, window};
use crate::clock::Engine;
use crate::descriptor::{Im2col, TENSOR_MAP_BYTES, TensorMap};
use crate::finding::{Access as Meant, Act, Fault, Kind, Space as Memory};
use crate::ir::{AtomicOp, Space, Type};
use crate::place::{LANES, Place as Thread, Warp};

/// What tiles in shared memory are aligned to.
const TILE_ALIGNMENT: u64 = 128;

/// 16 bytes of a tile, and the elements of the tensor that they are.
struct Part {
    /// Its place in the tile.
    offset: u64,
    /// For each element its address, if it is in the tensor.
    elements: Vec<Option<u64>>,
    /// They lie together in global memory as in the tile, aligned.
    together: bool,
}

/// A tile of a tensor.
struct Tile {
    map: TensorMap,
    /// The coordinates of its first element.
    at: Vec<i64>,
    /// With `im2col`, what is added to the spatial ones of each pixel.
    offsets: Vec<i64>,
}

impl Tile {
    /// The address of a row of the tile: of all elements that differ in the innermost direction only, the one at 0. `None`: they are outside.
    fn row(&self, places: impl Iterator<Item = Option<i64>>) -> Option<u64> {
        let map = &self.map;
        let mut start = map.address;
        for ((place, extent), stride) in places.zip(&map.extent[1..]).zip(&map.strides) {
            let place = u64::try_from(place?).ok().filter(|place| place < extent)?;
            start = start.wrapping_add(place.wrapping_mul(*stride));
        }
        Some(start)
    }

    /// The rows of a box, in their order.
    fn box_rows(&self) -> impl Iterator<Item = Option<u64>> {
        let directions = 1..self.at.len();
        let count: u64 = directions.clone().map(|d| self.map.length(d)).product();
        (0..count).map(move |mut number| {
            self.row(directions.clone().map(|d| {
                let i = number % self.map.length(d);
                number /= self.map.length(d);
                self.at[d].checked_add(i as i64 * i64::from(self.map.steps[d]))
            }))
        })
    }

    /// The pixels of `im2col`, in their order: along the box's rows, row by row, and image by image.
    fn pixels(&self, im2col: &Im2col) -> impl Iterator<Item = Option<u64>> {
        let (map, spatial) = (&self.map, im2col.lower.len());
        let mut place = self.at[1..].to_vec();
        (0..map.length(1)).map(move |number| {
            if number > 0 {
                let left = (0..spatial).all(|d| {
                    place[d] += i64::from(map.steps[d + 1]);
                    let end = map.extent[d + 1] as i64 + i64::from(im2col.upper[d]);
                    let behind = place[d] >= end;
                    if behind {
                        place[d] = im2col.lower[d].into();
                    }
                    behind
                });
                if left {
                    place[spatial] += 1;
                }
            }
            let shift = |d: usize| self.offsets.get(d).copied().unwrap_or(0);
            self.row(place.iter().enumerate().map(|(d, place)| place.checked_add(shift(d))))
        })
    }

    /// All parts.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let map = &self.map;
        let rows: Box<dyn Iterator<Item = Option<u64>>> = match &map.im2col {
            Some(im2col) => Box::new(self.pixels(im2col)),
            None => Box::new(self.box_rows()),
        };
        let size = u64::from(map.element.bytes());
        let each = u64::from(PIECE) / size;
        let row_pieces = map.length(0) / each;
        let step = if map.im2col.is_some() { 1 } else { map.steps[0] };
        rows.zip(0..).flat_map(move |(row, number)| {
            (0..row_pieces).map(move |piece| {
                let element = |i: u64| {
                    let place = self.at[0].checked_add(i as i64 * i64::from(step))?;
                    let place = u64::try_from(place).ok().filter(|place| *place < map.extent[0])?;
                    row.map(|start| start.wrapping_add(place * size))
                };
                let elements: Vec<_> = (piece * each..(piece + 1) * each).map(element).collect();
                let together = step == 1
                    && elements.iter().all(Option::is_some)
                    && elements[0].is_some_and(|address| address % u64::from(PIECE) == 0);
                Part {
                    offset: (number * row_pieces + piece) * u64::from(PIECE),
                    elements,
                    together,
                }
            })
        })
    }
}

/// What an element outside of the tensor is.
fn outside(map: &TensorMap) -> [u8; 8] {
    let bits: u64 = match (map.nan_outside, map.element) {
        (false, _) => 0,
        (true, Type::F64) => 0x7fff_ffff_ffff_ffff,
        (true, Type::F32) => 0x7fff_ffff,
        (true, _) => 0x7fff,
    };
    bits.to_le_bytes()
}

impl Machine<'_> {
    /// `cp.async.bulk.tensor`: lane by lane, piece by piece.
    pub(super) fn copy_tensor(
        &mut self,
        block: &mut Block,
        site: Site,
        active: u32,
        copy: &CopyTensor,
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &warps[site.w];
        let maps = self.addresses(warp, site.base, copy.map);
        let tiles = self.addresses(warp, site.base, copy.tile);
        let (mbarriers, masks) = self.mbarriers_of(warp, site, &copy.way);
        for lane in indices(active) {
            let value = |&slot: &Slot| warp.registers[site.base.slot(slot)][lane];
            let at: Vec<i64> = copy.at.iter().map(|slot| i64::from(value(slot) as i32)).collect();
            let offsets = copy.offsets.iter().flatten();
            let offsets = offsets.map(|slot| i64::from(value(slot) as u16)).collect();
            let by_pixels = copy.offsets.is_some();
            let meant = (at.len(), by_pixels);
            let Some(map) = self.tensor_map(memory, site, lane, maps[lane], meant) else {
                continue;
            };
            let bytes = map.tile_bytes();
            let from = Tile { map, at, offsets };
            for rank in ranks(masks.map(|masks| masks[lane])) {
                let tile = rank_moved(tiles[lane], rank);
                let sound = match copy.way {
                    BulkWay::SharedToGlobal => {
                        self.store_tile(memory, site, lane, tile, &from, copy.reduce)
                    }
                    _ => self.load_tile(memory, site, lane, tile, &from),
                };
                if !sound {
                    break;
                }
                if let Some(mbarriers) = mbarriers {
                    let mbarrier = rank_moved(mbarriers[lane], rank);
                    self.complete(memory, site, lane, mbarrier, bytes);
                }
            }
        }
    }

    /// The tensor map at a generic address, of so many directions, with pixels or boxes as tiles. That there is none is reported.
    fn tensor_map(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        address: u64,
        (rank, by_pixels): (usize, bool),
    ) -> Option<TensorMap> {
        let (which, within) = window(address);
        let mut bytes = [0; TENSOR_MAP_BYTES];
        let region = match which {
            Window::Param => Some(self.arguments),
            Window::Const => Some(self.constant),
            _ => None,
        };
        let end = within.saturating_add(TENSOR_MAP_BYTES as u64);
        let read = match (which, region) {
            (Window::Global, _) => self.global.read(address, &mut bytes).is_ok(),
            (_, Some(region)) if end <= region.len() as u64 => {
                region.bytes().read(within as usize, &mut bytes);
                true
            }
            _ => false,
        };
        let detail = match TensorMap::decode(&bytes) {
            _ if !read => String::from("where no tensor map can be"),
            Ok(map) if (map.extent.len(), map.im2col.is_some()) == (rank, by_pixels) => {
                return Some(map);
            }
            Ok(map) if map.extent.len() == rank => {
                let names =
                    ["boxes, for copies without .im2col", "pixels, for copies with .im2col"];
                format!("which is a map of {}", names[usize::from(map.im2col.is_some())])
            }
            Ok(map) => format!(
                "which is the map of a tensor of {} directions, not {rank}",
                map.extent.len()
            ),
            Err(error) => format!("which is {error}"),
        };
        let space = match which {
            Window::Param => Memory::Param,
            Window::Const => Memory::Const,
            Window::Global => Memory::Global,
            _ => Memory::Unknown,
        };
        let size = TENSOR_MAP_BYTES as u32;
        let meant = Meant { space, act: Act::AsyncRead, address, size };
        self.report_at(memory, site, lane, Kind::OutOfBounds, meant, detail);
        None
    }

    fn report_at(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        kind: Kind,
        meant: Meant,
        detail: String,
    ) {
        let warp = Warp { block: memory.index, warp: site.w as u32 };
        self.report(Fault {
            kind,
            line: site.line,
            place: Thread::of_lane(warp, lane as u32),
            access: Some(meant),
            other: None,
            missing: None,
            detail: detail.into(),
        });
    }

    /// Whether a tile may lie at an address of shared memory; it is reported if not.
    fn is_aligned(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        tile: u64,
        act: Act,
    ) -> bool {
        let past = tile % TILE_ALIGNMENT;
        if past != 0 {
            let detail = format!("{past} bytes past a multiple of {TILE_ALIGNMENT}");
            let meant = Meant { space: Memory::Shared, act, address: tile, size: PIECE };
            self.report_at(memory, site, lane, Kind::Misaligned, meant, detail);
        }
        past == 0
    }

    /// From global into shared memory; false if it ran into a fault.
    fn load_tile(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        tile: u64,
        from: &Tile,
    ) -> bool {
        let map = &from.map;
        if !self.is_aligned(memory, site, lane, tile, Act::AsyncWrite) {
            return false;
        }
        let faults = self.findings.total();
        let (size, lanes) = (map.element.bytes(), 1 << lane);
        let outside = outside(map);
        let mut data = [[0; PIECE as usize]; LANES];
        for part in from.parts() {
            let mut undefined: Vec<Undefined> = Vec::new();
            if let (true, Some(Some(first))) = (part.together, part.elements.first()) {
                let from = [*first; LANES];
                let found = self.fetch(
                    memory,
                    site,
                    lanes,
                    &from,
                    PIECE,
                    Space::Global,
                    Engine::Bulk,
                    &mut data,
                );
                undefined.extend(found);
            } else {
                for (i, element) in part.elements.iter().enumerate() {
                    let place = i * size as usize..(i + 1) * size as usize;
                    let mut one = [[0; PIECE as usize]; LANES];
                    one[lane][..size as usize].copy_from_slice(&outside[..size as usize]);
                    if let Some(from) = element {
                        let from = [*from; LANES];
                        let found = self.fetch(
                            memory,
                            site,
                            lanes,
                            &from,
                            size,
                            Space::Global,
                            Engine::Bulk,
                            &mut one,
                        );
                        let moved = |(lane, bytes, origin)| (lane, bytes << place.start, origin);
                        undefined.extend(found.into_iter().map(moved));
                    }
                    data[lane][place].copy_from_slice(&one[lane][..size as usize]);
                }
            }
            let to = [map.swizzle.apply(tile.wrapping_add(part.offset)); LANES];
            self.put_down(memory, site, lanes, &to, PIECE, Space::Shared, Engine::Bulk, &data);
            self.leave_copied(memory, site, &to, PIECE, Space::Shared, &undefined);
            // What is wrong would be reported for each piece.
            if self.findings.total() != faults {
                return false;
            }
        }
        true
    }

    /// From shared into global memory, what is inside of the tensor; false if it ran into a fault.
    fn store_tile(
        &mut self,
        memory: &BlockMemory,
        site: Site,
        lane: usize,
        tile: u64,
        to: &Tile,
        reduce: Option<AtomicOp>,
    ) -> bool {
        let map = &to.map;
        if !self.is_aligned(memory, site, lane, tile, Act::AsyncRead) {
            return false;
        }
        let faults = self.findings.total();
        let (size, lanes) = (map.element.bytes(), 1 << lane);
        let mut data = [[0; PIECE as usize]; LANES];
        for part in to.parts() {
            let from = [map.swizzle.apply(tile.wrapping_add(part.offset)); LANES];
            let undefined = self.fetch(
                memory,
                site,
                lanes,
                &from,
                PIECE,
                Space::Shared,
                Engine::Bulk,
                &mut data,
            );
            let whole = part.together && reduce.is_none();
            let pieces = if whole { 1 } else { part.elements.len() };
            let bytes = if whole { PIECE } else { size };
            for (i, &element) in part.elements[..pieces].iter().enumerate() {
                let Some(to) = element else { continue };
                let first = i as u32 * size;
                let its = undefined
                    .iter()
                    .map(|&(lane, mask, origin)| (lane, mask >> first & ((1 << bytes) - 1), origin))
                    .filter(|(_, mask, _)| *mask != 0);
                let its: Vec<Undefined> = its.collect();
                let own = &data[lane][first as usize..][..bytes as usize];
                let mut one = [[0; PIECE as usize]; LANES];
                one[lane][..bytes as usize].copy_from_slice(own);
                let to = [to; LANES];
                if let Some(op) = reduce {
                    self.decide_copied(memory, site, lane, &its);
                    let to = (to[lane], Space::Global);
                    let own = &one[lane][..bytes as usize];
                    let how = (op, map.element);
                    self.combine(memory, site, lane, to, Engine::BulkStore, own, how);
                } else {
                    let engine = Engine::BulkStore;
                    self.put_down(memory, site, lanes, &to, bytes, Space::Global, engine, &one);
                    self.leave_copied(memory, site, &to, bytes, Space::Global, &its);
                }
            }
            if self.findings.total() != faults {
                return false;
            }
        }
        true
    }
}
