//! Walking a traversal in blocks of aligned, consecutive elements: where the
//! array has them they are handed over as they lie, else they are copied
//! together.

use crate::pack::{Pack, room};
use core::ops::Range;
use warpfold_core::layout::Traversal;
use warpfold_core::op::RawRun;
use warpfold_core::{DType, Result};

/// Elements of a copied block.
const COPIED: usize = 8192;
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
    /// Whether the bytes between elements may be read like these.
    pub(crate) gaps: bool,
}

// SAFETY: a source reads nothing: whoever reads through its pointers vouches
// for that, see `for_each_run`.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    /// The arrays whose elements of index 0 lie there.
    pub(crate) fn new(
        dtype: DType,
        first: *const u8,
        second: Option<*const u8>,
        gaps: bool,
    ) -> Self {
        Source { dtype, origins: [first, second.unwrap_or(core::ptr::null())], gaps }
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

    /// The address of the first array's element of index 0.
    pub(crate) fn origin(&self) -> *const u8 {
        self.origins[0]
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
        bytemuck::cast_slice(&self.words[array])
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
            let block = |i: usize| &bytemuck::cast_slice(&buffers.words[i])[..len * size];
            let others: &[u8] = if arrays == 2 { block(1) } else { &[] };
            sink(RawRun { start: at as u64, items: block(0), others })?;
            at += len;
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
        let gaps = source.gaps;
        // SAFETY: elements of the walk, which the caller guarantees.
        unsafe { Pack { from, size, rows, columns, row_stride, column_stride, gaps }.fill(now) };
        at += rows * columns;
        to = after;
    }
}
