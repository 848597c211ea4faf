//! The exact sums of some columns, whatever the elements are.

use super::columnar::{Columnar, in_window};
use crate::exact::side_by_side::{MOST_COLUMNS, WINDOW_ROWS};
use crate::exact::{HEADROOM, Tuner, largest_exponent};
use crate::isa::Isa;
use crate::table::Table;
use core::borrow::BorrowMut;
use warpfold_core::Element;
use warpfold_core::element::Parts;
use warpfold_core::exact::Superacc;

/// The sums of up to [`MOST_COLUMNS`] columns.
pub(super) struct Side<T: Columnar> {
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
    pub(super) fn new() -> Self {
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
    pub(super) fn sum(&mut self, table: Table<'_, T>, isa: Isa) {
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
    pub(super) fn add<A: BorrowMut<Superacc<T::Sum>>>(
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
            if T::FALLBACK_ROWS > 0 && in_window(part, top, [high, low], isa) {
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

    /// Adds the sum of a column to `acc`.
    pub(super) fn add_to(&self, column: usize, acc: &mut Superacc<T::Sum>) {
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
