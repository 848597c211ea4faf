//! Tables in fragments: `wmma`.
//!
//! Which lane has which element of a table PTX leaves open. Here the elements, row by row, are dealt out to the lanes like cards: element `i` is that of lane `i % 32`, at place
//! `i / 32` of its part. Where a lane has more places than that, as for factors of halves, it deals on from the first element, as hardware has copies, too. A program that relies on
//! another order, or on that of one device, gets other answers here.

use super::access::{Access, Stored};
use super::block::Block;
use super::grid::Machine;
use super::lanes::{Register, indices};
use super::matrix::{addend, element, number, sum};
use super::program::{Fragment, FragmentTable, Product, Slot};
use super::undefined::{Doubt, Origin, Shadow};
use super::warp::{Base, Warp};
use crate::finding::Act;
use crate::ir::MatrixType;
use crate::memory::Bytes;
use crate::place::LANES;

/// Bytes that a lane moves at a time, where rows or columns are that long.
const PIECE: usize = 16;

impl Fragment {
    pub(crate) fn new((rows, columns): (u32, u32), ty: MatrixType) -> Fragment {
        Fragment { rows: rows as usize, columns: columns as usize, bits: ty.bits() }
    }

    fn elements(self) -> usize {
        self.rows * self.columns
    }

    /// The bytes of so many elements that lie together.
    fn bytes(self, elements: usize) -> usize {
        elements * self.bits as usize / 8
    }

    /// An element of a piece of memory; of those that share a byte, the first has the lowest bits.
    fn cut(self, piece: &[u8; PIECE], at: usize) -> u64 {
        let bit = at * self.bits as usize;
        let mut raw = [0; 8];
        let bytes = self.bits.div_ceil(8) as usize;
        raw[..bytes].copy_from_slice(&piece[bit / 8..][..bytes]);
        (u64::from_le_bytes(raw) >> (bit % 8)) & self.mask()
    }

    /// Elements of a register.
    fn each(self) -> usize {
        (32 / self.bits).max(1) as usize
    }

    /// The element at a place of a lane's part.
    fn dealt(self, lane: usize, place: usize) -> usize {
        (place * LANES + lane) % self.elements()
    }

    /// The lane and the first place of an element.
    fn home(self, element: usize) -> (usize, usize) {
        (element % LANES, element / LANES)
    }

    /// The bits of an element, of the register that it lies in.
    fn shift(self, place: usize) -> u32 {
        (place % self.each()) as u32 * self.bits
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }
}

/// What lies together in memory, a part of a row or a column.
#[derive(Clone, Copy)]
struct Piece {
    /// Its first element, and from there to the next one, in a table row by row.
    first: usize,
    step: usize,
    /// From the table's beginning.
    offset: u64,
}

/// A table in memory, cut into pieces.
struct Layout {
    fragment: Fragment,
    start: u64,
    pieces: Vec<Piece>,
    /// Elements of a piece.
    each: usize,
}

impl Layout {
    fn new(table: &FragmentTable, (start, stride): (u64, u64)) -> Layout {
        let fragment = table.fragment;
        let Fragment { rows, columns, .. } = fragment;
        let (lines, length) = if table.by_columns { (columns, rows) } else { (rows, columns) };
        let each = (PIECE * 8 / fragment.bits as usize).min(length);
        let piece = |line: usize, within: usize| {
            let offset = (line as u64).wrapping_mul(stride).wrapping_add(within as u64);
            let (first, step) = match table.by_columns {
                true => (within * columns + line, columns),
                false => (line * columns + within, 1),
            };
            Piece { first, step, offset: offset.wrapping_mul(fragment.bits.into()) / 8 }
        };
        let all = (0..lines).flat_map(|line| (0..length).step_by(each).map(move |at| (line, at)));
        let pieces = all.map(|(line, at)| piece(line, at)).collect();
        Layout { fragment, start, pieces, each }
    }

    /// Bytes of a piece.
    fn piece_bytes(&self) -> u32 {
        self.fragment.bytes(self.each) as u32
    }

    /// The pieces, as many at a time as a warp has lanes.
    fn rounds(&self) -> impl Iterator<Item = Round<'_>> {
        self.pieces.chunks(LANES).map(|pieces| {
            let mut addresses = [self.start; LANES];
            for (address, piece) in addresses.iter_mut().zip(pieces) {
                *address = self.start.wrapping_add(piece.offset);
            }
            let lanes = u32::MAX >> (LANES - pieces.len().clamp(1, LANES));
            Round { pieces, each: self.each, addresses, lanes }
        })
    }
}

/// A piece for each lane.
struct Round<'a> {
    pieces: &'a [Piece],
    each: usize,
    addresses: Register,
    /// Those that have one.
    lanes: u32,
}

impl Round<'_> {
    /// The elements of a lane's piece.
    fn elements(&self, lane: usize) -> impl Iterator<Item = usize> + use<> {
        let Piece { first, step, .. } = self.pieces[lane];
        (0..self.each).map(move |i| first + i * step)
    }
}

impl Machine<'_> {
    /// A table in memory becomes fragments.
    pub(super) fn load_fragment(
        &mut self,
        block: &mut Block,
        base: Base,
        lanes: u32,
        access: Access<'_>,
        table: &FragmentTable,
        dsts: &[Slot],
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[access.w as usize];
        let layout = Layout::new(table, self.whereabouts(warp, base, lanes, table));
        let fragment = layout.fragment;
        let access = Access { size: layout.piece_bytes(), ..access };
        // What cannot be read is all ones, as uninitialised memory.
        let mut values = vec![fragment.mask(); fragment.elements()];
        let mut origins: Vec<Option<Origin>> = vec![None; fragment.elements()];
        for round in layout.rounds() {
            let addresses = &round.addresses;
            self.visit(
                memory,
                lanes & round.lanes,
                addresses,
                access,
                |from: &Bytes, at, lanes| {
                    for lane in indices(lanes) {
                        let at = addresses[lane].wrapping_sub(at) as usize;
                        let mut piece = [0; PIECE];
                        from.read(at, &mut piece[..access.size as usize]);
                        for (i, element) in round.elements(lane).enumerate() {
                            values[element] = fragment.cut(&piece, i);
                        }
                    }
                },
            );
            for (lane, origin) in self.undefined_rows().into_iter().enumerate() {
                if let Some(origin) = origin {
                    round.elements(lane).for_each(|element| origins[element] = Some(origin));
                }
            }
        }
        for (r, &dst) in dsts.iter().enumerate() {
            let mut shadow = Shadow::CLEAR;
            for lane in indices(lanes) {
                let mut bits = 0;
                for place in r * fragment.each()..(r + 1) * fragment.each() {
                    let (element, shift) = (fragment.dealt(lane, place), fragment.shift(place));
                    bits |= values[element] << shift;
                    if let Some(origin) = origins[element] {
                        shadow.bits[lane] |= fragment.mask() << shift;
                        shadow.origins[lane] = origin;
                    }
                }
                warp.registers[base.slot(dst)][lane] = bits;
            }
            warp.set_shadow(base, dst, lanes, &shadow);
        }
    }

    /// Fragments become a table in memory.
    pub(super) fn store_fragment(
        &mut self,
        block: &mut Block,
        base: Base,
        lanes: u32,
        access: Access<'_>,
        table: &FragmentTable,
        slots: &[Slot],
    ) {
        let Block { memory, warps, .. } = block;
        let warp = &mut warps[access.w as usize];
        let layout = Layout::new(table, self.whereabouts(warp, base, lanes, table));
        let fragment = layout.fragment;
        // Sums have whole bytes.
        let size = fragment.bytes(1);
        let values = gather(warp, base, fragment, slots);
        let doubts = doubts(warp, base, fragment, slots);
        for round in layout.rounds() {
            let (addresses, lanes) = (&round.addresses, lanes & round.lanes);
            let stored = |lane: usize| -> Stored {
                let mut bytes = [0; 32];
                for (to, element) in bytes.chunks_mut(size).zip(round.elements(lane)) {
                    to.copy_from_slice(&values[element].to_le_bytes()[..size]);
                }
                bytes
            };
            let access = Access {
                size: layout.piece_bytes(),
                act: Act::Write,
                values: Some(&stored),
                ..access
            };
            self.visit(memory, lanes, addresses, access, |to: &Bytes, at, lanes| {
                for lane in indices(lanes) {
                    let at = addresses[lane].wrapping_sub(at) as usize;
                    for (i, element) in round.elements(lane).enumerate() {
                        to.store(at + i * size, size as u32, values[element]);
                    }
                }
            });
            for lane in indices(if doubts.is_some() { lanes } else { 0 }) {
                let doubt = |element: usize| doubts.as_ref().and_then(|all| all[element]);
                let Some(origin) = round.elements(lane).find_map(doubt) else { continue };
                let undefined = (round.elements(lane).enumerate())
                    .filter(|&(_, element)| doubt(element).is_some())
                    .fold(0, |bits, (i, _)| bits | ((1_u32 << size) - 1) << (i * size));
                let thread = access.w * LANES as u32 + lane as u32;
                let at = (&*memory, table.space, thread, addresses[lane]);
                self.leave_undefined(at, access.size, undefined, origin, access.line);
            }
        }
    }

    /// Where a table begins, and the elements from one row, or column, to the next: those of the first lane, since all must have the same.
    fn whereabouts(
        &self,
        warp: &Warp,
        base: Base,
        lanes: u32,
        table: &FragmentTable,
    ) -> (u64, u64) {
        let first = (lanes.trailing_zeros() as usize).min(LANES - 1);
        let Fragment { rows, columns, .. } = table.fragment;
        let tight = if table.by_columns { rows } else { columns };
        let stride = table
            .stride
            .map_or(tight as u64, |slot| u64::from(warp.registers[base.slot(slot)][first] as u32));
        (self.addresses(warp, base, table.address)[first], stride)
    }
}

/// The elements of a table, row by row, that lies in the lanes' registers.
fn gather(warp: &Warp, base: Base, fragment: Fragment, slots: &[Slot]) -> Vec<u64> {
    let bits = |at| {
        let (lane, place) = fragment.home(at);
        element(warp, base, slots, fragment.bits, lane, place)
    };
    (0..fragment.elements()).map(bits).collect()
}

/// Where the elements that are undefined come from, if some are.
fn doubts(
    warp: &Warp,
    base: Base,
    fragment: Fragment,
    slots: &[Slot],
) -> Option<Vec<Option<Origin>>> {
    if warp.in_either(base, slots, u32::MAX).lanes == 0 {
        return None;
    }
    let origin = |at| {
        let (lane, place) = fragment.home(at);
        let shadow = warp.shadow(base, slots[place / fragment.each()])?;
        let undefined = shadow.bits[lane] >> fragment.shift(place) & fragment.mask() != 0;
        undefined.then_some(shadow.origins[lane])
    };
    Some((0..fragment.elements()).map(origin).collect())
}

/// `wmma.mma`: sums are as those of `mma`.
pub(super) fn multiply(warp: &mut Warp, base: Base, lanes: u32, product: &Product) {
    let Product { shape, a_type, b_type, c_type, ty, saturate, dsts, a, b, c, .. } = product;
    let (m, n, k) = (shape.0 as usize, shape.1 as usize, shape.2 as usize);
    let of = |rows, columns, bits| Fragment { rows, columns, bits };
    let left = gather(warp, base, of(m, k, a_type.bits()), a);
    let left: Vec<f64> = left.into_iter().map(|bits| number(*a_type, bits)).collect();
    let right = gather(warp, base, of(k, n, b_type.bits()), b);
    let right: Vec<f64> = right.into_iter().map(|bits| number(*b_type, bits)).collect();
    let added = gather(warp, base, of(m, n, c_type.bits()), c);
    let all: Vec<Slot> = [a, b, c].into_iter().flat_map(|slots| slots.iter().copied()).collect();
    let doubt = warp.in_either(base, &all, lanes);
    let sums: Vec<u64> = (added.into_iter().enumerate())
        .map(|(at, bits)| {
            let (row, column) = (at / n, at % n);
            let factors = (0..k).map(|i| product.pair(left[row * k + i], right[i * n + column]));
            sum(*ty, *saturate, addend(*c_type, bits), factors)
        })
        .collect();
    let result = of(m, n, ty.bits());
    // Each sum depends on a row and a column; they are not told apart here.
    let doubt = Doubt { lanes: if doubt.lanes == 0 { 0 } else { lanes }, ..doubt };
    for (r, &dst) in dsts.iter().enumerate() {
        for lane in indices(lanes) {
            let places = r * result.each()..(r + 1) * result.each();
            warp.registers[base.slot(dst)][lane] = places.fold(0, |bits, place| {
                bits | sums[result.dealt(lane, place)] << result.shift(place)
            });
        }
        warp.set_all(base, dst, lanes, doubt);
    }
}
