//! Outputs of a few elements, in strips whose accumulators and copies stay in the first cache.
//!
//! A block of outputs has accumulators in memory, which cost more than a few elements do. Of
//! a strip all elements are at hand at once: accumulators answer it from registers if they
//! can, and otherwise a part of it at a time. Neighbours that lie in many short runs are
//! copied together, so that the loops over them are long.

use super::few;
use super::fold::Cells;
use super::lengths::Lengths;
use super::run::{Hands, Run, move_by};
use super::walk::Form;
use crate::pack::Pack;
use crate::table::Table;
use core::ops::Range;

/// The most outputs of a strip.
const STRIP: usize = 1024;
/// Outputs that have accumulators at a time.
const CELLS: usize = 256;

/// How strips of a walk are read.
pub(super) struct Strips {
    /// Outputs of a strip.
    pub(super) len: usize,
    /// Elements of each.
    elements: usize,
    /// The bytes to the first element of each run along the innermost reduced axis.
    outer: Vec<[isize; 2]>,
}

impl Strips {
    /// Accumulators that are enough.
    pub(super) fn cells(&self) -> usize {
        CELLS.min(self.len)
    }
}

impl Run<'_> {
    /// The strips of the walk, if its outputs have few elements.
    pub(super) fn strips_of(walk: &super::walk::Walk) -> Option<Strips> {
        let elements = walk.elements();
        if walk.form != Form::Columns || elements > few::MOST {
            return None;
        }
        let mut outer = vec![[0; 2]];
        for &(len, strides) in &walk.reduced[..walk.reduced.len() - 1] {
            let all = outer.iter().flat_map(|&offsets| {
                (0..len).map(move |i| {
                    let mut offsets = offsets;
                    move_by(&mut offsets, i, strides);
                    offsets
                })
            });
            outer = all.collect();
        }
        Some(Strips { len: walk.together(elements).min(STRIP), elements, outer })
    }

    /// Writes the answers of a strip; the places of those that there are not go to
    /// [`Hands::missing`].
    pub(super) fn strip(
        &self,
        strips: &Strips,
        cells: &mut dyn Cells,
        outputs: Range<usize>,
        to: &mut [u8],
        hands: &mut Hands,
    ) {
        let (walk, count, size) = (&self.walk, outputs.len(), self.item.size());
        let Hands { segments, buffers, missing, .. } = hands;
        walk.segments(outputs.start, outputs.end, segments);
        let (len, along) = walk.reduced.last().copied().unwrap_or((1, [0; 2]));
        let beside = walk.kept.last().map_or([0; 2], |axis| axis.strides);
        let mut tables = [[Table::of_any(core::ptr::null(), 0, 0, 0); few::MOST]; 2];
        let mut used = [0; 2];
        for (array, (tables, buffer)) in tables.iter_mut().zip(buffers).enumerate() {
            let Some(origin) = self.origins[array] else { continue };
            let (along, beside) = (along[array], beside[array]);
            let at = |offsets: [isize; 2], outer: [isize; 2]| {
                origin.wrapping_byte_offset(offsets[array] + outer[array])
            };
            if let ([segment], false) = (&segments[..], walk.copied[array]) {
                for (table, &outer) in tables.iter_mut().zip(&strips.outer) {
                    let from = at(segment.offsets, outer);
                    *table = Table::of_any(from.cast(), along, len, count);
                }
                used[array] = strips.outer.len();
                continue;
            }
            let bytes = strips.elements * count * size;
            if buffer.len() * 8 < bytes {
                buffer.resize(bytes.div_ceil(8), 0);
            }
            let all: &mut [u8] = &mut bytemuck::cast_slice_mut(buffer)[..bytes];
            for segment in &*segments {
                for (i, &outer) in strips.outer.iter().enumerate() {
                    let to = &mut all[(i * len * count + segment.place) * size..];
                    let pack = Pack {
                        from: at(segment.offsets, outer),
                        size,
                        rows: len,
                        columns: segment.len,
                        row_stride: along,
                        column_stride: beside,
                        gaps: self.gaps,
                    };
                    // SAFETY: the table is among the walk's elements, which may be read, and
                    // so may what lies between them if `gaps` says so.
                    unsafe { pack.fill_beside(to, count) };
                }
            }
            let stride = (count * size).cast_signed();
            tables[0] = Table::of_any(all.as_ptr().cast(), stride, strips.elements, count);
            used[array] = 1;
        }
        let [first, second] = &tables;
        let (first, second) = (&first[..used[0]], &second[..used[1]]);
        let paired = self.origins[1].is_some();
        // SAFETY: elements of the walk or copies of them, here and below, which are aligned and
        // may be read; those of a row follow each other, and they have the operation's size.
        if (first.len() == second.len() || !paired) && unsafe { cells.quick([first, second], to) } {
            return;
        }
        let lengths = Lengths::Same(strips.elements as u64);
        let width = to.len() / count;
        for start in (0..count).step_by(CELLS) {
            let columns = CELLS.min(count - start);
            let some = |table: &Table<'_, ()>, rows: Range<usize>| {
                let from = table.at(rows.start, 0).wrapping_byte_add(start * size);
                Table::of_any(from, table.stride(), rows.len(), columns)
            };
            cells.clear(columns);
            if paired {
                // Of one array there may be a table, and of the other one for each outer index.
                for i in 0..strips.outer.len() {
                    let part = |tables: &[Table<'_, ()>]| match tables {
                        [whole] => some(whole, i * len..(i + 1) * len),
                        many => some(&many[i], 0..len),
                    };
                    // SAFETY: as above.
                    unsafe { cells.column_pairs(0, [part(first), part(second)]) };
                }
            } else {
                let mut at = 0;
                for table in first {
                    // SAFETY: as above.
                    unsafe { cells.columns(0, some(table, 0..table.rows()), at) };
                    at += table.rows();
                }
            }
            let before = missing.len();
            cells.answer(0, lengths, &mut to[start * width..][..columns * width], missing);
            missing[before..].iter_mut().for_each(|place| *place += start);
        }
    }
}
