//! Answers on their way from the order of memory to C order.
//!
//! Written one by one, neighbours in memory would each be in a cache line of its own. So outputs are
//! answered a chunk at a time in the order of memory, beside their places, and a chunk is turned in
//! blocks whose lines are written at once.

use super::places::Places;
use crate::pack::{LINE, Pack};
use core::ops::Range;

/// Bytes of a chunk, unless its lines are longer: they stay in the second cache, and allocators
/// keep them from call to call.
const CHUNK: usize = 64 << 10;
/// Lines written side by side, if such a chunk has at most so many bytes: long pieces are faster.
const LINES: usize = 4;
const LARGE: usize = 512 << 10;
/// Rows that are turned at a time: their lines stay in the first cache, also where they share a set
/// of it, which has eight ways at least.
const TOGETHER: usize = 8;
/// Answers that are worth a call.
const WORTH_A_CALL: usize = 64;
/// Shorter axes are no rows of blocks, if there are others.
const SHORT: usize = 4;

/// How answers are turned.
pub(super) struct Turned<'a> {
    places: &'a Places,
    /// The outermost axis of chunks, which have a part of it and all of those inside of it.
    cut: usize,
    /// Outputs along all axes inside of it.
    inside: usize,
    /// Outputs of a chunk: a multiple of that.
    pub(super) chunk: usize,
}

/// An axis of a chunk.
#[derive(Clone, Copy)]
struct Axis {
    len: usize,
    /// Places from one answer to the next.
    step: usize,
    /// Bytes from one to the next in the order of memory.
    stride: isize,
}

impl Turned<'_> {
    /// For so many outputs whose answers have `size` bytes, in chunks of `share` outputs at
    /// most; `None` where both orders are one.
    pub(super) fn new(
        places: &Places,
        outputs: usize,
        size: usize,
        share: usize,
    ) -> Option<Turned<'_>> {
        let axes = &places.axes[..];
        if matches!(axes, [] | [(_, 1)]) {
            return None;
        }
        // The axis along which answers follow each other in C order is a part of each chunk.
        let along = axes.iter().position(|&(_, step)| step.abs() == 1)?;
        let inside =
            |axis: usize| -> usize { axes[axis + 1..].iter().map(|&(len, _)| len).product() };
        let most = (CHUNK / size).min(share);
        let cut = (0..along).find(|&axis| inside(axis) <= most).unwrap_or(along);
        let inside = inside(cut);
        let large = (LARGE / size).min(share) / inside;
        // Whole lines at least.
        let least = if cut == along { large.clamp(LINE / size, LINES * LINE / size) } else { 1 };
        let count = (most / inside).max(least).max(1).min(outputs / inside);
        Some(Turned { places, cut, inside, chunk: count * inside })
    }

    /// Writes the answers of chunks, which `answers` has in the order of memory, to their
    /// places among the `all` answers of `size` bytes from `to` on.
    ///
    /// # Safety
    /// `to` has room for all answers; no other thread touches those of these outputs.
    pub(super) unsafe fn write(
        &self,
        outputs: Range<usize>,
        size: usize,
        answers: &[u8],
        to: *mut u8,
        all: usize,
    ) {
        let Turned { places, cut, inside, .. } = *self;
        assert!(outputs.start.is_multiple_of(inside) && outputs.end.is_multiple_of(inside));
        let (len, end) = (places.axes[cut].0, outputs.end / inside);
        let (mut at, mut answers) = (outputs.start / inside, answers);
        while at < end {
            // As far as the axis goes.
            let count = (len - at % len).min(end - at);
            let (some, rest) = answers.split_at(count * inside * size);
            // SAFETY: passed on from the caller.
            unsafe { self.turn((at * inside, count), size, some, to, all) };
            (at, answers) = (at + count, rest);
        }
    }

    /// Writes the answers of `count` outputs along the axis, from one on, with all inside of it.
    ///
    /// # Safety
    /// As for [`write`](Self::write).
    unsafe fn turn(
        &self,
        (first, count): (usize, usize),
        size: usize,
        answers: &[u8],
        to: *mut u8,
        all: usize,
    ) {
        let mut lowest = self.places.at(first);
        let (mut from, mut stride) = (answers.as_ptr(), size.cast_signed());
        let mut axes = Vec::with_capacity(self.places.axes.len());
        for (i, &(len, step)) in self.places.axes.iter().enumerate().skip(self.cut).rev() {
            let len = if i == self.cut { count } else { len };
            let mut axis = Axis { len, step: step.unsigned_abs(), stride };
            stride *= len.cast_signed();
            if step < 0 {
                // From the lowest place on, where the order is the opposite.
                lowest -= (len - 1) * axis.step;
                from = from.wrapping_offset((len.cast_signed() - 1) * axis.stride);
                axis.stride = -axis.stride;
            }
            axes.push(axis);
        }
        let last: usize = axes.iter().map(|axis| (axis.len - 1) * axis.step).sum();
        assert!(stride.unsigned_abs() == answers.len() && lowest + last < all);
        axes.sort_unstable_by_key(|axis| axis.step);
        let column = axes.remove(0);
        // Rows are what follows in memory, if that is worth it.
        let near = axes.iter().min_by_key(|axis| (axis.len < SHORT, axis.stride.abs())).copied();
        axes.retain(|axis| near.is_none_or(|near| near.step != axis.step));
        let row = near.unwrap_or(Axis { len: 1, step: column.len, stride: 0 });
        let together = TOGETHER.max(WORTH_A_CALL / column.len);
        // The indices of the other axes, as an odometer, that of the least step first.
        let mut index = vec![0; axes.len()];
        for top in (0..row.len).step_by(together) {
            let (mut place, mut offset) = (top * row.step, top.cast_signed() * row.stride);
            'block: loop {
                let pack = Pack {
                    from: from.wrapping_offset(offset),
                    size,
                    rows: together.min(row.len - top),
                    columns: column.len,
                    row_stride: row.stride,
                    column_stride: column.stride,
                };
                let to = to.wrapping_add((lowest + place) * size);
                // SAFETY: answers of the chunk and as many places among all, as is said above; the
                // caller vouches for these.
                unsafe { pack.fill_at(to, row.step) };
                for (i, axis) in index.iter_mut().zip(&axes) {
                    (*i, place, offset) = (*i + 1, place + axis.step, offset + axis.stride);
                    if *i < axis.len {
                        continue 'block;
                    }
                    *i = 0;
                    place -= axis.len * axis.step;
                    offset -= axis.len.cast_signed() * axis.stride;
                }
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpfold_core::layout::PerAxis;

    #[test]
    fn answers_are_turned_to_their_places() {
        // Axes in the order of memory, with their places.
        let cases: [(isize, &[(usize, isize)]); 14] = [
            (0, &[(5, 1), (70, 5)]),
            (4, &[(5, -1), (70, 5)]),
            (345, &[(5, 1), (70, -5)]),
            (349, &[(5, -1), (70, -5)]),
            (0, &[(3, 700), (100, 1), (7, 100)]),
            (0, &[(100, 1), (3, 700), (7, 100)]),
            (0, &[(100, 1), (3, 100), (7, 300)]),
            (0, &[(1000, 1), (33, 1000)]),
            (1999, &[(2000, -1)]),
            (0, &[(13, 1), (39, 13), (2, 507)]),
            (0, &[(100, 6), (2, 1), (3, 2)]),
            (9, &[(70, 10), (10, -1)]),
            (60, &[(4, 5), (4, -20), (5, 1)]),
            (0, &[(2, 1), (3, 2), (2, 6), (20, 12)]),
        ];
        let answer = |i: usize| (i as u64).wrapping_mul(0x0101_0101_0101_0f35).to_le_bytes();
        for (first, axes) in cases {
            let places = Places { first, axes: PerAxis::from_slice(axes) };
            let all: usize = axes.iter().map(|&(len, _)| len).product();
            for (size, share) in [1, 2, 4, 8].into_iter().zip([100, usize::MAX, 3000, 1]) {
                let turned = Turned::new(&places, all, size, share).unwrap();
                let mut got = vec![0u8; all * size];
                for start in (0..all).step_by(turned.chunk) {
                    let some = start..all.min(start + turned.chunk);
                    let answers: Vec<u8> =
                        some.clone().flat_map(|i| answer(i)[..size].to_vec()).collect();
                    // SAFETY: as many answers as `got` has room for.
                    unsafe { turned.write(some, size, &answers, got.as_mut_ptr(), all) };
                }
                for i in 0..all {
                    let got = &got[places.at(i) * size..][..size];
                    assert_eq!(got, &answer(i)[..size], "{axes:?} {i}");
                }
            }
        }
    }

    #[test]
    fn lines_are_written_at_once_and_chunks_stay_in_a_cache() {
        let turned = |axes: &[(usize, isize)], size, share| {
            let places = Places { first: 0, axes: PerAxis::from_slice(axes) };
            Turned::new(&places, 1 << 28, size, share).unwrap().chunk
        };
        let square = [(1 << 14, 1), (1 << 14, 1 << 14)];
        assert_eq!(turned(&square, 8, usize::MAX), 8 << 14);
        assert_eq!(turned(&square, 1, usize::MAX), 64 << 14);
        let between = [(1 << 14, 1), (1 << 10, 1 << 14)];
        assert_eq!(turned(&between, 8, usize::MAX), 32 << 10);
        assert_eq!(turned(&between, 8, 1 << 14), 16 << 10);
        let narrow = [(1 << 14, 1), (64, 1 << 14)];
        assert_eq!(turned(&narrow, 4, usize::MAX) * 4, CHUNK);
        assert_eq!(turned(&narrow, 4, 1 << 13), 1 << 13);
        // Short axes are turned together.
        assert_eq!(turned(&[(1 << 20, 6), (2, 1), (3, 2)], 8, usize::MAX), CHUNK / 48 * 6);
        let none = |axes: &[(usize, isize)]| {
            let places = Places { first: 0, axes: PerAxis::from_slice(axes) };
            Turned::new(&places, 800, 4, usize::MAX).is_none()
        };
        assert!(none(&[(800, 1)]) && none(&[]));
    }
}
