//! Accumulators of plain words, in loops that compilers turn into vectors.

use super::finish::{Pair, Request};
use super::fold::{Cells, Fold, of_one_fold};
use crate::isa::Isa;
use crate::simd::{Kernel, Simd, dispatch};
use crate::table::Table;
use core::alloc::Layout;
use warpfold_core::prefetch;

/// An operation that keeps up to three words of each output.
pub(super) trait Lanes: Copy + Send + Sync + 'static {
    /// The elements.
    type Item: bytemuck::Pod;
    /// The words; what is not needed is `()`.
    type A: Copy + Send;
    /// The second word.
    type B: Copy + Send;
    /// The third.
    type C: Copy + Send;
    /// Words that have seen nothing.
    const START: (Self::A, Self::B, Self::C);
    /// See [`Cells::settles`].
    const SETTLES: bool = false;

    /// Takes in an element at position `at`, which is beyond those before.
    fn take(self, a: &mut Self::A, b: &mut Self::B, c: &mut Self::C, x: Self::Item, at: u32);
    /// Takes in the words of other elements.
    fn merge(words: &mut (Self::A, Self::B, Self::C), others: (Self::A, Self::B, Self::C));
    /// The second word of lane `lane` of `lanes`, whose positions counted vectors that
    /// begin at element `at`.
    fn spread(b: Self::B, lane: usize, lanes: usize, at: usize) -> Self::B {
        let _ = (lane, lanes, at);
        b
    }
    /// The words of a row whose first element is at position `at`, where there is a
    /// quicker way than element by element.
    #[inline(always)]
    fn row(self, items: &[Self::Item], at: usize) -> Option<(Self::A, Self::B, Self::C)> {
        let _ = (items, at);
        None
    }
    /// Whether no element can change the answer.
    fn is_settled(a: Self::A) -> bool {
        let _ = a;
        false
    }
    /// An answer's word.
    type Out: bytemuck::Pod;
    /// Writes the answers of outputs, as many as `to` has room for; those that are not
    /// there are missing.
    fn answer(&self, words: Words<'_, Self>, to: &mut [Self::Out], request: Request<'_>);
}

/// The words of some outputs.
pub(super) struct Words<'a, L: Lanes> {
    pub(super) a: &'a [L::A],
    pub(super) b: &'a [L::B],
    pub(super) c: &'a [L::C],
}

/// A [`Fold`] of lanes.
#[derive(Clone, Copy)]
pub(super) struct Laned<L> {
    pub(super) isa: Isa,
    pub(super) lanes: L,
}

impl<L: Lanes> Fold for Laned<L> {
    fn item(&self) -> Layout {
        Layout::new::<L::Item>()
    }

    fn cells(&self, outputs: usize) -> Box<dyn Cells> {
        let (a, b, c) = L::START;
        let (a, b, c) = (vec![a; outputs], vec![b; outputs], vec![c; outputs]);
        Box::new(LanedCells { fold: *self, a, b, c, pair: Pair::NONE })
    }
}

/// The accumulators of an operation, word by word.
struct LanedCells<L: Lanes> {
    fold: Laned<L>,
    a: Vec<L::A>,
    b: Vec<L::B>,
    c: Vec<L::C>,
    pair: Pair,
}

impl<L: Lanes> Cells for LanedCells<L> {
    fn clear(&mut self) {
        let (a, b, c) = L::START;
        self.a.fill(a);
        self.b.fill(b);
        self.c.fill(c);
    }

    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements() };
        dispatch(self.fold.isa, Rows { table, cells: self, place, at });
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, at: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements() };
        dispatch(self.fold.isa, Columns { table, cells: self, place, at });
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for i in 0..self.a.len() {
            let mut words = (self.a[i], self.b[i], self.c[i]);
            L::merge(&mut words, (others.a[i], others.b[i], others.c[i]));
            (self.a[i], self.b[i], self.c[i]) = words;
        }
    }

    fn settles(&self) -> bool {
        L::SETTLES
    }

    fn is_settled(&self) -> bool {
        self.a.iter().all(|&a| L::is_settled(a))
    }

    fn answer(&mut self, place: usize, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [L::Out] = bytemuck::cast_slice_mut(to);
        let some = place..place + to.len();
        let words = Words { a: &self.a[some.clone()], b: &self.b[some.clone()], c: &self.c[some] };
        let (isa, pair) = (self.fold.isa, &mut self.pair);
        self.fold.lanes.answer(words, to, Request { isa, place, pair, missing });
    }
}

/// Bytes of the accumulators that a loop keeps in registers.
const REGISTERS: usize = 128;

const fn largest(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Adds each column of a table to its output.
struct Columns<'a, 'b, L: Lanes> {
    table: Table<'a, L::Item>,
    cells: &'b mut LanedCells<L>,
    place: usize,
    at: usize,
}

impl<L: Lanes> Kernel for Columns<'_, '_, L> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        match const { REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>()) } {
            16 => self.in_groups::<16>(),
            32 => self.in_groups::<32>(),
            64 => self.in_groups::<64>(),
            _ => self.in_groups::<128>(),
        }
    }
}

impl<L: Lanes> Columns<'_, '_, L> {
    #[inline(always)]
    fn in_groups<const N: usize>(self) {
        let Columns { table, cells, place, at } = self;
        let lanes = cells.fold.lanes;
        let columns = table.columns();
        let a = &mut cells.a[place..place + columns];
        let b = &mut cells.b[place..place + columns];
        let c = &mut cells.c[place..place + columns];
        let whole = columns / N * N;
        let mut left = 0;
        while left < whole {
            let group = left..left + N;
            let (to_a, to_b, to_c) =
                (&mut a[group.clone()], &mut b[group.clone()], &mut c[group.clone()]);
            let (mut a, mut b, mut c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
            a.copy_from_slice(to_a);
            b.copy_from_slice(to_b);
            c.copy_from_slice(to_c);
            let size = size_of::<L::Item>();
            let (mut next, step) = table.ahead(size * left, size * N);
            for row in 0..table.rows() {
                for line in (0..size * N).step_by(64) {
                    prefetch::near(next.wrapping_add(line));
                }
                next = next.wrapping_offset(step);
                let items = &table.row(row)[group.clone()];
                let at = (at + row) as u32;
                for i in 0..N {
                    lanes.take(&mut a[i], &mut b[i], &mut c[i], items[i], at);
                }
            }
            to_a.copy_from_slice(&a);
            to_b.copy_from_slice(&b);
            to_c.copy_from_slice(&c);
            left += N;
        }
        if whole < columns {
            let (a, b, c) = (&mut a[whole..], &mut b[whole..], &mut c[whole..]);
            for row in 0..table.rows() {
                let items = &table.row(row)[whole..];
                let at = (at + row) as u32;
                for (((a, b), c), &x) in a.iter_mut().zip(b.iter_mut()).zip(c.iter_mut()).zip(items)
                {
                    lanes.take(a, b, c, x, at);
                }
            }
        }
    }
}

/// Elements of a row for which lanes do not pay.
const FEW: usize = 12;

/// Adds each row of a table to its output.
struct Rows<'a, 'b, L: Lanes> {
    table: Table<'a, L::Item>,
    cells: &'b mut LanedCells<L>,
    place: usize,
    at: usize,
}

impl<L: Lanes> Kernel for Rows<'_, '_, L> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        // Short rows have no use for more lanes than they have elements.
        let lanes = REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>());
        if self.table.columns() < 4 * lanes {
            return self.in_lanes::<8>();
        }
        match const { REGISTERS / largest(size_of::<L::A>(), size_of::<L::Item>()) } {
            16 => self.in_lanes::<16>(),
            32 => self.in_lanes::<32>(),
            64 => self.in_lanes::<64>(),
            _ => self.in_lanes::<128>(),
        }
    }
}

impl<L: Lanes> Rows<'_, '_, L> {
    #[inline(always)]
    fn in_lanes<const N: usize>(self) {
        let Rows { table, cells, place, at } = self;
        let lanes = cells.fold.lanes;
        for row in 0..table.rows() {
            let items = table.row(row);
            let i = place + row;
            let mut words = (cells.a[i], cells.b[i], cells.c[i]);
            if items.len() < FEW {
                for (i, &x) in items.iter().enumerate() {
                    lanes.take(&mut words.0, &mut words.1, &mut words.2, x, (at + i) as u32);
                }
                (cells.a[i], cells.b[i], cells.c[i]) = words;
                continue;
            }
            if let Some(found) = lanes.row(items, at) {
                L::merge(&mut words, found);
                (cells.a[i], cells.b[i], cells.c[i]) = words;
                continue;
            }
            let (mut a, mut b, mut c) = ([L::START.0; N], [L::START.1; N], [L::START.2; N]);
            let mut vectors = items.chunks_exact(N);
            let mut index = 0u32;
            for items in &mut vectors {
                prefetch::ahead(items);
                for i in 0..N {
                    lanes.take(&mut a[i], &mut b[i], &mut c[i], items[i], index);
                }
                index = index.wrapping_add(1);
            }
            for (i, &x) in vectors.remainder().iter().enumerate() {
                lanes.take(&mut a[i], &mut b[i], &mut c[i], x, index);
            }
            // Lanes beyond a short row have seen nothing.
            for lane in 0..N.min(items.len()) {
                L::merge(&mut words, (a[lane], L::spread(b[lane], lane, N, at), c[lane]));
            }
            (cells.a[i], cells.b[i], cells.c[i]) = words;
        }
    }
}
