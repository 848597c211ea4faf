//! Exact sums of columns by the kernels for many sums at a time.

use crate::exact::side_by_side::{
    RANGE_ROWS, ROWS_IN_A_TILE, RangeColumns, WINDOW_ROWS, WindowColumns,
};
use crate::exact::{self, Plain, RANGE_GROWTH, Tuner, Widen, Window};
use crate::isa::Isa;
use crate::simd::dispatch;
use crate::slices::Slices;
use crate::table::Table;
use warpfold_core::exact::{FloatFormat, Superacc};
use warpfold_core::fpenv;

/// An element type with such kernels.
pub(crate) trait Columnar: FloatFormat + Widen {
    /// The most rows that one call of [`columns`](Self::columns) sums.
    const ROWS: usize;
    /// The most rows of a table that needs no window. For such a table
    /// [`columns`](Self::columns) ignores `top` and does not write the second part of
    /// each sum, which is 0.
    const WINDOWLESS_ROWS: usize;

    /// Writes the sum of each column in two parts. Returns false if a certificate
    /// failed, or if the floating-point environment is not the default one.
    ///
    /// The table has at most [`ROWS`](Self::ROWS) rows. It has at most [`MOST_COLUMNS`](exact::side_by_side::MOST_COLUMNS)
    /// columns, and their number is a multiple of
    /// [`GROUP`](exact::side_by_side::GROUP). Both slices of `sums` have
    /// one element for each column.
    fn columns(table: Table<'_, Self>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool;

    /// The most rows that [`in_window`] sums of tables that [`columns`](Self::columns) did not certify;
    /// 0 if that is what it does.
    const FALLBACK_ROWS: usize = 0;

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
    fn absorb(acc: &mut Superacc<Self::Sum>, items: &[f32], tuner: &mut Tuner, isa: Isa) {
        exact::absorb::<Plain<f32>, _>(acc, Slices::one(items), tuner, isa);
    }
}

impl Columnar for f64 {
    const ROWS: usize = WINDOW_ROWS;
    const WINDOWLESS_ROWS: usize = 0;
    fn columns(table: Table<'_, f64>, top: i32, sums: [&mut [f64]; 2], isa: Isa) -> bool {
        in_window(table, top, sums, isa)
    }
    fn absorb(acc: &mut Superacc<Self::Sum>, items: &[f64], tuner: &mut Tuner, isa: Isa) {
        exact::absorb::<Plain<f64>, _>(acc, Slices::one(items), tuner, isa);
    }
}

/// Sums columns in a window for elements below `2^top`, under the contract of [`Columnar::columns`].
pub(super) fn in_window<T: Widen>(
    table: Table<'_, T>,
    top: i32,
    [high, low]: [&mut [f64]; 2],
    isa: Isa,
) -> bool {
    Window::below(top, 2, false)
        .filter(|_| fpenv::is_usual())
        .is_some_and(|window| dispatch(isa, WindowColumns { table, window, high, low }))
}
