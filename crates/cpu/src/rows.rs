//! Rows of elements, of one length or of many: what accumulators take in row by row.

use crate::ragged::Ragged;
use crate::table::Table;

/// The rows of a table, or of different lengths. Loops over them are compiled for each, so
/// that a program has only those that it uses.
pub(crate) trait Rows<'a, T>: Copy {
    /// Whether there may be many rows of a few elements: those of a table are turned into
    /// columns before.
    const MAY_BE_SHORT: bool;

    /// How many rows there are.
    fn count(&self) -> usize;
    /// A row.
    fn row(&self, row: usize) -> &'a [T];
    /// How many elements after a row may be read, too.
    fn beyond(&self, row: usize) -> usize;
}

impl<'a, T> Rows<'a, T> for Table<'a, T> {
    const MAY_BE_SHORT: bool = false;

    #[inline(always)]
    fn count(&self) -> usize {
        self.rows()
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        Table::row(self, row)
    }

    #[inline(always)]
    fn beyond(&self, row: usize) -> usize {
        // Rows without gaps between them.
        if self.items().is_some() { (self.rows() - row - 1) * self.columns() } else { 0 }
    }
}

impl<'a, T> Rows<'a, T> for Ragged<'a, T> {
    const MAY_BE_SHORT: bool = true;

    #[inline(always)]
    fn count(&self) -> usize {
        self.rows()
    }

    #[inline(always)]
    fn row(&self, row: usize) -> &'a [T] {
        Ragged::row(self, row)
    }

    #[inline(always)]
    fn beyond(&self, row: usize) -> usize {
        Ragged::beyond(self, row)
    }
}
