//! Copying a table of elements together, whatever its strides.

#![expect(
    clippy::needless_range_loop,
    reason = "several arrays are indexed alike, in loops that compilers unroll"
)]

use crate::simd::{Kernel, Simd};

/// Rows and columns of a block that is transposed in registers.
const SIDE: usize = 8;

/// Fills `to` with rows of `columns` elements.
pub(super) struct Pack<'a, T> {
    /// The first element.
    pub(super) from: *const T,
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Bytes from one row to the next, and from one column to the next: multiples of
    /// the elements' alignment.
    pub(super) row_stride: isize,
    pub(super) column_stride: isize,
    /// As long as the table. The caller of [`Kernel::run`] vouches for that the
    /// table's elements may be read.
    pub(super) to: &'a mut [T],
}

impl<T: bytemuck::Pod> Kernel for Pack<'_, T> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<S: Simd>(self) {
        let Pack { from, rows, columns, row_stride, column_stride, to } = self;
        let size = size_of::<T>().cast_signed();
        let at = |row: usize, column: usize| {
            let offset = row.cast_signed() * row_stride + column.cast_signed() * column_stride;
            from.wrapping_byte_offset(offset)
        };
        assert!(to.len() == rows * columns);
        // SAFETY: every address is one of an element of the table, or of several that
        // follow each other; the caller vouches for them.
        unsafe {
            if column_stride == size {
                for (row, to) in to.chunks_exact_mut(columns.max(1)).enumerate() {
                    core::ptr::copy_nonoverlapping(at(row, 0), to.as_mut_ptr(), columns);
                }
            } else if row_stride == size && rows >= SIDE / 2 {
                let mut top = 0;
                while top < rows {
                    let height = SIDE.min(rows - top);
                    let mut left = 0;
                    while left < columns {
                        let width = SIDE.min(columns - left);
                        if (height, width) == (SIDE, SIDE) {
                            let mut block = [[T::zeroed(); SIDE]; SIDE];
                            for (column, lines) in block.iter_mut().enumerate() {
                                *lines = at(top, left + column).cast::<[T; SIDE]>().read();
                            }
                            for row in 0..SIDE {
                                let mut line = [T::zeroed(); SIDE];
                                for column in 0..SIDE {
                                    line[column] = block[column][row];
                                }
                                let place = (top + row) * columns + left;
                                assert!(place + SIDE <= to.len());
                                to.as_mut_ptr().add(place).cast::<[T; SIDE]>().write(line);
                            }
                        } else {
                            for row in top..top + height {
                                for column in left..left + width {
                                    to[row * columns + column] = at(row, column).read();
                                }
                            }
                        }
                        left += width;
                    }
                    top += height;
                }
            } else {
                for (row, to) in to.chunks_exact_mut(columns.max(1)).enumerate() {
                    // What lies between the elements may be written by others: one load
                    // for each element.
                    let mut from = at(row, 0);
                    for to in to {
                        *to = from.read();
                        from = from.wrapping_byte_offset(column_stride);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;
    use crate::simd::dispatch;

    #[test]
    fn tables_are_copied_whatever_their_strides() {
        let items: Vec<u16> = (0..6000).map(|i| i as u16).collect();
        for isa in Isa::available() {
            for (rows, columns) in [(1, 1), (3, 5), (8, 8), (17, 33), (4, 40), (40, 4), (50, 19)] {
                for (row, column) in
                    [(columns, 1), (1, rows), (2 * columns, 2), (1, rows + 3), (3, 3 * rows)]
                {
                    let mut to = vec![0; rows * columns];
                    let (row_stride, column_stride) = (2 * row as isize, 2 * column as isize);
                    let from = items.as_ptr();
                    dispatch(
                        isa,
                        Pack { from, rows, columns, row_stride, column_stride, to: &mut to },
                    );
                    for (i, &x) in to.iter().enumerate() {
                        let place = i / columns * row + i % columns * column;
                        assert_eq!(usize::from(x), place, "{rows} {columns} {row} {column}");
                    }
                }
            }
        }
    }
}
