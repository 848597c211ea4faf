//! Rows of elements, of one length or of many: what accumulators take in row by row.

use crate::ragged::Ragged;
use crate::table::Table;

/// The rows of a table, or of different lengths.
pub(crate) enum Rows<'a, T> {
    Even(Table<'a, T>),
    Ragged(Ragged<'a, T>),
}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Rows<'_, T> {}

impl<'a> Rows<'a, ()> {
    /// The same rows with the type of their elements.
    ///
    /// # Safety
    /// As for [`Table::of_elements`] and [`Ragged::of_elements`].
    pub(crate) unsafe fn of_elements<T>(self) -> Rows<'a, T> {
        // SAFETY: passed on from the caller.
        unsafe {
            match self {
                Rows::Even(table) => Rows::Even(table.of_elements()),
                Rows::Ragged(ragged) => Rows::Ragged(ragged.of_elements()),
            }
        }
    }
}

impl<'a, T> Rows<'a, T> {
    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn count(&self) -> usize {
        match self {
            Rows::Even(table) => table.rows(),
            Rows::Ragged(ragged) => ragged.rows(),
        }
    }

    /// A row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        match self {
            Rows::Even(table) => table.row(row),
            Rows::Ragged(ragged) => ragged.row(row),
        }
    }

    /// How many elements after a row may be read, too.
    #[inline(always)]
    pub(crate) fn beyond(&self, row: usize) -> usize {
        match self {
            // Rows without gaps between them.
            Rows::Even(table) if table.items().is_some() => {
                (table.rows() - row - 1) * table.columns()
            }
            Rows::Even(_) => 0,
            Rows::Ragged(ragged) => ragged.beyond(row),
        }
    }
}
