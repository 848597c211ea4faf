//! Tables in memory: what kernels for many outputs read.

use crate::pack::LINE;
use core::marker::PhantomData;

/// Bytes ahead, in every row, at which the next columns are asked for.
const ASIDE: usize = 512;
/// Bytes of rows that are worth it to begin with a line.
const WIDE: usize = 1024;
/// Bytes of a page.
const PAGE: usize = 4096;

/// Rows, `stride` bytes apart, of consecutive elements, all of which may be read
/// for `'a`: a slice with gaps.
pub(crate) struct Table<'a, T> {
    /// Aligned.
    origin: *const T,
    /// A multiple of the alignment.
    stride: isize,
    rows: usize,
    columns: usize,
    elements: PhantomData<&'a [T]>,
}

impl<T> Clone for Table<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Table<'_, T> {}

// SAFETY: a table only reads, as a shared slice of its elements does.
unsafe impl<T: Sync> Send for Table<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Table<'_, T> {}

impl<'a, T> Table<'a, T> {
    /// A slice as rows of `columns` elements, which is not 0, without what is
    /// left over.
    pub(crate) fn of(items: &'a [T], columns: usize) -> Table<'a, T> {
        let stride = (columns * size_of::<T>()).cast_signed();
        let rows = items.len() / columns;
        Table { origin: items.as_ptr(), stride, rows, columns, elements: PhantomData }
    }

    /// How many rows there are.
    #[inline(always)]
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row.
    #[inline(always)]
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// The first columns and the others, all of whose rows begin with a line of the cache: a vector
    /// that lies across two lines takes twice as long to read. None are the first ones where that cannot
    /// be, or does not pay.
    pub(crate) fn at_lines(self, size: usize) -> [Table<'a, T>; 2] {
        let before = self.origin.addr().wrapping_neg() % LINE;
        let fits = self.stride.unsigned_abs().is_multiple_of(LINE) && before.is_multiple_of(size);
        let wide = self.columns * size >= WIDE && self.rows > 1;
        let first = if fits && wide { before / size } else { 0 };
        let others = Table {
            origin: self.origin.wrapping_byte_add(first * size),
            columns: self.columns - first,
            ..self
        };
        [Table { columns: first, ..self }, others]
    }

    /// The bytes from one row to the next.
    #[inline(always)]
    pub(crate) fn stride(&self) -> isize {
        self.stride
    }

    /// The address of an element. It may be read if it is one of the table.
    #[inline(always)]
    pub(crate) fn at(&self, row: usize, column: usize) -> *const T {
        self.origin.wrapping_byte_offset(row.cast_signed() * self.stride).wrapping_add(column)
    }

    /// A row.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &'a [T] {
        assert!(row < self.rows);
        // SAFETY: a row of the table, whose elements may be read for `'a`.
        unsafe { core::slice::from_raw_parts(self.at(row, 0), self.columns) }
    }

    /// What a kernel asks for that reads the table in groups of columns, `group` bytes
    /// wide, while it reads the one that begins `offset` bytes into the rows: an address,
    /// and how many bytes it goes up from row to row.
    ///
    /// Of near rows the next table follows, and is asked for in the order of memory. Of
    /// rows in different pages each is a stream of its own.
    #[inline(always)]
    pub(crate) fn ahead(&self, offset: usize, group: usize) -> (*const u8, isize) {
        let at = |row: usize, byte: usize| self.at(row, 0).cast::<u8>().wrapping_add(byte);
        let (width, next) = (self.columns * size_of::<T>(), offset + ASIDE);
        if self.stride.unsigned_abs() < PAGE {
            (at(self.rows, offset * self.rows), group.cast_signed())
        } else if next < width {
            (at(0, next), self.stride)
        } else {
            (at(self.rows, next - width), self.stride)
        }
    }

    /// All elements, if there are no gaps between rows.
    pub(crate) fn items(&self) -> Option<&'a [T]> {
        let gapless = self.stride == (self.columns * size_of::<T>()).cast_signed();
        // SAFETY: elements of the table, which follow each other.
        gapless
            .then(|| unsafe { core::slice::from_raw_parts(self.origin, self.rows * self.columns) })
    }
}

impl<'a> Table<'a, ()> {
    /// A table of elements whose type is not known here. Nothing can be read from it.
    pub(crate) fn of_any(
        origin: *const (),
        stride: isize,
        rows: usize,
        columns: usize,
    ) -> Table<'a, ()> {
        Table { origin, stride, rows, columns, elements: PhantomData }
    }

    /// The same table with the type of its elements.
    ///
    /// # Safety
    /// Every element of the table is aligned, of this type and valid for reads for `'a`, and it is
    /// not written meanwhile.
    pub(crate) unsafe fn of_elements<T>(self) -> Table<'a, T> {
        let Table { origin, stride, rows, columns, .. } = self;
        Table { origin: origin.cast(), stride, rows, columns, elements: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_each_other_without_what_is_left_over() {
        let items: Vec<u32> = (0..23).collect();
        let table = Table::of(&items, 5);
        let row = [15, 16, 17, 18, 19];
        assert_eq!((table.rows(), table.columns(), table.row(3)), (4, 5, &row[..]));
        assert_eq!(table.items(), Some(&items[..20]));
    }

    #[test]
    #[should_panic]
    fn there_is_no_row_beyond_the_last() {
        let _ = Table::of(&[1, 2, 3, 4], 2).row(2);
    }
}
