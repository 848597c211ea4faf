//! Answers whose neighbours in memory are far apart in C order.
//!
//! Written one by one, each would be in a cache line of its own. So outputs are answered a
//! chunk at a time in the order of memory, beside their places, and the chunk is turned in
//! blocks whose lines are written at once.

use super::places::{Places, Strip};
use crate::pack::Pack;
use core::ops::Range;

/// Bytes of a chunk, unless its lines are longer: they stay in the second cache, and allocators
/// keep them from call to call.
const CHUNK: usize = 64 << 10;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Outputs along the innermost axis that are turned at a time: their lines stay in the first
/// cache, also where they share a set of it, which has eight ways at least.
const TOGETHER: usize = 8;
/// Of shorter axes there are no blocks.
const SHORT: usize = 4;

/// How answers are turned.
pub(super) struct Turned<'a> {
    places: &'a Places,
    /// Bytes of an answer.
    size: usize,
    /// The axis along which answers follow each other in C order, forwards or backwards; it is
    /// not the innermost one.
    axis: usize,
    /// Outputs along all axes inside of it.
    inside: usize,
    /// Outputs of a chunk: a multiple of that.
    pub(super) chunk: usize,
}

impl Turned<'_> {
    /// For so many outputs whose answers have `size` bytes, in chunks of `share` outputs at
    /// most; `None` where the answers of neighbours lie together, or there are no blocks.
    pub(super) fn new(
        places: &Places,
        outputs: usize,
        size: usize,
        share: usize,
    ) -> Option<Turned<'_>> {
        let (&(inner, _), outer) = places.axes.split_last()?;
        let axis = outer.iter().position(|&(_, step)| step.abs() == 1)?;
        let beside = outer[axis].0;
        if inner < SHORT || beside < SHORT {
            return None;
        }
        let inside: usize = places.axes[axis + 1..].iter().map(|&(len, _)| len).product();
        // Whole lines at least.
        let rows = (CHUNK / size).min(share) / inside;
        let rows = rows.max(LINE / size).min(outputs / inside);
        Some(Turned { places, size, axis, inside, chunk: rows * inside })
    }

    /// Writes the answers of a chunk, which `answers` has in the order of memory, to their
    /// places among the `all` answers from `to` on.
    ///
    /// # Safety
    /// `to` has room for all answers; no other thread touches those of these outputs.
    pub(super) unsafe fn write(
        &self,
        outputs: Range<usize>,
        answers: &[u8],
        to: *mut u8,
        all: usize,
    ) {
        let Turned { places, size, axis, inside, .. } = *self;
        assert!(outputs.start.is_multiple_of(inside) && outputs.end.is_multiple_of(inside));
        assert!(answers.len() >= outputs.len() * size);
        let (beside, step) = places.axes[axis];
        let (first, end) = (outputs.start / inside, outputs.end / inside);
        let mut at = first;
        while at < end {
            // As far as the axis goes.
            let columns = (beside - at % beside).min(end - at);
            let mut from = answers[(at - first) * inside * size..].as_ptr();
            places.strips(at * inside, (at + 1) * inside, |strip| {
                // SAFETY: passed on from the caller. Of each of `columns` outputs along the axis
                // the strip is among `answers`.
                unsafe { self.turn(strip, from, [columns.cast_signed(), step], to, all) };
                from = from.wrapping_add(strip.len * size);
            });
            at += columns;
        }
    }

    /// Writes the answers of some outputs along the axis, each with those of a strip: how many,
    /// and the places from one to the next, one of either sign.
    ///
    /// # Safety
    /// As for [`write`](Self::write); the answers lie from `from` on, [`inside`](Self::inside)
    /// of them from one output to the next.
    unsafe fn turn(
        &self,
        strip: Strip,
        from: *const u8,
        [columns, step]: [isize; 2],
        to: *mut u8,
        all: usize,
    ) {
        let size = self.size.cast_signed();
        let inside = self.inside.cast_signed() * size;
        let whole = 0..all.cast_signed();
        let mut at = 0;
        while at < strip.len {
            let rows = TOGETHER.min(strip.len - at).cast_signed();
            let first = strip.first + at.cast_signed() * strip.step;
            // From the lowest place on, where the order is the opposite.
            let (row, row_stride) = if strip.step > 0 { (0, size) } else { (rows - 1, -size) };
            let (column, column_stride) =
                if step > 0 { (0, inside) } else { (columns - 1, -inside) };
            let lowest = first + row * strip.step + column * step;
            let last = lowest + (rows - 1) * strip.step.abs() + columns - 1;
            assert!(whole.contains(&lowest) && whole.contains(&last));
            let offset = at.cast_signed() * size + row * size + column * inside;
            let pack = Pack {
                from: from.wrapping_offset(offset),
                size: self.size,
                rows: rows.cast_unsigned(),
                columns: columns.cast_unsigned(),
                row_stride,
                column_stride,
                gaps: false,
            };
            let to = to.wrapping_offset(lowest * size);
            // SAFETY: the answers of a block, which the caller vouches for, and as many places
            // among all of them.
            unsafe { pack.fill_at(to, strip.step.unsigned_abs()) };
            at += TOGETHER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_turned_to_their_places() {
        // Axes in the order of memory, with their places: C order has the one of step 1 last.
        let cases: [(isize, &[(usize, isize)]); 8] = [
            (0, &[(5, 1), (70, 5)]),
            (4, &[(5, -1), (70, 5)]),
            (345, &[(5, 1), (70, -5)]),
            (349, &[(5, -1), (70, -5)]),
            (0, &[(3, 700), (100, 1), (7, 100)]),
            (0, &[(100, 1), (3, 700), (7, 100)]),
            (0, &[(100, 1), (3, 100), (7, 300)]),
            (0, &[(1000, 1), (33, 1000)]),
        ];
        for (first, axes) in cases {
            let places = Places { first, axes: axes.to_vec() };
            let all: usize = axes.iter().map(|&(len, _)| len).product();
            for size in [1, 2, 4, 8] {
                for share in [1, 100, 3000, usize::MAX] {
                    let turned = Turned::new(&places, all, size, share).unwrap();
                    let mut got = vec![0u8; all * size];
                    for start in (0..all).step_by(turned.chunk) {
                        let outputs = start..all.min(start + turned.chunk);
                        let answers: Vec<u8> = outputs
                            .clone()
                            .flat_map(|i| {
                                (i as u64).wrapping_mul(0x0101_0101_0101_0f35).to_le_bytes()[..size]
                                    .to_vec()
                            })
                            .collect();
                        // SAFETY: as many answers as `got` has room for.
                        unsafe { turned.write(outputs, &answers, got.as_mut_ptr(), all) };
                    }
                    for i in 0..all {
                        let want =
                            &(i as u64).wrapping_mul(0x0101_0101_0101_0f35).to_le_bytes()[..size];
                        assert_eq!(&got[places.at(i) * size..][..size], want, "{axes:?} {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn lines_are_written_at_once_and_chunks_stay_in_a_cache() {
        let places = Places { first: 0, axes: vec![(1 << 14, 1), (1 << 14, 1 << 14)] };
        let turned = |size, share| Turned::new(&places, 1 << 28, size, share).unwrap().chunk;
        assert_eq!(turned(8, usize::MAX), 8 << 14);
        assert_eq!(turned(1, usize::MAX), 64 << 14);
        let places = Places { first: 0, axes: vec![(1 << 14, 1), (64, 1 << 14)] };
        let turned = |size, share| Turned::new(&places, 1 << 20, size, share).unwrap().chunk;
        assert_eq!(turned(4, usize::MAX) * 4, CHUNK);
        assert_eq!(turned(4, 1 << 13), 1 << 13);
    }

    #[test]
    fn answers_that_lie_together_are_not_turned() {
        let turned = |axes: &[(usize, isize)]| {
            Turned::new(&Places { first: 0, axes: axes.to_vec() }, 800, 4, usize::MAX).is_some()
        };
        assert!(turned(&[(8, 1), (100, 8)]));
        assert!(!turned(&[(800, 1)]));
        assert!(!turned(&[(8, 100), (100, -1)]));
        assert!(!turned(&[(2, 1), (400, 2)]) && !turned(&[(400, 1), (2, 400)]));
    }
}
