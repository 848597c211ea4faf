//! Rows of elements, of one length or of many: what accumulators take in row by row.

use crate::ragged::Ragged;
use crate::table::Table;

/// The rows of a table, or of different lengths. Loops over them are compiled once for both:
/// a row costs a branch that is always the same.
pub(crate) enum Rows<'a, T> {
    /// Of one length.
    Table(Table<'a, T>),
    /// Of many.
    Ragged(Ragged<'a, T>),
}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Rows<'_, T> {}

impl<'a, T> Rows<'a, T> {
    /// Whether there may be many rows of a few elements: those of a table are turned into
    /// columns before.
    #[inline(always)]
    pub(crate) fn may_be_short(&self) -> bool {
        matches!(self, Rows::Ragged(_))
    }

    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Table(table) => table.rows(),
            Rows::Ragged(rows) => rows.rows(),
        }
    }

    /// A row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        match self {
            Rows::Table(table) => table.row(row),
            Rows::Ragged(rows) => rows.row(row),
        }
    }

    /// The address of a row. What comes [after](Self::beyond) the row may be read from here,
    /// and not from the row's slice.
    #[inline(always)]
    pub(crate) fn start(&self, row: usize) -> *const T {
        match self {
            Rows::Table(table) => table.at(row, 0),
            Rows::Ragged(rows) => rows.start(row),
        }
    }

    /// How many elements after a row may be read, too.
    #[inline(always)]
    pub(crate) fn beyond(&self, row: usize) -> usize {
        match self {
            // Rows without gaps between them.
            Rows::Table(table) if table.items().is_some() => {
                (table.rows() - row - 1) * table.columns()
            }
            Rows::Table(_) => 0,
            Rows::Ragged(rows) => rows.beyond(row),
        }
    }
}
