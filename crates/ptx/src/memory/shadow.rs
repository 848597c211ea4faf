//! Shadow memory: for every few bytes of a buffer, the accesses that a later one could race with.
//!
//! A page of 512 bytes begins with cells as wide as its first access and is
//! refined when a narrower access comes, so that bytes are told apart where
//! a kernel accesses bytes, and words cost what words must.

use super::stamp::{Sets, Slot};
use rustc_hash::FxHashMap;

/// Bytes of a buffer that a page stands for, as a power of two.
const PAGE_BITS: u32 = 9;

/// The accesses that a later one could race with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// The last writes; several if strong ones met without an order.
    pub(super) writes: Slot,
    /// The reads since that no later read comes after.
    pub(super) reads: Slot,
}

#[derive(Debug)]
struct Page {
    /// The bytes of a cell, as a power of two.
    grain: u32,
    cells: Box<[Cell]>,
}

/// The shadow of one memory.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    index: FxHashMap<u64, usize>,
    pages: Vec<Page>,
    /// The page looked up last.
    last: Option<(u64, usize)>,
}

impl Shadow {
    /// The cells of `size` bytes at an aligned address.
    #[inline]
    pub(super) fn cells(&mut self, address: u64, size: u32, sets: &mut Sets) -> &mut [Cell] {
        let number = address >> PAGE_BITS;
        let at = match self.last {
            Some((last, at)) if last == number => at,
            _ => self.page(number, size),
        };
        let page = &mut self.pages[at];
        if size < 1 << page.grain {
            refine(page, size.trailing_zeros(), sets);
        }
        let first = (address & ((1 << PAGE_BITS) - 1)) as usize >> page.grain;
        &mut page.cells[first..first + (size as usize >> page.grain)]
    }

    fn page(&mut self, number: u64, size: u32) -> usize {
        let at = *self.index.entry(number).or_insert_with(|| {
            let grain = size.trailing_zeros();
            let cells = vec![Cell::default(); 1 << (PAGE_BITS - grain)].into_boxed_slice();
            self.pages.push(Page { grain, cells });
            self.pages.len() - 1
        });
        self.last = Some((number, at));
        at
    }

    /// The bytes of buffers that it stands for.
    pub(super) fn buffer_bytes(&self) -> usize {
        self.pages.len() << PAGE_BITS
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.pages.iter().map(|p| p.cells.len() * size_of::<Cell>() + size_of::<Page>()).sum()
    }

    /// Every cell, with the first address that it stands for.
    pub(super) fn places(&self) -> impl Iterator<Item = (u64, &Cell)> {
        self.index.iter().flat_map(|(number, &at)| {
            let Page { grain, cells } = &self.pages[at];
            let address = move |i: usize| (number << PAGE_BITS) + ((i as u64) << grain);
            cells.iter().enumerate().map(move |(i, cell)| (address(i), cell))
        })
    }

    /// Every cell.
    pub(super) fn all_cells(&mut self) -> impl Iterator<Item = &mut Cell> {
        self.pages.iter_mut().flat_map(|page| page.cells.iter_mut())
    }

    /// Gives back the sets that cells hold.
    pub(super) fn discard(mut self, sets: &mut Sets) {
        for cell in self.all_cells() {
            sets.discard(cell.writes);
            sets.discard(cell.reads);
        }
    }
}

/// Cuts a page's cells into narrower ones that remember the same.
#[cold]
fn refine(page: &mut Page, grain: u32, sets: &mut Sets) {
    let pieces = 1 << (page.grain - grain);
    let mut cells = Vec::with_capacity(page.cells.len() * pieces);
    for &cell in &page.cells {
        cells.push(cell);
        for _ in 1..pieces {
            let (writes, reads) = (sets.duplicate(cell.writes), sets.duplicate(cell.reads));
            cells.push(Cell { writes, reads });
        }
    }
    *page = Page { grain, cells: cells.into_boxed_slice() };
}
