//! Walking a traversal in blocks of aligned, consecutive elements: where the
//! array has them they are handed over as they lie, else they are copied
//! together.

use crate::pack::{LINE, Pack, room, written};
use core::ops::Range;
use warpfold_core::layout::Traversal;
use warpfold_core::op::RawRun;
use warpfold_core::{DType, Result};

/// Elements of a copied block.
const COPIED: usize = 8192;
/// Bytes of the copies of several outputs, which stay in the L2 cache.
const COLUMNS: usize = 256 << 10;
/// A run at least this long is worth handing over as it lies.
const LONG: usize = 512;
/// Elements of a run that is handed over at once.
pub(crate) const AT_ONCE: usize = 1 << 16;

/// One or two arrays that are walked together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The element type.
    pub(crate) dtype: DType,
    /// The addresses of the arrays' elements of index 0; the second is null
    /// if there is one array.
    origins: [*const u8; 2],
}

// SAFETY: a source reads nothing: whoever reads through its pointers vouches
// for that, see `for_each_run`.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    /// The arrays whose elements of index 0 lie there.
    pub(crate) fn new(dtype: DType, first: *const u8, second: Option<*const u8>) -> Self {
        Source { dtype, origins: [first, second.unwrap_or(core::ptr::null())] }
    }

    fn arrays(&self) -> usize {
        if self.origins[1].is_null() { 1 } else { 2 }
    }

    /// The same arrays seen from other elements, `offsets` bytes away.
    pub(crate) fn shifted(&self, offsets: [isize; 2]) -> Source {
        let mut source = *self;
        for (origin, offset) in source.origins.iter_mut().zip(offsets).take(self.arrays()) {
            *origin = origin.wrapping_offset(offset);
        }
        source
    }

    /// The addresses of the arrays' elements of index 0.
    pub(crate) fn origins(&self) -> impl Iterator<Item = *const u8> + use<> {
        self.origins.into_iter().take(self.arrays())
    }
}

/// Memory for copied blocks, kept between walks.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    words: [Vec<u64>; 2],
}

impl Buffers {
    /// Memory for the elements of an array, which has been written already.
    pub(crate) fn bytes(&self, array: usize) -> &[u8] {
        written(&self.words[array])
    }

    /// Memory for `bytes` bytes of an array.
    pub(crate) fn block(&mut self, array: usize, bytes: usize) -> &mut [u8] {
        room(&mut self.words[array], bytes)
    }
}

/// Hands the elements at `positions` of `walk` to `sink`, in order.
///
/// # Errors
/// Those of `sink`.
///
/// # Safety
/// Every element of the walk over the source, in both arrays if there are two,
/// is valid for reads and not written to meanwhile; `positions` are among the
/// walk's.
pub(crate) unsafe fn for_each_run(
    source: &Source,
    walk: &Traversal,
    positions: Range<usize>,
    buffers: &mut Buffers,
    mut sink: impl FnMut(RawRun<'_>) -> Result<()>,
) -> Result<()> {
    let size = source.dtype.size();
    let source = source.shifted(walk.offsets);
    let arrays = source.arrays();
    let inner = walk.dims.last();
    let inner_len = inner.map_or(1, |d| d.len);
    let plain = (0..arrays).all(|i| {
        inner.is_none_or(|d| d.strides[i] == size.cast_signed())
            && source.origins[i].addr().is_multiple_of(size)
            && walk.dims.iter().all(|d| d.strides[i].unsigned_abs().is_multiple_of(size))
    });
    let mut at = positions.start;
    while at < positions.end {
        let in_row = inner_len - at % inner_len;
        let left = (positions.end - at).min(in_row);
        if plain && (left >= LONG || left == positions.end - at) {
            let offset = walk.locate(at);
            let len = left.min(AT_ONCE);
            let slice = |i: usize| {
                // SAFETY: the elements of a contiguous innermost dimension, from `at`
                // on, `len` of them; the caller guarantees them.
                unsafe {
                    core::slice::from_raw_parts(
                        source.origins[i].wrapping_offset(offset[i]),
                        len * size,
                    )
                }
            };
            let others: &[u8] = if arrays == 2 { slice(1) } else { &[] };
            sink(RawRun { start: at as u64, items: slice(0), others })?;
            at += len;
        } else {
            let len = COPIED.min(positions.end - at);
            for i in 0..arrays {
                let to = buffers.block(i, len * size);
                // SAFETY: the elements of the walk; the caller guarantees them.
                unsafe { copy(walk, i, &source, at, to) };
            }
            let block = |i: usize| &buffers.bytes(i)[..len * size];
            let others: &[u8] = if arrays == 2 { block(1) } else { &[] };
            sink(RawRun { start: at as u64, items: block(0), others })?;
            at += len;
        }
    }
    Ok(())
}

/// How many elements of each of so many outputs are copied together.
pub(crate) fn rows(columns: usize, size: usize) -> usize {
    (COLUMNS / (columns * size)).clamp(1, COPIED)
}

/// Hands the elements at `positions` of `walk`, for each of `columns` outputs that lie side by
/// side, to `sink` with the number of the output: those of one output in order. What a cache line
/// holds is used at once.
///
/// # Errors
/// Those of `sink`.
///
/// # Safety
/// As for [`for_each_run`], over the sources up to `columns - 1` elements behind this one, too.
pub(crate) unsafe fn for_each_column(
    source: &Source,
    walk: &Traversal,
    columns: usize,
    positions: Range<usize>,
    buffers: &mut Buffers,
    mut sink: impl FnMut(usize, RawRun<'_>) -> Result<()>,
) -> Result<()> {
    let size = source.dtype.size();
    let source = source.shifted(walk.offsets);
    let arrays = source.arrays();
    let rows = rows(columns, size).min(positions.len());
    // Columns a power of two apart would share sets of the cache.
    let pitch = rows + LINE / size;
    for start in positions.clone().step_by(rows.max(1)) {
        let len = rows.min(positions.end - start);
        for array in 0..arrays {
            let to = buffers.block(array, columns * pitch * size);
            let inner = walk.dims.last().map_or((1, 0), |d| (d.len, d.strides[array]));
            let (inner_len, stride) = inner;
            let mut done = 0;
            while done < len {
                let at = start + done;
                let count = (inner_len - at % inner_len).min(len - done);
                let table = Pack {
                    from: source.origins[array].wrapping_offset(walk.locate(at)[array]),
                    size,
                    rows: columns,
                    columns: count,
                    row_stride: size.cast_signed(),
                    column_stride: stride,
                };
                // SAFETY: the elements of the innermost dimension from `at` on, and their
                // neighbours, which the caller vouches for.
                unsafe { table.fill_beside(&mut to[done * size..], pitch) };
                done += count;
            }
        }
        for column in 0..columns {
            let place = column * pitch * size..(column * pitch + len) * size;
            let items = &buffers.bytes(0)[place.clone()];
            let others = if arrays == 2 { &buffers.bytes(1)[place] } else { &[][..] };
            sink(column, RawRun { start: start as u64, items, others })?;
        }
    }
    Ok(())
}

/// Fills `to` with the elements of one of the arrays from `position` of its walk on.
///
/// # Safety
/// As for [`for_each_run`]; the source begins at the walk's first elements.
unsafe fn copy(walk: &Traversal, array: usize, source: &Source, position: usize, to: &mut [u8]) {
    let size = source.dtype.size();
    let mut dims = walk.dims.iter().rev().map(|d| (d.len, d.strides[array]));
    let (columns, column_stride) = dims.next().unwrap_or((1, 0));
    let (rows, row_stride) = dims.next().unwrap_or((1, 0));
    let (mut at, mut to) = (position, to);
    while !to.is_empty() {
        let len = to.len() / size;
        // Whole rows as one table; what is left of a row begins or ends the run.
        let rows = (len / columns).min(rows - at / columns % rows);
        let (rows, columns) = match at % columns {
            0 if rows > 0 => (rows, columns),
            column => (1, len.min(columns - column)),
        };
        let from = source.origins[array].wrapping_offset(walk.locate(at)[array]);
        let (now, after) = core::mem::take(&mut to).split_at_mut(rows * columns * size);
        // SAFETY: elements of the walk, which the caller guarantees.
        unsafe { Pack { from, size, rows, columns, row_stride, column_stride }.fill(now) };
        at += rows * columns;
        to = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<W: bytemuck::Pod>(dtype: DType, make: fn(u64) -> W) {
        // Two dimensions around the columns, the inner one of any length.
        let axes: [(usize, usize, usize); 6] =
            [(1, 1, 2), (3, 8, 16), (2, 17, 13), (5, 3, 70), (1, 2100, 9), (1, 70_000, 3)];
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
                    let source = Source::new(dtype, origin, None);
                    let len = outer * inner;
                    for positions in [0..len, len / 3..len, len / 3..len / 2] {
                        let mut got = vec![Vec::new(); columns];
                        let take = |column: usize, run: RawRun<'_>| {
                            let got: &mut Vec<u8> = &mut got[column];
                            assert_eq!(run.start as usize, positions.start + got.len() / size);
                            got.extend_from_slice(run.items);
                            Ok(())
                        };
                        let (places, mut buffers) = (positions.clone(), Buffers::default());
                        // SAFETY: rows and columns of `items`.
                        unsafe {
                            for_each_column(&source, &walk, columns, places, &mut buffers, take)
                        }
                        .unwrap();
                        for (column, got) in got.iter().enumerate() {
                            let at = |p: usize| {
                                let (o, i) = (p / inner, p % inner);
                                let i = if up { inner - 1 - i } else { i };
                                items[(o * inner + i) * wide + first + column]
                            };
                            let expected: Vec<W> = positions.clone().map(at).collect();
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
