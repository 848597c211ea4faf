//! States of many outputs whose elements are the columns of tables.

use super::columnar::Columnar;
use super::side::Side;
use super::tables::{Batch, Columns, Tables, columns_share, gcd};
use crate::accelerate::CpuElement;
use crate::exact::side_by_side::GROUP;
use crate::isa::Isa;
use crate::order::{ColumnRanges, ColumnsWithNans};
use crate::plan::Plan;
use crate::simd::dispatch;
use crate::table::Table;
use std::sync::{Mutex, PoisonError};
use warpfold_core::element::Key;
use warpfold_core::exact::Superacc;
use warpfold_core::op::{AnyState, Extrema, Summary, Sums};
use warpfold_core::{Element, Result};
use warpfold_threads::{Pieces, Threads};

/// About how many outputs a thread takes at a time.
const SHARE: usize = 1 << 14;

/// Who works: instructions and threads.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) isa: Isa,
    pub(crate) threads: Threads,
}

/// Shares of the outputs. A thread takes each of them once.
type Shares<'a, R> = Vec<Mutex<Option<&'a mut [R]>>>;

impl Spread {
    /// Adds the elements of each output to its state at `place`, which is a sum. Returns
    /// false, and changes nothing, if no kernel suits the shape of the plan.
    ///
    /// # Errors
    /// None of its own.
    pub(crate) fn add_sums<T: CpuElement + Columnar>(
        self,
        plan: &Plan<'_>,
        states: &mut [Vec<AnyState>],
        place: usize,
    ) -> Result<bool> {
        let Some(tables) = Tables::<T>::of(plan) else { return Ok(false) };
        if let Some(items) = tables.narrow_sums() {
            let accs = self.narrow_accs(items, tables.columns());
            for (acc, states) in accs.iter().zip(states) {
                if let Some(sum) = states[place].downcast_mut::<Sums<T>>() {
                    sum.acc.merge(acc);
                }
            }
            return Ok(true);
        }
        if tables.columns() < GROUP {
            return Ok(false);
        }
        self.columns(&tables, states, Side::<T>::new, |sums, share, states| {
            for Batch { from, columns, skip, done, len } in share.batches() {
                let table = share.table.some_columns(from..from + columns);
                let states = &mut states[done..done + len];
                let mut accs: Vec<&mut Superacc<T::Sum>> = states
                    .iter_mut()
                    .filter_map(|states| states[place].downcast_mut::<Sums<T>>())
                    .map(|sums| &mut sums.acc)
                    .collect();
                sums.add(table, skip, &mut accs, self.isa);
            }
            Ok(())
        })?;
        Ok(true)
    }

    /// The same for states of extremes without positions.
    ///
    /// # Errors
    /// None of its own.
    pub(crate) fn add_extremes<T: Element>(
        self,
        plan: &Plan<'_>,
        states: &mut [Vec<AnyState>],
        place: usize,
    ) -> Result<bool> {
        let Some(tables) = Tables::<T>::of(plan) else { return Ok(false) };
        let rows = tables.rows();
        let (low, high) = T::key_range();
        let add = |states: &mut Vec<AnyState>, min: T::Key, max: T::Key, nans: u64| {
            let some = nans < rows as u64;
            let found = Summary {
                start: 0,
                count: rows as u64,
                nans,
                first_nan: None,
                min: some.then_some((min, u64::MAX)),
                max: some.then_some((max, u64::MAX)),
            };
            if let Some(extrema) = states[place].downcast_mut::<Extrema<T>>() {
                extrema.absorb_summary(found);
            }
        };
        if let Some(items) = tables.narrow() {
            let ranges = self.narrow_ranges(items, tables.columns());
            let usual = ranges.iter().all(|&(min, max)| min >= low && max <= high);
            if usual {
                states.iter_mut().zip(ranges).for_each(|(s, (min, max))| add(s, min, max, 0));
            }
            return Ok(usual);
        }
        if tables.columns() < 2 * GROUP {
            return Ok(false);
        }
        let work = |(): &mut (), share: Columns<'_, T>, states: &mut [Vec<AnyState>]| {
            let table = share.table.some_columns(share.range);
            let [mut min, mut max] = column_ranges(table, self.isa);
            let mut nans = vec![0; states.len()];
            if min.iter().any(|&k| k < low) || max.iter().any(|&k| k > high) {
                // A second pass leaves NaNs out and counts them.
                min.fill(T::Key::GREATEST);
                max.fill(T::Key::LEAST);
                let (min, max, nans) = (&mut min[..], &mut max[..], &mut nans[..]);
                dispatch(self.isa, ColumnsWithNans { table, min, max, nans });
            }
            for (i, states) in states.iter_mut().enumerate() {
                add(states, min[i], max[i], nans[i]);
            }
            Ok(())
        };
        self.columns(&tables, states, || (), work)?;
        Ok(true)
    }

    /// The exact sums of the columns of a [narrow](Tables::narrow) table. The threads
    /// share the rows.
    fn narrow_accs<T: Columnar>(self, items: &[T], columns: usize) -> Vec<Superacc<T::Sum>> {
        // The fewest rows that make a row of whole groups, side by side.
        let fold = GROUP / gcd(GROUP, columns);
        let wide = columns * fold;
        let rows = items.len() / wide;
        let piece_rows = (1 << 18) / wide + 1;
        let pieces = Pieces::new(rows.div_ceil(piece_rows));
        let partial = self.threads.run(pieces.count(), || {
            let mut accs = vec![Superacc::<T::Sum>::new(); columns];
            let mut sums = Side::new();
            while let Some(piece) = pieces.take() {
                let first = piece * piece_rows;
                let end = first + piece_rows.min(rows - first);
                sums.sum(Table::of(&items[first * wide..end * wide], wide), self.isa);
                for column in 0..wide {
                    sums.add_to(column, &mut accs[column % columns]);
                }
            }
            accs
        });
        let mut partial = partial.into_iter();
        let mut accs = partial.next().unwrap_or_default();
        for others in partial {
            accs.iter_mut().zip(&others).for_each(|(acc, other)| acc.merge(other));
        }
        for (i, &x) in items[rows * wide..].iter().enumerate() {
            accs[i % columns].absorb(x);
        }
        accs
    }

    /// The extremes of the columns of a [narrow](Tables::narrow) table. The threads
    /// share the rows.
    fn narrow_ranges<T: Element>(self, items: &[T], columns: usize) -> Vec<(T::Key, T::Key)> {
        // Rows side by side, until they are long enough for a vector loop.
        let wide = columns * (4 * GROUP).div_ceil(columns);
        let piece_rows = (1 << 18) / wide + 1;
        let pieces = Pieces::new((items.len() / wide).div_ceil(piece_rows));
        let partial = self.threads.run(pieces.count(), || {
            let mut min = vec![T::Key::GREATEST; wide];
            let mut max = vec![T::Key::LEAST; wide];
            while let Some(piece) = pieces.take() {
                let first = piece * piece_rows;
                let rows = piece_rows.min(items.len() / wide - first);
                let table = Table::of(&items[first * wide..(first + rows) * wide], wide);
                let (min, max) = (&mut min[..], &mut max[..]);
                dispatch(self.isa, ColumnRanges { table, min, max });
            }
            (min, max)
        });
        let mut ranges = vec![(T::Key::GREATEST, T::Key::LEAST); columns];
        let mut take = |i: usize, min: T::Key, max: T::Key| {
            let range = &mut ranges[i % columns];
            *range = (range.0.min(min), range.1.max(max));
        };
        for (min, max) in partial {
            min.into_iter().zip(max).enumerate().for_each(|(i, (min, max))| take(i, min, max));
        }
        for (i, x) in items[items.len() / wide * wide..].iter().enumerate() {
            take(i, x.key(), x.key());
        }
        ranges
    }

    /// Runs `work` on parts of the columns of every table, with their outputs. The
    /// threads share the columns of a single table; of several tables, each thread
    /// takes whole ones. `new` makes what a thread keeps from part to part.
    ///
    /// # Errors
    /// Those of `work`.
    fn columns<T: Element, R: Send, C>(
        self,
        tables: &Tables<'_, T>,
        out: &mut [R],
        new: impl Fn() -> C + Sync,
        work: impl Fn(&mut C, Columns<'_, T>, &mut [R]) -> Result<()> + Sync,
    ) -> Result<()> {
        let (columns, share) = (tables.columns(), columns_share(tables.columns()));
        let some = |table: usize, start: usize, len: usize| Columns {
            table: tables.get(table),
            range: start..start + len,
        };
        if tables.count() == 1 {
            return self.share(out, share, new, |kept, start, out| {
                work(kept, some(0, start, out.len()), out)
            });
        }
        self.share(out, columns * (SHARE / columns + 1), new, |kept, first, out| {
            for (i, out) in out.chunks_mut(columns).enumerate() {
                for (j, out) in out.chunks_mut(share).enumerate() {
                    work(kept, some(first / columns + i, j * share, out.len()), out)?;
                }
            }
            Ok(())
        })
    }

    /// Runs `work` on shares of `out`, with the index of the share's first element, on
    /// all threads. `new` makes what a thread keeps from share to share.
    ///
    /// # Errors
    /// Those of `work`.
    pub(crate) fn share<R: Send, C>(
        self,
        out: &mut [R],
        share: usize,
        new: impl Fn() -> C + Sync,
        work: impl Fn(&mut C, usize, &mut [R]) -> Result<()> + Sync,
    ) -> Result<()> {
        let shares: Shares<'_, R> = out.chunks_mut(share).map(|s| Mutex::new(Some(s))).collect();
        let pieces = Pieces::new(shares.len());
        let done = self.threads.run(shares.len(), || {
            let mut kept = new();
            while let Some(piece) = pieces.take() {
                let taken = shares[piece].lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(out) = taken {
                    work(&mut kept, piece * share, out)?;
                }
            }
            Ok(())
        });
        done.into_iter().collect()
    }
}

/// The smallest and the largest key of each column.
fn column_ranges<T: Element>(table: Table<'_, T>, isa: Isa) -> [Vec<T::Key>; 2] {
    let mut min = vec![T::Key::GREATEST; table.columns()];
    let mut max = vec![T::Key::LEAST; table.columns()];
    dispatch(isa, ColumnRanges { table, min: &mut min, max: &mut max });
    [min, max]
}
