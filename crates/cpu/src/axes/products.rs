//! Products of floats for many outputs: sums of exponents and logarithms, which
//! `core/op/logarithm.rs` makes of elements, side by side.

use super::fold::{Accumulators, Cells, Fold, RaggedCells, RaggedFold, begin_with, of_one_fold};
use super::lengths::Lengths;
use crate::isa::Isa;
use crate::ragged::Ragged;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd, dispatch_accumulators};
use crate::table::Table;
use core::alloc::Layout;
use core::marker::PhantomData;
use warpfold_core::op::float_prod::Factors;
use warpfold_core::op::logarithm::{Lanes, LogSum, WORDS};
use warpfold_core::op::{FloatElement, FloatProd};

/// Outputs that take elements side by side.
const TOGETHER: usize = 8;
/// The most rows that words of lanes have room for.
const ROOM: u32 = Lanes::<TOGETHER>::ROOM as u32;

/// Products of elements of a type.
pub(super) struct Products<T> {
    pub(super) isa: Isa,
    pub(super) item: PhantomData<T>,
}

impl<T: FloatElement> Fold for Products<T> {
    fn item(&self) -> Layout {
        Layout::new::<T>()
    }

    fn has_neutral(&self) -> bool {
        true
    }

    fn cells(&self) -> Box<dyn Cells> {
        Box::new(LogSums::<T>::new(self.isa))
    }
}

impl<T: FloatElement> RaggedFold for Products<T> {
    fn ragged(&self) -> Box<dyn RaggedCells> {
        Box::new(LogSums::<T>::new(self.isa))
    }
}

/// The sums of some outputs.
struct LogSums<T> {
    isa: Isa,
    /// Of elements that were taken column by column, a word of all outputs after the other.
    words: [Vec<u64>; WORDS],
    /// How many elements of an output are in the words.
    held: Vec<u32>,
    /// Of all others.
    sums: Vec<LogSum>,
    item: PhantomData<T>,
}

/// Numbers of neighbours, at most [`TOGETHER`].
#[inline(always)]
fn load<T: Copy>(from: &[T], beyond: T) -> [T; TOGETHER] {
    // The usual case without a call.
    if let Ok(from) = <&[T; TOGETHER]>::try_from(from) {
        return *from;
    }
    let mut to = [beyond; TOGETHER];
    to[..from.len()].copy_from_slice(from);
    to
}

/// Puts numbers of neighbours, as many as there is room for.
#[inline(always)]
fn store(from: &[u64; TOGETHER], to: &mut [u64]) {
    match <&mut [u64; TOGETHER]>::try_from(&mut *to) {
        Ok(to) => *to = *from,
        Err(_) => to.copy_from_slice(&from[..to.len()]),
    }
}

impl<T: FloatElement> LogSums<T> {
    fn new(isa: Isa) -> Self {
        let words = [const { Vec::new() }; WORDS];
        LogSums { isa, words, held: Vec::new(), sums: Vec::new(), item: PhantomData }
    }

    /// The words of some outputs, at most [`TOGETHER`].
    #[inline(always)]
    fn lanes(&mut self, place: usize, n: usize) -> Lanes<TOGETHER> {
        let mut lanes = Lanes::NEW;
        for (lane, words) in lanes.words().into_iter().zip(&self.words) {
            *lane = load(&words[place..place + n], 0);
        }
        lanes
    }

    /// Empties the words of some outputs, at most [`TOGETHER`].
    #[inline(never)]
    fn spill(&mut self, place: usize, n: usize) {
        let lanes = self.lanes(place, n);
        for i in 0..n {
            let held = core::mem::take(&mut self.held[place + i]);
            let sum = LogSum { count: held.into(), ..lanes.lane::<T>(i) };
            self.sums[place + i].merge(&sum);
            for words in &mut self.words {
                words[place + i] = 0;
            }
        }
    }
}

impl<T: FloatElement> Accumulators for LogSums<T> {
    fn clear(&mut self, count: usize) {
        self.words.iter_mut().for_each(|words| begin_with(words, count, 0));
        begin_with(&mut self.held, count, 0);
        begin_with(&mut self.sums, count, LogSum::default());
    }

    fn answer(&mut self, _: Lengths<'_>, to: &mut [u8], missing: &mut Vec<usize>) {
        let to: &mut [T] = bytemuck::cast_slice_mut(to);
        for (place, to) in to.iter_mut().enumerate() {
            let sum = self.whole(place);
            if sum.odd {
                missing.push(place);
            } else {
                *to = T::from_bits(FloatProd::<T>::product(&sum));
            }
        }
    }
}

impl<T: FloatElement> Cells for LogSums<T> {
    unsafe fn rows(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let rows = Rows::Table(unsafe { table.of_elements() });
        dispatch_accumulators(self.isa, RowByRow::<T> { rows, sums: &mut self.sums[place..] });
    }

    unsafe fn columns(&mut self, place: usize, table: Table<'_, ()>, _: usize) {
        // SAFETY: the caller vouches for the elements.
        let table = unsafe { table.of_elements::<T>() };
        dispatch_accumulators(self.isa, Columns { table, cells: self, place });
    }

    fn neutral(&self, _: usize, to: &mut [u8]) {
        bytemuck::cast_slice_mut(to).fill(T::ONE);
    }

    fn merge(&mut self, others: &dyn Cells) {
        let others = of_one_fold::<Self>(others);
        for place in 0..self.sums.len() {
            self.spill(place, 1);
            self.sums[place].merge(&others.whole(place));
        }
    }
}

impl<T: FloatElement> RaggedCells for LogSums<T> {
    unsafe fn take(&mut self, rows: Ragged<'_, ()>) {
        // SAFETY: the caller vouches for the elements.
        let rows = Rows::Ragged(unsafe { rows.of_elements() });
        dispatch_accumulators(self.isa, RowByRow::<T> { rows, sums: &mut self.sums });
    }
}

impl<T: FloatElement> LogSums<T> {
    /// All that an output has added up.
    fn whole(&self, place: usize) -> LogSum {
        let mut lanes = Lanes::<1>::NEW;
        for (lane, words) in lanes.words().into_iter().zip(&self.words) {
            *lane = [words[place]];
        }
        let mut sum = LogSum { count: self.held[place].into(), ..lanes.lane::<T>(0) };
        sum.merge(&self.sums[place]);
        sum
    }
}

/// Adds a row to each output.
struct RowByRow<'a, 'b, T> {
    rows: Rows<'a, T>,
    sums: &'b mut [LogSum],
}

impl<T: FloatElement> Kernel for RowByRow<'_, '_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        for row in 0..self.rows.count() {
            Factors::add_logs(self.rows.row(row), &mut self.sums[row]);
        }
    }
}

/// Adds a column to each output.
struct Columns<'a, T> {
    table: Table<'a, T>,
    cells: &'a mut LogSums<T>,
    place: usize,
}

impl<T: FloatElement> Kernel for Columns<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Columns { table, cells, place } = self;
        for first in (0..table.columns()).step_by(TOGETHER) {
            let n = (table.columns() - first).min(TOGETHER);
            let place = place + first;
            let mut row = 0;
            while row < table.rows() {
                // Outputs that lie together may have taken different tables.
                let mut held = cells.held[place..place + n].iter().fold(0, |a, &b| a.max(b));
                if held == ROOM {
                    cells.spill(place, n);
                    held = 0;
                }
                let rows = (table.rows() - row).min((ROOM - held) as usize);
                let mut lanes = cells.lanes(place, n);
                for row in row..row + rows {
                    let items = &table.row(row)[first..first + n];
                    let items = load(items, T::ONE);
                    let mut wide = [1.0; TOGETHER];
                    for i in 0..TOGETHER {
                        wide[i] = items[i].widen().into();
                    }
                    lanes.add::<T, false>(&wide);
                }
                lanes.settle::<T>();
                for (lane, words) in lanes.words().into_iter().zip(&mut cells.words) {
                    store(lane, &mut words[place..place + n]);
                }
                for held in &mut cells.held[place..place + n] {
                    *held += rows as u32;
                }
                row += rows;
            }
        }
    }
}
