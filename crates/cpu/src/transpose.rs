//! Copying the elements of several outputs together, where those of one output
//! lie far apart and those of the next one beside them: what a cache line holds
//! is used at once.

use crate::gather::{Buffers, Source};
use core::ops::Range;
use warpfold_core::layout::Traversal;
use warpfold_core::op::RawRun;
use warpfold_core::{Result, prefetch};

/// Bytes of the buffer, which stays in the L2 cache.
const BUFFER: usize = 256 << 10;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of neighbouring outputs that are copied at once, at most.
const MOST_BESIDE: usize = 1 << 10;
/// Elements of an output that are copied at once.
const ROWS: usize = 1024;
/// Rows and columns of a block that is transposed in registers.
const SIDE: usize = 8;

/// How many outputs are copied at once, and how many elements of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Group {
    /// For outputs of `len` elements of `size` bytes each.
    pub(crate) fn of(len: usize, size: usize) -> Group {
        let rows = len.clamp(1, ROWS);
        let beside = (BUFFER / rows / LINE * LINE).clamp(LINE, MOST_BESIDE);
        Group { columns: beside / size, rows }
    }
}

/// Hands the elements at `positions` of `walk`, for each of some outputs that
/// lie side by side, to `sink` with the number of the output: those of one
/// output in order.
///
/// # Errors
/// Those of `sink`.
///
/// # Safety
/// Every element of the walk over the source, in both arrays if there are two,
/// and over the sources up to `group.columns - 1` elements behind it, is valid
/// for reads and not written to meanwhile; `positions` are among the walk's.
pub(crate) unsafe fn for_each_column(
    source: &Source,
    walk: &Traversal,
    group: Group,
    positions: Range<usize>,
    buffers: &mut Buffers,
    mut sink: impl FnMut(usize, RawRun<'_>) -> Result<()>,
) -> Result<()> {
    let size = source.dtype.size();
    let source = source.shifted(walk.offsets);
    let Group { columns, rows } = group;
    // Columns a power of two apart would share sets of the cache.
    let pitch = rows * size + LINE;
    for start in positions.clone().step_by(rows) {
        let len = rows.min(positions.end - start);
        for (array, origin) in source.origins().enumerate() {
            let to = buffers.block(array, columns * pitch);
            let inner = walk.dims.last().map_or((1, 0), |d| (d.len, d.strides[array]));
            let (inner_len, stride) = inner;
            let mut done = 0;
            while done < len {
                let at = start + done;
                let count = (inner_len - at % inner_len).min(len - done);
                let from = Rows {
                    first: origin.wrapping_offset(walk.locate(at)[array]),
                    stride,
                    rows: count,
                    columns,
                };
                let to = &mut to[done * size..];
                // SAFETY: the elements of the innermost dimension from `at` on,
                // and their neighbours, which the caller vouches for.
                unsafe {
                    match size {
                        1 => from.transpose::<u8>(to, pitch),
                        2 => from.transpose::<u16>(to, pitch),
                        4 => from.transpose::<u32>(to, pitch),
                        _ => from.transpose::<u64>(to, pitch),
                    }
                }
                done += count;
            }
        }
        let pairs = source.origins().count() == 2;
        for column in 0..columns {
            let place = column * pitch..column * pitch + len * size;
            let items = &buffers.bytes(0)[place.clone()];
            let others = if pairs { &buffers.bytes(1)[place] } else { &[][..] };
            sink(column, RawRun { start: start as u64, items, others })?;
        }
    }
    Ok(())
}

/// Rows of neighbouring elements, `stride` bytes apart, aligned or not.
#[derive(Clone, Copy)]
struct Rows {
    first: *const u8,
    stride: isize,
    rows: usize,
    columns: usize,
}

impl Rows {
    /// Fills `to` with the columns, which begin `pitch` bytes apart.
    ///
    /// # Safety
    /// Every element of the rows is valid for reads.
    unsafe fn transpose<W: bytemuck::Pod>(self, to: &mut [u8], pitch: usize) {
        let size = size_of::<W>();
        let at = |row: usize, column: usize| -> *const W {
            let row = self.first.wrapping_offset(row.cast_signed() * self.stride);
            row.cast::<W>().wrapping_add(column)
        };
        for top in (0..self.rows).step_by(SIDE) {
            let height = SIDE.min(self.rows - top);
            for row in top + SIDE..(top + 2 * SIDE).min(self.rows) {
                for column in (0..self.columns).step_by(LINE / size) {
                    prefetch::near(at(row, column).cast());
                }
            }
            for left in (0..self.columns).step_by(SIDE) {
                let width = SIDE.min(self.columns - left);
                let mut block = [[W::zeroed(); SIDE]; SIDE];
                if (height, width) == (SIDE, SIDE) {
                    for row in 0..SIDE {
                        // SAFETY: eight elements of a row, which the caller
                        // vouches for.
                        let items =
                            unsafe { at(top + row, left).cast::<[W; SIDE]>().read_unaligned() };
                        for (column, item) in block.iter_mut().zip(items) {
                            column[row] = item;
                        }
                    }
                } else {
                    for row in 0..height {
                        for (i, column) in block.iter_mut().enumerate().take(width) {
                            // SAFETY: an element of the rows.
                            column[row] = unsafe { at(top + row, left + i).read_unaligned() };
                        }
                    }
                }
                for (i, column) in block.iter().enumerate().take(width) {
                    let place = (left + i) * pitch + top * size;
                    let column: &[u8] = bytemuck::cast_slice(&column[..height]);
                    to[place..place + column.len()].copy_from_slice(column);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::DType;

    #[test]
    fn groups_fill_lines_and_fit_the_buffer() {
        for size in [1, 2, 4, 8] {
            for len in [0, 1, 7, 500, 1024, 5000, 1 << 20] {
                let Group { columns, rows } = Group::of(len, size);
                assert!((columns * size).is_multiple_of(LINE) && columns > 0 && rows > 0);
                assert!(columns * size * rows <= BUFFER, "{columns} x {rows}");
            }
        }
    }

    fn check<W: bytemuck::Pod + PartialEq + core::fmt::Debug>(dtype: DType, make: fn(u64) -> W) {
        // Two dimensions around the columns, the inner one of any length.
        let axes: [(usize, usize, usize); 5] =
            [(1, 1, 1), (3, 8, 16), (2, 17, 13), (5, 3, 70), (1, 2100, 9)];
        for (outer, inner, wide) in axes {
            let size = size_of::<W>();
            let items: Vec<W> = (0..(outer * inner * wide) as u64).map(make).collect();
            let bytes: &[u8] = bytemuck::cast_slice(&items);
            // Once more at an odd address, the rows upside down.
            let mut odd = vec![0u8; bytes.len() + 1];
            odd[1..].copy_from_slice(bytes);
            for (bytes, up) in [(bytes, false), (&odd[1..], true)] {
                let row = (wide * size).cast_signed();
                let step = if up { -row } else { row };
                let axes = [(outer, [row * inner.cast_signed(), 0]), (inner, [step, 0])];
                let walk = Traversal::in_index_order(&axes);
                for (first, columns) in [(0, wide), (wide / 2, wide - wide / 2)] {
                    let last = if up { (inner - 1) * wide * size } else { 0 };
                    let origin = bytes.as_ptr().wrapping_add(first * size + last);
                    let source = Source::new(dtype, origin, None, true);
                    let len = outer * inner;
                    for positions in [0..len, len / 3..len, len / 3..len / 2] {
                        let group = Group { columns, rows: 1024 };
                        let mut got = vec![Vec::new(); columns];
                        let mut buffers = Buffers::default();
                        // SAFETY: rows and columns of `items`.
                        unsafe {
                            for_each_column(
                                &source,
                                &walk,
                                group,
                                positions.clone(),
                                &mut buffers,
                                |column, run| {
                                    assert_eq!(
                                        run.start as usize,
                                        positions.start + got[column].len() / size
                                    );
                                    got[column].extend_from_slice(run.items);
                                    Ok(())
                                },
                            )
                        }
                        .unwrap();
                        for (column, got) in got.iter().enumerate() {
                            let expected: Vec<W> = positions
                                .clone()
                                .map(|p| {
                                    let (o, i) = (p / inner, p % inner);
                                    let i = if up { inner - 1 - i } else { i };
                                    items[(o * inner + i) * wide + first + column]
                                })
                                .collect();
                            let expected: &[u8] = bytemuck::cast_slice(&expected);
                            assert_eq!(got, expected, "{outer} x {inner} x {wide}: {column}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn columns_come_in_the_order_of_the_walk() {
        check::<u8>(DType::U8, |i| (i * 7) as u8);
        check::<u16>(DType::U16, |i| (i * 7) as u16);
        check::<u32>(DType::U32, |i| (i * 7) as u32);
        check::<u64>(DType::U64, |i| i * 7);
    }
}
