//! Plans whose outputs are the columns of tables.

use crate::exact::side_by_side::{GROUP, MOST_COLUMNS};
use crate::plan::Plan;
use crate::table::Table;
use core::ops::Range;
use warpfold_core::Element;
use warpfold_core::layout::Dim;

/// How many of a table's columns a thread takes at a time.
pub(super) fn columns_share(columns: usize) -> usize {
    let share = if columns < 2 * MOST_COLUMNS { GROUP.max(columns / 4) } else { MOST_COLUMNS };
    share.next_multiple_of(GROUP)
}

/// Some columns of a table: a thread's share.
pub(super) struct Columns<'a, T> {
    pub(super) table: Table<'a, T>,
    pub(super) range: Range<usize>,
}

impl<T> Columns<'_, T> {
    /// The columns in batches, each for one call of a kernel.
    pub(super) fn batches(&self) -> impl Iterator<Item = Batch> {
        batches(self.range.start, self.range.len())
    }
}

/// Columns that one call of a kernel sums: whole groups.
pub(super) struct Batch {
    /// The first column of the table, and the number of columns.
    pub(super) from: usize,
    pub(super) columns: usize,
    /// How many of these columns the batch before has summed already.
    pub(super) skip: usize,
    /// Columns of the share that are done before this batch, and that it adds.
    pub(super) done: usize,
    pub(super) len: usize,
}

/// The batches of `len` columns of a table, from `start` on. Where the last columns are
/// less than a group, their batch begins earlier, if necessary before `start`.
fn batches(start: usize, len: usize) -> impl Iterator<Item = Batch> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let left = len - done;
        let whole = left.min(MOST_COLUMNS) / GROUP * GROUP;
        let (from, columns, skip) = if whole > 0 {
            (start + done, whole, 0)
        } else {
            let from = (start + len).max(GROUP) - GROUP;
            (from, GROUP, start + done - from)
        };
        let batch = Batch { from, columns, skip, done, len: (columns - skip).min(left) };
        done += batch.len;
        (left > 0).then_some(batch)
    })
}

/// Tables of one shape: one for each index of the kept axes around them.
pub(super) struct Tables<'a, T> {
    first: Table<'a, T>,
    /// For each of these axes, outermost first: its length, and the bytes from one table
    /// to the next. Every element of every table may be read for `'a`.
    outer: Vec<(usize, isize)>,
}

impl<'a, T> Tables<'a, T> {
    pub(super) fn count(&self) -> usize {
        self.outer.iter().map(|&(len, _)| len).product()
    }

    /// Rows of each table.
    pub(super) fn rows(&self) -> usize {
        self.first.rows()
    }

    /// Columns of each table.
    pub(super) fn columns(&self) -> usize {
        self.first.columns()
    }

    /// The elements of a single table without gaps between its rows, if it has many rows
    /// and so few columns that a vector loop needs several rows side by side.
    pub(super) fn narrow(&self) -> Option<&'a [T]> {
        let narrow = self.columns() < 4 * GROUP && self.count() == 1 && self.rows() >= 2 * GROUP;
        self.get(0).items().filter(|_| narrow)
    }

    /// The same, if the joined rows fit the kernels of sums.
    pub(super) fn narrow_sums(&self) -> Option<&'a [T]> {
        let columns = self.columns();
        self.narrow().filter(|_| columns / gcd(columns, GROUP) * GROUP <= MOST_COLUMNS)
    }

    /// The table at `index`.
    pub(super) fn get(&self, index: usize) -> Table<'a, T> {
        let mut offset = 0isize;
        let mut rest = index;
        for &(len, stride) in self.outer.iter().rev() {
            offset += (rest % len).cast_signed() * stride;
            rest /= len;
        }
        let origin = self.first.at(0, 0).wrapping_byte_offset(offset);
        let (rows, columns) = (self.first.rows(), self.first.columns());
        // SAFETY: one of the tables, whose elements may all be read: see `outer`.
        unsafe { Table::new(origin, self.first.stride(), rows, columns) }
    }
}

impl<'a, T: Element> Tables<'a, T> {
    /// The tables of a plan whose outputs are columns; `None` unless one axis is
    /// reduced, each output has at least one element, and the elements are aligned.
    pub(super) fn of(plan: &Plan<'a>) -> Option<Tables<'a, T>> {
        let size = size_of::<T>().cast_signed();
        let &[Dim { len: rows, strides: [stride, _], .. }] = &plan.plain().dims[..] else {
            return None;
        };
        let mut outer = joined(plan.kept());
        let (columns, step) = outer.pop()?;
        let origin = plan.first_element();
        let aligned = origin.addr().is_multiple_of(align_of::<T>())
            && stride % size == 0
            && outer.iter().all(|&(_, s)| s % size == 0);
        let columnar = step == size && stride != size && rows != 0 && plan.outputs() != 0;
        (aligned && columnar).then(|| {
            // SAFETY: these are elements of the plan: the reduced axis makes the rows,
            // and the innermost kept axis the columns.
            let first = unsafe { Table::new(origin.cast(), stride, rows, columns) };
            Tables { first, outer }
        })
    }
}

/// The kept axes without those of length 1. Neighbours that are one axis in memory are
/// joined.
fn joined(kept: &[(usize, [isize; 2])]) -> Vec<(usize, isize)> {
    let mut joined: Vec<(usize, isize)> = Vec::new();
    for &(len, [stride, _]) in kept.iter().filter(|&&(len, _)| len != 1) {
        match joined.last_mut() {
            Some(outer) if stride.checked_mul(len.cast_signed()) == Some(outer.1) => {
                *outer = (outer.0 * len, stride);
            }
            _ => joined.push((len, stride)),
        }
    }
    joined
}

pub(super) fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
