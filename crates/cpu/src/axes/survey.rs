//! The least and the greatest element of outputs: what is known of elements before they are added.

use super::round::Narrow;
use crate::rows::Rows;
use crate::simd::{Kernel, Simd};
use crate::table::Table;
use warpfold_core::prefetch;

/// Elements that are compared side by side.
const LANES: usize = 16;

/// The elements of outputs.
#[derive(Clone, Copy)]
pub(super) enum Outputs<'a, T> {
    /// Each is a row.
    Rows(Rows<'a, T>),
    /// Each is a column.
    Columns(Table<'a, T>),
}

impl<T> Outputs<'_, T> {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        match self {
            Outputs::Rows(rows) => rows.count(),
            Outputs::Columns(table) => table.columns(),
        }
    }
}

/// Finds the least and the greatest element of each output, beside what there is. NaNs are left
/// out.
pub(super) struct Survey<'a, T> {
    pub(super) outputs: Outputs<'a, T>,
    /// As many as there are outputs.
    pub(super) least: &'a mut [f64],
    pub(super) greatest: &'a mut [f64],
}

/// Compares as many elements as there are places.
#[inline(always)]
fn compare<T: Narrow>(items: &[T], least: &mut [f64], greatest: &mut [f64]) {
    for ((item, least), greatest) in items.iter().zip(least).zip(greatest) {
        let x = item.wide();
        *least = if x < *least { x } else { *least };
        *greatest = if x > *greatest { x } else { *greatest };
    }
}

impl<T: Narrow> Kernel for Survey<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Survey { outputs, least, greatest } = self;
        match outputs {
            Outputs::Columns(table) => {
                for row in 0..table.rows() {
                    compare(table.row(row), least, greatest);
                }
            }
            Outputs::Rows(rows) => {
                for row in 0..rows.count() {
                    let mut low = [least[row]; LANES];
                    let mut high = [greatest[row]; LANES];
                    for items in rows.row(row).chunks(LANES) {
                        prefetch::ahead(items);
                        compare(items, &mut low, &mut high);
                    }
                    least[row] = low.into_iter().fold(least[row], f64::min);
                    greatest[row] = high.into_iter().fold(greatest[row], f64::max);
                }
            }
        }
    }
}
