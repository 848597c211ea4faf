//! Sums, means and extremes over an axis, for many outputs at a time.
//!
//! The general path keeps a state for each output. That is too slow where an output
//! has few elements, or where the elements of neighbouring outputs lie side by side.

use crate::accelerate::CpuElement;
use crate::exact::short;
use crate::exact::side_by_side::{
    DivideToF32, GROUP, LONGEST_ROW, MOST_COLUMNS, NarrowToF32, RANGE_ROWS, ROWS_IN_A_TILE,
    RangeColumns, RangeRows, RoundToF32, WINDOW_ROWS, WindowColumns,
};
use crate::exact::{self, Plain, Tuner};
use crate::exact::{HEADROOM, RANGE_GROWTH, Window, largest_exponent};
use crate::isa::Isa;
use crate::order::{ColumnRanges, ColumnsWithNans, RowRanges};
use crate::plan::Plan;
use crate::simd::dispatch;
use crate::slices::Slices;
use crate::table::Table;
use core::borrow::BorrowMut;
use core::ops::Range;
use std::sync::{Mutex, PoisonError};
use warpfold_core::element::{Key, Parts};
use warpfold_core::exact::{FloatFormat, Superacc};
use warpfold_core::layout::Dim;
use warpfold_core::op::{AnyState, Extrema, Numbers, Summary, Sums};
use warpfold_core::{Element, Op, Result, fpenv};
use warpfold_threads::{Pieces, Threads};

/// An element type with kernels for many sums at a time.
pub(crate) trait Columnar: FloatFormat {
    /// The most rows that one call of [`columns`](Self::columns) sums.
    const ROWS: usize;
    /// The most rows of a table that needs no window. For such a table
    /// [`columns`](Self::columns) ignores `top` and does not write the second part of
    /// each sum, which is 0.
    const WINDOWLESS_ROWS: usize;

    /// Writes the sum of each column in two parts. Returns false if a certificate
    /// failed, or if the floating-point environment is not the default one.
    ///
    /// The table has at most [`ROWS`](Self::ROWS) rows. It has at most [`MOST_COLUMNS`]
    /// columns, and their number is a multiple of [`GROUP`]. Both slices of `sums` have
    /// one element for each column.
    fn columns(table: Table<'_, Self>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool;

    /// The most rows that [`fallback`](Self::fallback) sums; 0 if there is none.
    const FALLBACK_ROWS: usize = 0;

    /// A slower kernel for tables that [`columns`](Self::columns) did not certify. It
    /// has the same contract, with [`FALLBACK_ROWS`](Self::FALLBACK_ROWS) rows at most.
    fn fallback(table: Table<'_, Self>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool {
        let _ = (table, top, sums, isa);
        false
    }

    /// Sums consecutive rows of at most [`LONGEST_ROW`] elements. Returns false if a
    /// certificate failed, or if the type has no such kernel.
    fn rows(items: &[Self], len: usize, sums: &mut [f64], isa: Isa) -> bool;

    /// The exact sum of a slice, rounded once; `None` if the short path does not certify it.
    fn short(items: &[Self], isa: Isa) -> Option<Self>;

    /// Writes `high + low` of each output, rounded once; without `low`, `high` alone.
    fn round(high: &[f64], low: Option<&[f64]>, out: &mut [Self], isa: Isa);

    /// Writes `sum / n` of each output, rounded once. Returns false if some output
    /// cannot be rounded this way.
    fn divide(sums: &[f64], n: f64, out: &mut [Self], isa: Isa) -> bool;

    /// Adds elements to an exact sum.
    fn absorb(acc: &mut Superacc<Self::Sum>, items: &[Self], tuner: &mut Tuner, isa: Isa);
}

impl Columnar for f32 {
    const ROWS: usize = RANGE_ROWS;
    const WINDOWLESS_ROWS: usize = ROWS_IN_A_TILE;
    fn columns(table: Table<'_, f32>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool {
        let [high, low] = sums;
        let window = Window::below(top + RANGE_GROWTH, 2, false);
        fpenv::is_usual() && dispatch(isa, RangeColumns { table, window, high, low })
    }
    const FALLBACK_ROWS: usize = WINDOW_ROWS;
    fn fallback(table: Table<'_, f32>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool {
        let [high, low] = sums;
        Window::below(top, 2, false)
            .filter(|_| fpenv::is_usual())
            .is_some_and(|window| dispatch(isa, WindowColumns { table, window, high, low }))
    }
    fn rows(items: &[f32], len: usize, sums: &mut [f64], isa: Isa) -> bool {
        fpenv::is_usual() && dispatch(isa, RangeRows { items, len, sums })
    }
    fn short(items: &[f32], isa: Isa) -> Option<f32> {
        short::sum_f32(items, isa)
    }
    fn round(high: &[f64], low: Option<&[f64]>, out: &mut [f32], isa: Isa) {
        match low {
            Some(low) => dispatch(isa, RoundToF32 { high, low, out }),
            None => dispatch(isa, NarrowToF32 { sums: high, out }),
        }
    }
    fn divide(sums: &[f64], n: f64, out: &mut [f32], isa: Isa) -> bool {
        dispatch(isa, DivideToF32 { sums, n, out })
    }
    fn absorb(acc: &mut Superacc<Self::Sum>, items: &[f32], tuner: &mut Tuner, isa: Isa) {
        exact::absorb::<Plain<f32>, _>(acc, Slices::one(items), tuner, isa);
    }
}

impl Columnar for f64 {
    const ROWS: usize = WINDOW_ROWS;
    const WINDOWLESS_ROWS: usize = 0;
    fn columns(table: Table<'_, f64>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool {
        let [high, low] = sums;
        Window::below(top, 2, false)
            .filter(|_| fpenv::is_usual())
            .is_some_and(|window| dispatch(isa, WindowColumns { table, window, high, low }))
    }
    fn rows(_items: &[f64], _len: usize, _sums: &mut [f64], _isa: Isa) -> bool {
        false
    }
    fn short(items: &[f64], isa: Isa) -> Option<f64> {
        short::sum_f64(items, isa)
    }
    fn round(high: &[f64], low: Option<&[f64]>, out: &mut [f64], _: Isa) {
        match low {
            Some(low) => {
                out.iter_mut().zip(high.iter().zip(low)).for_each(|(out, (h, l))| *out = h + l);
            }
            None => out.copy_from_slice(high),
        }
    }
    fn divide(sums: &[f64], n: f64, out: &mut [f64], _: Isa) -> bool {
        out.iter_mut().zip(sums).for_each(|(out, sum)| *out = sum / n);
        true
    }
    fn absorb(acc: &mut Superacc<Self::Sum>, items: &[f64], tuner: &mut Tuner, isa: Isa) {
        exact::absorb::<Plain<f64>, _>(acc, Slices::one(items), tuner, isa);
    }
}

/// Which answer of a sum is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Sum,
    Mean,
}

impl Wanted {
    pub(crate) fn of(op: Op) -> Option<Wanted> {
        match op {
            Op::Sum => Some(Wanted::Sum),
            Op::Mean => Some(Wanted::Mean),
            _ => None,
        }
    }

    /// Writes the answers of exact sums, which have one part or two, over `n` elements
    /// each. Returns false if the sums must be divided and do not fit one part.
    fn of_parts<T: Columnar>(
        self,
        high: &[f64],
        low: Option<&[f64]>,
        n: usize,
        out: &mut [T],
        isa: Isa,
    ) -> bool {
        match self {
            Wanted::Sum => {
                T::round(high, low, out, isa);
                true
            }
            Wanted::Mean => {
                low.is_none_or(|low| low.iter().all(|&l| l == 0.0))
                    && T::divide(high, n as f64, out, isa)
            }
        }
    }

    /// The answer of an exact sum over `n` elements; `None` if some of them are infinite
    /// or NaN.
    fn of_acc<T: Columnar>(self, acc: &Superacc<T::Sum>, n: usize) -> Option<T> {
        use warpfold_core::exact::format::Format;
        use warpfold_core::exact::round::{round_fixed, round_quotient};
        if acc.nans + acc.pos_infs + acc.neg_infs > 0 {
            return None;
        }
        let limbs = acc.canonical_limbs();
        let lsb = <T::Sum as Format>::LSB;
        Some(match self {
            Wanted::Sum => round_fixed(limbs.as_ref(), lsb),
            Wanted::Mean => round_quotient(limbs.as_ref(), lsb, n as u64),
        })
    }
}

/// The longest row that is reduced alone, without a state.
const LONG_ROW: usize = 8192;

/// About how many outputs a thread takes at a time.
const SHARE: usize = 1 << 14;

/// Who works: instructions and threads.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) isa: Isa,
    pub(crate) threads: Threads,
}

/// A reduction of the rows or the columns of a table in memory.
#[derive(Clone, Copy)]
pub(crate) struct Reduce<'a> {
    pub(crate) spread: Spread,
    /// Answers one output, by its index, in the general way. It is called where the
    /// kernels certify nothing: the elements include NaNs or infinities, or their
    /// exponents are too far apart.
    pub(crate) otherwise: &'a (dyn Fn(usize) -> Result<u64> + Sync),
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
        let Some(Shape::Columns(tables)) = Shape::<T>::of(plan) else { return Ok(false) };
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
        let Some(Shape::Columns(tables)) = Shape::<T>::of(plan) else { return Ok(false) };
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
            first: table * columns + start,
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

impl Reduce<'_> {
    /// The sums or means of a whole plan; `None` if no kernel suits its shape.
    ///
    /// # Errors
    /// Those of `otherwise`.
    pub(crate) fn sums<T: Columnar>(
        &self,
        plan: &Plan<'_>,
        wanted: Wanted,
    ) -> Result<Option<Numbers>> {
        let Some(shape) = Shape::<T>::of(plan) else { return Ok(None) };
        let mut numbers = Numbers::zeros(T::DTYPE, plan.outputs());
        let Some(out) = numbers.as_mut_slice::<T>() else { return Ok(None) };
        match shape {
            Shape::Rows { items, len } => {
                let quick = len <= LONGEST_ROW || wanted == Wanted::Sum && len <= LONG_ROW;
                if !quick {
                    return Ok(None);
                }
                self.row_sums(wanted, items, len, out)?;
            }
            Shape::Columns(tables) => {
                if let Some(items) = tables.narrow_sums() {
                    self.narrow_sums(wanted, items, tables.columns(), out)?;
                } else if tables.columns() >= GROUP {
                    self.spread.columns(&tables, out, Side::new, |sums, share, out| {
                        self.column_sums(wanted, sums, &share, out)
                    })?;
                } else {
                    return Ok(None);
                }
            }
        }
        Ok(Some(numbers))
    }

    /// The smallest or the largest elements of a whole plan; `None` if no kernel suits
    /// its shape.
    ///
    /// # Errors
    /// Those of `otherwise`.
    pub(crate) fn extremes<T: Element>(
        &self,
        plan: &Plan<'_>,
        largest: bool,
    ) -> Result<Option<Numbers>> {
        let Some(shape) = Shape::<T>::of(plan) else { return Ok(None) };
        let mut numbers = Numbers::zeros(T::DTYPE, plan.outputs());
        let Some(out) = numbers.as_mut_slice::<T>() else { return Ok(None) };
        let (low, high) = T::key_range();
        let answer = |min: T::Key, max: T::Key, index: usize| -> Result<T> {
            if min >= low && max <= high {
                Ok(T::from_key(if largest { max } else { min }))
            } else {
                Ok(T::from_bits((self.otherwise)(index)?))
            }
        };
        match shape {
            Shape::Rows { items, len } => {
                if len > LONG_ROW {
                    return Ok(None);
                }
                self.spread.share(
                    out,
                    (SHARE / len + 1) * 16,
                    || (),
                    |(), first, out| {
                        const BATCH: usize = 64;
                        let mut ranges = [(T::Key::LEAST, T::Key::LEAST); BATCH];
                        for (b, out) in out.chunks_mut(BATCH).enumerate() {
                            let first = first + b * BATCH;
                            let items = &items[first * len..(first + out.len()) * len];
                            let ranges = &mut ranges[..out.len()];
                            dispatch(
                                self.spread.isa,
                                RowRanges { items, len, ranges: &mut *ranges },
                            );
                            for (i, (out, &mut (min, max))) in
                                out.iter_mut().zip(ranges).enumerate()
                            {
                                *out = answer(min, max, first + i)?;
                            }
                        }
                        Ok(())
                    },
                )?;
            }
            Shape::Columns(tables) => {
                if let Some(items) = tables.narrow() {
                    let ranges = self.spread.narrow_ranges(items, tables.columns());
                    for (i, (out, (min, max))) in out.iter_mut().zip(ranges).enumerate() {
                        *out = answer(min, max, i)?;
                    }
                    return Ok(Some(numbers));
                }
                if tables.columns() < 2 * GROUP {
                    return Ok(None);
                }
                let work = |(): &mut (), share: Columns<'_, T>, out: &mut [T]| {
                    let [min, max] =
                        column_ranges(share.table.some_columns(share.range), self.spread.isa);
                    let keys = if largest { &max } else { &min };
                    if min.iter().all(|&k| k >= low) && max.iter().all(|&k| k <= high) {
                        out.iter_mut().zip(keys).for_each(|(out, &k)| *out = T::from_key(k));
                        return Ok(());
                    }
                    for (i, (out, (&min, &max))) in
                        out.iter_mut().zip(min.iter().zip(&max)).enumerate()
                    {
                        *out = answer(min, max, share.first + i)?;
                    }
                    Ok(())
                };
                self.spread.columns(&tables, out, || (), work)?;
            }
        }
        Ok(Some(numbers))
    }

    /// Answers consecutive rows of `len` elements.
    ///
    /// # Errors
    /// Those of `otherwise`.
    fn row_sums<T: Columnar>(
        &self,
        wanted: Wanted,
        items: &[T],
        len: usize,
        out: &mut [T],
    ) -> Result<()> {
        /// Rows that one call of the kernel sums.
        const BATCH: usize = 64;
        let share = (SHARE.div_ceil(len.max(1)) * 16).next_multiple_of(BATCH);
        self.spread.share(
            out,
            share,
            || (),
            |(), first, out| {
                for (b, out) in out.chunks_mut(BATCH).enumerate() {
                    let first = first + b * BATCH;
                    let batch = &items[first * len..(first + out.len()) * len];
                    let mut sums = [0f64; BATCH];
                    let sums = &mut sums[..out.len()];
                    if len <= LONGEST_ROW
                        && T::rows(batch, len, sums, self.spread.isa)
                        && wanted.of_parts(sums, None, len, out, self.spread.isa)
                    {
                        continue;
                    }
                    for (i, (out, row)) in out.iter_mut().zip(batch.chunks(len)).enumerate() {
                        let quick = match wanted {
                            Wanted::Sum => T::short(row, self.spread.isa),
                            Wanted::Mean => None,
                        };
                        *out = match quick {
                            Some(x) => x,
                            None => T::from_bits((self.otherwise)(first + i)?),
                        };
                    }
                }
                Ok(())
            },
        )
    }

    /// Answers some columns of a table that has at least [`GROUP`] of them.
    ///
    /// # Errors
    /// Those of `otherwise`.
    fn column_sums<T: Columnar>(
        &self,
        wanted: Wanted,
        sums: &mut Side<T>,
        share: &Columns<'_, T>,
        out: &mut [T],
    ) -> Result<()> {
        let (isa, rows) = (self.spread.isa, share.table.rows());
        for Batch { from, columns, skip, done, len } in share.batches() {
            sums.sum(share.table.some_columns(from..from + columns), isa);
            let places = skip..skip + len;
            let answered = &mut out[done..done + len];
            if !sums.answers(places.clone(), rows, wanted, answered, isa) {
                for (i, (out, place)) in answered.iter_mut().zip(places).enumerate() {
                    *out = match sums.answer(place, rows, wanted) {
                        Some(x) => x,
                        None => T::from_bits((self.otherwise)(share.first + done + i)?),
                    };
                }
            }
        }
        Ok(())
    }

    /// Answers the columns of a [narrow](Tables::narrow) table.
    ///
    /// # Errors
    /// Those of `otherwise`.
    fn narrow_sums<T: Columnar>(
        &self,
        wanted: Wanted,
        items: &[T],
        columns: usize,
        out: &mut [T],
    ) -> Result<()> {
        let accs = self.spread.narrow_accs(items, columns);
        for (i, (out, acc)) in out.iter_mut().zip(&accs).enumerate() {
            *out = match wanted.of_acc(acc, items.len() / columns) {
                Some(x) => x,
                None => T::from_bits((self.otherwise)(i)?),
            };
        }
        Ok(())
    }
}

/// The smallest and the largest key of each column.
fn column_ranges<T: Element>(table: Table<'_, T>, isa: Isa) -> [Vec<T::Key>; 2] {
    let mut min = vec![T::Key::GREATEST; table.columns()];
    let mut max = vec![T::Key::LEAST; table.columns()];
    dispatch(isa, ColumnRanges { table, min: &mut min, max: &mut max });
    [min, max]
}

/// How many of a table's columns a thread takes at a time.
fn columns_share(columns: usize) -> usize {
    let share = if columns < 2 * MOST_COLUMNS { GROUP.max(columns / 4) } else { MOST_COLUMNS };
    share.next_multiple_of(GROUP)
}

/// Some columns of a table: a thread's share.
struct Columns<'a, T> {
    table: Table<'a, T>,
    range: Range<usize>,
    /// The index of the output that the first of them makes.
    first: usize,
}

impl<T> Columns<'_, T> {
    /// The columns in batches, each for one call of a kernel.
    fn batches(&self) -> impl Iterator<Item = Batch> {
        batches(self.range.start, self.range.len())
    }
}

/// Columns that one call of a kernel sums: whole groups.
struct Batch {
    /// The first column of the table, and the number of columns.
    from: usize,
    columns: usize,
    /// How many of these columns the batch before has summed already.
    skip: usize,
    /// Columns of the share that are done before this batch, and that it adds.
    done: usize,
    len: usize,
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
struct Tables<'a, T> {
    first: Table<'a, T>,
    /// For each of these axes, outermost first: its length, and the bytes from one table
    /// to the next. Every element of every table may be read for `'a`.
    outer: Vec<(usize, isize)>,
}

impl<'a, T> Tables<'a, T> {
    fn count(&self) -> usize {
        self.outer.iter().map(|&(len, _)| len).product()
    }

    /// Rows of each table.
    fn rows(&self) -> usize {
        self.first.rows()
    }

    /// Columns of each table.
    fn columns(&self) -> usize {
        self.first.columns()
    }

    /// The elements of a single table without gaps between its rows, if it has many rows
    /// and so few columns that a vector loop needs several rows side by side.
    fn narrow(&self) -> Option<&'a [T]> {
        let narrow = self.columns() < 4 * GROUP && self.count() == 1 && self.rows() >= 2 * GROUP;
        self.get(0).items().filter(|_| narrow)
    }

    /// The same, if the joined rows fit the kernels of sums.
    fn narrow_sums(&self) -> Option<&'a [T]> {
        let columns = self.columns();
        self.narrow().filter(|_| columns / gcd(columns, GROUP) * GROUP <= MOST_COLUMNS)
    }

    /// The table at `index`.
    fn get(&self, index: usize) -> Table<'a, T> {
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

/// The shape of a plan: each output is a row or a column of a table.
enum Shape<'a, T> {
    /// An output for each row; the rows have no gaps between them.
    Rows { items: &'a [T], len: usize },
    /// An output for each column of each table.
    Columns(Tables<'a, T>),
}

impl<'a, T: Element> Shape<'a, T> {
    /// The shape of a plan; `None` unless one axis is reduced, each output has at least
    /// one element, and the elements are aligned.
    fn of(plan: &Plan<'a>) -> Option<Shape<'a, T>> {
        let size = size_of::<T>().cast_signed();
        let &[Dim { len: rows, strides: [stride, _], .. }] = &plan.plain().dims[..] else {
            return None;
        };
        let mut kept = joined(plan.kept());
        let (columns, step) = kept.pop()?;
        let outer = kept;
        let origin = plan.first_element();
        let aligned = origin.addr().is_multiple_of(align_of::<T>())
            && stride % size == 0
            && step % size == 0
            && outer.iter().all(|&(_, s)| s % size == 0);
        if !aligned || rows == 0 || plan.outputs() == 0 {
            return None;
        }
        let origin: *const T = origin.cast();
        if stride == size && outer.is_empty() && step == rows.cast_signed() * size {
            // SAFETY: these are the plan's elements, one behind the other.
            let items = unsafe { core::slice::from_raw_parts(origin, rows * columns) };
            Some(Shape::Rows { items, len: rows })
        } else if step == size && stride != size {
            // SAFETY: these are elements of the plan: the reduced axis makes the rows,
            // and the innermost kept axis the columns.
            let first = unsafe { Table::new(origin, stride, rows, columns) };
            Some(Shape::Columns(Tables { first, outer }))
        } else {
            None
        }
    }
}

/// The sums of up to [`MOST_COLUMNS`] columns.
struct Side<T: Columnar> {
    high: Vec<f64>,
    low: Vec<f64>,
    /// Whether `low` is 0 everywhere.
    one_part: bool,
    /// The sums of a table that has more rows than one call takes, or that no kernel
    /// certified.
    accs: Vec<Superacc<T::Sum>>,
    /// Whether the sums are in `accs`.
    long: bool,
    /// Rows of the table that was summed last.
    rows: usize,
    /// The elements of recent tables are below `2^top`.
    top: Option<i32>,
    buffer: Vec<T>,
    /// Rows without their NaNs and infinities.
    finite: Vec<T>,
    tuner: Tuner,
}

impl<T: Columnar> Side<T> {
    fn new() -> Self {
        Side {
            high: vec![0.0; MOST_COLUMNS],
            low: vec![0.0; MOST_COLUMNS],
            one_part: true,
            accs: Vec::new(),
            long: false,
            rows: 0,
            top: None,
            buffer: Vec::new(),
            finite: Vec::new(),
            tuner: Tuner::default(),
        }
    }

    /// Sums the columns of a table, of which there are at most [`MOST_COLUMNS`], and a
    /// multiple of [`GROUP`].
    fn sum(&mut self, table: Table<'_, T>, isa: Isa) {
        self.rows = table.rows();
        self.long = !(table.rows() <= T::ROWS && self.certified(table, isa));
        if self.long {
            let mut accs = core::mem::take(&mut self.accs);
            accs.clear();
            accs.resize(table.columns(), Superacc::new());
            self.add(table, 0, &mut accs, isa);
            self.accs = accs;
        }
    }

    /// Adds the columns of such a table to `accs`, without the first `skip` columns.
    fn add<A: BorrowMut<Superacc<T::Sum>>>(
        &mut self,
        table: Table<'_, T>,
        skip: usize,
        accs: &mut [A],
        isa: Isa,
    ) {
        for part in parts(table, T::ROWS) {
            if self.certified(part, isa) {
                self.gather(part.rows(), skip, accs);
            } else if look(part, part.rows(), isa).is_some() {
                self.add_uncertified(part, skip, accs, isa);
            } else {
                self.add_around_specials(part, skip, accs, isa);
            }
        }
    }

    /// Adds a part with NaNs or infinities: they are counted, and zeros summed
    /// in their place, so that the columns beside theirs keep their speed.
    fn add_around_specials<A: BorrowMut<Superacc<T::Sum>>>(
        &mut self,
        table: Table<'_, T>,
        skip: usize,
        accs: &mut [A],
        isa: Isa,
    ) {
        let mut finite = core::mem::take(&mut self.finite);
        for part in parts(table, WINDOW_ROWS) {
            if self.certified(part, isa) {
                self.gather(part.rows(), skip, accs);
                continue;
            }
            finite.clear();
            for row in 0..part.rows() {
                let start = finite.len();
                finite.extend_from_slice(part.row(row));
                if largest_exponent(part.row(row), isa).is_some() {
                    continue;
                }
                for (column, x) in finite[start..].iter_mut().enumerate() {
                    let parts = x.parts();
                    if matches!(parts, Parts::Finite { .. }) {
                        continue;
                    }
                    *x = T::from_bits(0);
                    // Those of the columns before were counted with these.
                    let acc = column.checked_sub(skip).and_then(|i| accs.get_mut(i));
                    if let Some(acc) = acc {
                        let acc: &mut Superacc<T::Sum> = acc.borrow_mut();
                        match parts {
                            Parts::Infinite { negative: true } => acc.neg_infs += 1,
                            Parts::Infinite { negative: false } => acc.pos_infs += 1,
                            _ => acc.nans += 1,
                        }
                    }
                }
            }
            let part = Table::of(&finite, part.columns());
            if self.certified(part, isa) {
                self.gather(part.rows(), skip, accs);
            } else {
                self.add_uncertified(part, skip, accs, isa);
            }
        }
        self.finite = finite;
    }

    /// Adds a part that the kernel has no certificate for.
    fn add_uncertified<A: BorrowMut<Superacc<T::Sum>>>(
        &mut self,
        table: Table<'_, T>,
        skip: usize,
        accs: &mut [A],
        isa: Isa,
    ) {
        let columns = table.columns();
        let step = if T::FALLBACK_ROWS > 0 { T::FALLBACK_ROWS } else { T::ROWS };
        for part in parts(table, step) {
            let top = self.top.or_else(|| look(part, part.rows(), isa)).unwrap_or(0);
            let (high, low) = (&mut self.high[..columns], &mut self.low[..columns]);
            self.one_part = false;
            if T::FALLBACK_ROWS > 0 && T::fallback(part, top, [high, low], isa) {
                self.gather(part.rows(), skip, accs);
            } else {
                self.one_by_one(part, skip, accs, isa);
            }
        }
    }

    /// Adds the sums of a part of the table to the sums of the whole.
    fn gather<A: BorrowMut<Superacc<T::Sum>>>(&self, rows: usize, skip: usize, accs: &mut [A]) {
        let sums = self.high.iter().zip(&self.low).skip(skip);
        for (acc, (&high, &low)) in accs.iter_mut().zip(sums) {
            let acc = acc.borrow_mut();
            deposit(acc, high);
            deposit(acc, low);
            acc.count += rows as i64;
        }
    }

    /// Tries the kernel with the window of recent tables. If that fails, it tries the
    /// window that all elements of this table ask for.
    fn certified(&mut self, table: Table<'_, T>, isa: Isa) -> bool {
        if table.rows() <= T::WINDOWLESS_ROWS {
            if !self.one_part {
                self.low.fill(0.0);
                self.one_part = true;
            }
            return self.columns(table, 0, isa);
        }
        self.one_part = false;
        let old = self.top.or_else(|| look(table, table.rows().min(8), isa));
        let Some(old) = old else { return false };
        self.top = Some(old);
        if self.columns(table, old, isa) {
            return true;
        }
        let Some(new) = look(table, table.rows(), isa) else { return false };
        self.top = Some(new);
        new != old && self.columns(table, new, isa)
    }

    /// Runs the kernel.
    fn columns(&mut self, table: Table<'_, T>, top: i32, isa: Isa) -> bool {
        let (high, low) = (&mut self.high[..table.columns()], &mut self.low[..table.columns()]);
        T::columns(table, top, [high, low], isa)
    }

    /// Adds each column with the kernel for one sum.
    fn one_by_one<A: BorrowMut<Superacc<T::Sum>>>(
        &mut self,
        table: Table<'_, T>,
        skip: usize,
        accs: &mut [A],
        isa: Isa,
    ) {
        for (column, acc) in (skip..table.columns()).zip(accs) {
            self.buffer.clear();
            self.buffer.extend((0..table.rows()).map(|row| table.row(row)[column]));
            T::absorb(acc.borrow_mut(), &self.buffer, &mut self.tuner, isa);
        }
    }

    /// Writes the answers of some columns. Returns false if they are not in two parts, or
    /// cannot be divided together.
    fn answers(
        &self,
        columns: Range<usize>,
        rows: usize,
        wanted: Wanted,
        out: &mut [T],
        isa: Isa,
    ) -> bool {
        let low = (!self.one_part).then(|| &self.low[columns.clone()]);
        !self.long && wanted.of_parts(&self.high[columns], low, rows, out, isa)
    }

    /// The answer of one column; `None` if its elements include infinities or NaNs.
    fn answer(&self, column: usize, rows: usize, wanted: Wanted) -> Option<T> {
        if self.long {
            return wanted.of_acc(&self.accs[column], rows);
        }
        let mut acc = Superacc::new();
        deposit(&mut acc, self.high[column]);
        deposit(&mut acc, self.low[column]);
        wanted.of_acc(&acc, rows)
    }

    /// Adds the sum of a column to `acc`.
    fn add_to(&self, column: usize, acc: &mut Superacc<T::Sum>) {
        if self.long {
            acc.merge(&self.accs[column]);
        } else {
            deposit(acc, self.high[column]);
            deposit(acc, self.low[column]);
            acc.count += self.rows as i64;
        }
    }
}

/// The least `t` such that all elements of the first rows are below `2^t`, plus
/// headroom; `None` if they include an infinity or a NaN.
fn look<T: Element>(table: Table<'_, T>, rows: usize, isa: Isa) -> Option<i32> {
    let mut top = None;
    for row in 0..rows {
        top = top.max(Some(largest_exponent(table.row(row), isa)? + HEADROOM));
    }
    top
}

/// Parts of a table with at most `step` rows each.
fn parts<T: Columnar>(table: Table<'_, T>, step: usize) -> impl Iterator<Item = Table<'_, T>> {
    let rows = table.rows();
    (0..rows).step_by(step).map(move |first| table.some_rows(first..rows.min(first + step)))
}

/// Adds an f64 to a sum. It is finite, and a multiple of the format's last place.
#[inline]
fn deposit<F: warpfold_core::exact::format::Format>(acc: &mut Superacc<F>, x: f64) {
    if let Parts::Finite { negative, magnitude, exponent } = x.parts()
        && magnitude != 0
    {
        // The zeros at its end may be below the format's last place.
        let zeros = magnitude.trailing_zeros();
        acc.deposit(negative, magnitude >> zeros, exponent + zeros.cast_signed());
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

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
